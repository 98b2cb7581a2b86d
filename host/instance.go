package host

import (
	"bytes"
	"context"
	"hash/maphash"
	"sync"

	"github.com/tetratelabs/wazero/api"
)

// instance is one guest with its memory. It runs one call at a time.
type instance struct {
	program *program
	module  api.Module
	memory  api.Memory
	mapping *mapping // what memory is, nil where it is of Go's heap
	handle  api.Function
	fuel    api.MutableGlobal
	globals []api.MutableGlobal

	// Of the run at hand; only its goroutine uses them.
	given  int64 // fuel allowed so far
	budget int64 // of that, not yet in the counter
}

// stretch is the most fuel a guest gets at once. Compiled code cannot be
// interrupted: while it runs without asking the host for anything, the garbage
// collector waits for it and everybody waits for the collector, and a deadline
// goes unnoticed. A stretch bounds that, to some 0.1 s at worst. At each host
// call the counter is filled up from the call's budget.
const stretch = 400_000_000

// maxFuel keeps the sum of allowances from overflowing.
const maxFuel = 1 << 60

// invoke runs f and gives the fuel it used. When the run's context ends, f ends
// at its next host call, or with its stretch of fuel.
func (i *instance) invoke(r *run, f api.Function, fuel int64, stack []uint64) (used int64, err error) {
	i.given, i.budget = 0, 0
	i.fuel.Set(0)
	i.addFuel(fuel)
	i.refuel()
	r.instance, r.meter.addFuel = i, i.addFuel
	stop := context.AfterFunc(r.Context, func() { r.over.Store(true) })
	err = f.CallWithStack(r, stack)
	stop()
	return i.given - i.budget - int64(i.fuel.Get()), err
}

// addFuel adds to the run's budget, or burns what is in the counter.
func (i *instance) addFuel(n int64) {
	if n < 0 {
		i.fuel.Set(i.fuel.Get() + uint64(n))
		return
	}
	n = min(n, maxFuel-i.given)
	i.given += n
	i.budget += n
}

// refuel fills the counter up for a further stretch.
func (i *instance) refuel() {
	left := int64(i.fuel.Get())
	if left > stretch/2 || i.budget == 0 {
		return
	}
	n := min(stretch-left, i.budget)
	i.budget -= n
	i.fuel.Set(uint64(left + n))
}

// exhausted tells, after a run, whether it used up its fuel, or its stretch.
func (i *instance) exhausted() bool { return int64(i.fuel.Get()) < 0 }

func (i *instance) close() error { return i.module.Close(context.Background()) }

// blockSize is the unit in which a snapshot is kept and restored, in bytes. A
// page of guest memory is a multiple of it.
const blockSize = 4096

// snapshot is the state every call of a module begins with. Most of a guest's
// memory is zero, and those blocks are not kept.
type snapshot struct {
	image   *image   // nil where there is none
	blocks  [][]byte // nil is all zeroes; of the image where there is one
	globals []uint64
	sum     uint64
}

// size is that of the memory, in bytes.
func (s *snapshot) size() int { return len(s.blocks) * blockSize }

var zeroes [blockSize]byte

func isZero(block []byte) bool { return bytes.Equal(block, zeroes[:]) }

// block is one block of the memory.
func (s *snapshot) block(n int) []byte {
	if b := s.blocks[n]; b != nil {
		return b
	}
	return zeroes[:]
}

// view is the instance's memory itself.
func (i *instance) view() []byte {
	b, _ := i.memory.Read(0, i.memory.Size())
	return b
}

// snap takes the snapshot of an instance that is not running.
func (i *instance) snap() *snapshot {
	i.fuel.Set(0)
	view := i.view()
	s := &snapshot{blocks: make([][]byte, len(view)/blockSize)}
	if i.mapping != nil {
		s.image = newImage(view)
	}
	for n := range s.blocks {
		switch b := view[n*blockSize:][:blockSize]; {
		case isZero(b):
		case s.image != nil:
			s.blocks[n] = s.image.read[n*blockSize:][:blockSize]
		default:
			s.blocks[n] = bytes.Clone(b)
		}
	}
	for _, g := range i.globals {
		s.globals = append(s.globals, g.Get())
	}
	s.sum = i.sum()
	i.mapping.adopt(s.image)
	return s
}

var seed = maphash.MakeSeed()

// sum hashes the whole memory and all globals.
func (i *instance) sum() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(i.view())
	for _, g := range i.globals {
		maphash.WriteComparable(&h, g.Get())
	}
	maphash.WriteComparable(&h, i.fuel.Get())
	return h.Sum64()
}

// restore brings memory and globals back to the snapshot, and tells how many
// blocks differed. It cannot where the memory has another size: memory never
// shrinks. Only blocks that may have been written are looked at, where the
// system can tell; comparing first is as fast as copying everything, and leaves
// the caches alone.
func (i *instance) restore() (blocks int, ok bool) {
	s := i.program.snapshot
	view := i.view()
	if len(view) != s.size() {
		return 0, false
	}
	restore := func(n int) {
		have, want := view[n*blockSize:][:blockSize], s.block(n)
		if !bytes.Equal(have, want) {
			copy(have, want)
			blocks++
		}
	}
	scratch := scratches.Get().(*scratch)
	defer scratches.Put(scratch)
	if len(scratch.entries) < len(s.blocks) {
		scratch.entries = make([]uint64, len(s.blocks))
	}
	written, known := i.mapping.written(scratch.written[:0], scratch.entries)
	scratch.written = written
	if known {
		for _, n := range written {
			restore(n)
		}
	} else {
		for n := range s.blocks {
			restore(n)
		}
	}
	for n, g := range i.globals {
		g.Set(s.globals[n])
	}
	i.fuel.Set(0)
	return blocks, true
}

// scratch is what a restore needs for the while.
type scratch struct {
	written []int
	entries []uint64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}
