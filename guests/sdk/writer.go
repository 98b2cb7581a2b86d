package sdk

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// Writer writes one JSON object, member by member, as encoding/json writes the
// plane types: empty strings, lists and maps are left out; booleans and
// integers are always there. A name is empty for an element of a list.
type Writer struct {
	buf     []byte
	comma   bool
	open    []frame
	entries []Entry
}

// frame is where an open list, map or object began, name and comma included.
type frame struct {
	start, body int
	comma       bool // before start
	keep        bool // although empty
	bracket     byte
}

// reset begins a new object.
func (w *Writer) reset() {
	w.buf = append(w.buf[:0], '{')
	w.comma = false
	w.open = w.open[:0]
}

// bytes ends the object. It is good until the next reset.
func (w *Writer) bytes() []byte {
	for len(w.open) > 0 {
		w.End()
	}
	w.buf = append(w.buf, '}')
	return w.buf
}

func (w *Writer) name(name string) {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
	if name != "" {
		w.buf = append(w.buf, '"')
		w.buf = append(w.buf, name...)
		w.buf = append(w.buf, '"', ':')
	}
}

// Str writes a member unless it is empty.
func (w *Writer) Str(name, value string) {
	if value != "" {
		w.name(name)
		w.buf = appendString(w.buf, value)
	}
}

// Int writes a number.
func (w *Writer) Int(name string, value int64) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
}

// Bool writes a truth value.
func (w *Writer) Bool(name string, value bool) {
	w.name(name)
	w.buf = strconv.AppendBool(w.buf, value)
}

// Strs writes a list of strings unless it is empty.
func (w *Writer) Strs(name string, values iter.Seq[string]) {
	w.List(name)
	for v := range values {
		w.Elem(v)
	}
	w.End()
}

// Texts writes the strings of lists, one list after the other, unless there are
// none.
func (w *Writer) Texts(name string, lists ...lens.Strings) {
	w.List(name)
	for i := range lists {
		for lists[i].Next() {
			w.Elem(lists[i].Text)
		}
	}
	w.End()
}

// Images writes the images of a pod spec: init containers, then containers.
func (w *Writer) Images(name string, podSpec lens.Message) {
	w.Texts(name, podSpec.Texts(lens.PodInitContainers, lens.ContainerImage), podSpec.Texts(lens.PodContainers, lens.ContainerImage))
}

// Elem writes a string as an element of the list that is open, empty or not.
func (w *Writer) Elem(value string) {
	w.name("")
	w.buf = appendString(w.buf, value)
}

// Map writes an object of strings, sorted by key, unless it is empty. Of a key
// that comes twice the last counts.
func (w *Writer) Map(name string, entries iter.Seq2[string, string]) {
	w.start(name, '{', '}', false)
	for _, e := range w.Sorted(entries) {
		w.name("")
		w.buf = append(appendString(w.buf, e.Key), ':')
		w.buf = appendString(w.buf, e.Value)
	}
	w.End()
}

// Entry is one entry of a map.
type Entry struct{ Key, Value string }

// Sorted is the entries of a map sorted by key, the last of those whose key
// comes twice. It is good until the next use of Sorted or Map.
func (w *Writer) Sorted(entries iter.Seq2[string, string]) []Entry {
	all := w.entries[:0]
	sorted := true
	for k, v := range entries {
		sorted = sorted && (len(all) == 0 || all[len(all)-1].Key < k)
		all = append(all, Entry{k, v})
	}
	w.entries = all
	if sorted {
		return all
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	last := all[:0]
	for i, e := range all {
		if i+1 == len(all) || all[i+1].Key != e.Key {
			last = append(last, e)
		}
	}
	return last
}

// Raw writes a JSON value as it stands in its document, unless it is absent or
// null. Bytes that are not UTF-8 become U+FFFD.
func (w *Writer) Raw(name string, v lens.Value) {
	if v.Null() {
		return
	}
	w.name(name)
	raw := v.Raw()
	for len(raw) > 0 {
		n := validPrefix(raw)
		w.buf = append(w.buf, raw[:n]...)
		if raw = raw[n:]; len(raw) > 0 {
			w.buf = append(w.buf, "\uFFFD"...)
			raw = raw[1:]
		}
	}
}

// List opens a list, to be closed by End, which takes it back when it is empty.
func (w *Writer) List(name string) { w.start(name, '[', ']', false) }

// Object opens an object, to be closed by End. It stays although empty.
func (w *Writer) Object(name string) { w.start(name, '{', '}', true) }

func (w *Writer) start(name string, open, bracket byte, keep bool) {
	w.open = append(w.open, frame{start: len(w.buf), comma: w.comma, keep: keep, bracket: bracket})
	w.begin(name, open)
}

func (w *Writer) begin(name string, open byte) {
	w.name(name)
	w.buf = append(w.buf, open)
	w.open[len(w.open)-1].body = len(w.buf)
	w.comma = false
}

// End closes the list or object opened last.
func (w *Writer) End() {
	f := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	if len(w.buf) == f.body && !f.keep {
		w.buf, w.comma = w.buf[:f.start], f.comma
		return
	}
	w.buf, w.comma = append(w.buf, f.bracket), true
}

const hex = "0123456789abcdef"

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendString writes s as encoding/json does when it leaves HTML alone.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := plainPrefix(s); i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, '\\', 'b')
			case '\f':
				b = append(b, '\\', 'f')
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(append(b, s[start:i]...), `\ufffd`...)
			i++
			start = i
			continue
		}
		if r == '\u2028' || r == '\u2029' { // which end a line in JavaScript
			b = append(append(b, s[start:i]...), `\u202`...)
			b = append(b, hex[r&15])
			start = i + size
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}

// plainPrefix is a number of bytes at the start of s that stand for themselves,
// all of them where that can be told by looking at eight at once: every turn of a
// loop costs WebAssembly dear.
func plainPrefix(s string) int {
	if len(s) < 8 {
		return 0
	}
	for i := 0; ; i = min(i+8, len(s)-8) { // the last eight overlap those before
		if !plainWord(*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))) {
			return i
		}
		if i == len(s)-8 {
			return len(s)
		}
	}
}

// plainWord says whether eight bytes all stand for themselves.
func plainWord(x uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^'"'*ones, x^'\\'*ones
	return (x|(x-' '*ones)|(quote-ones)&^quote|(slash-ones)&^slash)&high == 0
}

// validPrefix is how many bytes of b are UTF-8 before the first that is not.
func validPrefix(b []byte) int {
	for i := ascii(b); i < len(b); i += ascii(b[i:]) {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(b)
}

// ascii is how many bytes of b are ASCII before the first that is not. It is a
// function of its own for the fuel that a turn of its loop costs.
//
//go:noinline
func ascii(b []byte) int {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}

// UTF8 is b with every byte that is not UTF-8 replaced by U+FFFD, and no more
// than the last most bytes of that; cut says whether older ones were dropped.
func UTF8(b []byte, most int) (text string, cut bool) {
	if n := validPrefix(b); n < len(b) {
		clean := make([]byte, 0, len(b)+len(b)/8)
		for {
			clean = append(clean, b[:n]...)
			if b = b[n:]; len(b) == 0 {
				break
			}
			clean, b = append(clean, "\uFFFD"...), b[1:]
			n = validPrefix(b)
		}
		b = clean
	}
	if len(b) > most {
		b, cut = b[len(b)-most:], true
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	return string(b), cut
}
