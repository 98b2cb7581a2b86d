package ops

import (
	"fmt"

	"github.com/hanzoai/k8s/host/manifest"
)

// object is the compiled schema of an object: its fields, in wire order.
type object struct {
	fields   []field
	required fieldSet
}

// fieldSet is a set of an object's fields, by index.
type fieldSet [(manifest.MaxFields + 63) / 64]uint64

func (s *fieldSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s *fieldSet) add(i int) { s[i/64] |= 1 << (i % 64) }

// holds is true when all of other is in s.
func (s *fieldSet) holds(other *fieldSet) bool {
	for i := range s {
		if other[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// field is one field of an object; object is set where its values, or its
// elements, are objects themselves.
type field struct {
	*manifest.Field
	object *object
}

// pair is the schema of one entry of a map as it crosses ZAP.
var pair = compile([]manifest.Field{
	{Name: "key", Kind: manifest.String},
	{Name: "value", Kind: manifest.String},
})

// compile makes a schema of a manifest's fields.
func compile(fields []manifest.Field) *object {
	o := &object{fields: make([]field, len(fields))}
	for i := range fields {
		f := field{Field: &fields[i]}
		if f.Kind == manifest.Object || f.Kind == manifest.List && f.Of == manifest.Object {
			f.object = compile(f.Fields)
		}
		o.fields[i] = f
		if f.Required {
			o.required.add(i)
		}
	}
	return o
}

// find is the index of the field called name, or -1. The search begins at hint,
// the field that follows the one found last, because most writers keep to the
// schema's order.
func (o *object) find(name []byte, hint int) int {
	for n := range o.fields {
		i := hint + n
		if i >= len(o.fields) {
			i -= len(o.fields)
		}
		if o.fields[i].Name == string(name) {
			return i
		}
	}
	return -1
}

// check says what keeps text from being one object of this schema: a guest's
// answer goes to the caller only as its manifest promised it. It allocates
// nothing when all is well.
func (o *object) check(text []byte) error {
	s, ok := scan(text)
	if !ok {
		return fmt.Errorf("not UTF-8")
	}
	if !o.read(&s) {
		return fmt.Errorf("not an object of the schema, at byte %d", s.at)
	}
	if !s.end() {
		return fmt.Errorf("more than one value, at byte %d", s.at)
	}
	return nil
}

// read passes over one object of this schema. A field that the schema does not
// have, that has another kind or that stands there twice ends it, and so does
// one missing that is required.
func (o *object) read(s *scanner) bool {
	var seen fieldSet
	next := 0
	ok := s.each('{', '}', func() bool {
		name, plain, ok := s.str()
		if !ok || !plain || !s.take(':') {
			return false
		}
		i := o.find(name, next)
		if i < 0 || seen.has(i) {
			return false
		}
		seen.add(i)
		next = i + 1
		return o.fields[i].read(s)
	})
	return ok && seen.holds(&o.required)
}

// read passes over one value of the field.
func (f *field) read(s *scanner) bool {
	if f.Kind == manifest.List {
		return s.each('[', ']', func() bool { return read(s, f.Of, f.object) })
	}
	return read(s, f.Kind, f.object)
}

// read passes over one value of a kind other than a list.
func read(s *scanner, kind manifest.Kind, o *object) (ok bool) {
	switch kind {
	case manifest.String:
		_, _, ok = s.str()
	case manifest.Bool:
		_, ok = s.boolean()
	case manifest.Integer:
		_, ok = s.integer()
	case manifest.Map:
		ok = s.each('{', '}', func() bool {
			_, _, key := s.str()
			if !key || !s.take(':') {
				return false
			}
			_, _, value := s.str()
			return value
		})
	case manifest.Raw:
		ok = s.value(maxDepth)
	case manifest.Object:
		ok = o.read(s)
	}
	return ok
}
