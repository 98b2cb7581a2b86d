package lens

import (
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is one JSON value as it stands in its document, or nothing: the zero
// Value is absent.
type Value struct{ data []byte }

// maxDepth is how deep a document may nest, as encoding/json has it.
const maxDepth = 10_000

// JSON is data as a value, checked to its end: what follows from it needs no
// more checks. Its error is [ErrJSON].
func JSON(data []byte) (Value, error) {
	s := scanner{data: data}
	s.space()
	start := s.pos
	if !s.value() {
		return Value{}, ErrJSON
	}
	end := s.pos
	s.space()
	if s.pos != len(data) {
		return Value{}, ErrJSON
	}
	return Value{data[start:end]}, nil
}

// Exists is false for a value that is absent; null exists.
func (v Value) Exists() bool { return len(v.data) > 0 }

// Null is true for null and for a value that is absent.
func (v Value) Null() bool { return len(v.data) == 0 || v.data[0] == 'n' }

// Object says whether v is an object.
func (v Value) Object() bool { return len(v.data) > 0 && v.data[0] == '{' }

// Raw is the value as it stands in the document; nil when absent.
func (v Value) Raw() []byte { return v.data }

// Get is the value at the end of a path of member names. Of a name that occurs
// twice in an object the last counts, as it does for the API server.
func (v Value) Get(path ...string) Value {
	for _, name := range path {
		var last Value
		for key, value := range v.members() {
			if unquoted(key) == name {
				last = value
			}
		}
		v = last
	}
	return v
}

// Members is the values of an object's members by these names, as Get has each,
// in one pass over the object.
func (v Value) Members(names ...string) []Value {
	found := make([]Value, len(names))
	for key, value := range v.members() {
		key := unquoted(key)
		for i, name := range names {
			if key == name {
				found[i] = value
			}
		}
	}
	return found
}

// Str is a string's text; empty for what is not a string.
func (v Value) Str() string {
	if len(v.data) == 0 || v.data[0] != '"' {
		return ""
	}
	return unquoted(v.data)
}

// Bool is true for true alone.
func (v Value) Bool() bool { return len(v.data) > 0 && v.data[0] == 't' }

// Int is a number written as an integer that fits 64 bits; otherwise 0 and
// false.
func (v Value) Int() (int64, bool) {
	digits := v.data
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	var n uint64
	for _, d := range digits {
		if d < '0' || d > '9' || n > (1<<63-1)/10 {
			return 0, false
		}
		n = n*10 + uint64(d-'0')
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n < 1<<63:
		return int64(n), true
	}
	return 0, false
}

// Elems is the elements of an array; none for anything else.
func (v Value) Elems() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if len(v.data) == 0 || v.data[0] != '[' {
			return
		}
		s := scanner{data: v.data, pos: 1}
		for s.space(); s.data[s.pos] != ']'; s.space() {
			if s.data[s.pos] == ',' {
				s.pos++
				s.space()
			}
			start := s.pos
			s.skip()
			if !yield(Value{s.data[start:s.pos]}) {
				return
			}
		}
	}
}

// Strs is the strings of an array; what is no string in it is passed over.
func (v Value) Strs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for e := range v.Elems() {
			if e.data[0] == '"' && !yield(e.Str()) {
				return
			}
		}
	}
}

// Map is the members of an object that are strings; none for anything else. A
// name may come twice: the last counts, and Writer.Map sees to it.
func (v Value) Map() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key, value := range v.members() {
			if value.data[0] == '"' && !yield(unquoted(key), value.Str()) {
				return
			}
		}
	}
}

// members is the members of an object, the names still quoted.
func (v Value) members() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if len(v.data) == 0 || v.data[0] != '{' {
			return
		}
		s := scanner{data: v.data, pos: 1}
		for s.space(); s.data[s.pos] != '}'; s.space() {
			if s.data[s.pos] == ',' {
				s.pos++
				s.space()
			}
			start := s.pos
			s.skipString()
			key := s.data[start:s.pos]
			s.space()
			s.pos++ // the colon
			s.space()
			start = s.pos
			s.skip()
			if !yield(key, Value{s.data[start:s.pos]}) {
				return
			}
		}
	}
}

// unquoted is the text of a string literal. It is a view of the document where
// nothing is escaped.
func unquoted(literal []byte) string {
	body := literal[1 : len(literal)-1]
	for i, b := range body {
		if b == '\\' {
			return unescape(body, i)
		}
	}
	return text(body)
}

func unescape(body []byte, i int) string {
	var out strings.Builder
	out.Grow(len(body))
	out.Write(body[:i])
	for i < len(body) {
		if body[i] != '\\' {
			out.WriteByte(body[i])
			i++
			continue
		}
		switch c := body[i+1]; c {
		case 'u':
			r := hex4(body[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+6 <= len(body) && body[i] == '\\' && body[i+1] == 'u' {
					low = hex4(body[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out.WriteRune(r)
			continue
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		default:
			out.WriteByte(c)
		}
		i += 2
	}
	return out.String()
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r = r<<4 | rune(unhex(c))
	}
	return r
}

// unhex is the value of a hexadecimal digit, 0xff for what is none.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// scanner reads a document. Its value method checks; its skip methods pass over
// what has been checked.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// value checks one value. It keeps its own stack: a guest's is small.
func (s *scanner) value() bool {
	var open []byte // the closing brackets still to come
	var first [64]byte
	open = first[:0]
	for {
		s.space()
		switch c := s.peek(); {
		case c == '{' || c == '[':
			if len(open) == maxDepth {
				return false
			}
			s.pos++
			s.space()
			if s.peek() == c+2 { // '{' and '}', '[' and ']' are two apart
				s.pos++
				break
			}
			open = append(open, c+2)
			if c == '{' && !s.name() {
				return false
			}
			continue
		case c == '"':
			if !s.str() {
				return false
			}
		case c == '-' || '0' <= c && c <= '9':
			if !s.number() {
				return false
			}
		case c == 't' && s.literal("true"), c == 'f' && s.literal("false"), c == 'n' && s.literal("null"):
		default:
			return false
		}
		// After a value: close what ends here, then a comma or the end.
		for {
			if len(open) == 0 {
				return true
			}
			s.space()
			c := s.peek()
			top := open[len(open)-1]
			if c == top {
				s.pos++
				open = open[:len(open)-1]
				continue
			}
			if c != ',' {
				return false
			}
			s.pos++
			if top == '}' {
				s.space()
				if !s.name() {
					return false
				}
			}
			break
		}
	}
}

func (s *scanner) name() bool {
	if s.peek() != '"' || !s.str() {
		return false
	}
	s.space()
	if s.peek() != ':' {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) literal(word string) bool {
	if len(s.data)-s.pos < len(word) || text(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// plain are the bytes that stand for themselves in a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// run passes plain bytes. Strings are most of a document, and a turn of a loop
// costs fuel for the dearest way from it to the next loop or to the end of its
// function: so this is a function of its own.
//
//go:noinline
func (s *scanner) run() {
	data, pos := s.data, s.pos
	for pos < len(data) && plain[data[pos]] {
		pos++
	}
	s.pos = pos
}

func (s *scanner) str() bool {
	for s.pos++; ; s.pos++ {
		s.run()
		switch c := s.peek(); {
		case c == '"':
			s.pos++
			return true
		case c < ' ':
			return false
		case c == '\\':
			s.pos++
			switch s.peek() {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					s.pos++
					if unhex(s.peek()) == 0xff {
						return false
					}
				}
			default:
				return false
			}
		}
	}
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) skip() {
	switch s.data[s.pos] {
	case '"':
		s.skipString()
	case '{', '[':
		depth := 0
		for {
			switch s.data[s.pos] {
			case '"':
				s.skipString()
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					s.pos++
					return
				}
			}
			s.pos++
		}
	default:
		for s.pos < len(s.data) {
			switch s.data[s.pos] {
			case ',', '}', ']', ' ', '\t', '\n', '\r':
				return
			}
			s.pos++
		}
	}
}

func (s *scanner) skipString() {
	s.pos++
	for s.run(); s.data[s.pos] != '"'; s.run() {
		s.pos += 2 // a backslash, and what follows
	}
	s.pos++
}
