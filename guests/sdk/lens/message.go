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
// It also keeps the object, and where its fields are, so that the next object
// needs no memory of its own.
type Fault struct {
	err  error
	data []byte
	scanning
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
	ErrLarge     = corrupt("an object is larger than 16 MiB")
	ErrJSON      = corrupt("not valid JSON")
)

// Message is one protobuf message, or nothing: the zero Message has no fields. It
// is small, because WebAssembly passes it in memory.
type Message struct {
	fault    *Fault
	from, to uint32 // its part of the fields noted
}

// Protobuf is data as a message whose faults go to f. What was read by way of f
// before is no longer good. Of a field whose number is above 8191, which
// Kubernetes has none of, nothing is known.
func Protobuf(data []byte, f *Fault) Message { return (*Shape)(nil).Protobuf(data, f) }

// Protobuf is lens.Protobuf for a message of which only what is in the shape will
// be read. Of a nil shape everything is.
func (s *Shape) Protobuf(data []byte, f *Fault) Message {
	f.data, f.used = data, 0
	if len(data) > maxData {
		f.mark(ErrLarge)
		return Message{}
	}
	if s == nil {
		s = &everything
	}
	return f.message(s, 0, len(data))
}

// Err is what has been found wrong with the object so far.
func (m Message) Err() error {
	if m.fault == nil {
		return nil
	}
	return m.fault.err
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

// last is the last of the fields with a number, 0 for none: of several scalars it
// counts.
func (m Message) last(num int) (last field) {
	for at := m.from; at < m.to; {
		here := m.fault.at(at)
		if at = here.next; here.number() == num {
			last = here.field
		}
	}
	return last
}

// Has says whether the field is there at all, empty or not.
func (m Message) Has(num int) bool { return m.last(num) != 0 }

// Bytes is a bytes field: of several the last, nil for none.
func (m Message) Bytes(num int) []byte {
	f := m.last(num)
	if f == 0 {
		return nil
	}
	return m.fault.bytes(f)
}

func (f *Fault) bytes(at field) []byte {
	if !at.delimited() {
		f.mark(ErrWireType)
		return nil
	}
	return f.data[at.start():at.end()]
}

// Str is a string field.
func (m Message) Str(num int) string {
	f := m.last(num)
	if f == 0 {
		return ""
	}
	return text(m.fault.bytes(f))
}

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Int is a 64-bit integer field.
func (m Message) Int(num int) int64 {
	f := m.last(num)
	if f == 0 {
		return 0
	}
	return m.fault.number(f)
}

func (f *Fault) number(at field) int64 {
	if at.wire() != wireVarint {
		f.mark(ErrWireType)
		return 0
	}
	n, _ := varint(f.data, at.start(), f)
	return int64(n)
}

// Int32 is a 32-bit integer field.
func (m Message) Int32(num int) int64 { return int64(int32(m.Int(num))) }

// Bool is a boolean field.
func (m Message) Bool(num int) bool { return m.Int(num) != 0 }

// Sub is an embedded message. Of several, protobuf says, the fields are merged,
// which is what reading them one after the other does.
func (m Message) Sub(num int) Message {
	place, several := m.to, false
	for at := m.from; at < m.to; {
		here := m.fault.at(at)
		if here.number() == num {
			place, several = at, place != m.to
		}
		at = here.next
	}
	f := m.fault
	switch {
	case place == m.to:
		return Message{}
	case several:
		start := len(f.data)
		if !m.join(num) {
			return Message{}
		}
		return f.message(&everything, start, len(f.data))
	}
	return f.within(place)
}

// within is the field at a place as a message.
func (f *Fault) within(place uint32) Message {
	switch here := f.at(place); here.wire() {
	case wireNoted:
		return Message{f, place + 1, here.next}
	case wireBytes:
		return f.message(&everything, here.start(), here.end())
	}
	f.mark(ErrWireType)
	return Message{}
}

// join appends to the object what is in all the fields with a number.
func (m Message) join(num int) bool {
	f := m.fault
	data := append([]byte(nil), f.data...)
	for at := m.from; at < m.to; {
		part := f.at(at)
		if at = part.next; part.number() != num {
			continue
		}
		if !part.delimited() {
			f.mark(ErrWireType)
			return false
		}
		data = append(data, f.bytes(part.field)...)
	}
	if len(data) > maxData {
		f.mark(ErrLarge)
		return false
	}
	f.data = data
	return true
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
	place, ok := i.all.advance(&i.next, i.num)
	if ok {
		i.Message = i.all.fault.within(place)
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
	place, ok := i.all.advance(&i.next, i.num)
	if !ok {
		i.Text = ""
		return false
	}
	f := i.all.fault
	switch here := f.at(place); {
	case i.inner == 0:
		i.Text = text(f.bytes(here.field))
	case here.wire() == wireNoted:
		i.Text = Message{f, place + 1, here.next}.Str(i.inner)
	default:
		i.Text = text(f.pick(f.bytes(here.field), uint32(i.inner)))
	}
	return true
}

// advance moves next past the next field with a number, and is where that is.
func (m *Message) advance(next *uint32, num uint32) (place uint32, ok bool) {
	for at := *next; at < m.to; {
		here := m.fault.at(at)
		if here.number() == int(num) {
			if *next = here.next; !here.delimited() {
				m.fault.mark(ErrWireType)
				break
			}
			return at, true
		}
		at = here.next
	}
	*next = m.to
	return 0, false
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
		next := f.field(data, pos)
		if next == 0 {
			return nil
		}
		if pos = next.end(); next.number() == int(num) {
			if next.wire() != wireBytes {
				f.mark(ErrWireType)
				return nil
			}
			last = data[next.start():pos]
		}
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

// latest is the last of the embedded messages with a number, not merged with
// those before, which is how a time decodes itself. ok is false for an empty one.
func (m Message) latest(num int) (latest Message, ok bool) {
	f := m.last(num)
	if f == 0 || len(m.fault.bytes(f)) == 0 {
		return Message{}, false
	}
	return m.fault.message(&everything, f.start(), f.end()), true
}

// Time is a time as Unix seconds, and whether it is set.
func (m Message) Time(num int) (unix int64, ok bool) {
	t, ok := m.latest(num)
	return t.Int(1), ok
}

// MicroTime is a time that has microseconds, as Unix seconds, and whether it is
// set. Unlike in a time without them its nanoseconds count, so that what is not
// within one second moves the seconds.
func (m Message) MicroTime(num int) (unix int64, ok bool) {
	const seconds, nanos, second = 1, 2, 1_000_000_000
	t, ok := m.latest(num)
	if !ok {
		return 0, false
	}
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
