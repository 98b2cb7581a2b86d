package host

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// compare splits a JSON list by the scanner and by encoding/json.
func compare(t *testing.T, body []byte) {
	p := &page{body: body}
	err := p.splitJSON()
	var members map[string]json.RawMessage
	wrong := json.Unmarshal(body, &members)
	if err == nil && wrong != nil {
		t.Fatalf("the scanner accepts what encoding/json does not: %v", wrong)
	}
	if wrong != nil || members == nil {
		return
	}
	var items []json.RawMessage
	if err != nil {
		return // duplicates, depth, and what is no list
	}
	if json.Unmarshal(members["items"], &items) != nil {
		t.Fatal("the scanner finds items where encoding/json finds none")
	}
	if len(items) != len(p.items) {
		t.Fatalf("%d items, want %d", len(p.items), len(items))
	}
	for i, s := range p.items {
		if string(items[i]) != string(body[s.start:s.end]) {
			t.Fatalf("item %d is %s, want %s", i, body[s.start:s.end], items[i])
		}
	}
	var meta struct{ kind, apiVersion, version, next string }
	text := func(b json.RawMessage) (s string) { json.Unmarshal(b, &s); return s }
	meta.kind, meta.apiVersion = text(members["kind"]), text(members["apiVersion"])
	var metadata map[string]json.RawMessage
	if json.Unmarshal(members["metadata"], &metadata) == nil {
		meta.version, meta.next = text(metadata["resourceVersion"]), text(metadata["continue"])
	}
	if meta != (struct{ kind, apiVersion, version, next string }{p.kind, p.apiVersion, p.version, p.next}) {
		t.Fatalf("%+v, want %+v", *p, meta)
	}
}

const appList = `{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"5","continue":"to\u006ben"},` +
	`"items":[{"kind":"App","metadata":{"name":"a"},"spec":{"n":9007199254740993,"t":"}],\"{","e":"\\"}}, {"spec":null,"x":[[],{}]} ]}`

func TestSplitJSON(t *testing.T) {
	p := &page{body: []byte(appList)}
	if err := p.splitJSON(); err != nil {
		t.Fatal(err)
	}
	if len(p.items) != 2 || p.next != "token" || p.version != "5" || p.kind != "AppList" {
		t.Errorf("%+v", p)
	}
	for i := range appList { // every cut is seen as one
		if err := (&page{body: []byte(appList[:i])}).splitJSON(); !errors.Is(err, errCut) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	for _, body := range seeds {
		compare(t, []byte(body))
	}
}

var seeds = []string{
	appList, `{}`, `[]`, `null`, `{"items":null}`, `{"items":[]}`, `{"items":[null]}`, `{"items":{}}`, `{"items":[1]}`,
	`{"items":[],"items":[]}`, `{"it\u0065ms":[{}]}`, `{"items":[{}],"kind":3}`, `{"items":[{"a":-0.5e+10}]}`,
	`{"items":[{"a":01}]}`, `{"items":[{"a":1.}]}`, `{"items":[{"a":"` + "\x01" + `"}]}`, `{"items":[{"a":"\ud800"}]}`,
	`{"items":[{"a":"\x"}]}`, `{"items":[{}]} x`, `{"items":[{},]}`, `{"items":[{}],}`, `{"metadata":null,"items":[{}]}`,
	`{"items":[{"a":tru}]}`, `{"items":[{"a":"` + "\xff" + `"}]}`, ` { "items" : [ { } , { } ] } `,
	"\xef\xbb\xbf" + `{"items":[]}`, `{"items":[{"a":1e}]}`, `{"items":[{"a":--1}]}`, `{"items":[{"a":"\u00g0"}]}`,
}

func TestRefusedLists(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		err  error
	}{
		"no items":   {`{"kind":"AppList"}`, errShape},
		"duplicates": {`{"items":[],"items":[]}`, errShape},
		"null item":  {`{"items":[null]}`, errShape},
		"deep":       {`{"items":[` + strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat(`}`, 10_000) + `]}`, errDeep},
		"deep array": {`{"x":` + strings.Repeat(`[`, 10_000), errDeep},
		"html":       {`<html>`, errShape},
		"empty":      {``, errCut},
	} {
		if err := (&page{body: []byte(test.body)}).splitJSON(); !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", name, err, test.err)
		}
	}
}

func FuzzSplitJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) { compare(t, body) })
}

// FuzzValue holds the scanner to encoding/json's own idea of a value.
func FuzzValue(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b}
		_, err := s.value()
		if err == nil {
			err = s.end()
		}
		if (err == nil) != json.Valid(b) && !errors.Is(err, errDeep) {
			t.Fatalf("the scanner says %v, encoding/json %v", err, json.Valid(b))
		}
	})
}
