package host

import (
	"bytes"
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// instance is one guest with its memory. It runs one call at a time.
type instance struct {
	program *program
	module  api.Module
	memory  api.Memory
	handle  api.Function
	fuel    api.MutableGlobal
	globals []api.MutableGlobal

	// mu orders the writes of fuel that come from Go. The guest's own code lowers
	// the counter without it: see halt.
	mu      sync.Mutex
	current *run  // nil between runs
	given   int64 // fuel of the current run, so far
	halted  bool
}

// maxFuel keeps the sum of allowances from overflowing.
const maxFuel = 1 << 60

// invoke runs f and gives the fuel it used. It returns once f has: when the
// run's context ends, f is stopped by its fuel.
func (i *instance) invoke(r *run, f api.Function, fuel int64, stack []uint64) (used int64, err error) {
	i.mu.Lock()
	i.current, i.given, i.halted = r, min(fuel, maxFuel), false
	i.fuel.Set(uint64(i.given))
	i.mu.Unlock()
	r.meter.addFuel = i.addFuel

	stop := context.AfterFunc(r.Context, func() { i.halt(r) })
	err = f.CallWithStack(r, stack)
	stop()

	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = nil
	left := int64(i.fuel.Get())
	if i.halted {
		return i.given, err
	}
	return i.given - left, err
}

func (i *instance) addFuel(n int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.halted || n > 0 && i.given > maxFuel {
		return
	}
	if n > 0 {
		n = min(n, maxFuel)
		i.given += n
	}
	i.fuel.Set(i.fuel.Get() + uint64(n))
}

// halt takes all fuel from the instance while r runs on it, until r has ended.
//
// The guest lowers the counter with a load, a subtraction and a store that know
// nothing of this goroutine, and a store of its own can undo one of ours. So it
// is repeated: the guest would have to be between its load and its store each
// time. An aligned store of 64 bits is atomic on every machine that wazero
// compiles for. Closing the module instead would free the memory under the
// guest.
func (i *instance) halt(r *run) {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		i.mu.Lock()
		if i.current != r {
			i.mu.Unlock()
			return
		}
		i.halted = true
		i.fuel.Set(halted)
		i.mu.Unlock()
		time.Sleep(pause)
	}
}

// exhausted tells, after a run, whether it used up its fuel.
func (i *instance) exhausted() bool { return int64(i.fuel.Get()) < 0 }

func (i *instance) close() error { return i.module.Close(context.Background()) }

// snapshot is the state every call of a module begins with.
type snapshot struct {
	memory  []byte
	globals []uint64
	sum     uint64
}

var seed = maphash.MakeSeed()

// blockSize is the unit in which a restore compares and copies.
const blockSize = 4096

func (i *instance) view() []byte {
	b, _ := i.memory.Read(0, i.memory.Size())
	return b
}

func (i *instance) snap() *snapshot {
	i.fuel.Set(0)
	s := &snapshot{memory: bytes.Clone(i.view())}
	for _, g := range i.globals {
		s.globals = append(s.globals, g.Get())
	}
	s.sum = i.sum()
	return s
}

// sum hashes the whole memory and all globals.
func (i *instance) sum() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(i.view())
	write := func(v uint64) {
		var b [8]byte
		for n := range b {
			b[n] = byte(v >> (8 * n))
		}
		h.Write(b[:])
	}
	for _, g := range i.globals {
		write(g.Get())
	}
	write(i.fuel.Get())
	return h.Sum64()
}

// restore brings memory and globals back to the snapshot, and tells how many
// blocks differed. It cannot where the memory has another size: memory never
// shrinks.
func (i *instance) restore() (blocks int, ok bool) {
	s := i.program.snapshot
	have := i.view()
	if len(have) != len(s.memory) {
		return 0, false
	}
	for at := 0; at < len(have); at += blockSize {
		end := min(at+blockSize, len(have))
		if !bytes.Equal(have[at:end], s.memory[at:end]) {
			copy(have[at:end], s.memory[at:end])
			blocks++
		}
	}
	for n, g := range i.globals {
		g.Set(s.globals[n])
	}
	i.fuel.Set(0)
	return blocks, true
}
