package rewrite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"

	w "github.com/hanzoai/k8s/host/wasmtest"
)

// behaviour is everything that can be seen of a module's run.
type behaviour struct {
	Start   string
	Results []uint64
	Trap    string
	Host    []uint32 // arguments of the host function
	Memory  string   // its size and hash
	Globals []uint64
}

// observe runs the export "f" and looks at everything. globals are the export
// names of the globals.
func observe(t testing.TB, rt wazero.Runtime, wasm []byte, globals []string, params ...uint64) (b behaviour) {
	t.Helper()
	ctx := context.WithValue(context.Background(), hostCalls{}, &b.Host)
	mod, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		b.Start = firstLine(err)
		return b
	}
	defer mod.Close(ctx)
	b.Results, err = mod.ExportedFunction("f").Call(ctx, params...)
	if err != nil {
		b.Trap = firstLine(err)
	}
	if m := mod.ExportedMemory("memory"); len(mod.ExportedMemoryDefinitions()) > 0 {
		view, _ := m.Read(0, m.Size())
		b.Memory = fmt.Sprintf("%d bytes, %x", len(view), sha256.Sum256(view))
	}
	for _, name := range globals {
		b.Globals = append(b.Globals, mod.ExportedGlobal(name).Get())
	}
	return b
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

type hostCalls struct{}

// withHost gives a runtime the module "env" that generated modules import.
func withHost(t testing.TB, rt wazero.Runtime) {
	t.Helper()
	_, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(func(ctx context.Context, v uint32) uint32 {
		calls := ctx.Value(hostCalls{}).(*[]uint32)
		*calls = append(*calls, v)
		if v%17 == 3 {
			panic(fmt.Errorf("the host refuses %d", v))
		}
		return v * 3
	}).Export("host").Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
}

// alike checks that a module and its rewritten form do the same, each compiled
// and interpreted. reachable are the original's globals under names the test
// gave them.
func alike(t testing.TB, rts map[string]wazero.Runtime, wasm []byte, params ...uint64) (trapped bool) {
	t.Helper()
	exposed, names := expose(t, wasm)
	for name, rt := range rts {
		want := observe(t, rt, exposed, names, params...)
		for _, o := range []Options{generous, {Fuel: 1 << 50, MaxPages: 1 << 16, MaxTable: 1 << 20, reload: true}} {
			m := mustRewrite(t, wasm, o)
			got := observe(t, rt, m.Binary, m.Globals, params...)
			if strings.Contains(want.Trap, "stack overflow") {
				// How deep that is depends on the size of a frame.
				want, got = behaviour{Trap: want.Trap}, behaviour{Trap: got.Trap}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: rewritten, it does otherwise (-original +rewritten):\n%s", name, diff)
			}
		}
		trapped = want.Trap != "" || want.Start != ""
	}
	return trapped
}

// expose exports the mutable globals of a module and changes nothing else, so
// that the original's can be compared.
func expose(t testing.TB, wasm []byte) ([]byte, []string) {
	t.Helper()
	m := decode(wasm, generous)
	var names []string
	var all []export
	for _, g := range m.mutable {
		names = append(names, fmt.Sprintf("exposed %d", g))
		all = append(all, export{names[len(names)-1], GlobalExport, uint32(g)})
	}
	all = append(slices.Clone(m.exports), all...)
	body := appendU32(nil, uint32(len(all)))
	for _, e := range all {
		body = appendU32(append(appendName(body, e.name), byte(e.kind)), e.index)
	}
	out := bytes.Clone(wasm[:8])
	r := open(wasm)
	written := false
	for !r.empty() {
		start := r.i
		id, _ := r.section()
		if id != 0 && sectionRank[id] >= sectionRank[exportSection] && !written {
			out, written = appendSection(out, exportSection, body), true
		}
		if id != exportSection {
			out = append(out, wasm[start:r.i]...)
		}
	}
	return out, names
}

func TestGeneratedModulesBehaveAlike(t *testing.T) {
	rts := runtimes(t)
	for _, rt := range rts {
		withHost(t, rt)
	}
	n := uint64(300)
	if testing.Short() {
		n = 60
	}
	trapped := 0
	for seed := range n {
		if alike(t, rts, generate(seed), seed, seed*7) {
			trapped++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if trapped == 0 || trapped > int(n)*4/5 {
		t.Errorf("%d of %d modules trapped: the generator does not cover both ends", trapped, n)
	}
}

func FuzzGenerated(f *testing.F) {
	rts := runtimes(f)
	for _, rt := range rts {
		withHost(f, rt)
	}
	for seed := range uint64(8) {
		f.Add(seed, uint32(seed), uint32(0))
	}
	f.Fuzz(func(t *testing.T, seed uint64, a, b uint32) {
		alike(t, rts, generate(seed), uint64(a), uint64(b))
	})
}

// corpus are modules written by hand for what the generator does not make. Each
// exports f without parameters.
func corpus() map[string][]byte {
	out := map[string][]byte{}
	add := func(name string, build func(m *w.Module)) {
		var m w.Module
		build(&m)
		out[name] = m.Bytes()
	}
	f := func(m *w.Module, results, locals string, code ...w.Code) {
		m.Export("f", w.ExportFunc, m.Func("", results, locals, code...))
	}
	add("multiple values", func(m *w.Module) {
		m.Func("", "iIF", "", w.I32(1), w.I64(2), w.Op(0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f))
		f(m, "iIF", "", w.Call(0))
	})
	add("a loop with parameters and results", func(m *w.Module) {
		t := m.Type("ii", "ii")
		f(m, "ii", "i", w.I32(5), w.I32(0), w.Code{0x03, byte(t)},
			w.Set(0), w.I32(1), w.Sub, w.Get(0), w.I32(2), w.Add,
			w.Join(w.Set(0), w.With(0x22, 0), w.Get(0)), w.Get(0), w.I32(100), w.Op(0x48), w.Drop, w.Op(0x0b))
	})
	add("code after a branch", func(m *w.Module) {
		f(m, "i", "", w.I32(3), w.Return, w.Loop(0x40, w.Br(0)), w.Unreachable)
	})
	add("memory.init and data.drop", func(m *w.Module) {
		m.Memory(1, -1)
		m.PassiveData("hello")
		f(m, "i", "", w.I32(8), w.I32(1), w.I32(4), w.Bulk(8, 0, 0), w.Bulk(9, 0), w.I32(8), w.I32(0), w.I32(0), w.Bulk(8, 0, 0), w.I32(0), w.Load(8))
	})
	add("memory.init past the end", func(m *w.Module) {
		m.Memory(1, -1)
		m.PassiveData("hello")
		f(m, "", "", w.I32(8), w.I32(1), w.I32(5), w.Bulk(8, 0, 0))
	})
	add("a copy that overlaps", func(m *w.Module) {
		m.Memory(1, -1)
		m.Data(0, "abcdefgh")
		f(m, "i", "", w.I32(2), w.I32(0), w.I32(6), w.Bulk(10, 0, 0), w.I32(0), w.Load(4))
	})
	add("a fill past the end", func(m *w.Module) {
		m.Memory(1, -1)
		f(m, "", "", w.I32(65530), w.I32(1), w.I32(10), w.Bulk(11, 0))
	})
	add("a negative length", func(m *w.Module) {
		m.Memory(1, -1)
		f(m, "", "", w.I32(0), w.I32(1), w.I32(-1), w.Bulk(11, 0))
	})
	add("tables", func(m *w.Module) {
		m.Table('a', 4)
		m.Table('e', 1)
		m.PassiveElements(0, 0)
		m.Func("", "i", "", w.I32(9))
		f(m, "iii", "",
			w.I32(1), w.I32(0), w.I32(2), w.Bulk(12, 0, 0), w.Bulk(13, 0),
			w.I32(2), w.I32(1), w.I32(1), w.Bulk(14, 0, 0),
			w.I32(2), w.With(0x11, m.Type("", "i"), 0),
			w.Op(0xd0, 0x6f), w.I32(3), w.Bulk(15, 1),
			w.Bulk(16, 1))
	})
	add("references", func(m *w.Module) {
		m.Table('a', 1)
		m.Elements(0, 0)
		m.Func("", "", "")
		f(m, "ii", "", w.With(0xd2, 0), w.Op(0xd1), w.I32(0), w.With(0x25, 0), w.Op(0xd1))
	})
	add("select with a type", func(m *w.Module) {
		f(m, "I", "", w.I64(1), w.I64(2), w.I32(0), w.With(0x1c, 1, 0x7e))
	})
	add("stack overflow", func(m *w.Module) { f(m, "", "", w.Call(0)) })
	add("division by zero", func(m *w.Module) { f(m, "i", "", w.I32(1), w.I32(0), w.Op(0x6d)) })
	add("a signature mismatch", func(m *w.Module) {
		m.Table('a', 1)
		m.Elements(0, 0)
		f(m, "", "", w.I32(0), w.With(0x11, m.Type("i", ""), 0))
	})
	add("data past the end", func(m *w.Module) {
		m.Memory(1, -1)
		m.Data(0, "x")
		m.Data(65535, "xy")
		f(m, "", "")
	})
	add("data in disorder", func(m *w.Module) {
		m.Memory(1, -1)
		m.Data(100, "second")
		m.Data(10, "first")
		m.Data(106, "")
		m.Data(400, "last")
		m.Data(106, "third")
		f(m, "", "")
	})
	add("data that overlaps in disorder", func(m *w.Module) {
		m.Memory(1, -1)
		m.Data(100, "second")
		m.Data(98, "first")
		f(m, "", "")
	})
	add("elements past the end", func(m *w.Module) {
		m.Table('a', 1)
		m.Elements(1, 0)
		f(m, "", "")
	})
	add("a start that traps", func(m *w.Module) { f(m, "", "", w.Unreachable); m.Start(0) })
	add("growing memory", func(m *w.Module) {
		m.Memory(1, 3)
		f(m, "iii", "", w.I32(1), w.MemoryGrow, w.I32(5), w.MemoryGrow, w.MemorySize)
	})
	add("wide immediates", func(m *w.Module) {
		m.Memory(1, -1)
		f(m, "iI", "", w.Op(0x41, 0x80, 0x80, 0x80, 0x80, 0x78), w.Op(0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f))
	})
	add("globals", func(m *w.Module) {
		m.Global('I', true, w.I64(5))
		m.Global('f', true, w.Op(0x43, 0, 0, 0x80, 0x3f))
		f(m, "I", "", w.With(0x23, 0), w.I64(1), w.Op(0x7c), w.With(0x24, 0), w.With(0x23, 0))
	})
	for seed := range uint64(40) {
		add(fmt.Sprintf("jumps %d", seed), func(m *w.Module) { f(m, "i", "iii", jumps(seed)) })
	}
	return out
}

// jumps is a body as Go's compiler writes one: places, and jumps among them,
// forward and back, that set a local and go to the loop around them. Some of
// these miss: by another local, by way of something in between, to no place.
func jumps(seed uint64) w.Code {
	r := rand.New(rand.NewPCG(seed, 1))
	places := r.IntN(8) + 2
	table := w.Code{0x0e}
	table = append(table, w.U32(uint32(places-1))...)
	for i := range places {
		table = append(table, w.U32(uint32(i))...)
	}
	code := w.Join(w.Get(0), table)
	for i := range places {
		jump := func(depth int) w.Code {
			to := w.Join(w.I32(int32(r.IntN(places+2)-1)), w.Set(0))
			switch r.IntN(8) {
			case 0:
				to = w.Join(to, w.I32(7), w.Set(2))
			case 1:
				to = w.Join(to, w.Op(0x01))
			}
			return w.Join(to, w.Br(uint32(places-1-i+depth)))
		}
		step := w.Join(
			w.Get(2), w.I32(31), w.Op(0x6c), w.I32(int32(i)), w.Add, w.Set(2), // 2: what came of it
			w.Get(1), w.I32(1), w.Add, w.Tee(1), w.I32(200), w.Op(0x46), // 1: turns
			w.If(0x40, w.Get(2), w.Return),
			w.Get(2), w.I32(int32(1<<r.IntN(4))), w.Op(0x71), w.If(0x40, jump(1)),
		)
		if r.IntN(3) > 0 || i == places-1 {
			step = w.Join(step, jump(0))
		}
		code = w.Join(w.Block(0x40, code), step)
	}
	return w.Join(w.Loop(0x40, code), w.Unreachable)
}

// TestJumpsAreDirect checks that those jumps are seen for what they are.
func TestJumpsAreDirect(t *testing.T) {
	direct, all := 0, 0
	for seed := range uint64(40) {
		var m w.Module
		m.Func("", "i", "iii", jumps(seed))
		wasm := m.Bytes()
		body := wasm[bytes.Index(wasm, jumps(seed)):]
		tests, _ := decode(wasm, generous).scan(&reader{b: body, end: len(body)}, 3)
		for _, t := range tests {
			all++
			if t.jump {
				direct++
			}
		}
	}
	if direct < 50 || direct > all-50 {
		t.Errorf("%d of %d tests and jumps are direct jumps", direct, all)
	}
}

func TestCorpusBehavesAlike(t *testing.T) {
	rts := runtimes(t)
	for name, wasm := range corpus() {
		t.Run(name, func(t *testing.T) { alike(t, rts, wasm) })
	}
}

// FuzzRewrite checks that whatever is rewritten is valid to the runtime exactly
// if the original was, and that what was rewritten is not rewritten again.
func FuzzRewrite(f *testing.F) {
	for _, wasm := range corpus() {
		f.Add(wasm)
	}
	for seed := range uint64(20) {
		f.Add(generate(seed))
	}
	for _, build := range endless() {
		var m w.Module
		build(&m)
		f.Add(m.Bytes())
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	verdict := func(wasm []byte) error {
		m, err := rt.CompileModule(ctx, wasm)
		if err == nil {
			m.Close(ctx)
		}
		return err
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := Rewrite(wasm, generous)
		if err != nil {
			return
		}
		// The runtime reads the custom section "name", which is dropped here.
		if bytes.Contains(wasm, []byte("name")) {
			return
		}
		want, got := verdict(wasm), verdict(m.Binary)
		// It cannot read one that is empty, either.
		if want != nil && strings.Contains(want.Error(), "custom section") {
			return
		}
		if (want == nil) != (got == nil) {
			t.Fatalf("original: %v\nrewritten: %v", want, got)
		}
		if _, err := Rewrite(m.Binary, generous); err == nil {
			t.Fatal("rewritten twice")
		}
		_, _ = ExtractSection(wasm, "k8s.manifest")
	})
}
