package zip

import (
	"fmt"
	"math"
)

// Builder writes one message by its layout, field by field, without a Go type.
// What it makes is what [Marshal] makes of the same value, byte for byte, as
// long as lists are written in the order of their fields; in another order the
// message differs in its bytes and not in its meaning.
//
// A list is written as its elements come and its length need not be known
// beforehand:
//
//	b := zip.NewBuilder(pods)
//	b.BeginList(0)
//	for each pod {
//		e.Reset(pod) // e is another Builder, used again for every element
//		e.SetText(1, "web-0")
//		msg, err := e.Finish()
//		...
//		b.Append(msg)
//	}
//	b.EndList()
//	b.SetText(1, "next")
//	msg, err := b.Finish()
//
// Lists go straight into the message, before the object that points at them;
// everything else is held until Finish, so fields may be set in any order. The
// first mistake sticks and is what Finish returns.
type Builder struct {
	lay    *Layout
	buf    []byte
	fixed  []byte
	staged []byte // text, bytes and structs, until the fixed section is placed
	refs   []stagedRef
	open   int // the list being written, -1 for none
	err    error
}

type stagedRef struct {
	at, n int // in staged, or in buf and a count for a list
	set   bool
}

// NewBuilder is a builder of messages with layout l.
func NewBuilder(l *Layout) *Builder {
	b := &Builder{}
	b.Reset(l)
	return b
}

// Reset starts a new message, with l its layout, in the memory of the last one:
// what Finish returned is no longer valid.
func (b *Builder) Reset(l *Layout) {
	b.lay = l
	b.buf = appendHeader(b.buf[:0], 0)
	b.fixed = appendZeroes(b.fixed[:0], l.size)
	b.staged = b.staged[:0]
	if cap(b.refs) < len(l.slots) {
		b.refs = make([]stagedRef, len(l.slots))
	}
	b.refs = b.refs[:len(l.slots)]
	clear(b.refs)
	b.open = -1
	b.err = nil
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// slot is the i-th field when it is of a kind that may be set so.
func (b *Builder) slot(i int, from, to Kind) *slot {
	if i < 0 || i >= len(b.lay.slots) {
		b.fail(fmt.Errorf("zip: field %d of a layout of %d", i, len(b.lay.slots)))
		return nil
	}
	s := &b.lay.slots[i]
	if s.Kind < from || s.Kind > to {
		b.fail(&TypeError{s.Name, s.Kind.String(), "set as another kind"})
		return nil
	}
	return s
}

// SetBool sets a Bool.
func (b *Builder) SetBool(i int, v bool) {
	if s := b.slot(i, Bool, Bool); s != nil {
		putScalar(b.fixed[s.off:], Bool, bitsOf(v))
	}
}

// SetInt sets an Int8 to Int64. A value that does not fit is an error.
func (b *Builder) SetInt(i int, v int64) {
	if s := b.slot(i, Int8, Int64); s != nil {
		if !fitsInt(s.Kind, v) {
			b.fail(&TypeError{s.Name, s.Kind.String(), fmt.Sprintf("%d does not fit", v)})
			return
		}
		putScalar(b.fixed[s.off:], s.Kind, uint64(v))
	}
}

// SetUint sets a Uint8 to Uint64. A value that does not fit is an error.
func (b *Builder) SetUint(i int, v uint64) {
	if s := b.slot(i, Uint8, Uint64); s != nil {
		if !fitsUint(s.Kind, v) {
			b.fail(&TypeError{s.Name, s.Kind.String(), fmt.Sprintf("%d does not fit", v)})
			return
		}
		putScalar(b.fixed[s.off:], s.Kind, v)
	}
}

// SetFloat sets a Float32 or Float64.
func (b *Builder) SetFloat(i int, v float64) {
	if s := b.slot(i, Float32, Float64); s != nil {
		putScalar(b.fixed[s.off:], s.Kind, floatBits(s.Kind, v))
	}
}

// SetText sets a Text.
func (b *Builder) SetText(i int, v string) {
	if b.slot(i, Text, Text) != nil {
		b.refs[i] = stagedRef{len(b.staged), len(v), true}
		b.staged = append(b.staged, v...)
	}
}

// SetBytes sets a Text or Bytes to these bytes, or a Struct to this message of
// its layout. They are copied.
func (b *Builder) SetBytes(i int, v []byte) {
	if b.slot(i, Text, Struct) != nil {
		b.refs[i] = stagedRef{len(b.staged), len(v), true}
		b.staged = append(b.staged, v...)
	}
}

// BeginList starts writing a List: until EndList, the Append methods add to it.
// A list is written once.
func (b *Builder) BeginList(i int) {
	switch s := b.slot(i, List, List); {
	case s == nil:
	case b.open >= 0:
		b.fail(&TypeError{s.Name, "list", "begun within another list"})
	case b.refs[i].set:
		b.fail(&TypeError{s.Name, "list", "written twice"})
	default:
		// Placed now even if it stays empty: EndList takes the padding back.
		b.open = i
		b.refs[i] = stagedRef{len(b.buf), 0, true}
		b.buf = align(b.buf, 0)
	}
}

// EndList ends the list begun last.
func (b *Builder) EndList() {
	if b.open < 0 {
		b.fail(fmt.Errorf("zip: a list ended that was not begun"))
		return
	}
	r := &b.refs[b.open]
	if r.n == 0 {
		b.buf = b.buf[:r.at]
	} else {
		r.at = (r.at + 7) &^ 7
	}
	b.open = -1
}

// elem makes room for one element of the open list, of a kind that may be added
// so.
func (b *Builder) elem(from, to Kind, size int) Kind {
	if b.open < 0 {
		b.fail(fmt.Errorf("zip: an element added outside a list"))
		return Invalid
	}
	s := &b.lay.slots[b.open]
	if s.Elem < from || s.Elem > to {
		b.fail(&TypeError{s.Name, "list of " + s.Elem.String(), "an element of another kind"})
		return Invalid
	}
	if s.Elem.scalar() {
		size = s.Elem.width()
	}
	if size > MaxFrame-len(b.buf) {
		b.fail(&FormatError{ErrTooLarge, "list " + s.Name})
		return Invalid
	}
	b.refs[b.open].n++
	b.buf = le.AppendUint32(b.buf, uint32(size))
	return s.Elem
}

// Append adds one element to a list of Text, Bytes or Struct; of a Struct it is
// a whole message of its layout.
func (b *Builder) Append(v []byte) {
	if b.elem(Text, Struct, len(v)) != Invalid {
		b.buf = append(b.buf, v...)
	}
}

// AppendText adds one element to a list of Text.
func (b *Builder) AppendText(v string) {
	if b.elem(Text, Text, len(v)) != Invalid {
		b.buf = append(b.buf, v...)
	}
}

// AppendBool adds one element to a list of Bool.
func (b *Builder) AppendBool(v bool) { b.appendScalar(Bool, Bool, bitsOf(v)) }

// AppendInt adds one element to a list of Int8 to Int64. A value that does not
// fit is an error.
func (b *Builder) AppendInt(v int64) {
	if b.open >= 0 && !fitsInt(b.lay.slots[b.open].Elem, v) {
		b.fail(fmt.Errorf("zip: %d does not fit in a list of %v", v, b.lay.slots[b.open].Elem))
		return
	}
	b.appendScalar(Int8, Int64, uint64(v))
}

// AppendUint adds one element to a list of Uint8 to Uint64. A value that does
// not fit is an error.
func (b *Builder) AppendUint(v uint64) {
	if b.open >= 0 && !fitsUint(b.lay.slots[b.open].Elem, v) {
		b.fail(fmt.Errorf("zip: %d does not fit in a list of %v", v, b.lay.slots[b.open].Elem))
		return
	}
	b.appendScalar(Uint8, Uint64, v)
}

// AppendFloat adds one element to a list of Float32 or Float64.
func (b *Builder) AppendFloat(v float64) {
	if b.open >= 0 {
		b.appendScalar(Float32, Float64, floatBits(b.lay.slots[b.open].Elem, v))
	} else {
		b.elem(Float32, Float64, 0)
	}
}

func (b *Builder) appendScalar(from, to Kind, bits uint64) {
	if k := b.elem(from, to, 0); k != Invalid {
		b.buf = appendScalar(b.buf, k, bits)
	}
}

// Len is the bytes held so far, a lower bound of the message's size.
func (b *Builder) Len() int { return len(b.buf) + len(b.fixed) + len(b.staged) }

// Finish is the message. It is the builder's own memory, valid until Reset.
func (b *Builder) Finish() ([]byte, error) {
	if b.open >= 0 {
		b.fail(&TypeError{b.lay.slots[b.open].Name, "list", "begun and not ended"})
	}
	if b.err != nil {
		return nil, b.err
	}
	b.buf = align(b.buf, 0)
	root := len(b.buf)
	b.buf = append(b.buf, b.fixed...)
	for i := range b.lay.slots {
		s, r := &b.lay.slots[i], b.refs[i]
		switch {
		case s.Kind == List:
			if r.n > 0 {
				putRef(b.buf, root+s.off, r.at, r.n)
			}
		case s.Kind == Struct && !r.set && !s.Nullable:
			b.buf = appendRef(b.buf, root+s.off, s.sub.zero)
		case !s.Kind.scalar():
			b.buf = appendRef(b.buf, root+s.off, b.staged[r.at:r.at+r.n])
		}
	}
	if len(b.buf) > MaxFrame {
		b.fail(&FormatError{ErrTooLarge, fmt.Sprintf("a message of %d bytes", len(b.buf))})
		return nil, b.err
	}
	endMessage(b.buf, 0, root)
	return b.buf, nil
}

func bitsOf(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func floatBits(k Kind, v float64) uint64 {
	if k == Float32 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

func fitsInt(k Kind, v int64) bool {
	unused := 64 - 8*k.width()
	return v<<unused>>unused == v
}

func fitsUint(k Kind, v uint64) bool {
	unused := 64 - 8*k.width()
	return v<<unused>>unused == v
}

func appendScalar(dst []byte, k Kind, bits uint64) []byte {
	switch k.width() {
	case 1:
		return append(dst, byte(bits))
	case 2:
		return le.AppendUint16(dst, uint16(bits))
	case 4:
		return le.AppendUint32(dst, uint32(bits))
	}
	return le.AppendUint64(dst, bits)
}
