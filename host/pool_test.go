package host

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	w "github.com/hanzoai/k8s/host/wasmtest"
	"github.com/hanzoai/k8s/registry"
)

// sleeper is a guest that, when evil, sleeps in the host for a minute, and fails
// if that is cut short.
func sleeper(long bool) guestModule {
	return guestModule{name: "sleeper", imports: []string{"sleep"}, long: long,
		evil: func(_ *w.Module, f func(string) uint32) w.Code { return w.Join(w.I32(60_000), w.Call(f("sleep"))) }}
}

// spinner is a guest that, when evil, asks the host for something over and over,
// with fuel and calls for longer than any test.
func spinner(millis int64) guestModule {
	return guestModule{name: "spinner", limits: manifest.Limits{Fuel: 1 << 50, HostCalls: 1 << 50, Millis: millis},
		evil: func(_ *w.Module, f func(string) uint32) w.Code {
			return w.Join(w.Loop(0x40, w.I32(0), w.I32(0), w.Call(f("input")), w.Drop, w.Br(0)), w.I32(0))
		}}
}

// thinker is a guest that, when evil, computes without asking for anything.
func thinker() guestModule {
	return guestModule{name: "thinker", limits: manifest.Limits{Fuel: 1 << 50},
		evil: func(*w.Module, func(string) uint32) w.Code { return w.Join(w.Loop(0x40, w.Br(0)), w.I32(0)) }}
}

// occupy starts n evil calls and waits until they run. Its result ends them.
func occupy(t *testing.T, s *sandbox, token string, n int) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { s.askWithin(ctx, token, evil) })
	}
	op, _ := s.Lookup(token)
	pool := op.Module.instances
	eventually(t, "calls are running", func() bool {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		return pool.live-len(pool.idle) >= n && !pool.making
	})
	return func() { cancel(); wg.Wait() }
}

func TestOverload(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Pool = PoolConfig{Ceiling: 2, Waiting: 1, Wait: 50 * time.Millisecond} })
	s.load(t, sleeper(false))
	release := occupy(t, s, "k8s_sleeper_run", 2)
	defer release()

	began := time.Now()
	c := &Call{Token: "k8s_sleeper_run", Input: []byte(good), Answer: deaf{}}
	r, _ := s.Call(context.Background(), c).(*registry.Refusal)
	if r == nil || r.Code != "overloaded" || r.Status != 503 || r.RetryAfter <= 0 {
		t.Errorf("refusal %+v, want overloaded with a time to retry", r)
	}
	if took := time.Since(began); took < 50*time.Millisecond || took > 2*time.Second {
		t.Errorf("refused after %v, want 50ms", took)
	}
	if c.Stats.Waited < 50*time.Millisecond {
		t.Errorf("the wait is not told: %v", c.Stats.Waited)
	}

	// One may wait; the second is refused at once.
	op, _ := s.Lookup("k8s_sleeper_run")
	pool := op.Module.instances
	pool.mu.Lock()
	pool.config.Wait = time.Minute
	pool.mu.Unlock()
	served := make(chan string)
	go func() {
		_, code := s.ask("k8s_sleeper_run", good)
		served <- code
	}()
	eventually(t, "one waits", func() bool { pool.mu.Lock(); defer pool.mu.Unlock(); return len(pool.waiting) == 1 })
	if _, code := s.ask("k8s_sleeper_run", good); code != "overloaded" {
		t.Errorf("the second to wait: %q", code)
	}
	release()
	if code := <-served; code != "" {
		t.Errorf("who waited was refused: %q", code)
	}
	if s.seen.tally().high > 2 {
		t.Errorf("%d instances at once, want 2 at most", s.seen.tally().high)
	}
}

// TestWaiterLeaves checks that a caller that goes while it waits leaves nothing.
func TestWaiterLeaves(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Pool = PoolConfig{Ceiling: 1, Wait: time.Minute} })
	s.load(t, sleeper(false))
	defer occupy(t, s, "k8s_sleeper_run", 1)()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, _, code := s.askWithin(ctx, "k8s_sleeper_run", good); code != "deadline" {
		t.Errorf("refused with %q", code)
	}
	op, _ := s.Lookup("k8s_sleeper_run")
	if n := len(op.Module.instances.waiting); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// TestLongLeaveRoom checks that ops that wait by design cannot take the whole pool.
func TestLongLeaveRoom(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Pool = PoolConfig{Ceiling: 4} })
	s.load(t, sleeper(true))
	release := occupy(t, s, "k8s_sleeper_run", 3)
	if _, code := s.ask("k8s_sleeper_run", good); code != "overloaded" {
		t.Errorf("the fourth: %q", code)
	}
	release()
	if _, code := s.ask("k8s_sleeper_run", good); code != "" {
		t.Errorf("after they ended: %q", code)
	}
}

func TestPoolFollowsDemand(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Pool = PoolConfig{Floor: 2, Ceiling: 8} })
	s.load(t, sleeper(false))
	op, _ := s.Lookup("k8s_sleeper_run")
	pool := op.Module.instances
	idle := func() int { pool.mu.Lock(); defer pool.mu.Unlock(); return len(pool.idle) }
	eventually(t, "the floor is ready before anybody calls", func() bool { return idle() == 2 })
	release := occupy(t, s, "k8s_sleeper_run", 5)
	eventually(t, "the floor is kept ready beside the calls", func() bool { return idle() == 2 })
	release()
	// Cut-short sleeps end in a refusal; what they leave is replaced or restored.
	eventually(t, "all are back", func() bool {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		return pool.live == len(pool.idle) && pool.live >= 2
	})
	pool.trim()
	pool.trim()
	eventually(t, "the surplus is closed", func() bool { pool.mu.Lock(); defer pool.mu.Unlock(); return pool.live == 2 && len(pool.idle) == 2 })
	if s.seen.tally().high > 8 {
		t.Errorf("%d instances at once, want 8 at most", s.seen.tally().high)
	}
}

// TestPoolUnderRace calls, faults and trims at once; drain checks the balance.
func TestPoolUnderRace(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Pool = PoolConfig{Ceiling: 3, Waiting: 4, Wait: 20 * time.Millisecond} })
	m := s.load(t, guestModule{name: "mixed", evil: func(*w.Module, func(string) uint32) w.Code { return w.Unreachable }})
	var answered, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 60 {
				input := good
				if (i+n)%5 == 0 {
					input = evil
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+n%7)*10*time.Millisecond)
				got, _, code := s.askWithin(ctx, "k8s_mixed_run", input)
				cancel()
				switch {
				case code == "" && got.rest == ok && input == good:
					answered.Add(1)
				case code == "guest_fault" && input == evil, code == "overloaded", code == "deadline":
					refused.Add(1)
				default:
					t.Errorf("%s: answer %+v, refusal %q", input, got, code)
				}
			}
		})
	}
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				m.instances.trim()
				time.Sleep(time.Millisecond)
			}
		}
	}()
	wg.Wait()
	close(stop)
	if answered.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d answered, %d refused: the test does not cover both", answered.Load(), refused.Load())
	}
	if s.seen.tally().high > 3 {
		t.Errorf("%d instances at once, want 3 at most", s.seen.tally().high)
	}
}

// TestCallerGone checks that a call ends within a second of its caller's leaving,
// in the host or in a pure loop, and what it is told.
func TestCallerGone(t *testing.T) {
	for name, g := range map[string]guestModule{"in the host": sleeper(false), "between host calls": spinner(60_000)} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			s.load(t, g)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(50*time.Millisecond, cancel)
			began := time.Now()
			_, _, code := s.askWithin(ctx, g.token(), evil)
			if code != "canceled" {
				t.Errorf("refused with %q", code)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v", took)
			}
			if got, code := s.ask(g.token(), good); code != "" || got.rest != ok {
				t.Errorf("the next call: %+v, %q", got, code)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	s := newSandbox(t)
	s.load(t, spinner(100))
	began := time.Now()
	_, call, code := s.askWithin(context.Background(), "k8s_spinner_run", evil)
	if code != "deadline" {
		t.Errorf("refused with %q, want the op's own deadline", code)
	}
	if took := time.Since(began); took < 100*time.Millisecond || took > time.Second {
		t.Errorf("it took %v", took)
	}
	if call.Stats.Fuel <= 0 {
		t.Errorf("fuel %d", call.Stats.Fuel)
	}
	eventually(t, "the instance is thrown away", func() bool { return s.seen.discards(Late) == 1 })
}

// TestStretch checks that a guest with any amount of fuel cannot hold up the
// garbage collector, and with it the process, for longer than one stretch.
func TestStretch(t *testing.T) {
	s := newSandbox(t)
	s.load(t, thinker())
	_, call, code := s.askWithin(context.Background(), "k8s_thinker_run", evil)
	if code != "fuel_exhausted" || call.Stats.Fuel < stretch || call.Stats.Fuel > stretch+1000 {
		t.Errorf("refused with %q after %d units, want %d", code, call.Stats.Fuel, stretch)
	}
}

// TestFuelComesInStretches checks that the whole budget can be used, and no
// more, by a guest that calls the host between stretches.
func TestFuelComesInStretches(t *testing.T) {
	s := newSandbox(t)
	const fuel = 3 * stretch
	s.load(t, guestModule{name: "worker", limits: manifest.Limits{Fuel: fuel, HostCalls: 1 << 40}, locals: "i",
		evil: func(_ *w.Module, f func(string) uint32) w.Code {
			work := w.Join(w.I32(100_000), w.Set(0), w.Loop(0x40, w.Get(0), w.I32(1), w.Sub, w.Tee(0), w.BrIf(0)))
			return w.Join(w.Loop(0x40, w.I32(0), w.I32(0), w.Call(f("input")), w.Drop, work, w.Br(0)), w.I32(0))
		}})
	_, call, code := s.askWithin(context.Background(), "k8s_worker_run", evil)
	if code != "fuel_exhausted" || call.Stats.Fuel < fuel || call.Stats.Fuel > fuel+1000 {
		t.Errorf("refused with %q after %d units, want %d", code, call.Stats.Fuel, fuel)
	}
}

// TestHangingHostFunction checks the limit on one host function's time.
func TestHangingHostFunction(t *testing.T) {
	g := sleeper(false)
	g.limits.HostMillis = 100
	s := newSandbox(t)
	s.load(t, g)
	began := time.Now()
	if _, code := s.ask(g.token(), evil); code != "limit_host_millis" {
		t.Errorf("refused with %q", code)
	}
	if took := time.Since(began); took < 90*time.Millisecond || took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestCloseDrains checks that Close waits for what is under way and lets nothing
// new begin.
func TestCloseDrains(t *testing.T) {
	busy := runtime.NumGoroutine()
	s := newSandbox(t)
	s.load(t, sleeper(false))
	release := occupy(t, s, "k8s_sleeper_run", 3)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(short); err != context.DeadlineExceeded {
		t.Errorf("Close() with calls under way = %v", err)
	}
	if _, code := s.ask("k8s_sleeper_run", good); code != "not_found" {
		t.Errorf("a call after Close: %q", code)
	}
	if _, err := s.Load(context.Background(), guestModule{name: "late"}.build(t)); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Load() after Close = %v", err)
	}
	release()
	s.drain(t)
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= busy })
}
