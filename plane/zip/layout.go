package zip

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Kind is what a field is on the wire.
type Kind uint8

// The kinds. A Go int is an Int64 and a uint a Uint64.
const (
	Invalid Kind = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Text   // UTF-8 by convention, unchecked
	Bytes  // any bytes
	Struct // a whole message
	List   // of any kind but List
)

var kindNames = [...]string{"invalid", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
	"uint32", "uint64", "float32", "float64", "text", "bytes", "struct", "list"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// width is the bytes a field takes in the fixed section, and its alignment.
func (k Kind) width() int {
	switch k {
	case Bool, Int8, Uint8:
		return 1
	case Int16, Uint16:
		return 2
	case Int32, Uint32, Float32:
		return 4
	}
	return 8
}

func (k Kind) scalar() bool { return k >= Bool && k <= Float64 }

// Field is one field of a schema from which [NewLayout] makes a layout.
type Field struct {
	Name     string
	Kind     Kind
	Elem     Kind    // of a List: its elements' kind
	Fields   []Field // of a Struct, and of a List of Struct
	Nullable bool    // of a Struct: unset is null, where otherwise it is a message of zeroes
}

// Layout is where each field of an object lies. It is immutable and safe for
// concurrent use.
type Layout struct {
	size  int
	slots []slot
	zero  []byte // the message of an object with every field unset
}

type slot struct {
	Field
	off int
	sub *Layout // of Struct and List of Struct
}

// maxDepth bounds how deep a schema nests, and with it every recursion over a
// message: a layout is a finite tree, and a message is only read by its layout.
const maxDepth = 32

// NewLayout lays fields out in order. A schema that has no wire form is a
// [*TypeError].
func NewLayout(fields ...Field) (*Layout, error) { return newLayout(fields, "", 0) }

func newLayout(fields []Field, path string, depth int) (*Layout, error) {
	if depth > maxDepth {
		return nil, &TypeError{path, "struct", "nested deeper than " + strconv.Itoa(maxDepth)}
	}
	l := &Layout{slots: make([]slot, len(fields))}
	for i, f := range fields {
		at := strings.TrimPrefix(path+"."+f.Name, ".")
		s := slot{Field: f}
		kind := f.Kind
		if kind == List {
			if kind = f.Elem; kind == List {
				return nil, &TypeError{at, "list of lists", "put the inner list in a struct"}
			}
		}
		switch {
		case kind == Invalid || kind > List:
			return nil, &TypeError{at, kind.String(), "no such kind"}
		case kind == Struct:
			var err error
			if s.sub, err = newLayout(f.Fields, at, depth+1); err != nil {
				return nil, err
			}
		}
		w := f.Kind.width()
		s.off = (l.size + w - 1) &^ (w - 1)
		l.size = s.off + w
		l.slots[i] = s
	}
	l.size = (l.size + 7) &^ 7
	b := NewBuilder(l)
	var err error
	l.zero, err = b.Finish()
	return l, err
}

// Len is the number of fields. A field is named by its index from here on.
func (l *Layout) Len() int { return len(l.slots) }

// Size is the bytes of the fixed section, a multiple of 8.
func (l *Layout) Size() int { return l.size }

// Field is the i-th field.
func (l *Layout) Field(i int) Field { return l.slots[i].Field }

// Offset is where the i-th field lies in the fixed section.
func (l *Layout) Offset(i int) int { return l.slots[i].off }

// Elem is the layout of the i-th field, a Struct or a List of Struct; nil for
// any other.
func (l *Layout) Elem(i int) *Layout { return l.slots[i].sub }

// LayoutOf is the layout of a struct type: the one [Marshal] writes values of it
// with.
func LayoutOf(t reflect.Type) (*Layout, error) {
	p, err := planOf(t)
	if err != nil {
		return nil, err
	}
	return p.lay, nil
}

// plan ties a layout to the Go struct it is of.
type plan struct {
	lay    *Layout
	fields []planField
}

type planField struct {
	index   int  // in the Go struct
	off     int  // in the fixed section
	kind    Kind //
	elem    Kind // of a List
	ptr     bool // the Go field is a pointer to what crosses
	elemPtr bool // the list's elements are pointers
	sub     *plan
	typ     reflect.Type // what crosses, or what a list's element is, less any pointer
}

var plans sync.Map // reflect.Type to *plan or error

func planOf(t reflect.Type) (*plan, error) {
	p, ok := plans.Load(t)
	if !ok {
		made, err := newPlan(t, t.Name(), nil)
		if p = any(made); err != nil {
			p = err
		}
		plans.Store(t, p)
	}
	if err, bad := p.(error); bad {
		return nil, err
	}
	return p.(*plan), nil
}

// newPlan derives the schema of t and lays it out. within is the types t is
// being derived inside of: one that contains itself, even through a pointer or a
// slice, is refused, since a layout is a finite tree.
func newPlan(t reflect.Type, path string, within []reflect.Type) (*plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, &TypeError{path, t.String(), "the root of a message is a struct"}
	}
	for _, outer := range within {
		if outer == t {
			return nil, &TypeError{path, t.String(), "it contains itself"}
		}
	}
	within = append(within, t)
	p := &plan{}
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		pf, err := newPlanField(sf.Type, path+"."+sf.Name, within)
		if err != nil {
			return nil, err
		}
		pf.index = i
		p.fields = append(p.fields, pf)
	}
	schema := p.schema(t)
	lay, err := newLayout(schema, path, len(within)-1)
	if err != nil {
		return nil, err
	}
	p.lay = lay
	for i := range p.fields {
		p.fields[i].off = lay.slots[i].off
	}
	return p, nil
}

func (p *plan) schema(t reflect.Type) []Field {
	fields := make([]Field, len(p.fields))
	for i, pf := range p.fields {
		f := Field{Name: t.Field(pf.index).Name, Kind: pf.kind, Elem: pf.elem, Nullable: pf.ptr}
		if pf.sub != nil {
			f.Fields = pf.sub.schema(pf.typ)
		}
		fields[i] = f
	}
	return fields
}

func newPlanField(t reflect.Type, path string, within []reflect.Type) (planField, error) {
	var pf planField
	if t.Kind() == reflect.Pointer {
		pf.ptr = true
		t = t.Elem()
	}
	pf.typ = t
	pf.kind = kindOf(t)
	elem := t
	if pf.kind == List {
		if elem = t.Elem(); elem.Kind() == reflect.Pointer {
			pf.elemPtr = true
			elem = elem.Elem()
		}
		pf.typ = elem
		if pf.elem = kindOf(elem); pf.elem == List {
			return pf, &TypeError{path, t.String(), "a slice of slices; put the inner one in a struct"}
		}
	}
	if pf.kind == Invalid || pf.kind == List && pf.elem == Invalid {
		return pf, &TypeError{path, t.String(), "a " + elem.Kind().String() + " has no wire form"}
	}
	if pf.kind == Struct || pf.elem == Struct {
		var err error
		if pf.sub, err = newPlan(elem, path, within); err != nil {
			return pf, err
		}
	}
	return pf, nil
}

func kindOf(t reflect.Type) Kind {
	switch t.Kind() {
	case reflect.Bool:
		return Bool
	case reflect.Int8:
		return Int8
	case reflect.Int16:
		return Int16
	case reflect.Int32:
		return Int32
	case reflect.Int, reflect.Int64:
		return Int64
	case reflect.Uint8:
		return Uint8
	case reflect.Uint16:
		return Uint16
	case reflect.Uint32:
		return Uint32
	case reflect.Uint, reflect.Uint64:
		return Uint64
	case reflect.Float32:
		return Float32
	case reflect.Float64:
		return Float64
	case reflect.String:
		return Text
	case reflect.Struct:
		return Struct
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return Bytes
		}
		return List
	}
	return Invalid
}
