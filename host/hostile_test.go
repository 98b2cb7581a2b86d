package host

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	w "github.com/hanzoai/k8s/host/wasmtest"
)

// hostile is a guest and what must come of it.
type hostile struct {
	guestModule
	code    string  // of the refusal
	discard Discard // of the instance, "" if it may serve again
}

// few are limits with which a bomb is over soon.
var few = manifest.Limits{Fuel: 50_000_000, MemoryPages: 64, HostCalls: 1000, BytesOut: 1 << 20, Items: 1000, Millis: 20_000}

func hostiles() map[string]hostile {
	plain := func(code string, discard Discard, c ...w.Code) hostile {
		return hostile{guestModule{evil: func(*w.Module, func(string) uint32) w.Code { return w.Join(c...) }}, code, discard}
	}
	with := func(code string, discard Discard, imports string, c func(f func(string) uint32) w.Code) hostile {
		return hostile{guestModule{imports: strings.Fields(imports), evil: func(_ *w.Module, f func(string) uint32) w.Code { return c(f) }}, code, discard}
	}
	wasi := func(code string, discard Discard, imports string, c func(f func(string) uint32) w.Code) hostile {
		return hostile{guestModule{wasi: strings.Fields(imports), evil: func(_ *w.Module, f func(string) uint32) w.Code { return c(f) }}, code, discard}
	}
	made := func(code string, discard Discard, c func(m *w.Module, f func(string) uint32) w.Code) hostile {
		return hostile{guestModule{evil: c}, code, discard}
	}
	forever := func(c ...w.Code) w.Code { return w.Join(w.Loop(0x40, w.Join(c...), w.Br(0)), w.I32(0)) }
	// call3 calls a function of the ABI with constants and gives back 0.
	call := func(f uint32, args ...int32) w.Code {
		var c w.Code
		for _, a := range args {
			c = w.Join(c, w.I32(a))
		}
		return w.Join(c, w.Call(f))
	}
	const list = `{}`
	open := func(f func(string) uint32) w.Code {
		return w.Join(w.I32(freeAt), w.I32('{'|'}'<<8), w.Store(0), w.I32(freeAt), w.I32(int32(len(list))), w.Call(f("clusters_list")))
	}

	return map[string]hostile{
		// Loops, recursion and bombs.
		"a loop":            plain("fuel_exhausted", Exhausted, forever()),
		"a loop that works": plain("fuel_exhausted", Exhausted, forever(w.I32(0), w.I32(1), w.Store(8))),
		"a loop of blocks":  plain("fuel_exhausted", Exhausted, forever(w.Block(0x40, w.I32(0), w.BrIf(0)))),
		"recursion": made("guest_fault", Trapped, func(m *w.Module, f func(string) uint32) w.Code {
			i := m.Func("", "", "", w.Call(f("emit")+1))
			return w.Join(w.Call(i), w.I32(0))
		}),
		"recursion with big frames": made("guest_fault", Trapped, func(m *w.Module, f func(string) uint32) w.Code {
			i := m.Func("IIIIIIIIIIII", "", "", w.Join(bytes.Repeat(w.Get(3), 12), w.Call(f("emit")+1)), bytes.Repeat(w.Join(w.Get(1), w.Get(2), w.Op(0x7c), w.Drop), 9))
			return w.Join(bytes.Repeat(w.I64(1), 12), w.Call(i), w.I32(0))
		}),
		"a tree of calls": made("fuel_exhausted", Exhausted, func(m *w.Module, f func(string) uint32) w.Code {
			me := f("emit") + 1
			down := w.Join(w.Get(0), w.I32(1), w.Sub, w.Call(me))
			i := m.Func("i", "", "", w.Get(0), w.If(0x40, down, down))
			return w.Join(w.I32(60), w.Call(i), w.I32(0))
		}),
		"a tree of indirect calls": made("fuel_exhausted", Exhausted, func(m *w.Module, f func(string) uint32) w.Code {
			m.Table('a', 1)
			down := w.Join(w.Get(0), w.I32(1), w.Sub, w.I32(0), w.With(0x11, m.Type("i", ""), 0))
			i := m.Func("i", "", "", w.Get(0), w.If(0x40, down, down))
			m.Elements(0, i)
			return w.Join(w.I32(60), w.Call(i), w.I32(0))
		}),
		"a fill bomb": plain("fuel_exhausted", Exhausted, forever(w.I32(0), w.I32(0), w.I32(2<<16), w.Bulk(11, 0))),
		"a copy bomb": plain("fuel_exhausted", Exhausted, forever(w.I32(0), w.I32(1), w.I32(100_000), w.Bulk(10, 0, 0))),
		"a memory bomb": plain("", Grew, w.Loop(0x40, w.I32(1), w.MemoryGrow, w.I32(-1), w.Op(0x47), w.BrIf(0)),
			w.MemorySize, w.I32(64), w.Op(0x47)), // not 64 pages at the end: an answer of 1
		"a memory bomb that never stops": plain("fuel_exhausted", Exhausted, forever(w.I32(1), w.MemoryGrow, w.Drop)),
		"a memory bomb at once":          plain("", "", w.I32(65000), w.MemoryGrow, w.I32(-1), w.Op(0x47)),
		"a table bomb": made("", Spent, func(m *w.Module, _ func(string) uint32) w.Code {
			m.Table('e', 1)
			grow := w.Join(w.Op(0xd0, 0x6f), w.I32(1<<14), w.Bulk(15, 0))
			return w.Join(w.Loop(0x40, grow, w.I32(-1), w.Op(0x47), w.BrIf(0)), w.Bulk(16, 0), w.I32(maxTable), w.Op(0x4b))
		}),
		"a table bomb that never stops": made("fuel_exhausted", Exhausted, func(m *w.Module, _ func(string) uint32) w.Code {
			m.Table('e', 1)
			return forever(w.Op(0xd0, 0x6f), w.I32(1), w.Bulk(15, 0), w.Drop)
		}),
		"a table fill bomb": made("fuel_exhausted", Exhausted, func(m *w.Module, _ func(string) uint32) w.Code {
			m.Table('e', maxTable)
			return forever(w.I32(0), w.Op(0xd0, 0x6f), w.I32(maxTable), w.Bulk(17, 0))
		}),

		// Traps and exits.
		"unreachable":             plain("guest_fault", Trapped, w.Unreachable),
		"division by zero":        plain("guest_fault", Trapped, w.I32(1), w.I32(0), w.Op(0x6d)),
		"a load past the end":     plain("guest_fault", Trapped, w.I32(-8), w.Load(0)),
		"a load of offset 2^32-1": plain("guest_fault", Trapped, w.I32(-8), w.Load(0xffffffff)),
		"a conversion of NaN":     plain("guest_fault", Trapped, w.Op(0x43, 0, 0, 0xc0, 0x7f, 0xa8)),
		"an empty table entry": made("guest_fault", Trapped, func(m *w.Module, _ func(string) uint32) w.Code {
			m.Table('a', 1)
			return w.Join(w.I32(0), w.With(0x11, m.Type("", "i"), 0))
		}),
		"exit 0":           wasi("guest_fault", Exited, "proc_exit", func(f func(string) uint32) w.Code { return w.Join(call(f("proc_exit"), 0), w.I32(0)) }),
		"exit 3":           wasi("guest_fault", Exited, "proc_exit", func(f func(string) uint32) w.Code { return w.Join(call(f("proc_exit"), 3), w.I32(0)) }),
		"refusal unsaid":   plain("guest_fault", "", w.I32(1)),
		"refusal unsaid 2": plain("guest_fault", "", w.I32(-1)),

		// Pointers and lengths at every edge.
		"input past the end":       plain("guest_fault", Stopped, w.I32(2<<16), w.I32(2048), w.Call(0)),
		"input at the end":         plain("guest_fault", Stopped, w.I32(2<<16-1), w.I32(2048), w.Call(0)),
		"input that wraps around":  plain("guest_fault", Stopped, w.I32(-16), w.I32(2048), w.Call(0)),
		"input of negative length": plain("guest_fault", "", w.I32(16), w.I32(-1), w.Call(0)),
		"input at -1 of -1":        plain("guest_fault", Stopped, w.I32(-1), w.I32(-1), w.Call(0)),
		"input of no length":       plain("guest_fault", "", w.I32(-1), w.I32(0), w.Call(0)), // its length is the answer
		"emit past the end":        plain("guest_fault", Stopped, w.I32(1), w.I32(2<<16), w.I32(1), w.Call(1)),
		"emit that wraps around":   plain("guest_fault", Stopped, w.I32(1), w.I32(-2), w.I32(4), w.Call(1)),
		"emit of 4 GiB":            plain("guest_fault", Stopped, w.I32(1), w.I32(0), w.I32(-1), w.Call(1)),
		"emit of what is not":      plain("guest_fault", Stopped, call(1, 7, okAt, 2)),
		"emit of what is negative": plain("guest_fault", Stopped, call(1, -1, okAt, 2)),
		"rest twice":               plain("guest_fault", Stopped, call(1, 1, okAt, int32(len(ok))), w.Drop, call(1, 1, okAt, int32(len(ok)))),
		"fail with rubbish":        with("guest_fault", Stopped, "fail", func(f func(string) uint32) w.Code { return call(f("fail"), okAt, 3) }),
		"fail past the end":        with("guest_fault", Stopped, "fail", func(f func(string) uint32) w.Code { return call(f("fail"), 2<<16, 1) }),
		"log past the end":         with("guest_fault", Stopped, "log", func(f func(string) uint32) w.Code { return call(f("log"), -1, 8) }),
		"a request past the end":   with("guest_fault", Stopped, "clusters_list", func(f func(string) uint32) w.Code { return call(f("clusters_list"), 2<<16-1, 2) }),
		"a request of 4 GiB":       with("guest_fault", Stopped, "clusters_list", func(f func(string) uint32) w.Code { return call(f("clusters_list"), 0, -1) }),
		"an item past the end":     with("guest_fault", Stopped, "clusters_list next", func(f func(string) uint32) w.Code { return w.Join(open(f), w.I32(-4), w.I32(4096), w.Call(f("next"))) }),
		"a failure past the end": with("guest_fault", Stopped, "clusters_get next", func(f func(string) uint32) w.Code {
			return w.Join(call(f("clusters_get"), freeAt, 0), w.Drop, call(f("next"), 0, -4, 512))
		}),
		"random past the end":       wasi("guest_fault", "", "random_get", func(f func(string) uint32) w.Code { return call(f("random_get"), 2<<16-1, 2) }),
		"random of 2 GiB":           wasi("guest_fault", "", "random_get", func(f func(string) uint32) w.Code { return call(f("random_get"), 0, -1<<31) }),
		"write past the end":        wasi("guest_fault", "", "fd_write", func(f func(string) uint32) w.Code { return call(f("fd_write"), 1, -8, 4, 0) }),
		"write of too many vectors": wasi("guest_fault", "", "fd_write", func(f func(string) uint32) w.Code { return call(f("fd_write"), 1, 0, -1, 0) }),
		"poll past the end":         wasi("guest_fault", "", "poll_oneoff", func(f func(string) uint32) w.Code { return call(f("poll_oneoff"), 2<<16-8, 0, 1, 0) }),
		"poll of too many":          wasi("guest_fault", "", "poll_oneoff", func(f func(string) uint32) w.Code { return call(f("poll_oneoff"), 0, 0, -1, 0) }),

		// Handles that are not the call's.
		"next of nothing":           with("guest_fault", Stopped, "next", func(f func(string) uint32) w.Code { return call(f("next"), 1, freeAt, 64) }),
		"next of a far handle":      with("guest_fault", Stopped, "next", func(f func(string) uint32) w.Code { return call(f("next"), 0x7fffffff, freeAt, 64) }),
		"next of a negative handle": with("guest_fault", Stopped, "next", func(f func(string) uint32) w.Code { return call(f("next"), -1, freeAt, 64) }),
		"close of nothing":          with("guest_fault", Stopped, "close", func(f func(string) uint32) w.Code { return call(f("close"), 1) }),
		"close of the failure":      with("guest_fault", Stopped, "close", func(f func(string) uint32) w.Code { return call(f("close"), 0) }),

		// Floods.
		"a flood of input":     plain("limit_host_calls", Stopped, forever(call(0, freeAt, 64), w.Drop)),
		"a flood of items":     plain("limit_bytes_out", Stopped, forever(call(1, 0, okAt, int32(len(ok))), w.Drop)),
		"a flood of big items": plain("limit_bytes_out", Stopped, forever(call(1, 0, 0, 1<<16), w.Drop)),
		"a flood of log":       with("limit_host_calls", Stopped, "log", func(f func(string) uint32) w.Code { return forever(call(f("log"), okAt, 8), w.Drop) }),
		"a flood of refusals":  with("guest_fault", Stopped, "fail", func(f func(string) uint32) w.Code { return forever(call(f("fail"), okAt, int32(len(ok))), w.Drop) }),
		"a flood of requests":  with("limit_host_calls", Stopped, "clusters_get", func(f func(string) uint32) w.Code { return forever(call(f("clusters_get"), freeAt, 0), w.Drop) }),
		"a flood of naps":      with("limit_host_calls", Stopped, "sleep", func(f func(string) uint32) w.Code { return forever(call(f("sleep"), 0), w.Drop) }),
		"a flood of clocks": wasi("fuel_exhausted", Exhausted, "clock_time_get", func(f func(string) uint32) w.Code {
			return forever(w.I32(1), w.I64(0), w.I32(freeAt), w.Call(f("clock_time_get")), w.Drop)
		}),
		"a flood of yields": wasi("fuel_exhausted", Exhausted, "sched_yield", func(f func(string) uint32) w.Code { return forever(w.Call(f("sched_yield")), w.Drop) }),
		"a flood of random": wasi("fuel_exhausted", Exhausted, "random_get", func(f func(string) uint32) w.Code { return forever(call(f("random_get"), 0, 1<<16), w.Drop) }),
		"a flood of polls": wasi("limit_host_calls", Stopped, "poll_oneoff", func(f func(string) uint32) w.Code {
			return forever(call(f("poll_oneoff"), freeAt, freeAt, 1, 0), w.Drop)
		}),
		"a flood of words": wasi("fuel_exhausted", Exhausted, "fd_write", func(f func(string) uint32) w.Code {
			return forever(w.I32(freeAt), w.I32(0), w.Store(0), w.I32(freeAt), w.I32(1<<16), w.Store(4), call(f("fd_write"), 2, freeAt, 1, 0), w.Drop)
		}),
	}
}

// TestHostileGuests runs each hostile guest on a host of its own beside one that
// means well, and checks that neither that one nor its own next call is harmed.
func TestHostileGuests(t *testing.T) {
	all := hostiles()
	if len(all) < 25 {
		t.Fatalf("only %d hostile guests", len(all))
	}
	for name, g := range all {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			// The ops of the registry are clusters'.
			g.name, g.limits = "clusters", few
			s.load(t, g.guestModule)
			s.load(t, guestModule{name: "victim"})
			for range 2 {
				before := s.seen.discards(g.discard)
				began := time.Now()
				if _, code := s.ask(g.token(), evil); code != g.code {
					t.Errorf("refused with %q, want %q\n%s", code, g.code, s.logs)
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				for _, token := range []string{g.token(), "k8s_victim_run"} {
					if got, code := s.ask(token, good); code != "" || got.rest != ok {
						t.Errorf("the next call of %s: answer %+v, refusal %q", token, got, code)
					}
				}
				if g.discard != "" {
					eventually(t, "discarded as "+string(g.discard), func() bool { return s.seen.discards(g.discard) > before })
				}
			}
			if n := s.seen.tally().different; n > 0 {
				t.Errorf("%d instances differed from their snapshot after a restore", n)
			}
		})
	}
}

// TestHostileModules are modules that must not load.
func TestHostileModules(t *testing.T) {
	raw := func(f func(m *w.Module)) guestModule { return guestModule{raw: f} }
	for name, c := range map[string]struct {
		guest guestModule
		want  string
	}{
		"an import not declared":     {guestModule{hidden: []string{"list"}}, `imports "list", which its manifest does not name`},
		"an import that is not":      {guestModule{hidden: []string{"exec"}}, `imports "exec", which this host does not have`},
		"a WASI import that is not":  {raw(nil), "imports the WASI function"},
		"a foreign module":           {raw(nil), `imports from "env"`},
		"an import of another type":  {raw(nil), "with another type than it has"},
		"an imported memory":         {raw(nil), "the import of a memory"},
		"a memory too large":         {guestModule{pages: 65, limits: few}, "65 pages; 64 are allowed"},
		"a table too large":          {raw(func(m *w.Module) { m.Table('a', maxTable+1) }), "elements; 65536 are allowed"},
		"SIMD":                       {raw(func(m *w.Module) { m.Func("", "", "v") }), "SIMD is not supported"},
		"a start that never ends":    {raw(func(m *w.Module) { m.Start(m.Func("", "", "", w.Loop(0x40, w.Br(0)))) }), "start: "},
		"a start that traps":         {raw(func(m *w.Module) { m.Start(m.Func("", "", "", w.Unreachable)) }), "start: "},
		"an initialize that traps":   {raw(func(m *w.Module) { m.Export("_initialize", w.ExportFunc, m.Func("", "", "", w.Unreachable)) }), "_initialize: "},
		"an initialize never ending": {raw(func(m *w.Module) { m.Export("_initialize", w.ExportFunc, m.Func("", "", "", w.Loop(0x40, w.Br(0)))) }), "_initialize: "},
		"an initialize with results": {raw(func(m *w.Module) { m.Export("_initialize", w.ExportFunc, m.Func("", "i", "", w.I32(0))) }), "_initialize"},
		"a reserved export":          {raw(func(m *w.Module) { m.Export("__k8s_fuel", w.ExportMemory, 0) }), "is reserved"},
		"code that is not valid":     {raw(func(m *w.Module) { m.Func("", "i", "", w.I64(0)) }), "cannot use i64"},
		"too many locals":            {raw(func(m *w.Module) { m.Func("", "", strings.Repeat("i", 10_001)) }), "locals"},
		"a compile bomb": {raw(func(m *w.Module) {
			m.Func("", "", strings.Repeat("i", 9000), bytes.Repeat(w.Loop(0x40, w.Get(0), w.Set(1)), 10_000))
		}), "too large to compile"},
		"an op that traps in rehearse": {guestModule{raw: func(m *w.Module) {}}, "canary call of"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			c.guest.name = "bad"
			wasm := c.guest.build(t)
			var m w.Module
			switch name {
			case "a WASI import that is not":
				m.Import("wasi_snapshot_preview1", "sock_open", "i", "i")
				wasm = withManifest(m.Bytes(), wasm)
			case "a foreign module":
				m.Import("env", "abort", "", "")
				wasm = withManifest(m.Bytes(), wasm)
			case "an import of another type":
				m.Import("k8s", "input", "II", "i")
				wasm = withManifest(m.Bytes(), wasm)
			case "an imported memory":
				m.RawImport("env", "memory", 2, 0, 1)
				wasm = withManifest(m.Bytes(), wasm)
			case "an op that traps in rehearse":
				m.Memory(1, -1)
				m.Export("handle", w.ExportFunc, m.Func("", "i", "", w.Unreachable))
				wasm = withManifest(m.Bytes(), wasm)
			}
			began := time.Now()
			_, err := s.Load(context.Background(), wasm)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Load() = %v, want %q", err, c.want)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if len(s.Ops()) != 0 || len(s.Modules()) != 0 {
				t.Errorf("it left %v", s.Modules())
			}
		})
	}
	for name, want := range map[string]string{"no memory": `exports no memory`, "no handle": `exports no function "handle"`} {
		var m w.Module
		if name == "no handle" {
			m.Memory(1, -1)
		}
		_, err := newSandbox(t).Load(context.Background(), withManifest(m.Bytes(), guestModule{name: "bad"}.build(t)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestNothingLeaks runs everything hostile on one host and counts goroutines and
// file descriptors before and after.
func TestNothingLeaks(t *testing.T) {
	files := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	wasBusy, wasOpen := runtime.NumGoroutine(), files()
	s := newSandbox(t)
	n := 0
	for _, g := range hostiles() {
		g.limits = few
		g.name = "h" + string(rune('a'+n/26)) + string(rune('a'+n%26))
		n++
		s.load(t, g.guestModule)
		s.ask(g.token(), evil)
	}
	s.drain(t)
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= wasBusy })
	if open := files(); open > wasOpen {
		t.Errorf("%d files open, %d before", open, wasOpen)
	}
}
