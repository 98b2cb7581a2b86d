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
//
// It also keeps the object, and the index of every message of it that has been
// looked into, so that the next object needs no memory of its own.
type Fault struct {
	err    error
	data   []byte
	fields []field
}

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

// Message is one protobuf message, or nothing: the zero Message has no fields. It
// is small, because WebAssembly passes it in memory.
type Message struct {
	fault    *Fault
	from, to uint32 // its part of the index
}

// field is where in the object a field of a message is: start and end of what
// is length-delimited, or the low and high half of a varint.
type field struct {
	tag  uint32
	a, b uint32
}

// Protobuf is data as a message whose faults go to f. What was read by way of f
// before is no longer good.
func Protobuf(data []byte, f *Fault) Message {
	f.data, f.fields = data, f.fields[:0]
	return f.message(0, uint32(len(data)))
}

// Err is what has been found wrong with the object so far.
func (m Message) Err() error {
	if m.fault == nil {
		return nil
	}
	return m.fault.err
}

// message notes where the fields of a message are, which is the part of the
// object from start up to end. Every field is decoded once, here: it is where a
// guest spends its time. What most fields are, a small number and a short string
// or message, it does by itself.
func (f *Fault) message(start, end uint32) Message {
	m := Message{fault: f, from: uint32(len(f.fields))}
	data, fields := f.data[:end], f.fields
	for pos := int(start); pos < len(data); {
		tag := uint64(data[pos])
		if tag&7 == wireBytes && tag-8 < 0x78 && pos+1 < len(data) {
			if n := int(data[pos+1]); n < 0x80 && n < len(data)-pos-1 {
				pos += n + 2
				fields = append(fields, field{uint32(tag), uint32(pos - n), uint32(pos)})
				continue
			}
		}
		next, end := f.field(data, pos)
		if end < 0 {
			break
		}
		fields, pos = append(fields, next), end
	}
	f.fields, m.to = fields, uint32(len(fields))
	return m
}

// field decodes any field at pos, and answers where it ends, or -1 for a fault.
func (f *Fault) field(data []byte, pos int) (field, int) {
	tag, pos := varint(data, pos, f)
	if pos < 0 {
		return field{}, -1
	}
	if tag>>3 == 0 || tag > 1<<32-1 {
		f.mark(ErrTag)
		return field{}, -1
	}
	width := 0
	switch tag & 7 {
	case wireVarint:
		n, end := varint(data, pos, f)
		return field{uint32(tag), uint32(n), uint32(n >> 32)}, end
	case wireBytes:
		n, start := varint(data, pos, f)
		if start < 0 {
			return field{}, -1
		}
		if n > uint64(len(data)-start) {
			f.mark(ErrTruncated)
			return field{}, -1
		}
		end := start + int(n)
		return field{uint32(tag), uint32(start), uint32(end)}, end
	case wireFixed64:
		width = 8
	case wireFixed32:
		width = 4
	default: // groups, which Kubernetes never had, and the two unassigned
		f.mark(ErrTag)
		return field{}, -1
	}
	if width > len(data)-pos {
		f.mark(ErrTruncated)
		return field{}, -1
	}
	return field{tag: uint32(tag)}, pos + width
}

// varint reads one at pos, and answers where it ends, or -1 for a fault.
func varint(data []byte, pos int, f *Fault) (uint64, int) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		if pos >= len(data) {
			f.mark(ErrTruncated)
			return 0, -1
		}
		b := data[pos]
		pos++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, pos
		}
	}
	f.mark(ErrVarint)
	return 0, -1
}

// index is the message's part of the index.
func (m Message) index() []field {
	if m.fault == nil {
		return nil
	}
	return m.fault.fields[m.from:m.to]
}

// last is the last of the fields with a number: of several scalars it counts.
func (m Message) last(num int, wire uint32) (field, bool) {
	fields := m.index()
	for i := len(fields) - 1; i >= 0; i-- {
		if tag := fields[i].tag; tag>>3 == uint32(num) {
			if tag&7 != wire {
				m.fault.mark(ErrWireType)
				return field{}, false
			}
			return fields[i], true
		}
	}
	return field{}, false
}

// Has says whether the field is there at all, empty or not.
func (m Message) Has(num int) bool {
	for _, f := range m.index() {
		if f.tag>>3 == uint32(num) {
			return true
		}
	}
	return false
}

// Bytes is a bytes field: of several the last, nil for none.
func (m Message) Bytes(num int) []byte {
	f, ok := m.last(num, wireBytes)
	if !ok {
		return nil
	}
	return m.fault.data[f.a:f.b]
}

// Str is a string field.
func (m Message) Str(num int) string { return text(m.Bytes(num)) }

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Int is a 64-bit integer field.
func (m Message) Int(num int) int64 {
	f, _ := m.last(num, wireVarint)
	return int64(uint64(f.b)<<32 | uint64(f.a))
}

// Int32 is a 32-bit integer field.
func (m Message) Int32(num int) int64 { return int64(int32(m.Int(num))) }

// Bool is a boolean field.
func (m Message) Bool(num int) bool { return m.Int(num) != 0 }

// Sub is an embedded message. Of several, protobuf says, the fields are merged,
// which is what reading them one after the other does.
func (m Message) Sub(num int) Message {
	var sub field
	n := 0
	for _, f := range m.index() {
		if f.tag>>3 != uint32(num) {
			continue
		}
		if f.tag&7 != wireBytes {
			m.fault.mark(ErrWireType)
			return Message{}
		}
		if n++; n == 1 {
			sub = f
		} else {
			sub = m.fault.join(sub, f)
		}
	}
	if n == 0 {
		return Message{}
	}
	return m.fault.message(sub.a, sub.b)
}

// join is two parts of the object as one, which it appends to the object.
func (f *Fault) join(x, y field) field {
	first, second := f.data[x.a:x.b], f.data[y.a:y.b]
	start := uint32(len(f.data))
	f.data = append(append(append(make([]byte, 0, len(f.data)+len(first)+len(second)), f.data...), first...), second...)
	return field{x.tag, start, uint32(len(f.data))}
}

// Each goes through the messages of a repeated field, in order:
//
//	for c := spec.Each(lens.PodContainers); c.Next(); {
//		c.Str(lens.ContainerName)
//	}
//
// It is no iter.Seq, whose closures a guest would have to allocate.
func (m Message) Each(num int) Messages {
	return Messages{num: uint32(num), next: m.from, all: m}
}

// Messages is where a loop over the messages of a repeated field stands. Its
// Message is the one that Next moved to.
type Messages struct {
	Message
	all  Message
	num  uint32
	next uint32
}

// Next moves to the next message, and is false when there is none.
func (i *Messages) Next() bool {
	f, ok := i.all.advance(&i.next, i.num)
	if ok {
		i.Message = i.all.fault.message(f.a, f.b)
	}
	return ok
}

// Strs goes through the strings of a repeated field, in order.
func (m Message) Strs(num int) Strings { return Strings{all: m, num: uint32(num), next: m.from} }

// Texts goes through one string of each of the messages of a repeated field,
// and looks at nothing else in them.
func (m Message) Texts(num, str int) Strings {
	return Strings{all: m, num: uint32(num), next: m.from, inner: str}
}

// Strings is where a loop over strings stands.
type Strings struct {
	Text  string // the one that Next moved to
	all   Message
	num   uint32
	next  uint32
	inner int // the string's field in a message, 0 for a string itself
}

// Next moves to the next string, and is false when there is none.
func (i *Strings) Next() bool {
	f, ok := i.all.advance(&i.next, i.num)
	if !ok {
		i.Text = ""
		return false
	}
	body := i.all.fault.data[f.a:f.b]
	if i.inner != 0 {
		body = i.all.fault.pick(body, uint32(i.inner))
	}
	i.Text = text(body)
	return true
}

// advance moves next past the next field with a number, and is that field.
func (m *Message) advance(next *uint32, num uint32) (field, bool) {
	for *next < m.to {
		f := m.fault.fields[*next]
		*next++
		if f.tag>>3 != num {
			continue
		}
		if f.tag&7 != wireBytes {
			m.fault.mark(ErrWireType)
			return field{}, false
		}
		return f, true
	}
	return field{}, false
}

// pick is one bytes field of a message that little else is read of: it passes
// over the other fields without noting where they are.
func (f *Fault) pick(data []byte, num uint32) []byte {
	want := num<<3 | wireBytes
	var last []byte
	for pos := 0; pos < len(data); {
		at := pos
		tag := uint32(data[at])
		if at++; tag >= 0x80 && at < len(data) {
			tag = tag&0x7f | uint32(data[at])<<7
			at++
		}
		if tag&7 == wireBytes && tag-8 < 1<<14-8 && at < len(data) {
			n := int(data[at])
			if at++; n >= 0x80 && at < len(data) {
				n = n&0x7f | int(data[at])<<7
				at++
			}
			if n < 1<<14 && n <= len(data)-at {
				pos = at + n
				if tag == want {
					last = data[at:pos]
				}
				continue
			}
		}
		next, end := f.field(data, pos)
		if end < 0 {
			return nil
		}
		if next.tag>>3 == num {
			if next.tag&7 != wireBytes {
				f.mark(ErrWireType)
				return nil
			}
			last = data[next.a:next.b]
		}
		pos = end
	}
	return last
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
		for e := m.Each(num); e.Next(); {
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
	for e := m.Strs(num); e.Next(); {
		entry := unsafe.Slice(unsafe.StringData(e.Text), len(e.Text))
		k, v := m.fault.pick(entry, mapKey), m.fault.pick(entry, mapValue)
		if text(k) == key {
			value, ok = text(v), true
		}
	}
	return value, ok
}

// Quantity is the quantity at key of a map of quantities, such as a resource
// list; zero when there is none.
func (m Message) Quantity(num int, key string) Quantity {
	_, q := m.quantity(num, key)
	return q
}

// QuantityText is that quantity as it is written, empty when there is none.
func (m Message) QuantityText(num int, key string) string {
	text, _ := m.quantity(num, key)
	return text
}

func (m Message) quantity(num int, key string) (string, Quantity) {
	const quantityString = 1
	var last string
	for e := m.Each(num); e.Next(); {
		// The value of every entry is looked at: a fault in one may have moved
		// what is its key.
		value := e.Sub(mapValue)
		if e.Str(mapKey) == key {
			if last = value.Str(quantityString); last == "" {
				last = "0" // there, and without a value
			}
		}
	}
	if last == "" {
		return "", Quantity{}
	}
	q, err := ParseQuantity(last)
	if err != nil {
		m.fault.mark(err)
	}
	return last, q
}

// Time is a time as Unix seconds, and whether it is set.
func (m Message) Time(num int) (unix int64, ok bool) {
	f, ok := m.last(num, wireBytes)
	if !ok || f.a == f.b {
		return 0, false
	}
	return m.fault.message(f.a, f.b).Int(1), true
}

// MicroTime is a time that has microseconds, as Unix seconds, and whether it is
// set. Unlike in a time without them its nanoseconds count, so that what is not
// within one second moves the seconds.
func (m Message) MicroTime(num int) (unix int64, ok bool) {
	const seconds, nanos, second = 1, 2, 1_000_000_000
	f, ok := m.last(num, wireBytes)
	if !ok || f.a == f.b {
		return 0, false
	}
	t := m.fault.message(f.a, f.b)
	n := t.Int32(nanos)
	n -= n % 1000
	unix = t.Int(seconds) + n/second
	if n%second < 0 {
		unix--
	}
	return unix, true
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
