package lens

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJSONDepth(t *testing.T) {
	for depth, want := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
		_, err := JSON([]byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)))
		if (err == nil) != want {
			t.Errorf("%d deep: %v", depth, err)
		}
	}
}

func TestInt(t *testing.T) {
	for text, want := range map[string]any{"0": int64(0), "-1": int64(-1), "9223372036854775807": int64(1<<63 - 1), "-9223372036854775808": int64(-1 << 63),
		"9223372036854775808": nil, "1.0": nil, "1e3": nil, `"1"`: nil, "null": nil, "18446744073709551616": nil} {
		v, err := JSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := v.Int(); ok != (want != nil) || ok && n != want {
			t.Errorf("%s is %d, %v; want %v", text, n, ok, want)
		}
	}
}

// FuzzJSON holds a document against encoding/json: the same are valid, and every
// value in them reads the same.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,true,false,null,"\u00e9\ud83d\ude00\ud800\n\/"],"a":{"b":"c"},"":{}}`, ` [ ] `, `"x"`, `{"a":}`, `[1,]`, "01", "\"\x01\"", `{"a" "b"}`, "tru", "-", "[}", `"\x"`, "\"\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := JSON(data)
		if (err == nil) != json.Valid(data) {
			t.Fatalf("%q: %v, want valid %v", data, err, json.Valid(data))
		}
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			return
		}
		if diff := cmp.Diff(want, read(v)); diff != "" {
			t.Errorf("%q (-encoding/json +lens):\n%s", data, diff)
		}
	})
}

// read is a whole value, by the lens.
func read(v Value) any {
	switch {
	case v.Null():
		return nil
	case v.Object():
		out := map[string]any{}
		for key := range v.members() {
			name := unquoted(key)
			out[string([]rune(name))] = read(v.Get(name))
		}
		return out
	}
	switch v.data[0] {
	case '[':
		out := []any{}
		for e := range v.Elems() {
			out = append(out, read(e))
		}
		return out
	case '"':
		return string([]rune(v.Str()))
	case 't', 'f':
		return v.Bool()
	}
	return json.Number(v.Raw())
}

func TestMembers(t *testing.T) {
	v, err := JSON([]byte(`{"a":1,"b":{"a":2},"\u0061":3,"c":null}`))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"b", "a", "none", "c"}
	for i, got := range v.Members(names...) {
		if want := v.Get(names[i]); string(got.Raw()) != string(want.Raw()) || got.Exists() != want.Exists() {
			t.Errorf("%s is %s, and Get's %s", names[i], got.Raw(), want.Raw())
		}
	}
}
