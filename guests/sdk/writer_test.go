package sdk

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hanzoai/k8s/guests/sdk/lens"
)

func written(write func(*Writer)) string {
	w := new(Writer)
	w.reset()
	write(w)
	return string(w.bytes())
}

func TestWriter(t *testing.T) {
	raw, err := lens.JSON([]byte(`{"n": 9007199254740993, "s": "é"}`))
	if err != nil {
		t.Fatal(err)
	}
	null, err := lens.JSON([]byte("null"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		write func(*Writer)
		want  string
	}{
		{"nothing", func(*Writer) {}, `{}`},
		{"what is empty is left out", func(w *Writer) {
			w.Str("a", "")
			w.List("b")
			w.End()
			w.Map("c", maps.All(map[string]string{}))
			w.Raw("d", lens.Value{})
			w.Raw("e", null)
		}, `{}`},
		{"but not numbers, booleans and objects", func(w *Writer) {
			w.Int("a", 0)
			w.Bool("b", false)
			w.Object("c")
			w.End()
		}, `{"a":0,"b":false,"c":{}}`},
		{"commas around what is taken back", func(w *Writer) {
			w.Str("a", "1")
			w.List("b")
			w.End()
			w.Str("c", "2")
		}, `{"a":"1","c":"2"}`},
		{"a list that is first and empty", func(w *Writer) {
			w.List("b")
			w.End()
			w.Str("c", "2")
		}, `{"c":"2"}`},
		{"lists", func(w *Writer) {
			w.List("a")
			w.Elem("")
			w.Int("", -1)
			w.Object("")
			w.Str("b", "c")
			w.End()
			w.Object("")
			w.End()
			w.End()
			w.Str("d", "e")
		}, `{"a":["",-1,{"b":"c"},{}],"d":"e"}`},
		{"maps are sorted, and the last of a key counts", func(w *Writer) {
			w.Map("a", func(yield func(string, string) bool) {
				_ = yield("b", "1") && yield("a", "2") && yield("b", "3") && yield("", "")
			})
		}, `{"a":{"":"","a":"2","b":"3"}}`},
		{"raw", func(w *Writer) { w.Raw("a", raw) }, `{"a":{"n": 9007199254740993, "s": "é"}}`},
		{"what is left open is closed", func(w *Writer) { w.List("a"); w.Object(""); w.Int("b", 1) }, `{"a":[{"b":1}]}`},
	} {
		if got := written(tt.write); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// FuzzString holds strings against encoding/json without its HTML escapes.
func FuzzString(f *testing.F) {
	f.Add("a\"\\\b\f\n\r\t\x00\x1f\x7f<>&\u2028\u2029é\U0001F600\xff\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(appendString(nil, s)), reference(t, s); got != want {
			t.Errorf("%q is written %s, want %s", s, got, want)
		}
	})
}

func reference(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TestEveryByteInEveryPlace checks the strings that are looked at eight bytes at
// once: each byte, wherever it stands among plain ones.
func TestEveryByteInEveryPlace(t *testing.T) {
	for size := range 20 {
		for at := range size {
			for c := range utf8.RuneSelf {
				s := []byte(strings.Repeat("a", size))
				s[at] = byte(c)
				if got, want := string(appendString(nil, string(s))), reference(t, string(s)); got != want {
					t.Fatalf("%q: got %s, want %s", s, got, want)
				}
			}
		}
	}
}

func FuzzUTF8(f *testing.F) {
	f.Add([]byte("gr\xc3\xbc\xff\xffa"), 3)
	f.Add([]byte("\xff"), 2)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		most &= 63
		got, cut := UTF8(b, most)
		clean := string([]rune(string(b)))
		if !utf8.ValidString(got) || len(got) > most || !strings.HasSuffix(clean, got) || cut != (got != clean) || cut && len(got) < most-3 {
			t.Errorf("%q in %d is %q, %v", b, most, got, cut)
		}
	})
}

func TestWritingDoesNotAllocate(t *testing.T) {
	w := &Writer{buf: make([]byte, 0, 1024), open: make([]frame, 0, 4), entries: make([]Entry, 0, 4)}
	allocs := testing.AllocsPerRun(100, func() {
		w.reset()
		w.Str("a", "b")
		w.List("c")
		w.Elem("d")
		w.End()
		w.Int("e", 1)
		w.bytes()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
