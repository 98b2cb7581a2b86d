package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// event is one frame of a watch of Apps.
func event(kind string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"App","apiVersion":"hanzo.ai/v1","metadata":{"name":"x","resourceVersion":"%d"}}}`+"\n", kind, version)
}

const expiredEvent = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// frames serves the same frames to every watch request, and then waits or ends.
func frames(wait bool, frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, f := range frames {
			w.Write([]byte(f))
		}
		w.(http.Flusher).Flush()
		if wait {
			<-r.Context().Done()
		}
	}
}

// versions are those of the events handed over.
func versions(t *testing.T, items []string) (out []string) {
	t.Helper()
	for _, i := range items {
		var e struct {
			Type   string
			Object struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := json.Unmarshal([]byte(i), &e); err != nil {
			t.Fatalf("%s: %v", i, err)
		}
		out = append(out, e.Type+" "+e.Object.Metadata.ResourceVersion)
	}
	return out
}

func TestWatch(t *testing.T) {
	big := `{"type":"ADDED","object":{"kind":"App","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"9"},"spec":"` + strings.Repeat("x", 20<<20) + `"}}`
	for _, test := range []struct {
		name    string
		serve   http.HandlerFunc
		request string
		want    []string
		trailer string
		code    string
		within  time.Duration
	}{
		{"changes", frames(true, event("ADDED", 6), event("MODIFIED", 7), event("DELETED", 9)), `"version":"5","waitSeconds":55`,
			[]string{"ADDED 6", "MODIFIED 7", "DELETED 9"}, `{"version":"9"}`, "", 2 * time.Second},
		{"nothing happens", frames(true), `"version":"5","waitSeconds":1`, nil, `{"version":"5"}`, "", 2 * time.Second},
		{"B18 a bookmark moves the version and is no change", frames(true, event("BOOKMARK", 8)), `"version":"5","waitSeconds":1`, nil, `{"version":"8"}`, "", 2 * time.Second},
		{"B18 a bookmark after a change", frames(true, event("ADDED", 6), event("BOOKMARK", 8)), `"version":"5","waitSeconds":9`, []string{"ADDED 6"}, `{"version":"8"}`, "", 2 * time.Second},
		{"B18 an unknown type", frames(true, event("ADDED", 6), event("RENAMED", 7)), `"version":"5","waitSeconds":9`, []string{"ADDED 6"}, "", "bad_upstream", 2 * time.Second},
		{"B18 half a frame", frames(false, event("ADDED", 6), event("ADDED", 7)[:40]), `"version":"5","waitSeconds":9`, []string{"ADDED 6"}, "", "truncated", 2 * time.Second},
		{"B18 20 MB", frames(true, big), `"version":"5","waitSeconds":30`, nil, "", "too_large", 20 * time.Second},
		{"B18 no JSON", frames(true, "<html>"), `"version":"5","waitSeconds":9`, nil, "", "bad_upstream", 2 * time.Second},
		{"B18 another kind", frames(true, strings.Replace(event("ADDED", 6), "App", "Datastore", 1)), `"version":"5","waitSeconds":9`, nil, "", "bad_upstream", 2 * time.Second},
		{"B18 no version", frames(true, strings.Replace(event("ADDED", 6), `"6"`, `""`, 1)), `"version":"5","waitSeconds":9`, nil, "", "bad_upstream", 2 * time.Second},
		{"B8 an ERROR frame", frames(false, expiredEvent), `"version":"5","waitSeconds":9`, nil, `{"version":"5","expired":true}`, "", time.Second},
		{"B8 an ERROR frame after a change", frames(false, event("ADDED", 6), expiredEvent), `"version":"5","waitSeconds":9`, []string{"ADDED 6"}, `{"version":"6","expired":true}`, "", time.Second},
		{"B8 a Status alone", frames(false, `{"kind":"Status","apiVersion":"v1","reason":"Gone","code":410}`), `"version":"5","waitSeconds":9`, nil, `{"version":"5","expired":true}`, "", time.Second},
		{"B8 HTTP 410", func(w http.ResponseWriter, _ *http.Request) { status(w, 410, metav1.Status{Reason: "Expired"}) }, `"version":"5","waitSeconds":9`, nil, `{"version":"5","expired":true}`, "", time.Second},
		{"another ERROR", frames(false, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","reason":"InternalError","code":500}}`), `"version":"5","waitSeconds":9`, nil, "", "bad_upstream", time.Second},
		{"an ERROR without a Status", frames(false, `{"type":"ERROR","object":{}}`), `"version":"5","waitSeconds":9`, nil, "", "bad_upstream", time.Second},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { status(w, 403, metav1.Status{Reason: "Forbidden"}) }, `"version":"5","waitSeconds":9`, nil, "", "forbidden", time.Second},
		{"what was seen comes again", frames(true, event("ADDED", 4), event("MODIFIED", 5), event("MODIFIED", 10)), `"version":"9","waitSeconds":9`, []string{"MODIFIED 10"}, `{"version":"10"}`, "", 2 * time.Second},
		{"a version of no cluster", nil, `"version":"abc"`, nil, "", "bad_input", time.Second},
		{"a version with a query in it", nil, `"version":"5&watch=false"`, nil, "", "bad_input", time.Second},
		{"version 0", nil, `"version":"0"`, nil, "", "bad_input", time.Second},
		{"waits too long", nil, `"version":"5","waitSeconds":56`, nil, "", "bad_input", time.Second},
		{"a composite one", nil, `"version":"n.!!"`, nil, "", "bad_input", time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			items, trailer, code := world{serve: test.serve}.guest(t).do("watch", `{"kind":"App","namespace":"a",`+test.request+`}`)
			if diff := cmp.Diff(test.want, versions(t, items)); diff != "" || trailer != test.trailer || code != test.code {
				t.Errorf("code %q trailer %s\n%s", code, trailer, diff)
			}
			if took := time.Since(began); took > test.within {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestRowB9(t *testing.T) {
	for wait, within := range map[int]time.Duration{1: 2 * time.Second, 10: 8 * time.Second} {
		t.Run(fmt.Sprintf("B9 %d s", wait), func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			g := world{serve: func(w http.ResponseWriter, r *http.Request) { n.Add(1); frames(false)(w, r) }}.guest(t)
			began := time.Now()
			_, trailer, code := g.do("watch", fmt.Sprintf(`{"kind":"App","namespace":"a","version":"5","waitSeconds":%d}`, wait))
			if trailer != `{"version":"5","expired":true}` || code != "" || n.Load() > 3 || time.Since(began) > within {
				t.Errorf("code %q trailer %s after %d requests and %s", code, trailer, n.Load(), time.Since(began))
			}
		})
	}
}

// changing is a kind whose objects change all the time in several namespaces,
// with a history that goes back to the start.
type changing struct {
	mu      sync.Mutex
	history map[string][]int // versions by namespace
	version int
	drop    int // end a watch after so many events
}

func (c *changing) change(ns string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	c.history[ns] = append(c.history[ns], c.version)
}

func (c *changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ns := strings.Split(r.URL.Path, "/")[5]
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	for sent := 0; r.Context().Err() == nil; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		var due []int
		for _, v := range c.history[ns] {
			if v > from {
				due = append(due, v)
				from = v
			}
		}
		c.mu.Unlock()
		for _, v := range due {
			io.WriteString(w, event("MODIFIED", v))
			if sent++; sent == c.drop {
				return
			}
		}
		w.(http.Flusher).Flush()
	}
}

// TestWatchNeitherSkipsNorRepeats follows three namespaces through many bounded
// watches while they change and the cluster keeps ending its own.
func TestWatchNeitherSkipsNorRepeats(t *testing.T) {
	scope := []string{"a", "b", "c"}
	c := &changing{history: map[string][]int{}, version: 1, drop: 37}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				c.change(scope[i*i%3])
			}
		}
	}()
	version := joinVersions(scope, []string{"1", "1", "1"})
	var got []string
	read := func() {
		g := world{serve: c.ServeHTTP, namespaces: scope}.guest(t)
		items, trailer, code := g.do("watch", fmt.Sprintf(`{"kind":"App","version":%q,"waitSeconds":1}`, version))
		if code != "" {
			t.Fatal(code)
		}
		var end struct {
			Version string
			Expired bool
		}
		if err := json.Unmarshal([]byte(trailer), &end); err != nil || end.Expired || end.Version == "" {
			t.Fatalf("%s: %v", trailer, err)
		}
		version = end.Version
		got = append(got, versions(t, items)...)
	}
	for range 3 {
		read()
	}
	close(stop)
	<-done
	for n := -1; n != len(got); {
		n = len(got)
		read()
	}
	seen := make(map[string]int)
	for _, v := range got {
		seen[v]++
	}
	total := 0
	for ns, history := range c.history {
		for _, v := range history {
			total++
			if n := seen["MODIFIED "+strconv.Itoa(v)]; n != 1 {
				t.Errorf("change %d of %s came %d times", v, ns, n)
			}
		}
	}
	if total < 100 || total != len(got) {
		t.Errorf("%d changes, %d handed over", total, len(got))
	}
}

func TestWatchFromTheStart(t *testing.T) {
	list := func(ns, items string) string {
		return `{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"` + map[string]string{"a": "7", "b": "8"}[ns] + `"},"items":[` + items + `]}`
	}
	app := `{"kind":"App","metadata":{"resourceVersion":"3"}}`
	serve := func(items string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ns := strings.Split(r.URL.Path, "/")[5]
			if r.URL.Query().Get("watch") == "" {
				write(w, "application/json", []byte(list(ns, items)))
				return
			}
			if v := r.URL.Query().Get("resourceVersion"); v != map[string]string{"a": "7", "b": "8"}[ns] {
				t.Errorf("%s is watched from %s", ns, v)
			}
			frames(true, map[string]string{"a": "", "b": event("ADDED", 12)}[ns])(w, r)
		}
	}
	both := []string{"a", "b"}
	items, trailer, code := world{serve: serve(app), namespaces: both}.guest(t).do("watch", `{"kind":"App","waitSeconds":9}`)
	if diff := cmp.Diff([]string{"ADDED 3", "ADDED 3"}, versions(t, items)); diff != "" || code != "" || trailer != `{"version":"`+joinVersions(both, []string{"7", "8"})+`"}` {
		t.Errorf("%q %s\n%s", code, trailer, diff)
	}
	items, trailer, code = world{serve: serve(""), namespaces: both}.guest(t).do("watch", `{"kind":"App","waitSeconds":9}`)
	if diff := cmp.Diff([]string{"ADDED 12"}, versions(t, items)); diff != "" || code != "" || trailer != `{"version":"`+joinVersions(both, []string{"7", "12"})+`"}` {
		t.Errorf("%q %s\n%s", code, trailer, diff)
	}
}

func TestVersionOfAnotherScope(t *testing.T) {
	three := joinVersions([]string{"a", "b", "c"}, []string{"1", "2", "3"})
	for _, test := range []struct {
		scope   []string
		version string
		want    []string
		ok      bool
	}{
		{[]string{"a", "b", "c"}, three, []string{"1", "2", "3"}, true},
		{[]string{"b"}, three, []string{"2"}, true},
		{[]string{"b", "d"}, three, nil, false},
		{[]string{""}, three, nil, false},
		{[]string{"a"}, "5", []string{"5"}, true},
		{[]string{"a", "b"}, "5", []string{"5"}, false},
	} {
		got, ok, r := splitVersion(test.scope, test.version)
		if diff := cmp.Diff(test.want, got); r != nil || ok != test.ok || diff != "" {
			t.Errorf("%v %s: %v %v\n%s", test.scope, test.version, ok, r, diff)
		}
	}
	_, trailer, code := world{namespaces: []string{"a", "b"}}.guest(t).do("watch", `{"kind":"App","version":"5"}`)
	if code != "" || trailer != `{"version":"5","expired":true}` {
		t.Errorf("%q %s", code, trailer)
	}
}

func TestFrameReader(t *testing.T) {
	body := ` {"a":"}{\"\\"}` + "\n" + `{"b":[{},{"c":"]"}]}{"d":1}  `
	for name, r := range map[string]io.Reader{
		"whole":     strings.NewReader(body),
		"by a byte": iotest.OneByteReader(strings.NewReader(body)),
		"at halves": iotest.HalfReader(strings.NewReader(body)),
		"data, EOF": iotest.DataErrReader(strings.NewReader(body)),
	} {
		f := frameReader{r: r}
		var got []string
		var err error
		for {
			var b []byte
			if b, err = f.next(); err != nil {
				break
			}
			got = append(got, string(b))
		}
		if diff := cmp.Diff([]string{`{"a":"}{\"\\"}`, `{"b":[{},{"c":"]"}]}`, `{"d":1}`}, got); diff != "" || err != io.EOF {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for body, want := range map[string]error{`{"a":`: errCut, `{"a":"x`: errCut, `x`: errShape, `{}}`: errShape, ``: io.EOF, ` `: io.EOF} {
		f := frameReader{r: strings.NewReader(body)}
		var err error
		for err == nil {
			_, err = f.next()
		}
		if err != want {
			t.Errorf("%q: %v, want %v", body, err, want)
		}
	}
}
