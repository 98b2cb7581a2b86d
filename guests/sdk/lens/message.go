// Package lens reads single fields out of encoded Kubernetes objects, protobuf
// and JSON, without decoding the rest and without allocating.
//
// What a lens returns points into the object's own bytes: it is good until the
// item after it is read. Keep a copy (strings.Clone) of what must outlive it.
package lens

import (
	"iter"
	"unicode/utf8"
	"unsafe"
)

// Fault holds the first thing found wrong with an object. A lens does not
// return errors field by field: it answers zero, marks the fault, and whoever
// handed out the object looks at it once, at the end.
type Fault struct{ err error }

// Err is what was found wrong, nil for nothing. It is one of the package's
// errors.
func (f *Fault) Err() error { return f.err }

func (f *Fault) mark(err error) {
	if f != nil && f.err == nil {
		f.err = err
	}
}

// corrupt is an error as a constant, so that a guest links nothing to have it.
type corrupt string

func (e corrupt) Error() string { return string(e) }

// What can be wrong with an encoded object.
const (
	ErrTruncated = corrupt("a field ends past the end of its message")
	ErrVarint    = corrupt("a varint is longer than 64 bits")
	ErrTag       = corrupt("a field has an impossible number or wire type")
	ErrWireType  = corrupt("a field has the wire type of another kind of field")
	ErrKey       = corrupt("a key is not UTF-8")
	ErrQuantity  = corrupt("a quantity cannot be parsed")
	ErrTime      = corrupt("a time cannot be parsed")
	ErrJSON      = corrupt("not valid JSON")
)

// The wire types of protobuf that Kubernetes uses.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// Message is one protobuf message, or nothing: the zero Message has no fields.
type Message struct {
	data  []byte
	fault *Fault
}

// Protobuf is data as a message whose faults go to f.
func Protobuf(data []byte, f *Fault) Message { return Message{data, f} }

// Err is what has been found wrong with the object so far.
func (m Message) Err() error {
	if m.fault == nil {
		return nil
	}
	return m.fault.err
}

// cursor walks the fields of one message.
type cursor struct {
	data []byte
	pos  int
	num  int
	wire int
	n    uint64 // of a varint
	body []byte // of a length-delimited field
}

// next moves to the next field. It is false at the end and at the first fault.
func (c *cursor) next(f *Fault) bool {
	if c.pos >= len(c.data) {
		return false
	}
	tag := uint64(c.data[c.pos])
	c.pos++
	if tag >= 0x80 {
		c.pos--
		var ok bool
		if tag, ok = c.varint(f); !ok {
			return false
		}
	}
	c.num, c.wire = int(tag>>3), int(tag&7)
	if c.num == 0 || tag > 1<<32-1 {
		f.mark(ErrTag)
		return false
	}
	switch c.wire {
	case wireVarint:
		var ok bool
		c.n, ok = c.varint(f)
		return ok
	case wireBytes:
		n, ok := c.varint(f)
		if !ok {
			return false
		}
		if n > uint64(len(c.data)-c.pos) {
			f.mark(ErrTruncated)
			return false
		}
		c.body = c.data[c.pos : c.pos+int(n)]
		c.pos += int(n)
		return true
	case wireFixed64:
		return c.skip(8, f)
	case wireFixed32:
		return c.skip(4, f)
	}
	f.mark(ErrTag) // groups, which Kubernetes never had, and the two unassigned
	return false
}

func (c *cursor) skip(n int, f *Fault) bool {
	if n > len(c.data)-c.pos {
		f.mark(ErrTruncated)
		return false
	}
	c.pos += n
	return true
}

func (c *cursor) varint(f *Fault) (uint64, bool) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		if c.pos >= len(c.data) {
			f.mark(ErrTruncated)
			return 0, false
		}
		b := c.data[c.pos]
		c.pos++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, true
		}
	}
	f.mark(ErrVarint)
	return 0, false
}

// find moves to the next field with this number, whose wire type must be wire.
func (c *cursor) find(num, wire int, f *Fault) bool {
	for c.next(f) {
		if c.num == num {
			if c.wire != wire {
				f.mark(ErrWireType)
				return false
			}
			return true
		}
	}
	return false
}

// Has says whether the field is there at all, empty or not.
func (m Message) Has(num int) bool {
	c := cursor{data: m.data}
	for c.next(m.fault) {
		if c.num == num {
			return true
		}
	}
	return false
}

// Bytes is a bytes field: of several the last, nil for none.
func (m Message) Bytes(num int) []byte {
	var last []byte
	for c := (cursor{data: m.data}); c.find(num, wireBytes, m.fault); {
		last = c.body
	}
	return last
}

// Str is a string field.
func (m Message) Str(num int) string { return text(m.Bytes(num)) }

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Int is a 64-bit integer field.
func (m Message) Int(num int) int64 {
	var last uint64
	for c := (cursor{data: m.data}); c.find(num, wireVarint, m.fault); {
		last = c.n
	}
	return int64(last)
}

// Int32 is a 32-bit integer field.
func (m Message) Int32(num int) int64 { return int64(int32(m.Int(num))) }

// Bool is a boolean field.
func (m Message) Bool(num int) bool { return m.Int(num) != 0 }

// Sub is an embedded message. Of several, protobuf says, the fields are merged,
// which is what reading them one after the other does.
func (m Message) Sub(num int) Message {
	var sub []byte
	n := 0
	for c := (cursor{data: m.data}); c.find(num, wireBytes, m.fault); n++ {
		switch n {
		case 0:
			sub = c.body
		case 1:
			sub = append(append(make([]byte, 0, len(sub)+len(c.body)), sub...), c.body...)
		default:
			sub = append(sub, c.body...)
		}
	}
	return Message{sub, m.fault}
}

// Each is the messages of a repeated field, in order.
func (m Message) Each(num int) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for c := (cursor{data: m.data}); c.find(num, wireBytes, m.fault); {
			if !yield(Message{c.body, m.fault}) {
				return
			}
		}
	}
}

// Strs is the strings of a repeated field, in order.
func (m Message) Strs(num int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for c := (cursor{data: m.data}); c.find(num, wireBytes, m.fault); {
			if !yield(text(c.body)) {
				return
			}
		}
	}
}

// A map is a repeated message of a key and a value.
const (
	mapKey   = 1
	mapValue = 2
)

// Map is the entries of a map of strings (or bytes) as they stand. A key may
// come twice: the last counts, and Writer.Map sees to it.
func (m Message) Map(num int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for e := range m.Each(num) {
			key := e.Str(mapKey)
			if !utf8.ValidString(key) {
				// What it is replaced by might be another key.
				m.fault.mark(ErrKey)
			}
			if !yield(key, e.Str(mapValue)) {
				return
			}
		}
	}
}

// Key is the value at key of a map of strings, and whether there is one.
func (m Message) Key(num int, key string) (value string, ok bool) {
	for k, v := range m.Map(num) {
		if k == key {
			value, ok = v, true
		}
	}
	return value, ok
}

// Quantity is the quantity at key of a map of quantities, such as a resource
// list; zero when there is none.
func (m Message) Quantity(num int, key string) Quantity {
	text := m.QuantityText(num, key)
	if text == "" {
		return Quantity{}
	}
	q, err := ParseQuantity(text)
	if err != nil {
		m.fault.mark(err)
	}
	return q
}

// QuantityText is that quantity as it is written, empty when there is none.
func (m Message) QuantityText(num int, key string) string {
	const quantityString = 1
	var last string
	for e := range m.Each(num) {
		if e.Str(mapKey) == key {
			last = e.Sub(mapValue).Str(quantityString)
		}
	}
	return last
}

// Time is a time as Unix seconds, and whether it is set.
func (m Message) Time(num int) (unix int64, ok bool) {
	b := m.Bytes(num)
	return Message{b, m.fault}.Int(1), len(b) > 0
}

// IntOrString is such a field as text, and whether it was a number.
func (m Message) IntOrString(num int) (value string, number bool) {
	const kind, integer, str = 1, 2, 3
	v := m.Sub(num)
	if v.Int(kind) == 0 {
		return itoa(v.Int32(integer)), true
	}
	return v.Str(str), false
}

func itoa(n int64) string {
	var b [20]byte
	i, u := len(b), uint64(n)
	if n < 0 {
		u = -u
	}
	for {
		i--
		b[i] = byte('0' + u%10)
		if u /= 10; u == 0 {
			break
		}
	}
	if n < 0 {
		i--
		b[i] = '-'
	}
	return string(b[i:])
}
