package ops

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// held is how many bytes of an answer are kept back, so that a call that fails
// late is still a problem document and not half an answer. What is longer is
// streamed, and a failure after that breaks the connection.
const held = 4 << 20

// chunk is how many bytes of a streamed answer are written at a time.
const chunk = 64 << 10

// answer takes what a guest emits and makes the response of it.
type answer interface {
	host.Answer

	// complete says whether all that was promised was emitted. The response has
	// not ended before send.
	complete() error
	send() error

	// begun is true when part of the answer has left, so that no refusal can
	// take its place.
	begun() bool

	// release gives the answer's memory back.
	release()
}

// buffers holds the memory of answers between calls.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, chunk); return &b }}

// jsonAnswer frames an answer as one JSON object: the streamed list first, then
// the other fields as the guest gave them, then the continue token. Every part
// is checked against the schema before it is taken over.
type jsonAnswer struct {
	w        http.ResponseWriter
	out      *shape
	status   int
	buf      *[]byte
	items    int
	rest     bool
	fields   []byte // of rest, without braces
	token    string
	streamed bool
}

func newJSONAnswer(w http.ResponseWriter, out *shape, status int) *jsonAnswer {
	return &jsonAnswer{w: w, out: out, status: status, buf: buffers.Get().(*[]byte)}
}

// Item takes one element of the op's list.
func (a *jsonAnswer) Item(obj []byte) error {
	if err := a.out.checkItem(obj); err != nil {
		return err
	}
	buf := *a.buf
	if a.items == 0 {
		buf = append(append(appendString(append(buf, '{'), a.out.items), ':'), '[')
	} else {
		buf = append(buf, ',')
	}
	a.items++
	buf = append(buf, obj...)
	*a.buf = buf
	if len(buf) > held || a.streamed && len(buf) > chunk {
		return a.flush()
	}
	return nil
}

// Rest takes the other fields of the op's output.
func (a *jsonAnswer) Rest(obj []byte) error {
	if a.rest {
		return broken("the fields of its answer twice")
	}
	if err := a.out.checkRest(obj); err != nil {
		return err
	}
	a.rest = true
	a.fields = append(a.fields, members(obj)...)
	return nil
}

// Continue takes the token of the next page.
func (a *jsonAnswer) Continue(token string) error {
	if !a.out.pages {
		return broken("a continue token that its schema does not have")
	}
	a.token = token
	return nil
}

func (a *jsonAnswer) Again() bool {
	if a.streamed {
		return false
	}
	*a.buf, a.items, a.rest, a.fields, a.token = (*a.buf)[:0], 0, false, nil, ""
	return true
}

func (a *jsonAnswer) complete() error {
	if err := a.out.complete(a.rest); err != nil {
		return err
	}
	if a.out.void {
		return nil
	}
	buf := *a.buf
	comma := true
	switch {
	case a.items > 0:
		buf = append(buf, ']')
	case a.out.list >= 0 && a.out.schema.fields[a.out.list].Required:
		buf = append(append(appendString(append(buf, '{'), a.out.items), ':'), "[]"...)
	default:
		buf, comma = append(buf, '{'), false
	}
	if len(a.fields) > 0 {
		if comma {
			buf = append(buf, ',')
		}
		buf, comma = append(buf, a.fields...), true
	}
	if a.token != "" {
		if comma {
			buf = append(buf, ',')
		}
		buf = appendString(append(buf, `"continue":`...), a.token)
	}
	*a.buf = append(buf, '}')
	return nil
}

func (a *jsonAnswer) send() error {
	if a.out.void {
		a.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if !a.streamed {
		a.w.Header().Set("Content-Length", strconv.Itoa(len(*a.buf)))
	}
	return a.flush()
}

// flush writes what is held.
func (a *jsonAnswer) flush() error {
	if !a.streamed {
		a.streamed = true
		h := a.w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		a.w.WriteHeader(a.status)
	}
	_, err := a.w.Write(*a.buf)
	*a.buf = (*a.buf)[:0]
	return err
}

func (a *jsonAnswer) begun() bool { return a.streamed }

func (a *jsonAnswer) release() {
	if cap(*a.buf) <= 2*held {
		*a.buf = (*a.buf)[:0]
		buffers.Put(a.buf)
	}
	a.buf = nil
}

// members is what stands between the braces of an object.
func members(obj []byte) []byte {
	s := scanner{text: obj}
	s.space()
	start, end := s.at+1, len(obj)-1
	for obj[end] != '}' {
		end--
	}
	inner := scanner{text: obj[start:end]}
	inner.space()
	return inner.text[inner.at:]
}

// shape is what an op's output looks like on either wire.
type shape struct {
	schema *object
	rest   *object // the schema without what is streamed and the continue token
	items  string  // the streamed list, "" for none
	list   int     // its index in the schema
	item   *object // its elements' schema
	pages  bool    // there is a continue token
	void   bool    // there is no output at all
}

func shapeOf(op *manifest.Op) *shape {
	sh := &shape{schema: compile(op.Out), items: op.Items, list: -1, void: len(op.Out) == 0}
	if op.Items == "" {
		sh.rest = sh.schema
		return sh
	}
	sh.list = sh.schema.find([]byte(op.Items), 0)
	sh.item = sh.schema.fields[sh.list].object
	sh.pages = sh.schema.find([]byte("continue"), 0) >= 0
	sh.rest = compile(slices.DeleteFunc(slices.Clone(op.Out), func(f manifest.Field) bool {
		return f.Name == op.Items || f.Name == "continue"
	}))
	return sh
}

func (sh *shape) checkItem(obj []byte) error {
	if sh.item == nil {
		return broken("an item, and has no list of objects")
	}
	if err := sh.item.check(obj); err != nil {
		return broken("an item that is " + err.Error())
	}
	return nil
}

// checkRest checks the fields that are not streamed. The list and the continue
// token are not among them: the host alone makes tokens.
func (sh *shape) checkRest(obj []byte) error {
	if err := sh.rest.check(obj); err != nil {
		return broken("fields that are " + err.Error())
	}
	return nil
}

// complete says whether an answer without, or with, its other fields is whole.
func (sh *shape) complete(rest bool) error {
	var none fieldSet
	if !rest && !sh.void && (sh.list < 0 || !none.holds(&sh.rest.required)) {
		return broken("no answer")
	}
	return nil
}

// broken is the refusal for a guest that did not keep its manifest's promise.
func broken(what string) *registry.Refusal {
	return &registry.Refusal{
		Status: http.StatusInternalServerError, Code: "guest_fault",
		Message: fmt.Sprintf("the operation's module gave %s", what),
	}
}
