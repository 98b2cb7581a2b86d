package plane

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The JSON of a [Map] is read and written here and not with encoding/json: a
// guest imports this package for its tokens, and would have encoding/json, and
// reflection with it, initialised in every module.

var errMap = errors.New("plane: a map is a JSON object whose values are strings")

func errTwice(key string) error {
	return errors.New("plane: key " + strconv.Quote(key) + " occurs twice in a map")
}

const hex = "0123456789abcdef"

// appendText appends s as a JSON string. What is not UTF-8 is replaced, as
// encoding/json does.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s { // what is not UTF-8 comes as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// text reads JSON from the front of what is left.
type text struct{ left []byte }

// next skips white space and gives the byte after it, 0 at the end.
func (t *text) next() byte {
	for len(t.left) > 0 {
		switch c := t.left[0]; c {
		case ' ', '\t', '\r', '\n':
			t.left = t.left[1:]
		default:
			return c
		}
	}
	return 0
}

// take skips white space and takes c, if that is next.
func (t *text) take(c byte) bool {
	if t.next() != c {
		return false
	}
	t.left = t.left[1:]
	return true
}

func parseMap(data []byte) (Map, error) {
	t := text{data}
	if t.next() == 'n' {
		if len(t.left) < 4 || string(t.left[:4]) != "null" {
			return nil, errMap
		}
		t.left = t.left[4:]
		if t.next() != 0 || len(t.left) > 0 {
			return nil, errMap
		}
		return nil, nil
	}
	if !t.take('{') {
		return nil, errMap
	}
	var out Map
	seen := make(map[string]struct{})
	for more := !t.take('}'); more; {
		key, ok := t.str()
		if !ok || !t.take(':') {
			return nil, errMap
		}
		value, ok := t.str()
		if !ok {
			return nil, errMap
		}
		if _, twice := seen[key]; twice {
			return nil, errTwice(key)
		}
		seen[key] = struct{}{}
		out = append(out, Pair{key, value})
		if more = t.take(','); !more && !t.take('}') {
			return nil, errMap
		}
	}
	if t.next(); len(t.left) > 0 {
		return nil, errMap
	}
	return out, nil
}

// str takes a JSON string.
func (t *text) str() (string, bool) {
	if !t.take('"') {
		return "", false
	}
	var out []byte
	for len(t.left) > 0 {
		switch c := t.left[0]; {
		case c == '"':
			t.left = t.left[1:]
			return string(out), true
		case c < ' ':
			return "", false
		case c == '\\':
			var ok bool
			if out, ok = t.escape(out); !ok {
				return "", false
			}
		default:
			r, n := utf8.DecodeRune(t.left) // U+FFFD for what is not UTF-8
			out = utf8.AppendRune(out, r)
			t.left = t.left[n:]
		}
	}
	return "", false
}

// escape takes a backslash and what it stands for.
func (t *text) escape(out []byte) ([]byte, bool) {
	if len(t.left) < 2 {
		return out, false
	}
	switch c := t.left[1]; c {
	case '"', '\\', '/':
		out = append(out, c)
	case 'b':
		out = append(out, '\b')
	case 'f':
		out = append(out, '\f')
	case 'n':
		out = append(out, '\n')
	case 'r':
		out = append(out, '\r')
	case 't':
		out = append(out, '\t')
	case 'u':
		r := t.unit()
		if r < 0 {
			return out, false
		}
		t.left = t.left[6:]
		if utf16.IsSurrogate(r) {
			// Half a pair stands for nothing, and what follows it for itself.
			if r = utf16.DecodeRune(r, t.unit()); r != utf8.RuneError {
				t.left = t.left[6:]
			}
		}
		return utf8.AppendRune(out, r), true
	default:
		return out, false
	}
	t.left = t.left[2:]
	return out, true
}

// unit is the UTF-16 unit of a \u escape that is next, -1 for anything else.
func (t *text) unit() rune {
	if len(t.left) < 6 || t.left[0] != '\\' || t.left[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range t.left[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
