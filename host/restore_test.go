package host

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	w "github.com/hanzoai/k8s/host/wasmtest"
)

// hoarder keeps its input in many places: all over its memory and in a global.
// Asked to search, it counts the places that hold the 8 bytes it is given.
//
//	{"evil":"KKKKKKKK"}  keep
//	{"find":"KKKKKKKK"}  search: {"n":"c"} for c found, c a letter: 'a' is none
func hoarder() guestModule {
	g := guestModule{name: "hoard", pages: 4}
	// Where the 8 bytes are in the input.
	at := int32(inputAt + len(`{"op":"k8s_hoard_run","in":{"evil":"`))
	key := func() w.Code { return w.Join(w.I32(at), w.With(0x29, 0, 0)) } // i64.load
	each := func(body w.Code) w.Code {
		// local 0 counts up from freeAt to the end of the memory, by 8.
		return w.Join(w.I32(freeAt), w.Set(0),
			w.Loop(0x40, body, w.Get(0), w.I32(8), w.Add, w.Tee(0), w.I32(4<<16), w.Op(0x49), w.BrIf(0)))
	}
	g.evil = func(m *w.Module, f func(string) uint32) w.Code {
		m.Global('I', true, w.I64(0))
		m.Data(600, `{"n":"a"}`)
		m.Func("", "", "i", each(w.Join(w.Get(0), key(), w.With(0x37, 3, 0))), key(), w.With(0x24, 0)) // keep
		m.Func("", "", "ii",
			each(w.Join(w.Get(0), w.With(0x29, 0, 0), key(), w.Op(0x51), w.If(0x40, w.I32(1), w.Set(1)))),
			w.With(0x23, 0), key(), w.Op(0x51), w.If(0x40, w.I32(1), w.Set(1)),
			w.I32(600), w.Get(1), w.I32('a'), w.Add, w.With(0x3a, 0, 6),
			w.I32(1), w.I32(600), w.I32(9), w.Call(f("emit")), w.Drop) // search
		return w.Join(w.Call(f("emit")+1), w.I32(0))
	}
	g.raw = func(m *w.Module) {
		// The kept function "handle" answers what is not evil with ok: search first.
		search := uint32(3)
		handle := uint32(4)
		outer := m.Func("", "i", "",
			w.I32(inputAt), w.I32(2048), w.Call(0), w.Drop,
			w.I32(0), w.With(0x2d, 0, uint32(inputAt+len(`{"op":"k8s_hoard_run","in":{"`))), w.I32('f'), w.Op(0x46),
			w.If(0x7f, w.Call(search), w.I32(0), w.Op(0x05), w.Call(handle)))
		m.Export("entry_", w.ExportFunc, outer)
	}
	return g
}

// entryAsHandle makes "entry" what the host calls.
func entryAsHandle(t testing.TB, g guestModule) []byte {
	t.Helper()
	wasm := g.build(t)
	wasm = bytes.Replace(wasm, []byte("\x06handle"), []byte("\x06hidden"), 1)
	return bytes.Replace(wasm, []byte("\x06entry_"), []byte("\x06handle"), 1)
}

func TestNoTenantSeesAnother(t *testing.T) {
	calls := 10_000
	if testing.Short() {
		calls = 1000
	}
	s := newSandbox(t, func(c *Config) { c.Pool.Ceiling = 2 })
	wasm := entryAsHandle(t, hoarder())
	if _, err := s.Load(context.Background(), wasm); err != nil {
		t.Fatal(err)
	}
	// The search finds what is there: in the same call nothing was kept, so this
	// shows it on an instance that is not restored.
	i, err := s.serving("hoard").instances.get(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	if n := direct(t, s, i, `{"evil":"MARKER00"}`, `{"find":"MARKER00"}`); n != `{"n":"b"}` {
		t.Fatalf("without a restore the search says %s: it cannot find anything", n)
	}
	s.serving("hoard").instances.put(i, false, Trapped)

	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range calls / 4 {
				marker := fmt.Sprintf("M%07x", r.IntN(1<<28))
				if _, code := s.ask("k8s_hoard_run", `{"evil":"`+marker+`"}`); code != "" {
					t.Errorf("keeping: %q", code)
				}
				got, code := s.ask("k8s_hoard_run", `{"find":"`+marker+`"}`)
				if code != "" || got.rest != `{"n":"a"}` {
					t.Errorf("searching: %+v, %q", got, code)
					return
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "all restored", func() bool { return s.seen.tally().equal >= calls })
	if s.seen.tally().different != 0 {
		t.Errorf("%d instances differed after a restore", s.seen.tally().different)
	}
	if s.seen.tally().blocks < calls/2*60 {
		t.Errorf("%d blocks restored in %d calls: the guest dirtied less than it should", s.seen.tally().blocks, calls)
	}
}

// direct runs two calls on one instance without a restore in between.
func direct(t *testing.T, s *sandbox, i *instance, inputs ...string) string {
	t.Helper()
	h := &heard{}
	op, _ := s.Lookup("k8s_hoard_run")
	for _, in := range inputs {
		m := &meter{limits: op.limits}
		c := newCall(context.Background(), s.Host, op, &Call{Token: op.Token, Input: []byte(in), Answer: h}, nil, m)
		var ret [1]uint64
		if _, err := i.invoke(&run{Context: c.ctx, call: c, meter: m}, i.handle, op.limits.Fuel, ret[:]); err != nil {
			t.Fatal(err)
		}
		c.end()
	}
	return h.rest
}

// TestStateBeyondMemory checks the state that a copy of memory and globals does
// not hold: such instances serve once.
func TestStateBeyondMemory(t *testing.T) {
	for name, evil := range map[string]func(m *w.Module, f func(string) uint32) w.Code{
		"a table's size": func(m *w.Module, _ func(string) uint32) w.Code {
			m.Table('e', 1)
			return w.Join(w.Bulk(16, 0), w.I32(1), w.Op(0x47), w.Op(0xd0, 0x6f), w.I32(1), w.Bulk(15, 0), w.Drop)
		},
		"a table's entry": func(m *w.Module, f func(string) uint32) w.Code {
			m.Table('a', 1)
			m.PassiveElements(0)
			return w.Join(w.I32(0), w.With(0x25, 0), w.Op(0xd1), w.Eqz, w.I32(0), w.With(0xd2, 0), w.With(0x26, 0))
		},
		"a segment dropped": func(m *w.Module, _ func(string) uint32) w.Code {
			m.PassiveData("x")
			return w.Join(w.I32(0), w.I32(0), w.I32(1), w.Bulk(8, 1, 0), w.Bulk(9, 1), w.I32(0))
		},
		"a global reference": func(m *w.Module, _ func(string) uint32) w.Code {
			m.PassiveElements(0)
			m.Global('a', true, w.Op(0xd0, 0x70))
			return w.Join(w.With(0x23, 0), w.Op(0xd1), w.Eqz, w.With(0xd2, 0), w.With(0x24, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			s.load(t, guestModule{name: "sticky", evil: evil})
			for range 3 {
				if _, code := s.ask("k8s_sticky_run", `{"evil":1}`); code != "" {
					t.Errorf("refused with %q: it saw the state of the call before", code)
				}
			}
			eventually(t, "each served once", func() bool { return s.seen.discards(Spent) >= 3 })
		})
	}
}

// TestRestoreIsWhole dirties memory and globals at random and compares all of
// them with the snapshot.
func TestRestoreIsWhole(t *testing.T) {
	s := newSandbox(t)
	s.load(t, guestModule{name: "whole", pages: 5, raw: func(m *w.Module) {
		for _, k := range "iIfF" {
			m.Global(k, true, map[rune]w.Code{'i': w.I32(-5), 'I': w.I64(1 << 40), 'f': w.Op(0x43, 1, 2, 3, 4), 'F': w.Op(0x44, 1, 2, 3, 4, 5, 6, 7, 8)}[k])
		}
	}})
	pool := s.serving("whole").instances
	i, err := pool.get(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.put(i, false, Trapped)
	snap := pool.program.snapshot
	if got, want := len(i.globals), 4; got != want {
		t.Fatalf("%d globals, want %d", got, want)
	}
	for range 200 {
		view := i.view()
		dirty := map[int]bool{}
		for range rand.IntN(30) {
			at := rand.IntN(len(view))
			view[at] ^= byte(1 + rand.IntN(255))
			dirty[at/blockSize] = true
		}
		for _, g := range i.globals {
			g.Set(rand.Uint64() >> 33)
		}
		i.fuel.Set(rand.Uint64())
		blocks, ok := i.restore()
		if !ok || blocks > len(dirty) {
			t.Errorf("restore() = %d, %t with %d dirty blocks", blocks, ok, len(dirty))
		}
		if !bytes.Equal(i.view(), imageOf(snap)) {
			t.Fatal("memory differs")
		}
		for n, g := range i.globals {
			if g.Get() != snap.globals[n] {
				t.Errorf("global %d is %d, want %d", n, g.Get(), snap.globals[n])
			}
		}
		if i.fuel.Get() != 0 || i.sum() != snap.sum {
			t.Error("fuel or hash differ")
		}
	}
	// The check itself: one bit anywhere changes the hash.
	i.view()[len(i.view())-1] ^= 1
	if i.sum() == snap.sum {
		t.Error("a changed byte does not change the hash")
	}
	i.restore()
	i.globals[2].Set(1)
	if i.sum() == snap.sum {
		t.Error("a changed global does not change the hash")
	}
}

// TestDifferenceIsCaught spoils the snapshot under a restored instance: it must
// be thrown away and told of.
func TestDifferenceIsCaught(t *testing.T) {
	s := newSandbox(t)
	m := s.load(t, guestModule{name: "spoilt"})
	eventually(t, "nobody reads the snapshot", func() bool {
		m.instances.mu.Lock()
		defer m.instances.mu.Unlock()
		return !m.instances.making && m.instances.clean == 0
	})
	s.serving("spoilt").instances.program.snapshot.sum ^= 1
	s.ask("k8s_spoilt_run", good)
	eventually(t, "it is told of", func() bool { return s.seen.discards(Differed) > 0 })
	if !strings.Contains(s.logs.String(), "differs from its snapshot") {
		t.Error("the log does not say so")
	}
}

// imageOf is the memory that a snapshot stands for.
func imageOf(s *snapshot) []byte {
	var b []byte
	for n := range s.blocks {
		b = append(b, s.block(n)...)
	}
	return b
}
