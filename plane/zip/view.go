package zip

import "math"

// View reads one object of a message by its layout. Everything it gives aliases
// the message.
//
// A message may be hostile: whatever it holds, reading it does not panic, does
// not read outside of it, and takes time and memory in proportion to its size.
type View struct {
	lay  *Layout
	msg  []byte
	root int
	end  int // of the fixed section, as far as it can be told
}

// View opens msg, a message whose object has this layout, and checks it: an
// unreadable one is a [*FormatError]. Bytes after the message are ignored, and a
// slot that points inside the header or past the end reads as null.
//
// An object written by an older peer has a shorter fixed section, and where that
// ends is not on the wire: what it refers to lies right behind it. So the fixed
// section ends at the first thing a field points forward at, and the fields
// beyond read as zero; otherwise somebody's text would be read as an integer.
func (l *Layout) View(msg []byte) (View, error) {
	msg, root, err := openMessage(msg)
	if err != nil {
		return View{}, err
	}
	v := View{l, msg, root, len(msg)}
	// What the slots of one object refer to cannot be more than there is.
	// Without this, slots that share their bytes, level over level, would make
	// a small message decode to an enormous value.
	left := len(msg)
	for i := range l.slots {
		s := &l.slots[i]
		if s.Kind.scalar() {
			continue
		}
		at, n, ok := v.ref(s.off, s.Kind)
		if !ok {
			continue
		}
		if s.Kind == List {
			if n, err = listSize(msg[at:], n); err != nil {
				return View{}, err
			}
		}
		if left -= n; left < 0 {
			return View{}, malformed("fields that overlap")
		}
		if at > root+s.off && at < v.end {
			v.end = at
		}
	}
	return v, nil
}

// ref resolves the slot at off: where it points, and its length or count. It is
// false for null, for empty and for what is not there.
func (v *View) ref(off int, k Kind) (at, n int, ok bool) {
	p := v.root + off
	if p+8 > v.end {
		return 0, 0, false
	}
	rel := int32(le.Uint32(v.msg[p:]))
	count := le.Uint32(v.msg[p+4:])
	at = p + int(rel)
	if rel == 0 || count == 0 || at < headerSize || at >= len(v.msg) {
		return 0, 0, false
	}
	if k != List && uint64(count) > uint64(len(v.msg)-at) {
		return 0, 0, false
	}
	return at, int(count), true
}

// listSize is the bytes the n elements at the start of b take.
func listSize(b []byte, n int) (int, error) {
	if n > len(b)/4 || n < 0 {
		return 0, malformed("a list of %d elements in %d bytes", n, len(b))
	}
	at := 0
	for i := range n {
		if len(b)-at < 4 {
			return 0, malformed("a list that ends at element %d of %d", i, n)
		}
		size := uint64(le.Uint32(b[at:]))
		at += 4
		if size > uint64(len(b)-at) {
			return 0, malformed("a list that ends within element %d of %d", i, n)
		}
		at += int(size)
	}
	return at, nil
}

// Layout is what the view reads by.
func (v View) Layout() *Layout { return v.lay }

// Field is the i-th field's value.
func (v View) Field(i int) Value {
	s := &v.lay.slots[i]
	val := Value{Kind: s.Kind, Elem: s.Elem, lay: s.sub}
	if s.Kind.scalar() {
		if p := v.root + s.off; p+s.Kind.width() <= v.end {
			val.bits = scalar(v.msg[p:], s.Kind)
		}
		return val
	}
	at, n, ok := v.ref(s.off, s.Kind)
	switch {
	case !ok:
	case s.Kind == List:
		val.n, val.data = n, v.msg[at:]
	default:
		val.data = v.msg[at : at+n]
	}
	return val
}

// Value is one field or one element of a list. The method to call is the one its
// Kind says; another gives a zero value.
type Value struct {
	Kind Kind
	Elem Kind // of a List: its elements' kind

	bits uint64
	n    int // elements of a List
	data []byte
	lay  *Layout
}

// Bool is a Bool.
func (v Value) Bool() bool { return v.Kind == Bool && v.bits != 0 }

// Int is an Int8 to Int64.
func (v Value) Int() int64 { return int64(v.bits) }

// Uint is a Uint8 to Uint64.
func (v Value) Uint() uint64 { return v.bits }

// Float is a Float32 or Float64.
func (v Value) Float() float64 {
	if v.Kind == Float32 {
		return float64(math.Float32frombits(uint32(v.bits)))
	}
	return math.Float64frombits(v.bits)
}

// Bytes is a Text's or Bytes' bytes, or a Struct's message; nil when empty.
func (v Value) Bytes() []byte {
	if v.Kind == List {
		return nil
	}
	return v.data
}

// Null reports a Struct that is not there.
func (v Value) Null() bool { return len(v.data) == 0 }

// View opens a Struct that is not null.
func (v Value) View() (View, error) {
	if v.Kind != Struct {
		return View{}, malformed("a %v read as a struct", v.Kind)
	}
	return v.lay.View(v.data)
}

// Len is the number of elements a List has left.
func (v Value) Len() int { return v.n }

// Next takes the next element off a List. ok is false when none is left.
//
//	for list := view.Field(0); list.Len() > 0; {
//		elem, err := list.Next()
//		...
//	}
//
// An element that is not of the list's kind is a [*FormatError].
func (v *Value) Next() (Value, error) {
	if v.Kind != List || v.n == 0 {
		return Value{}, malformed("an element past the end of a list")
	}
	size := int(le.Uint32(v.data))
	elem := Value{Kind: v.Elem, data: v.data[4 : 4+size], lay: v.lay}
	v.data = v.data[4+size:]
	v.n--
	if elem.Kind.scalar() {
		if size != elem.Kind.width() {
			return Value{}, malformed("a list element of %d bytes, which is not a %v", size, elem.Kind)
		}
		elem.bits, elem.data = scalar(elem.data, elem.Kind), nil
	}
	return elem, nil
}
