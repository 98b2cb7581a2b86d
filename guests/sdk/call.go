package sdk

import (
	"iter"
	"math"

	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// Call is one call of an op: its input, its answer, and the cluster it is for.
// The host has checked the input against the op's schema.
type Call struct {
	in      lens.Value
	out     *Writer
	request *Writer
	buffers [][]byte
	last    *Failure
}

// Has says whether the input has a field.
func (c *Call) Has(field string) bool { return c.in.Get(field).Exists() }

// Str is a string field of the input, empty when it is left out.
func (c *Call) Str(field string) string { return c.in.Get(field).Str() }

// Int is an integer field, 0 when it is left out.
func (c *Call) Int(field string) int64 {
	n, _ := c.in.Get(field).Int()
	return n
}

// Bool is a truth value, false when it is left out.
func (c *Call) Bool(field string) bool { return c.in.Get(field).Bool() }

// Strings is the strings of a list.
func (c *Call) Strings(field string) iter.Seq[string] { return c.in.Get(field).Strs() }

// Map is the entries of an object of strings.
func (c *Call) Map(field string) iter.Seq2[string, string] { return c.in.Get(field).Map() }

// Raw is any field as the JSON value that came.
func (c *Call) Raw(field string) lens.Value { return c.in.Get(field) }

// Objects is the objects of a list.
func (c *Call) Objects(field string) iter.Seq[lens.Value] { return c.in.Get(field).Elems() }

// Emit answers one item of the op's streamed list.
func (c *Call) Emit(write func(*Writer)) error {
	c.out.reset()
	write(c.out)
	return c.emit(0)
}

// Append appends what write writes, as an object, to b: for an item that cannot
// be emitted yet. EmitRaw emits it.
func (c *Call) Append(b []byte, write func(*Writer)) []byte {
	c.out.reset()
	write(c.out)
	return append(b, c.out.bytes()...)
}

// EmitRaw answers one item that Append wrote.
func (c *Call) EmitRaw(item []byte) error {
	if hostEmit(0, item) < 0 {
		return c.failed()
	}
	return nil
}

// Answer answers the op's other fields, or all of them where it has no list to
// stream. It is called once at most.
func (c *Call) Answer(write func(*Writer)) error {
	c.out.reset()
	write(c.out)
	return c.emit(1)
}

func (c *Call) emit(what int32) error {
	if hostEmit(what, c.out.bytes()) < 0 {
		return c.failed()
	}
	return nil
}

// Sleep waits. Its error is that the call is over.
func (c *Call) Sleep(millis int64) error {
	if hostSleep(int32(min(max(millis, 0), math.MaxInt32))) < 0 {
		return c.failed()
	}
	return nil
}

// Millis is a clock that only runs forward, in milliseconds.
func (c *Call) Millis() int64 { return hostMillis() }

// Log writes a line to the operator's log. It is for what an operator can act
// on; nothing that came from a cluster belongs there.
func (c *Call) Log(line string) { hostLog([]byte(line)) }

func (c *Call) buffer() []byte {
	if n := len(c.buffers); n > 0 {
		b := c.buffers[n-1]
		c.buffers = c.buffers[:n-1]
		return b
	}
	return make([]byte, 64<<10)
}

func (c *Call) release(b []byte) { c.buffers = append(c.buffers, b) }
