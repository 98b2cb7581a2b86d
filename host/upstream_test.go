package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

const sentinel = "SENTINEL-0f1e2d3c"

// answer serves one body for everything.
func answer(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		w.Write([]byte(body))
	}
}

const (
	listPods = `{"resource":"v1/pods"}`
	listApps = `{"kind":"App"}`
	getPod   = `{"resource":"v1/pods","namespace":"a","name":"p"}`
	getApp   = `{"kind":"App","namespace":"a","name":"p"}`
)

// podListHead is how a PodList begins after the magic.
const podListHead = "\x0a\x0d\x0a\x02v1\x12\x07PodList"

// TestRowsOfUpstream is section B of the cases, as far as it is about what a
// cluster sends.
func TestRowsOfUpstream(t *testing.T) {
	protobufPods := string(podList(2))
	proto := "application/vnd.kubernetes.protobuf"
	for _, test := range []struct {
		row, name string
		serve     http.HandlerFunc
		function  string
		request   string
		code      string
		status    int
	}{
		{"B4", "a JSON string without end", flood(`{"kind":"AppList","apiVersion":"hanzo.ai/v1","items":[{"a":"`, "x"), "list", listApps, "too_large", 502},
		{"B4", "an item of protobuf without end", flood(magic+podListHead+"\x12\xff\xff\xff\xff\x07\x12\xff\xff\xff\x7f", "x"), "list", listPods, "too_large", 502},
		{"B4", "one object without end", flood(`{"kind":"App","apiVersion":"hanzo.ai/v1","a":"`, "x"), "get", getApp, "too_large", 502},
		{"B4", "10 000 deep", answer(200, "application/json", `{"kind":"AppList","apiVersion":"hanzo.ai/v1","items":[{"a":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+`}]}`), "list", listApps, "bad_upstream", 502},
		{"B6", "JSON cut", answer(200, "application/json", `{"kind":"AppList","apiVersion":"hanzo.ai/v1","items":[{"a":1},{"a"`), "list", listApps, "truncated", 502},
		{"B6", "protobuf cut", answer(200, proto, protobufPods[:len(protobufPods)-9]), "list", listPods, "truncated", 502},
		{"B6", "connection cut", cut(protobufPods, 40), "list", listPods, "truncated", 502},
		{"B6", "connection cut in an object", cut(protobufPods, 40), "get", getPod, "truncated", 502},
		{"B7", "429", retryLater(429, "86400"), "list", listPods, "throttled", 503},
		{"B7", "503 with Retry-After", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			status(w, 503, metav1.Status{Reason: "ServiceUnavailable", Message: "later"})
		}, "list", listPods, "throttled", 503},
		{"B14", "a login page", answer(200, "text/html", "<html><form action=login>"+sentinel), "list", listPods, "bad_upstream", 502},
		{"B14", "a login page for JSON", answer(200, "text/html", "<html><form action=login>"+sentinel), "list", listApps, "bad_upstream", 502},
		{"B14", "a login page for an object", answer(200, "text/html", "<html>"+sentinel), "get", getPod, "bad_upstream", 502},
		{"B14", "an empty list", answer(200, proto, ""), "list", listPods, "bad_upstream", 502},
		{"B14", "an empty JSON list", answer(200, "application/json", ""), "list", listApps, "bad_upstream", 502},
		{"B14", "an empty object", answer(200, proto, ""), "get", getPod, "bad_upstream", 502},
		{"B14", "502 of a load balancer", answer(502, "text/html", "<html>"+sentinel), "list", listPods, "bad_upstream", 502},
		{"B14", "another kind of list", answer(200, proto, string(protobuf("v1", "ServiceList", &corev1.ServiceList{}))), "list", listPods, "bad_upstream", 502},
		{"B14", "another kind of object", answer(200, proto, string(protobuf("v1", "Service", &corev1.Service{}))), "get", getPod, "bad_upstream", 502},
		{"B14", "another group's list", answer(200, proto, string(protobuf("x/v1", "PodList", &corev1.PodList{}))), "list", listPods, "bad_upstream", 502},
		{"B14", "another kind of custom resource", answer(200, "application/json", `{"kind":"DatastoreList","apiVersion":"hanzo.ai/v1","items":[]}`), "list", listApps, "bad_upstream", 502},
		{"B14", "{}", answer(200, "application/json", `{}`), "list", listApps, "bad_upstream", 502},
		{"B14", "{} for protobuf", answer(200, "application/json", `{}`), "list", listPods, "bad_upstream", 502},
		{"B14", "{} for an object", answer(200, "application/json", `{}`), "get", getApp, "bad_upstream", 502},
		{"B14", "a Status that is a success", answer(200, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Success","message":"`+sentinel+`"}`), "list", listApps, "bad_upstream", 502},
		{"B14", "a list without a kind", answer(200, "application/json", `{"items":[{"a":"`+sentinel+`"}]}`), "list", listApps, "bad_upstream", 502},
		{"B14", "an object for a list", answer(200, "application/json", `{"kind":"App","apiVersion":"hanzo.ai/v1","items":[]}`), "list", listApps, "bad_upstream", 502},
		{"E20", "no such kind", answer(404, "text/plain", "404 page not found\n"), "list", listApps, "kind_not_available", 404},
		{"E20", "no such kind, in a Status", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 404, metav1.Status{Reason: "NotFound", Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{}})
		}, "list", listApps, "kind_not_available", 404},
		{"E20", "no such object", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 404, metav1.Status{Reason: "NotFound", Details: &metav1.StatusDetails{Name: "p", Kind: "apps"}})
		}, "get", getApp, "not_found", 404},
		{"E20", "404 of something else", answer(404, "text/html", "<html>404 page not found"), "get", getApp, "bad_upstream", 502},
		{"E18", "a conversion webhook down", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 500, metav1.Status{Reason: "InternalError", Message: "conversion webhook failed"})
		}, "list", listApps, "bad_upstream", 502},
		{"F2", "metrics: 503 of the aggregator", answer(503, "text/plain", "service unavailable\n"), "list", `{"resource":"metrics.k8s.io/v1beta1/pods"}`, "bad_upstream", 502},
		{"F2", "metrics: not installed", answer(404, "text/plain", "404 page not found\n"), "list", `{"resource":"metrics.k8s.io/v1beta1/pods"}`, "kind_not_available", 404},
		{"F2", "metrics: forbidden", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 403, metav1.Status{Reason: "Forbidden", Message: "no"})
		}, "list", `{"resource":"metrics.k8s.io/v1beta1/pods"}`, "forbidden", 403},
		{"F2", "metrics: nothing yet", answer(200, "application/json", `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":null}`), "list", `{"resource":"metrics.k8s.io/v1beta1/pods"}`, "", 0},
		{"401", "the credential is refused", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 401, metav1.Status{Reason: "Unauthorized", Message: sentinel})
		}, "list", listPods, "unauthorized", 502},
		{"410", "an expired list", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 410, metav1.Status{Reason: "Expired", Message: "too old"})
		}, "list", listPods, "expired", 410},
	} {
		t.Run(test.row+" "+test.name, func(t *testing.T) {
			t.Parallel()
			g := world{serve: test.serve}.guest(t)
			items, _, code := g.do(test.function, test.request)
			if code != test.code || test.code == "" && len(items) != 0 {
				t.Fatalf("code %q, want %q; %d items", code, test.code, len(items))
			}
			if code == "" {
				return
			}
			f := g.failure()
			if f.Status != test.status {
				t.Errorf("status %d, want %d", f.Status, test.status)
			}
			if strings.Contains(f.Message+f.Reason, sentinel) {
				t.Errorf("the body is reflected: %+v", f)
			}
			if f.RetryAfter > 60 {
				t.Errorf("the caller is told to wait %d s", f.RetryAfter)
			}
			if r := g.c.outcome(1); r.Code != test.code {
				t.Errorf("the outcome is %v", r)
			}
		})
	}
}

func retryLater(code int, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(code)
	}
}

// flood begins a body and never ends it.
func flood(head, more string) http.HandlerFunc {
	chunk := []byte(strings.Repeat(more, 1<<20))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(head))
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
}

// cut sends the first n bytes and drops the connection.
func cut(body string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write([]byte(body[:n]))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func page1(next string, names ...string) []byte {
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: next}}
	for _, n := range names {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return protobuf("v1", "PodList", &list)
}

func TestRowB11(t *testing.T) {
	for _, test := range []struct {
		name string
		page func(n int) []byte
		want []string
		code string
	}{
		{"an empty page goes on", func(n int) []byte {
			return [][]byte{page1("1", "/a"), page1("2"), page1("3"), page1("", "/b")}[n]
		}, []string{"//a", "//b"}, ""},
		{"a token repeats", func(n int) []byte { return page1("same", fmt.Sprint("/", n)) }, nil, "bad_upstream"},
		{"tokens go round", func(n int) []byte { return page1(fmt.Sprint(n%7), fmt.Sprint("/", n)) }, nil, "bad_upstream"},
		{"an empty page goes on for ever", func(n int) []byte { return page1("same") }, nil, "bad_upstream"},
		{"it expires on the way", func(n int) []byte {
			if n == 0 {
				return page1("1", "/a")
			}
			return nil
		}, []string{"//a"}, "expired"},
	} {
		t.Run("B11 "+test.name, func(t *testing.T) {
			var n atomic.Int32
			g := world{serve: func(w http.ResponseWriter, _ *http.Request) {
				body := test.page(int(n.Add(1) - 1))
				if body == nil {
					status(w, 410, metav1.Status{Reason: "Expired"})
					return
				}
				write(w, "application/vnd.kubernetes.protobuf", body)
			}}.guest(t)
			items, _, code := g.do("list", listPods)
			if code != test.code {
				t.Errorf("code %q, want %q", code, test.code)
			}
			if test.want != nil {
				if diff := cmp.Diff(test.want, names(items)); diff != "" {
					t.Error(diff)
				}
			}
			if n := n.Load(); n > 64 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestRowB15(t *testing.T) {
	g := world{serve: func(w http.ResponseWriter, _ *http.Request) {
		status(w, 409, metav1.Status{
			Reason:  "Conflict\x1b[31m",
			Message: "\x1b[2J\x07a\nb\r\u202e<script>\xff Bearer " + sentinel + strings.Repeat("y", 1<<20) + sentinel,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Message: "m\x1b[0m", Field: ".spec\n"}}},
		})
	}}.guest(t)
	if _, _, code := g.do("get", getPod); code != "conflict" {
		t.Fatal(code)
	}
	f := g.failure()
	all := fmt.Sprint(f)
	if len(f.Message) > maxMessage || strings.Contains(all, sentinel) {
		t.Errorf("%d bytes of message", len(f.Message))
	}
	for _, r := range all {
		if unicode.IsControl(r) || r == '\u202e' {
			t.Errorf("%U is passed on", r)
		}
	}
}

func TestRowB16(t *testing.T) {
	var open atomic.Int32
	hang := func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		w.Write([]byte(" "))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for function, request := range map[string]string{
		"list":  listPods,
		"get":   getPod,
		"watch": `{"kind":"App","version":"` + joinVersions([]string{"a", "b", "c"}, []string{"1", "2", "3"}) + `","waitSeconds":55}`,
		"logs":  `{"namespace":"a","pod":"p"}`,
		"stats": `{}`,
	} {
		t.Run("B16 "+function, func(t *testing.T) {
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			g := world{serve: hang, ctx: ctx, namespaces: map[string][]string{"watch": {"a", "b", "c"}}[function]}.guest(t)
			time.AfterFunc(100*time.Millisecond, cancel)
			began := time.Now()
			_, _, code := g.do(function, request)
			if code != "canceled" || time.Since(began) > time.Second {
				t.Errorf("code %q after %s", code, time.Since(began))
			}
			g.c.end()
			for wait := time.Now().Add(time.Second); open.Load() > 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(wait) {
					t.Fatalf("%d requests are still open a second after", open.Load())
				}
			}
			g.c.bound.(*reach).server.Close()
			for wait := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(wait) {
					t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				}
			}
		})
	}
}

func TestDeadlineAndDeregistration(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	g := world{serve: hang, ctx: ctx}.guest(t)
	if _, _, code := g.do("get", getPod); code != "deadline" {
		t.Errorf("code %q", code)
	}
	g = world{serve: hang}.guest(t)
	time.AfterFunc(50*time.Millisecond, func() { g.c.bound.(*reach).end(registry.Deregistered("prod")) })
	if _, _, code := g.do("list", listPods); code != "deregistered" {
		t.Errorf("code %q", code)
	}
	if r := g.c.outcome(0); r == nil || r.Code != "deregistered" {
		t.Errorf("a guest that answers all the same: %v", r)
	}
	began := time.Now()
	if n, _ := g.run("sleep", 60_000); n != failed || time.Since(began) > time.Second {
		t.Errorf("sleep: %d after %s", n, time.Since(began))
	}
}

func TestLimits(t *testing.T) {
	s := newPodServer(map[string]int{"a": 1000})
	for code, limits := range map[string]manifest.Limits{
		"limit_bytes_in":   {HostCalls: 1 << 20, Items: 1 << 20, BytesIn: 1000},
		"limit_items":      {HostCalls: 1 << 20, Items: 10, BytesIn: 1 << 30},
		"limit_host_calls": {HostCalls: 1, Items: 1 << 20, BytesIn: 1 << 30},
	} {
		g := world{serve: s.ServeHTTP, limits: limits}.guest(t)
		got := func() (code string) {
			defer func() {
				if r, ok := recover().(*registry.Refusal); ok {
					code = r.Code
				}
			}()
			h := g.ask("list", listPods)
			for {
				n, ended := g.run("next", uint32(h), 1<<20, 1<<20)
				switch {
				case ended != nil:
					return ended.Code
				case n == failed:
					return g.c.last.Code
				case n == endOfItems:
					return "the end"
				}
				if code == "limit_host_calls" { // only what is not an item's next
					g.run("close", uint32(h))
				}
				if _, ended := g.run("input", 0, 0); ended != nil {
					return ended.Code
				}
				if _, ended := g.run("input", 0, 0); ended != nil {
					return ended.Code
				}
			}
		}()
		if got != code {
			t.Errorf("got %q, want %q", got, code)
		}
	}
	g := world{limits: manifest.Limits{HostCalls: 9, BytesOut: 40}}.guest(t)
	g.m.Write(0, []byte(`{}`))
	var ended *registry.Refusal
	for n := 0; ended == nil; n++ {
		if _, ended = g.run("emit", 0, 0, 2); n > 3 {
			t.Fatal("emits without end")
		}
	}
	if ended.Code != "limit_bytes_out" {
		t.Error(ended)
	}
}

func TestRefusalIsTyped(t *testing.T) {
	var r *registry.Refusal
	if err := error(refusal(errors.New("x"))); !errors.As(err, &r) || r.Code != "bad_upstream" {
		t.Error(err)
	}
}

// TestGuestsNapEndsWithItsRegistration: a guest that sleeps by itself, as a Go
// guest does in time.Sleep, is woken when what its call reaches has ended.
func TestGuestsNapEndsWithItsRegistration(t *testing.T) {
	s := newSandbox(t)
	m := s.load(t, guestModule{name: "victim"})
	i, err := m.instances.get(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.instances.put(i, false, Trapped)
	nap := make([]byte, 48) // a subscription to the monotonic clock
	nap[16] = 1
	binary.LittleEndian.PutUint64(nap[24:], uint64(20*time.Second))
	i.memory.Write(freeAt, nap)
	life, end := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, end)
	r := &run{Context: t.Context(), call: &call{life: life.Done()}, meter: &meter{limits: Defaults}}
	began := time.Now()
	if got := wasiPoll(r, i.memory, []uint64{freeAt, freeAt + 48, 1, freeAt + 80}); got != wasiOK {
		t.Errorf("errno %d", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it slept %s", took)
	}
}
