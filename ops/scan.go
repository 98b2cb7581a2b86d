package ops

import (
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest in any JSON this service
// reads, from a caller or from a guest.
const maxDepth = 128

// scanner reads one JSON text from left to right without allocating. Its
// methods answer false at the first byte that is not what they read; where it
// stands then is of no use. The text must be valid UTF-8, which the caller
// checks once for all of it.
type scanner struct {
	text []byte
	at   int
}

// scan is a scanner of text, or false when text is not UTF-8.
func scan(text []byte) (scanner, bool) {
	return scanner{text: text}, utf8.Valid(text)
}

// space passes over white space.
func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the first byte of the next value, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// take passes over c and the white space before it.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// end is true when nothing but white space is left.
func (s *scanner) end() bool {
	s.space()
	return s.at == len(s.text)
}

// each reads an array or object from open to close, calling element at the
// start of every element.
func (s *scanner) each(open, close byte, element func() bool) bool {
	if !s.take(open) {
		return false
	}
	if s.take(close) {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.take(close) {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// str reads a string and gives what stands between its quotes; plain is true
// when there is no escape in it.
func (s *scanner) str() (body []byte, plain, ok bool) {
	if s.peek() != '"' {
		return nil, false, false
	}
	start := s.at + 1
	plain = true
	for i := start; i < len(s.text); {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return s.text[start:i], plain, true
		case c < 0x20:
			return nil, false, false
		case c == '\\':
			plain = false
			n := escape(s.text[i:])
			if n == 0 {
				return nil, false, false
			}
			i += n
		default:
			i++
		}
	}
	return nil, false, false
}

// escape is the length of the escape sequence that b begins with, or 0 when it
// is none. Half of a surrogate pair is none: it stands for no text.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		switch r := hex4(b); {
		case r < 0:
			return 0
		case !utf16.IsSurrogate(r):
			return 6
		case len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && utf16.DecodeRune(r, hex4(b[6:])) != utf8.RuneError:
			return 12
		}
	}
	return 0
}

// hex4 is the code unit of the \u escape that b begins with, or -1.
func hex4(b []byte) rune {
	if len(b) < 6 {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return -1
		}
	}
	return r
}

// appendText appends the text that a string's body stands for. body is what str
// gave.
func appendText(out, body []byte) []byte {
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			out = append(out, body[i])
			i++
			continue
		}
		switch c := body[i+1]; c {
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
			r := hex4(body[i:])
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, hex4(body[i+6:]))
				i += 6
			}
			out = utf8.AppendRune(out, r)
			i += 4
		default:
			out = append(out, c)
		}
		i += 2
	}
	return out
}

// appendString appends text as a JSON string.
func appendString[T string | []byte](out []byte, text T) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20 || c == 0x7f:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// integer reads a whole number of 64 bits, written without fraction or
// exponent.
func (s *scanner) integer() (int64, bool) {
	negative := s.peek() == '-'
	if negative {
		s.at++
	}
	start, n := s.at, uint64(0)
	for ; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		if c < '0' || c > '9' {
			break
		}
		if n > (math.MaxInt64+1)/10 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	digits := s.at - start
	if digits == 0 || digits > 1 && s.text[start] == '0' || s.number() {
		return 0, false
	}
	switch {
	case negative && n <= math.MaxInt64+1:
		return int64(-n), true
	case !negative && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}

// number is true when what follows would go on a number.
func (s *scanner) number() bool {
	if s.at == len(s.text) {
		return false
	}
	switch s.text[s.at] {
	case '.', 'e', 'E', '+', '-':
		return true
	}
	return false
}

// float passes over any number.
func (s *scanner) float() bool {
	if s.peek() == '-' {
		s.at++
	}
	start := s.at
	if n := s.digits(); n == 0 || n > 1 && s.text[start] == '0' {
		return false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if s.digits() == 0 {
			return false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		return s.digits() > 0
	}
	return true
}

func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}

// word passes over true, false or null.
func (s *scanner) word(w string) bool {
	s.space()
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// boolean reads true or false.
func (s *scanner) boolean() (value, ok bool) {
	if s.word("true") {
		return true, true
	}
	return false, s.word("false")
}

// value passes over any value that nests at most depth deep.
func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '"':
		_, _, ok := s.str()
		return ok
	case '{', '[':
		if depth == 0 {
			return false
		}
		if c == '[' {
			return s.each('[', ']', func() bool { return s.value(depth - 1) })
		}
		return s.each('{', '}', func() bool {
			_, _, ok := s.str()
			return ok && s.take(':') && s.value(depth-1)
		})
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.float()
	}
}
