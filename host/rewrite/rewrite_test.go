package rewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	w "github.com/hanzoai/k8s/host/wasmtest"
)

var generous = Options{Fuel: 1 << 50, MaxPages: 1 << 16, MaxTable: 1 << 20}

const features = api.CoreFeaturesV2 &^ api.CoreFeatureSIMD

func mustRewrite(t testing.TB, wasm []byte, o Options) *Module {
	t.Helper()
	m, err := Rewrite(wasm, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runtimes are the two ways wazero runs a module.
func runtimes(t testing.TB) map[string]wazero.Runtime {
	ctx := context.Background()
	rts := map[string]wazero.Runtime{
		"compiler":    wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features)),
		"interpreter": wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features)),
	}
	t.Cleanup(func() {
		for _, rt := range rts {
			rt.Close(ctx)
		}
	})
	return rts
}

func instantiate(t testing.TB, rt wazero.Runtime, wasm []byte) api.Module {
	t.Helper()
	m, err := rt.InstantiateWithConfig(context.Background(), wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fuelOf(m api.Module) api.MutableGlobal { return m.ExportedGlobal(Fuel).(api.MutableGlobal) }

// endless are functions that never return by themselves.
func endless() map[string]func(m *w.Module) {
	handle := func(locals string, code ...w.Code) func(m *w.Module) {
		return func(m *w.Module) { m.Export("f", w.ExportFunc, m.Func("", "", locals, code...)) }
	}
	return map[string]func(m *w.Module){
		"loop":              handle("", w.Loop(0x40, w.Br(0))),
		"loop br_if":        handle("", w.Loop(0x40, w.I32(1), w.BrIf(0))),
		"loop br_table":     handle("", w.Loop(0x40, w.I32(7), w.With(0x0e, 1, 0, 0))),
		"outer loop":        handle("", w.Loop(0x40, w.Block(0x40, w.Block(0x40, w.Br(2))))),
		"loop from an if":   handle("", w.Loop(0x40, w.I32(1), w.If(0x40, w.Br(1)))),
		"loop with a value": handle("", w.Loop(0x7f, w.I32(1), w.BrIf(0), w.I32(2)), w.Drop),
		"nested loops":      handle("", w.Loop(0x40, w.Loop(0x40, w.I32(0), w.BrIf(0)), w.Br(0))),
		"loop with parameters": func(m *w.Module) {
			t := m.Type("i", "")
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.I32(1), w.Code{0x03, byte(t)}, w.Br(0), w.Op(0x0b)))
		},
		"recursion": func(m *w.Module) {
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.Call(0)))
		},
		"mutual recursion in turns": func(m *w.Module) {
			// Each call returns, so the stack never overflows: a tree 64 deep.
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.I32(64), w.Call(1)))
			m.Func("i", "", "", w.Get(0), w.If(0x40, w.Get(0), w.I32(1), w.Sub, w.Call(1), w.Get(0), w.I32(1), w.Sub, w.Call(1)))
		},
		"indirect calls": func(m *w.Module) {
			m.Table('a', 1)
			m.Elements(0, 1)
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.I32(64), w.Call(1)))
			t := m.Type("i", "")
			m.Func("i", "", "", w.Get(0), w.If(0x40,
				w.Get(0), w.I32(1), w.Sub, w.I32(0), w.With(0x11, t, 0),
				w.Get(0), w.I32(1), w.Sub, w.I32(0), w.With(0x11, t, 0)))
		},
		"huge fills": func(m *w.Module) {
			m.Memory(256, -1)
			fill := w.Join(w.I32(0), w.I32(0), w.I32(256<<16), w.Bulk(11, 0))
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.Loop(0x40, fill, fill, fill, fill, fill, fill, fill, w.Br(0))))
		},
		"huge copies": func(m *w.Module) {
			m.Memory(256, -1)
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.Loop(0x40, w.I32(1), w.I32(0), w.I32(200<<16), w.Bulk(10, 0, 0), w.Br(0))))
		},
		"table fills": func(m *w.Module) {
			m.Table('e', 1<<16)
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.Loop(0x40, w.I32(0), w.Op(0xd0, 0x6f), w.I32(1<<16), w.Bulk(17, 0), w.Br(0))))
		},
		"memory.grow": func(m *w.Module) {
			m.Memory(1, -1)
			m.Export("f", w.ExportFunc, m.Func("", "", "", w.Loop(0x40, w.I32(1), w.MemoryGrow, w.Drop, w.Br(0))))
		},
		"wide loop": func(m *w.Module) {
			// A long body with one test: charged by the instruction.
			m.Export("f", w.ExportFunc, m.Func("", "", "i", w.Loop(0x40, bytes.Repeat(w.Join(w.Get(0), w.I32(1), w.Add, w.Set(0)), 20_000), w.Br(0))))
		},
	}
}

func TestFuelStopsEverything(t *testing.T) {
	for name, rt := range runtimes(t) {
		for what, build := range endless() {
			t.Run(name+"/"+what, func(t *testing.T) {
				var m w.Module
				build(&m)
				o := Options{Fuel: 20_000_000, MaxPages: 1024, MaxTable: 1 << 16}
				if name == "interpreter" {
					o.Fuel = 1_000_000
				}
				mod := instantiate(t, rt, mustRewrite(t, m.Bytes(), o).Binary)
				defer mod.Close(context.Background())
				_, err := mod.ExportedFunction("f").Call(context.Background())
				if err == nil {
					t.Fatal("it returned")
				}
				if left := int64(fuelOf(mod).Get()); left >= 0 && !strings.Contains(err.Error(), "stack overflow") {
					t.Errorf("stopped by %v with %d units left", err, left)
				}
			})
		}
	}
}

// TestFuelIsProportional checks that work is charged by its size, so that a
// budget is a bound on time whatever the code looks like.
func TestFuelIsProportional(t *testing.T) {
	rt := runtimes(t)["compiler"]
	used := func(o Options, code ...w.Code) int64 {
		var m w.Module
		m.Memory(16, -1)
		m.Export("f", w.ExportFunc, m.Func("", "", "i", code...))
		mod := instantiate(t, rt, mustRewrite(t, m.Bytes(), o).Binary)
		defer mod.Close(context.Background())
		if _, err := mod.ExportedFunction("f").Call(context.Background()); err != nil {
			t.Fatal(err)
		}
		return o.Fuel - int64(fuelOf(mod).Get())
	}
	flat := generous
	flat.Flat = true
	step := w.Join(w.Get(0), w.I32(1), w.Add, w.Set(0))
	turns := func(n int32, body w.Code) w.Code {
		return w.Join(w.I32(n), w.Set(0), w.Loop(0x40, body, w.Get(0), w.I32(1), w.Sub, w.Tee(0), w.BrIf(0)))
	}
	arms := func(n int, body w.Code) w.Code {
		targets := w.Code{0x0e} // br_table: to the first arm
		targets = append(targets, w.U32(uint32(n))...)
		for i := range n + 1 {
			targets = append(targets, w.U32(uint32(min(i, n-1)))...)
		}
		code := w.Join(w.I32(0), targets)
		for i := range n {
			code = w.Join(w.Block(0x40, code), body, w.Br(uint32(n-1-i)))
		}
		return w.Block(0x40, code)
	}
	fill := func(n int32) w.Code { return w.Join(w.I32(0), w.I32(1), w.I32(n), w.Bulk(11, 0)) }
	for name, c := range map[string]struct {
		got, want int64
	}{
		"empty":         {used(generous), 1},
		"straight line": {used(generous, bytes.Repeat(step, 100)), 401},
		"a loop of 10":  {used(generous, turns(10, nil)), 3 + 10*6},
		// As Go's compiler writes a function: a turn of its loop runs one arm.
		"one of 100 arms": {used(generous, arms(100, step)), 3 + 5},
		// The dearer way is paid for, whichever is taken.
		"either way": {used(generous, w.Get(0), w.If(0x40, w.Op(0x01), w.Op(0x05), bytes.Repeat(step, 100))), 3 + 400},
		// What follows a loop is paid for although the loop is passed by.
		"round a loop":     {used(generous, w.Block(0x40, w.I32(1), w.BrIf(0), w.Loop(0x40)), bytes.Repeat(step, 100)), 3 + 400},
		"flat":             {used(flat, bytes.Repeat(step, 100)), 1},
		"flat loop of 10":  {used(flat, turns(10, nil)), 11},
		"a fill of 64 KiB": {used(generous, fill(1<<16)) - used(generous, fill(0)), 1 << 16 >> bulkShift},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d units, want %d", name, c.got, c.want)
		}
	}
}

func TestRefusedByName(t *testing.T) {
	code := func(c ...w.Code) []byte {
		var m w.Module
		m.Memory(1, -1)
		m.Func("", "", "", c...)
		return m.Bytes()
	}
	of := func(build func(m *w.Module)) []byte {
		var m w.Module
		build(&m)
		return m.Bytes()
	}
	for name, c := range map[string]struct {
		wasm    []byte
		feature string
	}{
		"simd":            {code(w.Op(0xfd, 0x0c)), "SIMD"},
		"v128 local":      {of(func(m *w.Module) { m.Func("", "", "v") }), "SIMD"},
		"atomics":         {code(w.Op(0xfe, 0x00)), "threads"},
		"shared memory":   {of(func(m *w.Module) { m.RawMemory(3, 1, 1) }), "threads"},
		"throw":           {code(w.Op(0x08, 0x00)), "exception handling"},
		"try_table":       {code(w.Op(0x1f, 0x40, 0x00)), "exception handling"},
		"legacy try":      {code(w.Op(0x06, 0x40)), "exception handling"},
		"tag section":     {of(func(m *w.Module) { m.Raw(w.Section(13, []byte{0})) }), "exception handling"},
		"return_call":     {code(w.With(0x12, 0)), "the tail call"},
		"call_ref":        {code(w.With(0x14, 0)), "typed function references"},
		"gc":              {code(w.Op(0xfb, 0x00)), "garbage collection"},
		"memory64":        {of(func(m *w.Module) { m.RawMemory(4, 1) }), "64-bit memory"},
		"two memories":    {of(func(m *w.Module) { m.RawMemory(0, 1); m.RawMemory(0, 1) }), "more than one memory"},
		"memory 1":        {code(w.I32(0), w.With(0x28, 0x42, 1, 0), w.Drop), "more than one memory"},
		"extended const":  {of(func(m *w.Module) { m.Global('i', false, w.Join(w.I32(1), w.I32(1), w.Add)) }), "extended constant expressions"},
		"imported memory": {of(func(m *w.Module) { m.RawImport("env", "memory", 2, 0, 1) }), "the import of a memory (env.memory)"},
		"imported global": {of(func(m *w.Module) { m.RawImport("env", "g", 3, 0x7f, 0) }), "the import of a global (env.g)"},
		"imported table":  {of(func(m *w.Module) { m.RawImport("env", "t", 1, 0x70, 0, 1) }), "the import of a table (env.t)"},
		"component":       {[]byte("\x00asm\x0d\x00\x01\x00"), "the component model"},
	} {
		_, err := Rewrite(c.wasm, generous)
		var u *Unsupported
		if !errors.As(err, &u) || u.Feature != c.feature {
			t.Errorf("%s: %v, want %q to be unsupported", name, err, c.feature)
		}
	}
}

func TestRefused(t *testing.T) {
	of := func(build func(m *w.Module)) []byte {
		var m w.Module
		build(&m)
		return m.Bytes()
	}
	body := func(b ...byte) []byte { return of(func(m *w.Module) { m.Body("", "", b) }) }
	fuel := w.With(0x23, 1) // past the module's one global: the counter, once rewritten
	for name, wasm := range map[string][]byte{
		"nothing":                 nil,
		"text":                    []byte("(module)"),
		"version":                 []byte("\x00asm\x02\x00\x00\x00"),
		"section past the end":    []byte("\x00asm\x01\x00\x00\x00\x01\x05\x00"),
		"sections out of order":   append(of(func(m *w.Module) { m.Memory(1, -1) }), w.Section(1, []byte{0})...),
		"section twice":           append(of(func(m *w.Module) {}), append(w.Section(1, []byte{0}), w.Section(1, []byte{0})...)...),
		"unknown section":         append(of(func(m *w.Module) {}), w.Section(14, nil)...),
		"bytes after a section":   append(of(func(m *w.Module) {}), w.Section(1, []byte{0, 0})...),
		"forged count of types":   append(of(func(m *w.Module) {}), w.Section(1, w.U32(1<<31))...),
		"forged count of locals":  body(append(w.U32(1), append(w.U32(1<<31), 0x7f, 0x0b)...)...),
		"forged count of labels":  body(append([]byte{0, 0x41, 0, 0x0e}, append(w.U32(1<<30), 0, 0x0b)...)...),
		"no body":                 append(of(func(m *w.Module) { m.Type("", "") }), w.Section(3, []byte{1, 0})...),
		"no end":                  body(0, 0x01),
		"code after the end":      body(0, 0x0b, 0x01),
		"unknown opcode":          body(0, 0x27, 0x0b),
		"unknown prefixed opcode": body(0, 0xfc, 18, 0x0b),
		"integer too long":        body(0, 0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a, 0x0b),
		"the fuel counter":        of(func(m *w.Module) { m.Global('i', true, w.I32(0)); m.Func("", "", "", fuel, w.Drop) }),
		"the fuel counter, set":   of(func(m *w.Module) { m.Func("", "", "", w.I64(1<<40), w.With(0x24, 0)) }),
		"the fuel counter, out":   of(func(m *w.Module) { m.Export("x", w.ExportGlobal, 0) }),
		"the fuel counter, const": of(func(m *w.Module) { m.Global('I', false, w.With(0x23, 0)) }),
		"the added local":         of(func(m *w.Module) { m.Func("", "", "i", w.Get(1), w.Drop) }),
		"a reserved export":       of(func(m *w.Module) { m.Export(Fuel, w.ExportFunc, m.Func("", "", "")) }),
		"an export twice":         of(func(m *w.Module) { m.Memory(1, -1); m.Export("memory", w.ExportMemory, 0) }),
		"an export of nothing":    of(func(m *w.Module) { m.Export("f", w.ExportFunc, 0) }),
		"memory max below min":    of(func(m *w.Module) { m.Memory(2, 1) }),
		"memory too large":        of(func(m *w.Module) { m.Memory(1<<16+1, -1) }),
		"a name not UTF-8":        of(func(m *w.Module) { m.Export("\xff", w.ExportFunc, m.Func("", "", "")) }),
		"too many locals":         of(func(m *w.Module) { m.Func("", "", strings.Repeat("i", MaxLocals+1)) }),
		"too many loops":          of(func(m *w.Module) { m.Func("", "", "", bytes.Repeat(w.Loop(0x40), MaxLoops+1)) }),
		"locals times blocks": of(func(m *w.Module) {
			m.Func("", "", strings.Repeat("i", MaxLocals-1), bytes.Repeat(w.Block(0x40), MaxEffort/MaxLocals+1))
		}),
		"data count": of(func(m *w.Module) { m.Memory(1, -1); m.Raw(w.Section(12, []byte{1})) }),
	} {
		_, err := Rewrite(wasm, generous)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v, want an *Error", name, err)
		}
	}
}

func TestHostBounds(t *testing.T) {
	var m w.Module
	m.Memory(2, -1)
	m.Table('a', 10)
	got := mustRewrite(t, m.Bytes(), Options{MaxPages: 3, MaxTable: 20})
	if got.MinPages != 2 || got.MaxPages != 3 {
		t.Errorf("memory of %d to %d pages, want 2 to 3", got.MinPages, got.MaxPages)
	}
	mod := instantiate(t, runtimes(t)["compiler"], got.Binary)
	if _, ok := mod.Memory().Grow(1); !ok {
		t.Error("cannot grow to 3 pages")
	}
	if _, ok := mod.Memory().Grow(1); ok {
		t.Error("grew to 4 pages")
	}
	for _, o := range []Options{{MaxPages: 1, MaxTable: 20}, {MaxPages: 3, MaxTable: 9}} {
		if _, err := Rewrite(m.Bytes(), o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}

func TestDescription(t *testing.T) {
	var m w.Module
	m.Import("k8s", "next", "iii", "i")
	m.Memory(1, -1)
	m.Global('i', true, w.I32(1))
	m.Global('I', false, w.I64(1))
	m.Global('F', true, w.Op(0x44, 0, 0, 0, 0, 0, 0, 0, 0))
	m.Table('a', 1)
	f := m.Func("", "i", "", w.I32(0), w.Op(0xd0, 0x70), w.With(0x26, 0), w.I32(0))
	m.Export("handle", w.ExportFunc, f)
	m.Start(m.Func("", "", ""))
	m.Custom("name", []byte{1, 2, 3})
	got := mustRewrite(t, m.Bytes(), generous)
	got.Binary = nil
	want := &Module{
		Imports: []Import{{Module: "k8s", Name: "next", Type: FuncType{Params: []ValueType{I32, I32, I32}, Results: []ValueType{I32}}}},
		Exports: map[string]Export{
			"memory": {Kind: MemoryExport},
			"handle": {Kind: FuncExport, Type: FuncType{Params: []ValueType{}, Results: []ValueType{I32}}},
		},
		Globals:  []string{"__k8s_global_0", "__k8s_global_2"},
		Sticky:   []string{"table.set"},
		MinPages: 1, MaxPages: 1 << 16,
		Start: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSections(t *testing.T) {
	var m w.Module
	m.Memory(1, -1)
	wasm := AppendSection(m.Bytes(), "a", []byte("one"))
	wasm = AppendSection(wasm, "b", nil)
	for name, want := range map[string]string{"a": "one", "b": ""} {
		got, err := ExtractSection(wasm, name)
		if err != nil || got == nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := ExtractSection(wasm, "c"); got != nil || err != nil {
		t.Errorf("c: %q, %v", got, err)
	}
	if _, err := ExtractSection(AppendSection(wasm, "a", nil), "a"); err == nil {
		t.Error("two sections of one name: accepted")
	}
	if _, err := ExtractSection(wasm[:len(wasm)-1], "a"); err == nil {
		t.Error("cut short: accepted")
	}
}

func TestDataMerge(t *testing.T) {
	for name, c := range map[string]struct {
		build func(m *w.Module)
		want  int
	}{
		"near":        {func(m *w.Module) { m.Data(0, "ab"); m.Data(2, "c"); m.Data(200, "d") }, 1},
		"far":         {func(m *w.Module) { m.Data(0, "ab"); m.Data(1000, "c") }, 2},
		"empty":       {func(m *w.Module) { m.Data(0, "ab"); m.Data(1000, ""); m.Data(1001, "x") }, 2},
		"overlapping": {func(m *w.Module) { m.Data(0, "abcd"); m.Data(2, "x") }, 2},
		"disordered":  {func(m *w.Module) { m.Data(10, "abcd"); m.Data(2, "x") }, 1},
		"outside":     {func(m *w.Module) { m.Data(0, "a"); m.Data(1, "b"); m.Data(1<<16, "x") }, 3},
		"named": {func(m *w.Module) {
			m.PassiveData("x")
			m.Data(0, "a")
			m.Data(1, "b")
			m.Func("", "", "", w.Bulk(9, 0))
		}, 3},
		"passive": {func(m *w.Module) { m.Data(0, "a"); m.PassiveData("x"); m.Data(1, "b") }, 3},
	} {
		var m w.Module
		m.Memory(1, -1)
		c.build(&m)
		if got := len(decode(m.Bytes(), generous).merged()); got != c.want {
			t.Errorf("%s: %d segments, want %d", name, got, c.want)
		}
	}
}

func Example() {
	var m w.Module
	m.Export("spin", w.ExportFunc, m.Func("", "", "", w.Loop(0x40, w.Br(0))))

	bounded, err := Rewrite(m.Bytes(), Options{Fuel: 1000, MaxPages: 16, MaxTable: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	mod, err := rt.Instantiate(ctx, bounded.Binary)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = mod.ExportedFunction("spin").Call(ctx)
	fmt.Println("stopped:", err != nil, "fuel left:", int64(mod.ExportedGlobal(Fuel).Get()))
	// Output: stopped: true fuel left: -1
}
