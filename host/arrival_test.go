package host

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// come is all that comes of a list.
type come struct {
	Items         []string
	Version, Next string
	Code          string
}

func arriving(t *target, r io.Reader) (c come) {
	a := newArrival(t, r)
	defer a.free()
	for {
		item, ok, bad := a.item()
		if bad != nil {
			c.Code = bad.Code
			return c
		}
		if !ok {
			c.Version, c.Next = a.version, a.next
			return c
		}
		c.Items = append(c.Items, string(item))
	}
}

var (
	podTarget = &target{version: "v1", resource: "pods", protobuf: true}
	appTarget = &target{group: "hanzo.ai", version: "v1", resource: "apps", kind: "App"}
)

// asPage checks that a list read as it comes is the list that is read whole, in
// whatever pieces it comes.
func asPage(t *testing.T, to *target, body []byte) come {
	t.Helper()
	got, pieces := arriving(to, bytes.NewReader(body)), arriving(to, iotest.OneByteReader(bytes.NewReader(body)))
	if got.Code != "" && pieces.Code != "" {
		pieces.Code = got.Code // of two faults the one met first
	}
	if diff := cmp.Diff(got, pieces); diff != "" {
		t.Fatalf("of %q (-at once +byte by byte):\n%s", body, diff)
	}
	if got.Code != "" {
		return got
	}
	p := &page{body: body}
	if r := p.split(to); r != nil {
		t.Fatalf("of %q: read whole it is refused: %v", body, r)
	}
	want := come{Version: p.version, Next: p.next}
	for _, s := range p.items {
		want.Items = append(want.Items, string(body[s.start:s.end]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("of %q (-whole +as it comes):\n%s", body, diff)
	}
	return got
}

var appLists = map[string]int{
	`{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"7","continue":"x"},"items":[{"a":1},{"b":[2,{}]} , {}]}`: 3,
	` {"apiVersion":"hanzo.ai/v1","items":[{"a":"é\u00e9\n"}],"kind":"AppList","metadata":{"resourceVersion":"7"}} `:                      1,
	`{"apiVersion":"hanzo.ai/v1","kind":"AppList","items":[],"metadata":null,"more":12}`:                                                  0,
	`{"apiVersion":"hanzo.ai/v1","items":[],"kind":"AppList"}`:                                                                            0,
	`{"apiVersion":"hanzo.ai/v1","kind":"AppList","items":null}`:                                                                          0,
}

func TestAListAsItComes(t *testing.T) {
	for _, n := range []int{0, 1, 3, 700} {
		body := podList(n)
		if got := asPage(t, podTarget, body); got.Code != "" || len(got.Items) != n || got.Version != "12" || got.Next != "more" {
			t.Errorf("of %d pods: code %q, %d items, version %q, continue %q", n, got.Code, len(got.Items), got.Version, got.Next)
		}
	}
	for body, n := range appLists {
		if got := asPage(t, appTarget, []byte(body)); got.Code != "" || len(got.Items) != n {
			t.Errorf("of %s: code %q, %d items", body, got.Code, len(got.Items))
		}
		want := arriving(appTarget, strings.NewReader(body))
		for i := range body {
			two := io.MultiReader(strings.NewReader(body[:i]), strings.NewReader(body[i:]))
			if diff := cmp.Diff(want, arriving(appTarget, two)); diff != "" {
				t.Errorf("%s, in two pieces at %d (-at once +in two):\n%s", body, i, diff)
			}
		}
		for i := range strings.TrimRight(body, " ") {
			if got := asPage(t, appTarget, []byte(body[:i])); got.Code == "" {
				t.Errorf("%s passes", body[:i])
			}
		}
	}
	body := podList(3)
	for i := range body[:len(body)-4] { // the last four bytes are an empty encoding and type
		if got := asPage(t, podTarget, body[:i]); got.Code == "" {
			t.Errorf("cut at %d of %d it passes", i, len(body))
		}
	}
}

// TestAListTakesConstantMemory reads a list of 200 MB in a window of 128 KiB.
func TestAListTakesConstantMemory(t *testing.T) {
	item := `{"x":"` + strings.Repeat("y", 20_000) + `"}`
	const n = 10_000
	body, w := io.Pipe()
	go func() {
		io.WriteString(w, `{"kind":"AppList","apiVersion":"hanzo.ai/v1","items":[`+item)
		for range n - 1 {
			io.WriteString(w, ","+item)
		}
		io.WriteString(w, "]}")
		w.Close()
	}()
	a := newArrival(appTarget, body)
	defer a.free()
	items, most := 0, 0
	for {
		_, ok, r := a.item()
		if r != nil {
			t.Fatal(r)
		}
		most = max(most, cap(a.buf))
		if !ok {
			break
		}
		items++
	}
	if items != n || most > windowSize {
		t.Errorf("%d items, a window of %d bytes", items, most)
	}
}

func FuzzArrival(f *testing.F) {
	for body := range appLists {
		f.Add(false, []byte(body))
	}
	for n := range 3 {
		f.Add(true, podList(n))
	}
	f.Add(true, []byte(magic+podListHead+"\x12\x02\x12\x00\x1a\x00"))
	f.Add(true, []byte(fmt.Sprintf("%s%s\x12\x06\x0a\x00\x12\x02\x0a\x00", magic, podListHead)))
	f.Fuzz(func(t *testing.T, protobuf bool, body []byte) {
		if protobuf {
			asPage(t, podTarget, body)
		} else {
			asPage(t, appTarget, body)
		}
	})
}
