package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

func failWith(err error) func(context.Context, *host.Call) error {
	return func(context.Context, *host.Call) error { return err }
}

func TestRefusalIsTheSameOnBothTransports(t *testing.T) {
	refusal := &registry.Refusal{
		Status: 503, Code: "breaker_open", Message: "the cluster\x1b[31m failed", Reason: "Timeout", RetryAfter: 1500 * time.Millisecond,
		Details: map[string]any{"remaining": []string{"a"}, "code": "overwritten", "status": 200, "requestId": "x"},
	}
	e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: failWith(fmt.Errorf("wrapped: %w", refusal))})
	w := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "", "X-Request-Id", "r-1")
	doc := refused(t, w, 503, "breaker_open")
	if w.Header().Get("Retry-After") != "2" || doc["requestId"] != "r-1" || doc["reason"] != "Timeout" || doc["remaining"] == nil ||
		doc["title"] != "The cluster failed often and is left alone for a while" || doc["type"] != "/v1/k8s/docs#breaker_open" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	if detail := doc["detail"].(string); strings.ContainsRune(detail, 0x1b) {
		t.Errorf("detail %q", detail)
	}
	peer := ask(t, e, "k8s_gadgets_list", &plane.ClusterIn{Cluster: "prod"})
	var fault zip.Fault
	if err := zip.Unmarshal(peer.Body.Bytes(), &fault); err != nil {
		t.Fatal(err)
	}
	if peer.Code != 503 || fault.Status != 503 || fault.Code != "breaker_open" || fault.Msg != doc["detail"] {
		t.Errorf("%d %+v", peer.Code, fault)
	}
}

func TestWhatIsNoRefusalIsNotTold(t *testing.T) {
	const sentinel = "SENTINEL-90c1"
	e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: failWith(errors.New("dial https://user:" + sentinel + "@10.0.0.1"))})
	w := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "")
	refused(t, w, 500, "internal")
	if strings.Contains(w.Body.String(), sentinel) || strings.Contains(e.audit.String(), sentinel) {
		t.Errorf("told: %s %s", w.Body, e.audit)
	}
}

func TestPanicEndsItsRequestAlone(t *testing.T) {
	f := &fake{ops: []*manifest.Op{gadgets}}
	f.answer = func(context.Context, *host.Call) error { panic("SENTINEL-51d2") }
	e := newEdge(t, f)
	server := httptest.NewServer(e.Product())
	defer server.Close()
	r, _ := http.NewRequest("GET", server.URL+"/v1/k8s/gadgets?cluster=prod", nil)
	r.Header.Set("X-Org-Id", "acme")
	r.Header.Set("X-User-Id", "u1")
	if resp, err := http.DefaultClient.Do(r); err == nil {
		t.Errorf("answered %d", resp.StatusCode)
	}
	var line struct{ Org, Op, Cluster, Decision, Code string }
	if err := json.Unmarshal(e.audit.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, e.audit)
	}
	if line.Org != "acme" || line.Op != gadgets.Token || line.Cluster != "prod" || line.Decision != "refused" || line.Code != "internal" {
		t.Errorf("a request that panicked leaves the line %s", e.audit)
	}
	if strings.Contains(e.audit.String(), "SENTINEL") {
		t.Errorf("the line holds what it panicked with: %s", e.audit)
	}
	f.answer = emitAll("")
	if w := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", ""); w.Code != 200 {
		t.Errorf("the next request: %d", w.Code)
	}
}

// TestAuditLineIsBounded: what a caller of an op that came later names is one line
// of the audit log and no more, and an identity that would be a long one is none.
func TestAuditLineIsBounded(t *testing.T) {
	free := *gadgets
	free.In = slices.Clone(gadgets.In)
	free.In[0].Format, free.In[1].Format = "", ""
	e := newEdge(t, &fake{ops: []*manifest.Op{&free}, answer: emitAll("")})
	long := strings.Repeat("x", 20<<10)
	e.do(t, "GET", "/v1/k8s/gadgets?cluster="+url.QueryEscape("a\n{\"msg\":\"call\"}\x1b[2J"+long)+"&namespace="+long, "")
	if n, text := strings.Count(e.audit.String(), "\n"), e.audit.String(); n != 1 || len(text) > 8<<10 || !strings.Contains(text, `"op":"k8s_gadgets_list"`) {
		t.Errorf("%d lines of %d bytes", n, len(text))
	}
	e.audit.Reset()
	refused(t, e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "", "X-Acted-By", long), 403, "no_tenant")
	if n := e.audit.Len(); n == 0 || n > 2<<10 {
		t.Errorf("a line of %d bytes", n)
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	e := newEdge(t, &fake{ops: []*manifest.Op{gadgets, widgets}})
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/v1", "/v1/k8s", "/v1/k8s/gadgets/", "/v1/k8s/widgets", "/v1/k8s/widgets/a/b", "/v1/k8s/../../etc", "/v1/k8s/guests", "/.well-known/zip/op/k8s_gadgets_list"} {
		refused(t, e.do(t, "GET", path, ""), 404, "route_not_found")
	}
	for _, tt := range []struct{ method, path, allow string }{
		{"POST", "/v1/k8s/gadgets", "GET"}, {"HEAD", "/v1/k8s/gadgets", "GET"}, {"OPTIONS", "/v1/k8s/gadgets", "GET"},
		{"TRACE", "/v1/k8s/gadgets", "GET"}, {"GET", "/v1/k8s/widgets/web", "POST"}, {"PATCH", "/v1/k8s/widgets/a%2fb", "POST"},
	} {
		w := e.do(t, tt.method, tt.path, "")
		refused(t, w, 405, "method_not_allowed")
		if got := w.Header().Get("Allow"); got != tt.allow {
			t.Errorf("%s %s: Allow %q, want %q", tt.method, tt.path, got, tt.allow)
		}
	}
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"POST", peerPrefix + "k8s_nobody", 404}, {"POST", peerPrefix + "k8s_gadgets_list/x", 404}, {"POST", peerPrefix + "k8s_gadgets_list?x=1", 404},
		{"POST", peerPrefix + "k8s%5fgadgets_list", 404}, {"POST", "/v1/k8s/gadgets", 404}, {"GET", peerPrefix + "k8s_gadgets_list", 405},
	} {
		w := httptest.NewRecorder()
		e.Peers().ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		var fault zip.Fault
		if err := zip.Unmarshal(w.Body.Bytes(), &fault); err != nil || w.Code != tt.status || int(fault.Status) != tt.status {
			t.Errorf("%s %s: %d %+v %v", tt.method, tt.path, w.Code, fault, err)
		}
	}
}

func TestRequestIDAndTrace(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var seen string
	var caller zip.Caller
	f := &fake{ops: []*manifest.Op{gadgets}}
	f.answer = func(ctx context.Context, _ *host.Call) error {
		seen = registry.Traceparent(ctx)
		caller, _ = zip.CallerOf(ctx)
		return nil
	}
	e := newEdge(t, f)
	for _, tt := range []struct{ id, want string }{
		{"r-1", "r-1"}, {"a:b/c+d=e.f_g", "a:b/c+d=e.f_g"}, {"", ""}, {"a b", ""}, {"a\"b", ""}, {"é", ""}, {strings.Repeat("x", 129), ""},
	} {
		w := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "", "X-Request-Id", tt.id)
		got := w.Header().Get("X-Request-Id")
		if tt.want != "" && got != tt.want || tt.want == "" && (got == tt.id || len(got) < 20) || caller.RequestID != got {
			t.Errorf("%q became %q, passed on as %q", tt.id, got, caller.RequestID)
		}
	}
	if w := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "", "X-Request-Id", "a", "X-Request-Id", "b"); w.Code != 403 {
		t.Errorf("two request ids: %d", w.Code)
	}
	for _, tt := range []struct{ trace, want string }{
		{trace, trace}, {"", ""}, {strings.ToUpper(trace), ""}, {trace + "-x", ""}, {strings.Replace(trace, "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32), 1), ""},
		{"01" + trace[2:], ""}, {trace[:54] + "\n", ""},
	} {
		e.audit.Reset()
		e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "", "Traceparent", tt.trace)
		var line struct{ Trace string }
		json.Unmarshal(e.audit.Bytes(), &line)
		if seen != tt.want || line.Trace != tt.want {
			t.Errorf("%q: passed on %q, in the audit line %q", tt.trace, seen, line.Trace)
		}
	}
}

func TestAuditLineIsWrittenBeforeTheAnswer(t *testing.T) {
	f := &fake{ops: []*manifest.Op{gadgets}}
	f.answer = func(ctx context.Context, call *host.Call) error {
		call.Stats = host.Stats{Digest: "sha256:ab", Fuel: 5, Items: 1, BytesIn: 7, Calls: []host.HostCall{{Verb: "list", Resource: "v1/pods", Status: 200, Count: 1, Bytes: 7}}}
		return call.Answer.Item([]byte(`{"name":"SECRET-CONTENT"}`))
	}
	e := newEdge(t, f)
	var before string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.Surface().ServeHTTP(watched{w, func() {
			if before == "" {
				before = e.audit.String()
			}
		}}, r)
	}))
	defer server.Close()
	r, _ := http.NewRequest("GET", server.URL+"/v1/k8s/gadgets?cluster=prod&namespace=web", nil)
	for name, value := range map[string]string{"X-Org-Id": "acme", "X-User-Id": "u1", "X-Acted-By": "bot", "X-Request-Id": "r-9"} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	var line map[string]any
	if err := json.Unmarshal([]byte(before), &line); err != nil {
		t.Fatalf("when the answer left there was %q: %v", before, err)
	}
	for name, want := range map[string]any{
		"org": "acme", "user": "u1", "actedBy": "bot", "op": "k8s_gadgets_list", "cluster": "prod", "namespace": "web", "decision": "allowed",
		"code": "", "requestId": "r-9", "module": "sha256:ab", "fuel": 5.0, "bytesIn": 7.0, "transport": "rest", "status": 200.0,
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	if calls := fmt.Sprint(line["hostCalls"]); calls != "[map[bytes:7 count:1 resource:v1/pods status:200 verb:list]]" {
		t.Errorf("hostCalls %s", calls)
	}
	if strings.Contains(before, "SECRET-CONTENT") {
		t.Error("the line has content")
	}
}

// watched calls first before anything is written.
type watched struct {
	http.ResponseWriter
	first func()
}

func (w watched) WriteHeader(status int) { w.first(); w.ResponseWriter.WriteHeader(status) }
func (w watched) Write(b []byte) (int, error) {
	w.first()
	return w.ResponseWriter.Write(b)
}

func TestEveryCodeIsExplained(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range Codes {
		if seen[c.Code] || c.Title == "" || c.Status < 400 || http.StatusText(c.Status) == "" {
			t.Errorf("%+v", c)
		}
		seen[c.Code] = true
	}
}
