package host

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/hanzoai/k8s/registry"
)

const (
	windowSize = 128 << 10 // bytes of a body looked at, more where one item is larger
	windowMost = maxObject + windowSize
)

var windows = sync.Pool{New: func() any { return new([windowSize]byte) }}

// window is a part of a body that is read as it comes: what has come and has not
// been consumed is buf[at:].
type window struct {
	r      io.Reader
	buf    []byte
	at     int
	before int64 // bytes of the body before buf
	over   bool
	lent   *[windowSize]byte
}

func newWindow(r io.Reader) window {
	lent := windows.Get().(*[windowSize]byte)
	return window{r: r, buf: lent[:0], lent: lent}
}

// free gives the window's memory back. What was read from it is void.
func (w *window) free() {
	if w.lent != nil {
		windows.Put(w.lent)
		w.lent, w.buf = nil, nil
	}
}

// more reads on. What was read from the window before is void.
func (w *window) more() error {
	if w.over {
		return errCut
	}
	if w.at > 0 {
		w.before += int64(w.at)
		w.buf = w.buf[:copy(w.buf, w.buf[w.at:])]
		w.at = 0
	}
	if len(w.buf) == cap(w.buf) {
		if cap(w.buf) >= windowMost {
			return errLarge
		}
		w.buf = append(make([]byte, 0, min(2*cap(w.buf), windowMost)), w.buf...)
	}
	n, err := w.r.Read(w.buf[len(w.buf):cap(w.buf)])
	w.buf = w.buf[:len(w.buf)+n]
	if err == io.EOF {
		w.over, err = true, nil
	}
	return err
}

// need reads until n bytes are there.
func (w *window) need(n int) error {
	if n > maxObject {
		return errLarge
	}
	for len(w.buf)-w.at < n {
		if err := w.more(); err != nil {
			return err
		}
	}
	return nil
}

func (w *window) take(n int) []byte {
	w.at += n
	return w.buf[w.at-n : w.at]
}

func (w *window) pos() int64 { return w.before + int64(w.at) }

// ended says whether the body is at its end.
func (w *window) ended() (bool, error) {
	for w.at == len(w.buf) {
		if w.over {
			return true, nil
		}
		if err := w.more(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// arrival is a list that is read as it comes, one item at a time. JSON may say
// only after its items what it is, as API servers do of custom resources: then it
// fails there. In protobuf that comes first, or it is refused.
type arrival struct {
	window
	t                *target
	apiVersion, kind string
	version, next    string // resourceVersion and continue
	begun, done      bool

	end   int64 // of a protobuf message, in the body
	depth int   // of JSON, where the window is
	items bool  // of JSON, have begun
	meta  bool  // of JSON, has come
}

func newArrival(t *target, r io.Reader) *arrival { return &arrival{window: newWindow(r), t: t} }

// item is the next one, good until the next call. ok is false after the last.
func (a *arrival) item() (item []byte, ok bool, r *registry.Refusal) {
	if a.done {
		return nil, false, nil
	}
	begin, next := a.beginJSON, a.nextJSON
	if a.t.protobuf {
		begin, next = a.beginProtobuf, a.nextProtobuf
	}
	if !a.begun {
		a.begun = true
		switch over, err := a.ended(); {
		case err != nil:
			return nil, false, unread(err)
		case over:
			return nil, false, upstream("the cluster answered a list with nothing")
		}
		if err := begin(); err != nil || a.done {
			return nil, false, unread(err)
		}
	}
	item, err := next()
	if err != nil {
		return nil, false, unread(err)
	}
	return item, !a.done, nil
}

// unread is the refusal for a body that could not be read, or that is malformed.
func unread(err error) *registry.Refusal {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLarge):
		return tooLarge("one object of the cluster's answer is too large")
	case errors.Is(err, errCut), errors.Is(err, errShape), errors.Is(err, errDeep):
		return malformed(err)
	}
	return refusal(err)
}

// listed checks that it is the list that was asked for.
func (t *target) listed(apiVersion, kind string) *registry.Refusal {
	of, isList := strings.CutSuffix(kind, "List")
	if !isList || apiVersion != t.apiVersion() || !t.isKind(of) {
		return upstream("the cluster answered with something other than a list of " + t.resource)
	}
	return nil
}

// varint reads as wire.varint does, up to the place end of the body.
func (a *arrival) varint(end int64) (v uint64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		if a.pos() == end {
			return 0, errCut
		}
		if err := a.need(1); err != nil {
			return 0, err
		}
		c := a.take(1)[0]
		if v |= uint64(c&0x7f) << shift; c < 0x80 {
			return v, nil
		}
	}
	return 0, errShape
}

// field reads the tag of a field, and the length of one that has one. What has
// none it passes over.
func (a *arrival) field(end int64) (number, kind, length int, err error) {
	tag, err := a.varint(end)
	if err != nil {
		return 0, 0, 0, err
	}
	number, kind = int(int32(tag>>3)), int(tag&7)
	if number <= 0 {
		return 0, 0, 0, errShape
	}
	n := uint64(0)
	switch kind {
	case wireBytes:
		if n, err = a.varint(end); err != nil {
			return 0, 0, 0, err
		}
		if n > uint64(end-a.pos()) {
			return 0, 0, 0, errCut
		}
		return number, kind, int(n), nil
	case wireVarint:
		_, err = a.varint(end)
		return number, kind, 0, err
	case wireFixed64:
		n = 8
	case wireFixed32:
		n = 4
	default:
		return 0, 0, 0, errShape
	}
	if n > uint64(end-a.pos()) {
		return 0, 0, 0, errCut
	}
	return number, kind, 0, a.pass(int(n))
}

// pass passes over n bytes, however many.
func (a *arrival) pass(n int) error {
	for n > 0 {
		if over, err := a.ended(); err != nil {
			return err
		} else if over {
			return errCut
		}
		n -= len(a.take(min(n, len(a.buf)-a.at)))
	}
	return nil
}

const forever = 1<<63 - 1 // of a body, whose end is not known

// beginProtobuf reads up to the message.
func (a *arrival) beginProtobuf() error {
	switch err := a.need(len(magic)); {
	case err == errCut: // too short to be protobuf at all
		return errShape
	case err != nil:
		return err
	case string(a.take(len(magic))) != magic:
		return errShape
	}
	return a.envelope()
}

// envelope reads the fields around the message, as the function envelope does: up
// to the message, and from there to the end of the body.
func (a *arrival) envelope() error {
	for {
		if over, err := a.ended(); err != nil {
			return err
		} else if over {
			if a.end == 0 {
				return errCut
			}
			a.done = true
			return nil
		}
		number, kind, n, err := a.field(forever)
		switch {
		case err != nil:
			return err
		case number <= 4 && kind != wireBytes, number == 3 && n > 0: // a compressed message
			return errShape
		case number == 2 && a.end == 0:
			if r := a.t.listed(a.apiVersion, a.kind); r != nil {
				return r
			}
			a.end = a.pos() + int64(n)
			return nil
		case number <= 2 && a.end > 0:
			return errShape
		case number == 1:
			if err := a.need(n); err != nil {
				return err
			}
			if err := typeMeta(a.take(n), &a.apiVersion, &a.kind); err != nil {
				return err
			}
		default:
			if err := a.pass(n); err != nil {
				return err
			}
		}
	}
}

// nextProtobuf reads up to the end of the next item.
func (a *arrival) nextProtobuf() ([]byte, error) {
	for a.pos() < a.end {
		number, kind, n, err := a.field(a.end)
		switch {
		case err != nil:
			return nil, err
		case number > 2:
			if err := a.pass(n); err != nil {
				return nil, err
			}
			continue
		case kind != wireBytes:
			return nil, errShape
		}
		if err := a.need(n); err != nil {
			return nil, err
		}
		b := a.take(n)
		if number == 2 {
			return b, nil
		}
		if err := listMeta(b, &a.version, &a.next); err != nil {
			return nil, err
		}
	}
	return nil, a.envelope()
}

// scan has step read a stretch of JSON, again from where it began where the body
// has not come far enough. Every time twice as much is there, so that what comes
// in small pieces is not read over and over.
func (a *arrival) scan(step func(s *scanner) error) error {
	for {
		s := scanner{b: a.buf, at: a.at, depth: a.depth}
		err := step(&s)
		if err == nil {
			a.at, a.depth = s.at, s.depth
			return nil
		}
		if err != errCut || a.over {
			return err
		}
		for enough := 2 * (len(a.buf) - a.at); ; {
			if err := a.more(); err != nil {
				return err
			}
			if a.over || len(a.buf)-a.at > enough {
				break
			}
		}
	}
}

// beginJSON reads up to the first item.
func (a *arrival) beginJSON() error {
	more := false
	err := a.scan(func(s *scanner) (err error) {
		if s.peek() != '{' {
			if s.at == len(s.b) {
				return errCut
			}
			return errShape
		}
		more, err = s.first('}')
		return err
	})
	if err != nil {
		return err
	}
	return a.members(more)
}

// members reads members of the list, up to the items or to the end of the body.
func (a *arrival) members(more bool) error {
	for more {
		items := false
		var name, value string
		err := a.scan(func(s *scanner) error {
			key, err := s.key()
			if err != nil {
				return err
			}
			name = string(key)
			if items = name == "items" && s.peek() == '['; items {
				more, err = s.first(']')
				return err
			}
			v, err := s.value()
			if err != nil {
				return err
			}
			value = string(s.b[v.start:v.end])
			more, err = s.again('}')
			return err
		})
		if err != nil {
			return err
		}
		if err := a.member(name, value); err != nil {
			return err
		}
		if items && more {
			return nil
		}
		if items { // there are none
			if err := a.scan(func(s *scanner) (err error) {
				more, err = s.again('}')
				return err
			}); err != nil {
				return err
			}
		}
	}
	for {
		if err := a.scan((*scanner).end); err != nil {
			return err
		}
		if over, err := a.ended(); err != nil {
			return err
		} else if over {
			break
		}
	}
	if !a.items {
		return errShape
	}
	a.done = true
	if r := a.t.listed(a.apiVersion, a.kind); r != nil {
		return r
	}
	return nil
}

// member takes a member of the list. None may come twice.
func (a *arrival) member(name, value string) error {
	w := want{name: name, value: []byte(value)}
	switch name {
	case "apiVersion", "kind":
		to := &a.apiVersion
		if name == "kind" {
			to = &a.kind
		}
		if *to != "" {
			return errShape
		}
		*to = w.text()
	case "metadata":
		if a.meta {
			return errShape
		}
		if a.meta = true; !w.isObject() {
			return nil
		}
		version, next := want{name: "resourceVersion"}, want{name: "continue"}
		if err := whole(w.value, &version, &next); err != nil {
			return err
		}
		a.version, a.next = version.text(), next.text()
	case "items":
		if a.items || value != "" && value != "null" { // which is how Go writes an empty list
			return errShape
		}
		a.items = true
		if a.apiVersion == "" || a.kind == "" {
			return nil
		}
		if r := a.t.listed(a.apiVersion, a.kind); r != nil {
			return r
		}
	}
	return nil
}

// nextJSON reads up to the end of the next item.
func (a *arrival) nextJSON() (item []byte, err error) {
	if a.depth == 1 { // there are no more
		more := false
		if err := a.scan(func(s *scanner) (err error) {
			more, err = s.again('}')
			return err
		}); err != nil {
			return nil, err
		}
		return nil, a.members(more)
	}
	err = a.scan(func(s *scanner) error {
		if c := s.peek(); c != '{' && s.at < len(s.b) {
			return errShape
		}
		v, err := s.value()
		if err != nil {
			return err
		}
		item = s.b[v.start:v.end]
		_, err = s.again(']')
		return err
	})
	return item, err
}
