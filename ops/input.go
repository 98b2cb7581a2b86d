package ops

import (
	"bytes"
	"crypto/rand"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hanzoai/k8s/host/manifest"
)

// Input is what a guest gets of one call.
type Input struct {
	JSON      []byte            // one object, its fields in the schema's order
	Secrets   map[string][]byte // handle in JSON -> the secret it stands for
	Cluster   string            // the field cluster, "" where there is none
	Namespace string
}

// input builds an Input from its fields' values, in whatever order they come.
// A field whose value is the zero of its kind is as good as left out, on either
// transport, and so is not written unless it is required.
type input struct {
	schema *object
	values []value
	faults faults
}

// value is the checked value of one field.
type value struct {
	given bool   // it was there, zero or not
	path  bool   // it stands in the path, and may stand in the body once more
	json  []byte // canonical; empty for a zero
	text  string // of a string
}

func newInput(schema *object) *input {
	return &input{schema: schema, values: make([]value, len(schema.fields))}
}

// text gives field i as text, as a path or a query has it. A list is its
// repeated values; a map, an object or raw JSON is written as JSON.
func (in *input) text(i int, texts []string) {
	f := &in.schema.fields[i]
	if f.Kind == manifest.List && f.Of != manifest.Object {
		var list []byte
		for _, text := range texts {
			list = append(appendElement(list, f.Of, text), ',')
		}
		in.json(i, append(append([]byte{'['}, trimComma(list)...), ']'))
		return
	}
	if len(texts) > 1 {
		in.values[i].given = true
		in.faults.add(f.Name, "is given %d times", len(texts))
		return
	}
	in.json(i, appendElement(nil, f.Kind, texts[0]))
}

// appendElement appends text as the JSON of a kind. Text that is no value of
// its kind comes out as JSON that is not one either.
func appendElement(out []byte, kind manifest.Kind, text string) []byte {
	if kind == manifest.String {
		return appendString(out, text)
	}
	return append(out, text...)
}

func trimComma(b []byte) []byte {
	if n := len(b); n > 0 {
		return b[:n-1]
	}
	return b
}

// json gives field i as the JSON text of its value.
func (in *input) json(i int, text []byte) {
	f := &in.schema.fields[i]
	if !utf8.Valid(text) {
		in.values[i].given = true
		in.faults.add(f.Name, "is not UTF-8")
		return
	}
	s := scanner{text: text}
	before := len(in.faults.list)
	if ok := in.read(i, &s); (!ok || !s.end()) && len(in.faults.list) == before {
		in.faults.add(f.Name, "is not %s", article(f.Kind))
	}
}

// read takes field i's value from s. It is false, with no fault noted, where
// the JSON itself is broken or the value is of another kind.
func (in *input) read(i int, s *scanner) bool {
	f := &in.schema.fields[i]
	v := &in.values[i]
	switch {
	case v.path:
		v.path = false
		again, ok := in.canonical(nil, f, f.Name, s)
		if ok && !bytes.Equal(again, v.json) {
			in.faults.add(f.Name, "is not what the path says")
		}
		return ok
	case v.given:
		in.faults.add(f.Name, "is given twice")
		return s.value(maxDepth)
	}
	v.given = true
	var ok bool
	if f.Kind == manifest.String {
		v.text, ok = readText(s)
		if ok && v.text != "" {
			if why := f.checkText(v.text); why != "" {
				in.faults.add(f.Name, "%s", why)
			}
			v.json = appendString(nil, v.text)
		}
		return ok
	}
	v.json, ok = in.canonical(nil, f, f.Name, s)
	return ok
}

// readText reads a string as the text that it stands for.
func readText(s *scanner) (string, bool) {
	body, plain, ok := s.str()
	if !ok || plain {
		return string(body), ok
	}
	return string(appendText(nil, body)), true
}

// canonical reads one value of f and appends it in its canonical form; a zero
// appends nothing. It notes what is wrong with the value under path.
func (in *input) canonical(out []byte, f *field, path string, s *scanner) ([]byte, bool) {
	switch f.Kind {
	case manifest.String:
		text, ok := readText(s)
		if !ok {
			return out, false
		}
		if text == "" {
			return out, true
		}
		if why := f.checkText(text); why != "" {
			in.faults.add(path, "%s", why)
		}
		return appendString(out, text), true
	case manifest.Bool:
		yes, ok := s.boolean()
		if yes {
			out = append(out, "true"...)
		}
		return out, ok
	case manifest.Integer:
		n, ok := s.integer()
		if !ok {
			return out, false
		}
		if why := f.checkNumber(n); why != "" {
			in.faults.add(path, "%s", why)
		}
		if n == 0 {
			return out, true
		}
		return strconv.AppendInt(out, n, 10), true
	case manifest.Map:
		return in.entries(out, f, path, s)
	case manifest.Raw:
		return in.raw(out, f, path, s)
	case manifest.Object:
		return in.members(out, f.object, path, s)
	case manifest.List:
		return in.elements(out, f, path, s)
	}
	return out, false
}

// elements reads a list.
func (in *input) elements(out []byte, f *field, path string, s *scanner) ([]byte, bool) {
	start, count := len(out), 0
	out = append(out, '[')
	element := field{object: f.object, Field: &manifest.Field{
		Name: f.Name, Kind: f.Of, Required: true, Format: f.Format, Enum: f.Enum, Min: f.Min,
	}}
	ok := s.each('[', ']', func() bool {
		var ok bool
		at := path + "[" + strconv.Itoa(count) + "]"
		before := len(out)
		out, ok = in.canonical(out, &element, at, s)
		if ok && len(out) == before {
			out = append(out, zero(element.Kind)...)
			if element.Kind == manifest.String && element.Format != "" {
				in.faults.add(at, "is empty")
			}
		}
		out = append(out, ',')
		count++
		return ok
	})
	if count == 0 {
		return out[:start], ok
	}
	if f.Max > 0 && int64(count) > f.Max {
		in.faults.add(path, "has more than %d elements", f.Max)
	}
	out[len(out)-1] = ']'
	return out, ok
}

// members reads an object of a known schema.
func (in *input) members(out []byte, o *object, path string, s *scanner) ([]byte, bool) {
	inner := &input{schema: o, values: make([]value, len(o.fields)), faults: in.faults}
	ok := inner.object(s, path+".")
	inner.require(path + ".")
	in.faults = inner.faults
	if !ok {
		return out, false
	}
	return inner.append(out), true
}

// object takes every field of an object; prefix is put before their names in
// faults.
func (in *input) object(s *scanner, prefix string) bool {
	next := 0
	return s.each('{', '}', func() bool {
		name, ok := readText(s)
		if !ok || !s.take(':') {
			return false
		}
		i := in.schema.find([]byte(name), next)
		if i < 0 {
			in.faults.add(strings.TrimSuffix(prefix, "."), "has no field %s", quote(name))
			return s.value(maxDepth)
		}
		next = i + 1
		f, from := &in.schema.fields[i], s.at
		before := len(in.faults.list)
		defer func() { in.faults.within(before, prefix) }()
		if in.read(i, s) {
			return true
		}
		// The value may still be good JSON of another kind: then the rest of the
		// object can be checked too.
		s.at = from
		if !s.value(maxDepth) {
			return false
		}
		if len(in.faults.list) == before {
			in.faults.add(f.Name, "is not %s", article(f.Kind))
		}
		return true
	})
}

// require notes the required fields that are not there.
func (in *input) require(prefix string) {
	for i := range in.schema.fields {
		f, v := &in.schema.fields[i], &in.values[i]
		if !f.Required || len(v.json) > 0 {
			continue
		}
		// false and 0 are values; an empty string, list or object is none.
		if v.given && (f.Kind == manifest.Bool || f.Kind == manifest.Integer) {
			continue
		}
		if !in.noted(prefix + f.Name) {
			in.faults.add(prefix+f.Name, "is required")
		}
	}
}

// noted is true when something is already known to be wrong with a field.
func (in *input) noted(field string) bool {
	for _, f := range in.faults.list {
		if f.Field == field || strings.HasPrefix(f.Field, field+".") || strings.HasPrefix(f.Field, field+"[") {
			return true
		}
	}
	return in.faults.more > 0
}

// append writes the object.
func (in *input) append(out []byte) []byte {
	out = append(out, '{')
	empty := true
	for i := range in.schema.fields {
		f, v := &in.schema.fields[i], &in.values[i]
		text := v.json
		if len(text) == 0 {
			if !f.Required {
				continue
			}
			text = []byte(zero(f.Kind))
		}
		if !empty {
			out = append(out, ',')
		}
		empty = false
		out = append(append(appendString(out, f.Name), ':'), text...)
	}
	return append(out, '}')
}

// zero is the JSON of a kind's zero.
func zero(kind manifest.Kind) string {
	switch kind {
	case manifest.Bool:
		return "false"
	case manifest.Integer:
		return "0"
	case manifest.String:
		return `""`
	case manifest.List:
		return "[]"
	case manifest.Raw:
		return "null"
	}
	return "{}"
}

// article names a kind in a sentence.
func article(kind manifest.Kind) string {
	switch kind {
	case manifest.String:
		return "a string"
	case manifest.Bool:
		return "true or false"
	case manifest.Integer:
		return "a whole number of 64 bits"
	case manifest.Map:
		return "an object of strings"
	case manifest.List:
		return "a list of what it holds"
	case manifest.Raw:
		return "JSON"
	}
	return "an object"
}

// entries reads a map.
func (in *input) entries(out []byte, f *field, path string, s *scanner) ([]byte, bool) {
	start := len(out)
	out = append(out, '{')
	seen := make(map[string]bool)
	ok := s.each('{', '}', func() bool {
		key, ok := readText(s)
		if !ok || !s.take(':') {
			return false
		}
		value, ok := readText(s)
		if !ok {
			return false
		}
		if seen[key] {
			in.faults.add(path, "has the key %s twice", quote(key))
		}
		seen[key] = true
		if why := f.checkEntry(key, value); why != "" {
			in.faults.add(path+"["+quote(key)+"]", "%s", why)
		}
		out = append(appendString(append(appendString(out, key), ':'), value), ',')
		return true
	})
	if len(seen) == 0 {
		return out[:start], ok
	}
	if f.Max > 0 && int64(len(seen)) > f.Max {
		in.faults.add(path, "has more than %d entries", f.Max)
	}
	out[len(out)-1] = '}'
	return out, ok
}

// raw reads any JSON value and keeps its bytes, numbers as they were written.
// null is no value.
func (in *input) raw(out []byte, f *field, path string, s *scanner) ([]byte, bool) {
	s.space()
	from := s.at
	if !s.value(maxDepth) {
		return out, false
	}
	text := s.text[from:s.at]
	if string(text) == "null" {
		return out, true
	}
	if f.Max > 0 && int64(len(text)) > f.Max {
		in.faults.add(path, "is longer than %d bytes", f.Max)
	}
	if !unique(&scanner{text: text}) {
		in.faults.add(path, "has an object with one key twice")
	}
	return append(out, text...), true
}

// unique is true when no object of the value has a key twice. What two readers
// may read differently is not passed on.
func unique(s *scanner) bool {
	switch s.peek() {
	case '[':
		return s.each('[', ']', func() bool { return unique(s) })
	case '{':
		seen := make(map[string]bool)
		return s.each('{', '}', func() bool {
			key, ok := readText(s)
			if !ok || seen[key] || !s.take(':') {
				return false
			}
			seen[key] = true
			return unique(s)
		})
	}
	return s.value(maxDepth)
}

// finish is the input, or the refusal that names everything that is wrong.
func (in *input) finish() (*Input, error) {
	in.require("")
	if refusal := in.faults.refusal(); refusal != nil {
		return nil, refusal
	}
	done := &Input{}
	for i := range in.schema.fields {
		f, v := &in.schema.fields[i], &in.values[i]
		switch {
		case f.Secret && len(v.json) > 0:
			if done.Secrets == nil {
				done.Secrets = make(map[string][]byte)
			}
			handle := rand.Text()
			done.Secrets[handle] = []byte(v.text)
			v.json, v.text = appendString(nil, handle), ""
		case f.Name == "cluster":
			done.Cluster = v.text
		case f.Name == "namespace":
			done.Namespace = v.text
		}
	}
	done.JSON = in.append(nil)
	return done, nil
}
