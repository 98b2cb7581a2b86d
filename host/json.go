package host

import (
	"bytes"
	"encoding/json"
	"errors"
)

// maxDepth is how deep a cluster's JSON may nest.
const maxDepth = 256

var errDeep = errors.New("the body is nested too deeply")

// scanner walks JSON in place. What it accepts, encoding/json accepts, save for
// depth; nothing is decoded and nothing is allocated.
type scanner struct {
	b     []byte
	at    int
	depth int
}

func (s *scanner) space() {
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the first byte of what comes next, 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.b) && s.b[s.at] > ' ' {
		return s.b[s.at]
	}
	s.space()
	if s.at == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

// take consumes one byte that must be c.
func (s *scanner) take(c byte) error {
	if s.peek() == c {
		s.at++
		return nil
	}
	if s.at == len(s.b) {
		return errCut
	}
	return errShape
}

// value skips one value.
func (s *scanner) value() (span, error) {
	c := s.peek()
	from := s.at
	var err error
	switch {
	case c == '{':
		err = s.skipObject()
	case c == '[':
		err = s.skipArray()
	case c == '"':
		err = s.text()
	case c == '-' || c >= '0' && c <= '9':
		err = s.number()
	case c == 't':
		err = s.literal("true")
	case c == 'f':
		err = s.literal("false")
	case c == 'n':
		err = s.literal("null")
	case c == 0 && s.at == len(s.b):
		err = errCut
	default:
		err = errShape
	}
	return span{from, s.at}, err
}

func (s *scanner) literal(word string) error {
	for i := range len(word) {
		if s.at == len(s.b) {
			return errCut
		}
		if s.b[s.at] != word[i] {
			return errShape
		}
		s.at++
	}
	return nil
}

// text skips a string, the opening quote being next.
func (s *scanner) text() error {
	b, i := s.b, s.at+1
	for i < len(b) {
		c := b[i]
		if c != '"' && c != '\\' && c >= ' ' {
			i++
			continue
		}
		if c == '"' {
			s.at = i + 1
			return nil
		}
		if c < ' ' {
			return errShape
		}
		if i++; i == len(b) {
			return errCut
		}
		switch b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i++
		case 'u':
			i++
			for range 4 {
				if i == len(b) {
					return errCut
				}
				if !isHex(b[i]) {
					return errShape
				}
				i++
			}
		default:
			return errShape
		}
	}
	return errCut
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) digits() error {
	from := s.at
	for s.at < len(s.b) && s.b[s.at] >= '0' && s.b[s.at] <= '9' {
		s.at++
	}
	switch {
	case s.at > from:
		return nil
	case s.at == len(s.b):
		return errCut
	}
	return errShape
}

func (s *scanner) number() error {
	if s.b[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.b) && s.b[s.at] == '0' {
		s.at++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.at < len(s.b) && s.b[s.at] == '.' {
		s.at++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if s.at < len(s.b) && s.b[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.b) && (s.b[s.at] == '+' || s.b[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return nil
}

func (s *scanner) enter() error {
	s.at++
	if s.depth++; s.depth > maxDepth {
		return errDeep
	}
	return nil
}

func (s *scanner) skipArray() error {
	more, err := s.first(']')
	for more && err == nil {
		if _, err = s.value(); err == nil {
			more, err = s.again(']')
		}
	}
	return err
}

func (s *scanner) skipObject() error {
	more, err := s.first('}')
	for more && err == nil {
		if _, err = s.rawKey(); err == nil {
			if _, err = s.value(); err == nil {
				more, err = s.again('}')
			}
		}
	}
	return err
}

// first enters an array or object and tells whether it has an element.
func (s *scanner) first(end byte) (more bool, err error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	switch c := s.peek(); {
	case c == end:
		s.at++
		s.depth--
		return false, nil
	case c == 0 && s.at == len(s.b):
		return false, errCut
	}
	return true, nil
}

// again passes the comma to the next element, or the end.
func (s *scanner) again(end byte) (more bool, err error) {
	switch c := s.peek(); {
	case c == ',':
		s.at++
		return true, nil
	case c == end:
		s.at++
		s.depth--
		return false, nil
	case c == 0 && s.at == len(s.b):
		return false, errCut
	}
	return false, errShape
}

// key reads a member's name, unescaped, and its colon.
func (s *scanner) key() ([]byte, error) {
	quoted, err := s.rawKey()
	if err != nil {
		return nil, err
	}
	return unquote(quoted), nil
}

func (s *scanner) rawKey() ([]byte, error) {
	if c := s.peek(); c != '"' {
		if c == 0 && s.at == len(s.b) {
			return nil, errCut
		}
		return nil, errShape
	}
	from := s.at
	if err := s.text(); err != nil {
		return nil, err
	}
	quoted := s.b[from:s.at]
	return quoted, s.take(':')
}

// unquote is the text of a string that the scanner accepted. It is part of the
// body unless the string holds escapes.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return nil
	}
	return []byte(text)
}

// end checks that nothing but space is left.
func (s *scanner) end() error {
	if s.space(); s.at < len(s.b) {
		return errShape
	}
	return nil
}

// members walks one object and hands each member's name to f, which must
// consume its value. A name may come once among those that f takes.
func (s *scanner) members(f func(key []byte) error) error {
	if s.peek() != '{' {
		if s.at == len(s.b) {
			return errCut
		}
		return errShape
	}
	more, err := s.first('}')
	for more && err == nil {
		var key []byte
		if key, err = s.key(); err == nil {
			if err = f(key); err == nil {
				more, err = s.again('}')
			}
		}
	}
	return err
}

// want is a member to be found in an object, with its value once it is.
type want struct {
	name  string
	value []byte
}

// find reads the wanted members of an object and skips the others. Twice the
// same is malformed.
func (s *scanner) find(wants ...*want) error {
	return s.members(func(key []byte) error {
		v, err := s.value()
		if err != nil {
			return err
		}
		for _, w := range wants {
			if string(key) == w.name {
				if w.value != nil {
					return errShape
				}
				w.value = s.b[v.start:v.end]
			}
		}
		return nil
	})
}

// whole finds the wanted members of a body that is one object and nothing else.
func whole(b []byte, wants ...*want) error {
	s := scanner{b: b}
	if err := s.find(wants...); err != nil {
		return err
	}
	return s.end()
}

// text is a wanted member's value as a string, "" if it is anything else.
func (w *want) text() string {
	if len(w.value) < 2 || w.value[0] != '"' {
		return ""
	}
	return string(unquote(w.value))
}

func (w *want) isObject() bool { return len(w.value) > 0 && w.value[0] == '{' }

// splitJSON finds the items of a JSON list without decoding any.
func (p *page) splitJSON() error {
	s := scanner{b: p.body}
	var apiVersion, kind, metadata = want{name: "apiVersion"}, want{name: "kind"}, want{name: "metadata"}
	found := false
	err := s.members(func(key []byte) error {
		if string(key) == "items" {
			if found {
				return errShape
			}
			found = true
			return s.elements(&p.items)
		}
		v, err := s.value()
		if err != nil {
			return err
		}
		for _, w := range [...]*want{&apiVersion, &kind, &metadata} {
			if string(key) == w.name {
				if w.value != nil {
					return errShape
				}
				w.value = p.body[v.start:v.end]
			}
		}
		return nil
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return err
	}
	p.apiVersion, p.kind = apiVersion.text(), kind.text()
	if !found {
		return errShape
	}
	if metadata.isObject() {
		version, next := want{name: "resourceVersion"}, want{name: "continue"}
		if err := whole(metadata.value, &version, &next); err != nil {
			return err
		}
		p.version, p.next = version.text(), next.text()
	}
	return nil
}

// elements collects the objects of an array. null is an empty one, as Go
// servers write it.
func (s *scanner) elements(into *[]span) error {
	if s.peek() == 'n' {
		return s.literal("null")
	}
	if s.peek() != '[' {
		if s.at == len(s.b) {
			return errCut
		}
		return errShape
	}
	more, err := s.first(']')
	for more && err == nil {
		if c := s.peek(); c != '{' && s.at < len(s.b) {
			return errShape
		}
		var v span
		if v, err = s.value(); err == nil {
			*into = append(*into, v)
			more, err = s.again(']')
		}
	}
	return err
}

// nameOfJSON reads metadata.namespace and metadata.name of an object.
func nameOfJSON(item []byte) (namespace, name []byte) {
	metadata := want{name: "metadata"}
	if whole(item, &metadata) != nil || !metadata.isObject() {
		return nil, nil
	}
	ns, n := want{name: "namespace"}, want{name: "name"}
	if whole(metadata.value, &ns, &n) != nil {
		return nil, nil
	}
	return []byte(ns.text()), []byte(n.text())
}
