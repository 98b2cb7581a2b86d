package ops

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

// layoutOf is the wire layout of a schema: a map is a list of key and value
// structs, raw JSON is bytes.
func layoutOf(o *object) (*zip.Layout, error) { return zip.NewLayout(wireFields(o)...) }

func wireFields(o *object) []zip.Field {
	fields := make([]zip.Field, len(o.fields))
	for i, f := range o.fields {
		w := zip.Field{Name: f.Name, Kind: wireKinds[f.Kind]}
		switch {
		case f.Kind == manifest.Map:
			w.Elem, w.Fields = zip.Struct, wireFields(pair)
		case f.Kind == manifest.List:
			w.Elem = wireKinds[f.Of]
		}
		if f.object != nil {
			w.Fields = wireFields(f.object)
		}
		fields[i] = w
	}
	return fields
}

var wireKinds = map[manifest.Kind]zip.Kind{
	manifest.String:  zip.Text,
	manifest.Bool:    zip.Bool,
	manifest.Integer: zip.Int64,
	manifest.Map:     zip.List,
	manifest.Raw:     zip.Bytes,
	manifest.Object:  zip.Struct,
	manifest.List:    zip.List,
}

// zapInput makes an Input of a peer's message. A field that holds its zero
// value is one left out, except that a required bool or integer is always there.
func zapInput(schema *object, layout *zip.Layout, body []byte) (*Input, error) {
	in := newInput(schema)
	if len(body) > 0 {
		view, err := layout.View(body)
		if err != nil {
			return nil, badInput("the body is not a ZAP object")
		}
		for i := range schema.fields {
			f := &schema.fields[i]
			text, err := appendField(nil, f, view.Field(i))
			if err != nil {
				in.faults.add(f.Name, "is not readable")
				continue
			}
			if len(text) > 0 {
				in.json(i, text)
			}
		}
	}
	return in.finish()
}

// appendField appends a field's value as JSON, and nothing for an empty one.
func appendField(out []byte, f *field, v zip.Value) ([]byte, error) {
	switch f.Kind {
	case manifest.List:
		return appendList(out, '[', ']', v, func(out []byte, e zip.Value) ([]byte, error) {
			return appendValue(out, f.Of, f.object, e)
		})
	case manifest.Map:
		return appendList(out, '{', '}', v, func(out []byte, e zip.Value) ([]byte, error) {
			entry, err := e.View()
			if err != nil {
				return out, err
			}
			out = appendString(out, entry.Field(0).Bytes())
			return appendString(append(out, ':'), entry.Field(1).Bytes()), nil
		})
	case manifest.String, manifest.Raw, manifest.Object:
		if v.Null() {
			return out, nil
		}
	}
	return appendValue(out, f.Kind, f.object, v)
}

func appendList(out []byte, open, close byte, v zip.Value, element func([]byte, zip.Value) ([]byte, error)) ([]byte, error) {
	if v.Len() == 0 {
		return out, nil
	}
	for sep := open; v.Len() > 0; sep = ',' {
		e, err := v.Next()
		if err != nil {
			return out, err
		}
		if out, err = element(append(out, sep), e); err != nil {
			return out, err
		}
	}
	return append(out, close), nil
}

func appendValue(out []byte, kind manifest.Kind, o *object, v zip.Value) ([]byte, error) {
	switch kind {
	case manifest.String:
		return appendString(out, v.Bytes()), nil
	case manifest.Bool:
		return strconv.AppendBool(out, v.Bool()), nil
	case manifest.Integer:
		return strconv.AppendInt(out, v.Int(), 10), nil
	case manifest.Raw:
		return append(out, v.Bytes()...), nil
	}
	view, err := v.View()
	if err != nil {
		return out, err
	}
	out = append(out, '{')
	empty := true
	for i := range o.fields {
		start := len(out)
		if !empty {
			out = append(out, ',')
		}
		out = append(appendString(out, o.fields[i].Name), ':')
		before := len(out)
		if out, err = appendField(out, &o.fields[i], view.Field(i)); err != nil {
			return out, err
		}
		if len(out) == before {
			out = out[:start]
			continue
		}
		empty = false
	}
	return append(out, '}'), nil
}

// encoder turns a guest's JSON into ZAP messages, by schema. It keeps its memory
// from one call to the next.
type encoder struct {
	out  *zip.Builder
	deep []*zip.Builder // for structs within structs, by depth
	text []byte
}

var encoders = sync.Pool{New: func() any { return &encoder{out: &zip.Builder{}} }}

// level is the builder of messages at a depth, ready for one of this layout.
func (e *encoder) level(depth int, layout *zip.Layout) *zip.Builder {
	if depth == len(e.deep) {
		e.deep = append(e.deep, &zip.Builder{})
	}
	b := e.deep[depth]
	b.Reset(layout)
	return b
}

// object sets the fields that s holds, an object of schema o, in b.
func (e *encoder) object(b *zip.Builder, o *object, layout *zip.Layout, s *scanner, depth int) bool {
	next := 0
	return s.each('{', '}', func() bool {
		name, _, ok := s.str()
		i := o.find(name, next)
		if !ok || i < 0 || !s.take(':') {
			return false
		}
		next = i + 1
		return e.field(b, i, &o.fields[i], layout, s, depth)
	})
}

func (e *encoder) field(b *zip.Builder, i int, f *field, layout *zip.Layout, s *scanner, depth int) bool {
	switch f.Kind {
	case manifest.String:
		text, ok := e.str(s)
		b.SetBytes(i, text)
		return ok
	case manifest.Bool:
		v, ok := s.boolean()
		b.SetBool(i, v)
		return ok
	case manifest.Integer:
		v, ok := s.integer()
		b.SetInt(i, v)
		return ok
	case manifest.Raw:
		b.SetBytes(i, rawValue(s))
		return true
	case manifest.Object:
		msg, ok := e.message(f.object, layout.Elem(i), s, depth)
		b.SetBytes(i, msg)
		return ok
	case manifest.Map:
		b.BeginList(i)
		ok := s.each('{', '}', func() bool { return e.entry(b, layout.Elem(i), s, depth) })
		b.EndList()
		return ok
	}
	b.BeginList(i)
	ok := s.each('[', ']', func() bool { return e.element(b, f, layout.Elem(i), s, depth) })
	b.EndList()
	return ok
}

func (e *encoder) element(b *zip.Builder, f *field, layout *zip.Layout, s *scanner, depth int) bool {
	switch f.Of {
	case manifest.String:
		text, ok := e.str(s)
		b.Append(text)
		return ok
	case manifest.Bool:
		v, ok := s.boolean()
		b.AppendBool(v)
		return ok
	case manifest.Integer:
		v, ok := s.integer()
		b.AppendInt(v)
		return ok
	case manifest.Raw:
		b.Append(rawValue(s))
		return true
	}
	msg, ok := e.message(f.object, layout, s, depth)
	b.Append(msg)
	return ok
}

// entry adds one entry of a map.
func (e *encoder) entry(b *zip.Builder, layout *zip.Layout, s *scanner, depth int) bool {
	pair := e.level(depth, layout)
	key, ok := e.str(s)
	if !ok || !s.take(':') {
		return false
	}
	pair.SetBytes(0, key)
	value, ok := e.str(s)
	pair.SetBytes(1, value)
	msg, err := pair.Finish()
	b.Append(msg)
	return ok && err == nil
}

// message is an object as a message of its own, valid until the next at this
// depth.
func (e *encoder) message(o *object, layout *zip.Layout, s *scanner, depth int) ([]byte, bool) {
	b := e.level(depth, layout)
	ok := e.object(b, o, layout, s, depth+1)
	msg, err := b.Finish()
	return msg, ok && err == nil
}

// str is a string's text, valid until the next.
func (e *encoder) str(s *scanner) ([]byte, bool) {
	body, plain, ok := s.str()
	if !ok || plain {
		return body, ok
	}
	e.text = appendText(e.text[:0], body)
	return e.text, true
}

// rawValue is any value's own bytes; null is none.
func rawValue(s *scanner) []byte {
	s.space()
	from := s.at
	s.value(maxDepth)
	if text := s.text[from:s.at]; string(text) != "null" {
		return text
	}
	return nil
}

// zapAnswer frames an answer as one ZAP object, its list element by element as
// they are emitted.
type zapAnswer struct {
	w      http.ResponseWriter
	out    *shape
	layout *zip.Layout
	enc    *encoder
	listed bool
	rest   bool
	fields []byte
	token  string
	msg    []byte
}

func newZAPAnswer(w http.ResponseWriter, out *shape, layout *zip.Layout) *zapAnswer {
	a := &zapAnswer{w: w, out: out, layout: layout, enc: encoders.Get().(*encoder)}
	a.enc.out.Reset(layout)
	return a
}

// Item takes one element of the op's list.
func (a *zapAnswer) Item(obj []byte) error {
	if err := a.out.checkItem(obj); err != nil {
		return err
	}
	if !a.listed {
		a.listed = true
		a.enc.out.BeginList(a.out.list)
	}
	s := scanner{text: obj}
	msg, ok := a.enc.message(a.out.item, a.layout.Elem(a.out.list), &s, 0)
	if !ok {
		return broken("an item that does not cross")
	}
	a.enc.out.Append(msg)
	if a.enc.out.Len() > zip.MaxFrame {
		return tooLarge()
	}
	return nil
}

// Rest takes the other fields of the op's output. They are written when the
// list has ended, for lists do not nest.
func (a *zapAnswer) Rest(obj []byte) error {
	if a.rest {
		return broken("the fields of its answer twice")
	}
	if err := a.out.checkRest(obj); err != nil {
		return err
	}
	a.rest = true
	a.fields = append(a.fields, obj...)
	return nil
}

// Continue takes the token of the next page.
func (a *zapAnswer) Continue(token string) error {
	if !a.out.pages {
		return broken("a continue token that its schema does not have")
	}
	a.token = token
	return nil
}

func (a *zapAnswer) Again() bool {
	a.enc.out.Reset(a.layout)
	a.listed, a.rest, a.fields, a.token = false, false, nil, ""
	return true
}

func (a *zapAnswer) complete() error {
	if err := a.out.complete(a.rest); err != nil || a.out.void {
		return err
	}
	if a.listed {
		a.enc.out.EndList()
	}
	if a.rest {
		s := scanner{text: a.fields}
		if !a.enc.object(a.enc.out, a.out.schema, a.layout, &s, 0) {
			return broken("fields that do not cross")
		}
	}
	if a.token != "" {
		a.enc.out.SetText(a.out.schema.find([]byte("continue"), 0), a.token)
	}
	msg, err := a.enc.out.Finish()
	if err != nil {
		return tooLarge()
	}
	a.msg = msg
	return nil
}

func (a *zapAnswer) send() error {
	if a.out.void {
		a.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h := a.w.Header()
	h.Set("Content-Type", zapMedia)
	h.Set("Content-Length", strconv.Itoa(len(a.msg)))
	a.w.WriteHeader(http.StatusOK)
	_, err := a.w.Write(a.msg)
	return err
}

func (a *zapAnswer) begun() bool { return false }

func (a *zapAnswer) release() {
	if a.enc.out.Len() <= 2*held {
		encoders.Put(a.enc)
	}
	a.enc = nil
}

// zapMedia is the media type of a ZAP object.
const zapMedia = "application/zap"

func tooLarge() *registry.Refusal {
	return &registry.Refusal{
		Status: http.StatusBadGateway, Code: "too_large",
		Message: fmt.Sprintf("the answer is larger than the %d MiB of a frame: ask for pages of it", zip.MaxFrame>>20),
	}
}

// writeFault answers a peer with a refusal.
func writeFault(w http.ResponseWriter, refusal *registry.Refusal) {
	msg, err := zip.Marshal(&zip.Fault{
		Status: int32(refusal.Status), Code: refusal.Code, Msg: harmless(refusal.Message),
	})
	if err != nil {
		w.WriteHeader(refusal.Status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", zapMedia)
	h.Set("Content-Length", strconv.Itoa(len(msg)))
	setRetryAfter(h, refusal)
	w.WriteHeader(refusal.Status)
	w.Write(msg)
}
