package host

import (
	"bytes"
	"errors"
)

// What can be wrong with a body, on the wire or in shape. None of them quotes it.
var (
	errCut   = errors.New("the body ends in the middle")
	errShape = errors.New("the body is not well formed")
)

// span is a part of a body, from start up to end.
type span struct{ start, end int }

// magic opens every protobuf body of an API server. After it comes a
// runtime.Unknown: 1 type (1 apiVersion, 2 kind), 2 the message, 3 its encoding.
const magic = "k8s\x00"

// wire reads the fields of one protobuf message within a body, from at up to end.
type wire struct {
	b       []byte
	at, end int
}

const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireStart   = 3 // of a group, which no API server sends
	wireEnd     = 4
	wireFixed32 = 5
)

func (w *wire) more() bool { return w.at < w.end }

// field reads one field. s is its content, for wireBytes without the length.
func (w *wire) field() (number, kind int, s span, err error) {
	tag, err := w.varint()
	if err != nil {
		return 0, 0, span{}, err
	}
	number, kind = int(int32(tag>>3)), int(tag&7)
	if number <= 0 {
		return 0, 0, span{}, errShape
	}
	s.start = w.at
	switch kind {
	case wireBytes:
		n, err := w.varint()
		if err != nil {
			return 0, 0, span{}, err
		}
		s.start = w.at
		err = w.skip(n)
		return number, kind, span{s.start, w.at}, err
	case wireEnd:
		return 0, 0, span{}, errShape
	}
	err = w.pass(kind)
	return number, kind, span{s.start, w.at}, err
}

// pass passes over the content of a field.
func (w *wire) pass(kind int) error {
	for depth := 0; ; {
		var err error
		switch kind {
		case wireVarint:
			_, err = w.varint()
		case wireFixed64:
			err = w.skip(8)
		case wireFixed32:
			err = w.skip(4)
		case wireBytes:
			var n uint64
			if n, err = w.varint(); err == nil {
				err = w.skip(n)
			}
		case wireStart:
			depth++
		case wireEnd:
			depth--
		default:
			err = errShape
		}
		if err != nil || depth == 0 {
			return err
		}
		tag, err := w.varint()
		if err != nil {
			return err
		}
		kind = int(tag & 7)
	}
}

func (w *wire) skip(n uint64) error {
	if n > uint64(w.end-w.at) {
		return errCut
	}
	w.at += int(n)
	return nil
}

// varint reads as the API's own generated code does: bits beyond 64 are lost.
func (w *wire) varint() (v uint64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		if w.at == w.end {
			return 0, errCut
		}
		c := w.b[w.at]
		w.at++
		if v |= uint64(c&0x7f) << shift; c < 0x80 {
			return v, nil
		}
	}
	return 0, errShape
}

// envelope opens a protobuf body: what it says it is, and where the message is.
// A body that is not protobuf at all is errShape.
func envelope(b []byte) (apiVersion, kind string, message span, err error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return "", "", span{}, errShape
	}
	w := wire{b, len(magic), len(b)}
	found, encoded := false, false
	for w.more() {
		number, wt, s, err := w.field()
		if err != nil {
			return "", "", span{}, err
		}
		if number > 4 {
			continue // of none that is known
		}
		if wt != wireBytes {
			return "", "", span{}, errShape
		}
		switch number {
		case 1:
			if err := typeMeta(b[s.start:s.end], &apiVersion, &kind); err != nil {
				return "", "", span{}, err
			}
		case 2:
			message, found = s, true
		case 3:
			encoded = s.end > s.start
		}
	}
	if encoded { // a compressed message
		return "", "", span{}, errShape
	}
	if !found {
		return "", "", span{}, errCut
	}
	return apiVersion, kind, message, nil
}

// splitProtobuf finds the items of a protobuf list (1 metadata, 2 items) without
// decoding any.
func (p *page) splitProtobuf() error {
	apiVersion, kind, message, err := envelope(p.body)
	if err != nil {
		return err
	}
	p.apiVersion, p.kind = apiVersion, kind
	w := wire{p.body, message.start, message.end}
	for w.more() {
		number, wt, s, err := w.field()
		if err != nil {
			return err
		}
		if number > 2 {
			continue
		}
		if wt != wireBytes {
			return errShape
		}
		if number == 2 {
			p.items = append(p.items, s)
			continue
		}
		if err := listMeta(p.body[s.start:s.end], &p.version, &p.next); err != nil {
			return err
		}
	}
	return nil
}

// typeMeta reads what an object is: 1 apiVersion, 2 kind.
func typeMeta(b []byte, apiVersion, kind *string) error { return texts(b, nil, 1, apiVersion, kind) }

// listMeta reads the metadata of a list: 2 resourceVersion, 3 continue.
func listMeta(b []byte, version, next *string) error { return texts(b, errShape, 2, version, next) }

// texts reads the text fields of a message whose numbers go up from first. One
// that is no text is passed over, or is misfit where that is not nil.
func texts(b []byte, misfit error, first int, to ...*string) error {
	w := wire{b, 0, len(b)}
	for w.more() {
		number, wt, s, err := w.field()
		switch {
		case err != nil:
			return err
		case number < first || number >= first+len(to):
		case wt == wireBytes:
			*to[number-first] = string(b[s.start:s.end])
		case misfit != nil:
			return misfit
		}
	}
	return nil
}

// nameOfProtobuf reads metadata.namespace and metadata.name of an object: field
// 1, in it 1 name and 3 namespace.
func nameOfProtobuf(item []byte) (namespace, name []byte) {
	w := wire{item, 0, len(item)}
	for w.more() {
		number, wt, s, err := w.field()
		if err != nil {
			return nil, nil
		}
		if number != 1 || wt != wireBytes {
			continue
		}
		m := wire{item, s.start, s.end}
		for m.more() {
			number, wt, s, err := m.field()
			if err != nil {
				return nil, nil
			}
			switch {
			case number == 1 && wt == wireBytes:
				name = item[s.start:s.end]
			case number == 3 && wt == wireBytes:
				namespace = item[s.start:s.end]
			}
		}
		return namespace, name
	}
	return nil, nil
}

// isProtobuf tells a protobuf body by its first bytes.
func isProtobuf(b []byte) bool { return bytes.HasPrefix(b, []byte(magic)) }
