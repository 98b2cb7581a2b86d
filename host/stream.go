package host

import (
	"github.com/hanzoai/k8s/registry"
)

// The results of a host function that are not a length or a handle.
const (
	endOfItems = -1
	failed     = -2
)

// maxHandles is how many handles of one call may be open at once.
const maxHandles = 32

// stream is what a handle reads.
type stream interface {
	// next is the next item, good until the next call of next or close. ok is
	// false at the end.
	next() (item []byte, ok bool, r *registry.Refusal)
	// trailer is a JSON object to be read after the end, nil for none.
	trailer() []byte
	close()
}

// handle is a stream that a guest reads.
type handle struct {
	id     uint32
	s      stream
	item   []byte // read from s and not yet by the guest
	state  handleState
	broken *registry.Refusal
}

type handleState uint8

const (
	reading  handleState = iota
	holding              // item waits for the guest
	ended                // the guest was told, and may read a trailer
	trailing             // item is the trailer
	spent
)

// open gives a stream a handle.
func (c *call) open(s stream) int32 {
	if len(c.handles) >= maxHandles {
		s.close()
		refuse(over("handles", 500, "the operation held more than %d handles open", maxHandles))
	}
	c.lastID++
	c.handles = append(c.handles, &handle{id: c.lastID, s: s})
	return int32(c.lastID)
}

func (c *call) handle(id uint32) *handle {
	for _, h := range c.handles {
		if h.id == id {
			return h
		}
	}
	refuse(guestFault("the operation used a handle that is not open"))
	return nil
}

// next copies the next item of a handle into the guest's memory.
func (c *call) next(m memory, id, ptr, size uint32) int32 {
	if id == 0 {
		return c.readFailure(m, ptr, size)
	}
	h := c.handle(id)
	if h.broken != nil {
		return c.failed(h.broken)
	}
	if h.state == reading {
		item, ok, r := h.s.next()
		if r != nil {
			h.broken = r
			h.s.close()
			return c.failed(r)
		}
		if !ok {
			h.state = ended
			return endOfItems
		}
		h.item, h.state = item, holding
	}
	if h.state == ended {
		h.item = h.s.trailer()
		if h.state = trailing; h.item == nil {
			h.state = spent
		}
	}
	if h.state == spent {
		return endOfItems
	}
	n := len(h.item)
	if uint32(n) > size {
		return int32(n)
	}
	c.write(m, ptr, h.item)
	h.item = nil
	if h.state == trailing {
		h.state = spent
		return int32(n)
	}
	h.state = reading
	refuse(c.meter.item())
	return int32(n)
}

// close ends a handle. Closing it twice, or one that never was, ends the call.
func (c *call) closeHandle(id uint32) int32 {
	h := c.handle(id)
	h.s.close()
	for i := range c.handles {
		if c.handles[i] == h {
			c.handles = append(c.handles[:i], c.handles[i+1:]...)
			break
		}
	}
	return 0
}

// write copies b into the guest's memory, or ends the call.
func (c *call) write(m memory, ptr uint32, b []byte) {
	if !m.Write(ptr, b) {
		refuse(guestFault("the operation passed a pointer outside of its memory"))
	}
}

// read is a part of the guest's memory. It must not be kept.
func (c *call) read(m memory, ptr, n uint32) []byte {
	b, ok := m.Read(ptr, n)
	if !ok {
		refuse(guestFault("the operation passed a pointer outside of its memory"))
	}
	return b
}

// put copies b if it fits into size bytes, and gives its length.
func (c *call) put(m memory, ptr, size uint32, b []byte) int32 {
	if uint32(len(b)) <= size {
		c.write(m, ptr, b)
	}
	return int32(len(b))
}

// values is a stream of things already at hand.
type values struct{ items [][]byte }

func (v *values) next() ([]byte, bool, *registry.Refusal) {
	if len(v.items) == 0 {
		return nil, false, nil
	}
	item := v.items[0]
	v.items = v.items[1:]
	return item, true, nil
}

func (v *values) trailer() []byte { return nil }
func (v *values) close()          { v.items = nil }

// object is a stream of one object, in a page of its own.
type object struct {
	page *page
	at   span
	read bool
}

func (o *object) next() ([]byte, bool, *registry.Refusal) {
	if o.read || o.page == nil {
		return nil, false, nil
	}
	o.read = true
	return o.page.body[o.at.start:o.at.end], true, nil
}

func (o *object) trailer() []byte { return nil }

func (o *object) close() {
	if o.page != nil {
		o.page.free()
		o.page = nil
	}
}

// fan runs one function for each of n indexes, a few at a time, and gives the
// results in order.
type fan[T any] struct {
	run     func(i int) T
	results []chan T
	started int
	taken   int
	width   int
}

func newFan[T any](n, width int, run func(i int) T) *fan[T] {
	return &fan[T]{run: run, results: make([]chan T, n), width: width}
}

// next is the channel of the next result, nil after the last.
func (f *fan[T]) next() <-chan T {
	if f.taken == len(f.results) {
		return nil
	}
	for f.started < min(f.taken+f.width, len(f.results)) {
		i := f.started
		f.results[i] = make(chan T, 1)
		go func(to chan<- T) { to <- f.run(i) }(f.results[i])
		f.started++
	}
	f.taken++
	return f.results[f.taken-1]
}

// drain has done get the results that were begun and not taken, as they come.
func (f *fan[T]) drain(done func(T)) {
	left := f.results[f.taken:f.started]
	f.taken = len(f.results)
	if len(left) == 0 {
		return
	}
	go func() {
		for _, from := range left {
			done(<-from)
		}
	}()
}
