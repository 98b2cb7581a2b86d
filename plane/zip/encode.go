package zip

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// Marshal is v, a struct or a pointer to one, as a message of its own. A nil
// pointer is no message at all: nil, which is the absent body of a call.
//
// What crosses: bool, every int, uint and float kind, string, []byte, structs,
// pointers to any of these, and slices of any of these. A pointer to a zero
// scalar or to an empty string or slice arrives as nil, and so does an empty
// slice. Anything else, and a type that contains itself, is a [*TypeError] that
// names the field. A message over [MaxFrame] is a [*FormatError].
func Marshal(v any) ([]byte, error) {
	scratch := scratches.Get().(*[]byte)
	defer putScratch(scratch)
	var err error
	*scratch, err = Append((*scratch)[:0], v)
	if err != nil || len(*scratch) == 0 {
		return nil, err
	}
	return slices.Clone(*scratch), nil
}

// Append is [Marshal] onto the end of dst.
func Append(dst []byte, v any) ([]byte, error) {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return dst, nil
		}
		rv = rv.Elem()
	}
	if !rv.IsValid() {
		return dst, &TypeError{"nil", "nil", "the root of a message is a struct"}
	}
	p, err := planOf(rv.Type())
	if err != nil {
		return dst, err
	}
	start := len(dst)
	out := p.append(dst, rv)
	if n := len(out) - start; n > MaxFrame {
		return out[:start], &FormatError{ErrTooLarge, fmt.Sprintf("a message of %d bytes", n)}
	}
	return out, nil
}

// scratches are buffers for building messages and reading frames. A large one is
// not kept: one enormous answer must not hold its memory for good.
var scratches = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

const maxScratch = 4 << 20

func putScratch(b *[]byte) {
	if cap(*b) <= maxScratch {
		scratches.Put(b)
	}
}

// append writes rv as a message. Lists come first, since the object points at
// them; then the fixed section; then its text, bytes and structs in order.
func (p *plan) append(dst []byte, rv reflect.Value) []byte {
	start := len(dst)
	dst = appendHeader(dst, 0)
	var few [8]stagedRef
	lists := few[:0]
	for i := range p.fields {
		f := &p.fields[i]
		if f.kind != List {
			continue
		}
		fv, ok := f.value(rv)
		if !ok || fv.Len() == 0 {
			lists = append(lists, stagedRef{})
			continue
		}
		dst = align(dst, start)
		n := fv.Len()
		lists = append(lists, stagedRef{at: len(dst), n: n})
		for j := range n {
			dst = f.appendElem(dst, fv.Index(j))
		}
	}
	dst = align(dst, start)
	root := len(dst)
	dst = appendZeroes(dst, p.lay.size)
	for i := range p.fields {
		f := &p.fields[i]
		slot := root + f.off
		if f.kind == List {
			if l := lists[0]; l.n > 0 {
				putRef(dst, slot, l.at, l.n)
			}
			lists = lists[1:]
			continue
		}
		fv, ok := f.value(rv)
		if !ok {
			continue
		}
		switch f.kind {
		case Text:
			dst = appendRef(dst, slot, fv.String())
		case Bytes:
			dst = appendRef(dst, slot, fv.Bytes())
		case Struct:
			at := len(dst)
			dst = f.sub.append(dst, fv)
			putRef(dst, slot, at, len(dst)-at)
		default:
			putScalar(dst[slot:], f.kind, bits(fv, f.kind))
		}
	}
	endMessage(dst, start, root)
	return dst
}

// value is the field itself; false for a nil pointer.
func (f *planField) value(rv reflect.Value) (reflect.Value, bool) {
	fv := rv.Field(f.index)
	if f.ptr {
		if fv.IsNil() {
			return fv, false
		}
		fv = fv.Elem()
	}
	return fv, true
}

func (f *planField) appendElem(dst []byte, ev reflect.Value) []byte {
	if f.elemPtr {
		if ev.IsNil() {
			// An element cannot be null: it would be no element.
			ev = reflect.Zero(f.typ)
		} else {
			ev = ev.Elem()
		}
	}
	switch f.elem {
	case Text:
		s := ev.String()
		dst = le.AppendUint32(dst, uint32(len(s)))
		return append(dst, s...)
	case Bytes:
		b := ev.Bytes()
		dst = le.AppendUint32(dst, uint32(len(b)))
		return append(dst, b...)
	case Struct:
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = f.sub.append(dst, ev)
		le.PutUint32(dst[at:], uint32(len(dst)-at-4))
		return dst
	}
	dst = le.AppendUint32(dst, uint32(f.elem.width()))
	return appendScalar(dst, f.elem, bits(ev, f.elem))
}

func bits(v reflect.Value, k Kind) uint64 {
	switch {
	case k == Bool:
		return bitsOf(v.Bool())
	case k <= Int64:
		return uint64(v.Int())
	case k <= Uint64:
		return v.Uint()
	}
	return floatBits(k, v.Float())
}
