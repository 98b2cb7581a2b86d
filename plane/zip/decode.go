package zip

import (
	"bytes"
	"fmt"
	"reflect"
)

// Unmarshal reads a message into v, a non-nil pointer to a struct. Every
// exported field is set: those the message does not have, to zero. Nothing of v
// aliases msg afterwards. No bytes at all leave v as it is: an absent body is
// not a value.
//
// A message that cannot be read is a [*FormatError], and then v is in no
// particular state; a type that cannot cross is a [*TypeError].
func Unmarshal(msg []byte, v any) error {
	if len(msg) == 0 {
		return nil
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return &TypeError{"v", fmt.Sprintf("%T", v), "a message is read into a non-nil pointer to a struct"}
	}
	rv = rv.Elem()
	p, err := planOf(rv.Type())
	if err != nil {
		return err
	}
	return p.decode(msg, rv, "")
}

// maxShared bounds how much text one string keeps alive.
const maxShared = 1 << 10

// texts cuts the strings of one message. Those of a small message are cut from
// one copy of it: one allocation for an element of a list and not one for each
// of its fields, at the price that a string kept keeps its neighbours.
type texts struct {
	msg    []byte
	shared string
}

func (t *texts) cut(at, n int) string {
	if t.shared == "" {
		if len(t.msg) > maxShared {
			return string(t.msg[at : at+n])
		}
		t.shared = string(t.msg)
	}
	return t.shared[at : at+n]
}

// part is the shared copy of a message within this one, if there is a copy.
func (t *texts) part(at, n int) string {
	if t.shared == "" {
		return ""
	}
	return t.shared[at : at+n]
}

func (p *plan) decode(msg []byte, rv reflect.Value, shared string) error {
	v, err := p.lay.View(msg)
	if err != nil {
		return err
	}
	t := texts{v.msg, shared}
	for i := range p.fields {
		if err := p.fields[i].decode(&v, &t, rv.Field(p.fields[i].index)); err != nil {
			return err
		}
	}
	return nil
}

func (f *planField) decode(v *View, t *texts, fv reflect.Value) error {
	if f.kind.scalar() {
		var bits uint64
		if p := v.root + f.off; p+f.kind.width() <= v.end {
			bits = scalar(v.msg[p:], f.kind)
		}
		if f.ptr {
			if bits == 0 {
				fv.SetZero()
				return nil
			}
			fv = point(fv)
		}
		return setScalar(fv, f.kind, bits)
	}
	at, n, ok := v.ref(f.off, f.kind)
	if !ok {
		fv.SetZero()
		return nil
	}
	if f.ptr {
		fv = point(fv)
	}
	switch f.kind {
	case Text:
		fv.SetString(t.cut(at, n))
	case Bytes:
		fv.SetBytes(bytes.Clone(v.msg[at : at+n]))
	case Struct:
		return f.sub.decode(v.msg[at:at+n], fv, t.part(at, n))
	case List:
		return f.decodeList(v, t, fv, at, n)
	}
	return nil
}

// decodeList reads n elements at position at. That they are there the view has
// checked, so n allocates no more than the message holds.
func (f *planField) decodeList(v *View, t *texts, fv reflect.Value, at, n int) error {
	least := 0
	if f.elem == Struct {
		least = headerSize
	}
	if n > (len(v.msg)-at)/(4+least) {
		return malformed("a list of %d elements in %d bytes", n, len(v.msg)-at)
	}
	// As MakeSlice would, but for the slice header that it allocates besides.
	fv.SetZero()
	fv.Grow(n)
	fv.SetLen(n)
	for i := range n {
		size := int(le.Uint32(v.msg[at:]))
		at += 4
		ev := fv.Index(i)
		if f.elemPtr {
			ev = point(ev)
		}
		var err error
		switch f.elem {
		case Text:
			ev.SetString(t.cut(at, size))
		case Bytes:
			ev.SetBytes(bytes.Clone(v.msg[at : at+size]))
		case Struct:
			err = f.sub.decode(v.msg[at:at+size], ev, t.part(at, size))
		default:
			if size != f.elem.width() {
				return malformed("a list element of %d bytes, which is not a %v", size, f.elem)
			}
			err = setScalar(ev, f.elem, scalar(v.msg[at:], f.elem))
		}
		if err != nil {
			return err
		}
		at += size
	}
	return nil
}

// point makes the pointer fv point at a new value, and gives that.
func point(fv reflect.Value) reflect.Value {
	fv.Set(reflect.New(fv.Type().Elem()))
	return fv.Elem()
}

func setScalar(fv reflect.Value, k Kind, bits uint64) error {
	switch {
	case k == Bool:
		fv.SetBool(bits != 0)
	case k <= Int64:
		if fv.OverflowInt(int64(bits)) { // int has 32 bits on some machines
			return malformed("%d does not fit in an %v", int64(bits), fv.Type())
		}
		fv.SetInt(int64(bits))
	case k <= Uint64:
		if fv.OverflowUint(bits) {
			return malformed("%d does not fit in a %v", bits, fv.Type())
		}
		fv.SetUint(bits)
	default:
		fv.SetFloat(Value{Kind: k, bits: bits}.Float())
	}
	return nil
}
