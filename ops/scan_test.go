package ops

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// wellFormed is whether the scanner takes text as one value.
func wellFormed(text []byte) bool {
	s, ok := scan(text)
	return ok && s.value(maxDepth) && s.end()
}

func TestScannerTakesJSONAndNothingElse(t *testing.T) {
	good := []string{`{}`, ` [ ] `, `"é\u00e9\ud83d\ude00"`, `-0`, `0.5e-3`, `1E+9`, `[1,{"a":[null,true,false]}]`, `""`}
	bad := []string{``, `{`, `{"a"}`, `{"a":1,}`, `[1,]`, `[,1]`, `01`, `1.`, `.5`, `+1`, `1e`, `"\x"`, `"\u12"`, `"\ud800"`,
		`"\ud800\u0041"`, `"\udc00"`, "\"\x00\"", "\"\n\"", `nul`, `{} {}`, `{a:1}`, `'a'`, "\"\xff\"", `--1`, `-`, `[1 2]`, `{"a":1 "b":2}`,
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)}
	for _, text := range good {
		if !wellFormed([]byte(text)) {
			t.Errorf("%s: refused", text)
		}
	}
	for _, text := range bad {
		if wellFormed([]byte(text)) {
			t.Errorf("%.40s: taken", text)
		}
	}
}

func TestIntegerKeepsEveryBit(t *testing.T) {
	tests := []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-0", 0, true}, {"9223372036854775807", 1<<63 - 1, true},
		{"-9223372036854775808", -1 << 63, true}, {"9007199254740993", 1<<53 + 1, true},
		{"9223372036854775808", 0, false}, {"-9223372036854775809", 0, false}, {"18446744073709551616", 0, false},
		{"1.0", 0, false}, {"1e3", 0, false}, {"01", 0, false}, {"-", 0, false}, {"", 0, false}, {`"1"`, 0, false}, {"1-", 0, false},
	}
	for _, tt := range tests {
		s := scanner{text: []byte(tt.text)}
		got, ok := s.integer()
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: got %d %v, want %d %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestScannerDoesNotAllocate(t *testing.T) {
	text := []byte(`{"name":"a","labels":{"k":"v"},"list":[1,2,{"x":null}],"n":-1.5e3}`)
	if n := testing.AllocsPerRun(100, func() {
		if !wellFormed(text) {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzScanner holds the scanner against encoding/json: it takes nothing that
// encoding/json refuses, refuses only what it is meant to be stricter in, and
// reads the same text out of a string.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"b\n",null]}`, `"\ud83d\ude00"`, `1e5`, `[[[`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, theirs := wellFormed(text), json.Valid(text)
		if ours && !theirs {
			t.Fatalf("%q: taken, and is not JSON", text)
		}
		var nested int
		for _, c := range text {
			if c == '[' || c == '{' {
				nested++
			}
		}
		if theirs && !ours && utf8.Valid(text) && nested <= maxDepth && !strings.Contains(strings.ToLower(string(text)), `\ud`) {
			t.Fatalf("%q: refused, and is JSON", text)
		}
		s := scanner{text: text}
		if got, ok := readText(&s); ok && ours && s.end() {
			var want string
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q: (-want +got)\n%s", text, diff)
			}
			var again string
			if err := json.Unmarshal(appendString(nil, got), &again); err != nil || again != want {
				t.Fatalf("%q: written again as %s", got, appendString(nil, got))
			}
		}
	})
}
