package plane

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzMapJSON holds a Map's JSON to encoding/json's reading of it.
func FuzzMapJSON(f *testing.F) {
	for _, seed := range []string{`{}`, ` { } `, `null`, `nul`, `nullx`, "null\x00", ``, `{"a":"1"}`, `{"a":"1","b":"2"}`,
		`{"a":"1",}`, `{"a":"1"}x`, `{"a":"1"`, `{"a"}`, `{"a":1}`, `{"a":null}`, `{"a":"1","a":"2"}`, `{,}`, `{"a":"1" "b":"2"}`,
		`{"\u00e9\ud83d\ude00":"\ud83d"}`, `{"a":"\ud83d\u0041"}`, `{"a":"\udc00\ud83d"}`, `{"a":"\"\\\/\b\f\n\r\t"}`,
		`{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, "{\"a\":\"\n\"}", "{\"a\":\"\xff\"}", "\t{\r\n\"a\" : \"\u2028<>&\"\t}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Map
		err := got.UnmarshalJSON(data)

		var want map[string]*string
		wantErr := json.Unmarshal(data, &want)
		entries, twice := count(data)
		for _, v := range want {
			if v == nil {
				wantErr = errors.New("a null value")
			}
		}
		if wantErr == nil && twice {
			wantErr = errors.New("a key twice")
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, want %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if len(got) != entries {
			t.Fatalf("%q: %d entries, want %d", data, len(got), entries)
		}
		for k, v := range want {
			if have, ok := got.Get(k); !ok || have != *v {
				t.Fatalf("%q: %q is %q, want %q", data, k, have, *v)
			}
		}
		wrote, err := got.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var back Map
		if err := json.Unmarshal(wrote, &back); err != nil {
			t.Fatalf("%s: %v", wrote, err)
		}
		if d := cmp.Diff(got.Go(), back.Go()); d != "" {
			t.Fatalf("%s: %s", wrote, d)
		}
	})
}

// count is the entries of a JSON object, and whether a key occurs twice.
func count(data []byte) (n int, twice bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, false
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return n, twice
		}
		n++
		twice = twice || seen[key]
		seen[key] = true
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return n, twice
		}
	}
	return n, twice
}
