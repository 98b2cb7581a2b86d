package ops

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
)

func TestOpsListener(t *testing.T) {
	e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: emitAll("")})
	var broken error
	handler := e.OpsHandler([]Ready{{"kms", func(context.Context) error { return broken }}, {"modules", func(context.Context) error { return nil }}},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "modules") }))
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	if status, _ := get("/readyz"); status != 200 {
		t.Errorf("readyz: %d", status)
	}
	broken = errors.New("SENTINEL: token hvs.x is not taken")
	if status, body := get("/readyz"); status != 503 || !strings.Contains(body, "kms") || strings.Contains(body, "SENTINEL") {
		t.Errorf("readyz: %d %s", status, body)
	}
	if status, _ := get("/healthz"); status != 200 {
		t.Errorf("healthz depends on something: %d", status)
	}
	if status, body := get("/v1/k8s/guests"); status != 200 || body != "modules" {
		t.Errorf("guests: %d %s", status, body)
	}
	if status, _ := get("/v1/k8s/gadgets?cluster=prod"); status != 404 {
		t.Errorf("an op on the ops listener: %d", status)
	}
}

// TestMetricsDoNotGrowWithCallers makes calls with a thousand names of a
// caller's choosing and sees none of them, and no new series, in the metrics.
func TestMetricsDoNotGrowWithCallers(t *testing.T) {
	f := &fake{ops: []*manifest.Op{gadgets}, answer: emitAll("")}
	e := newEdge(t, f)
	scrape := func() (lines int, text string) {
		w := httptest.NewRecorder()
		e.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "k8s_") {
				lines++
			}
		}
		return lines, w.Body.String()
	}
	calls := func(n int) {
		for i := range n {
			name := "n" + strings.Repeat("x", i%50)
			e.do(t, "GET", "/v1/k8s/gadgets?cluster="+name+"&namespace="+name, "", "X-Acted-By", name)
			e.do(t, "GET", "/v1/k8s/"+name, "")
			e.metrics.Upstream("org-"+name, name, "GET", 200, time.Millisecond)
			e.metrics.Breaker("org-"+name, name, "open")
			e.metrics.Breaker("org-"+name, name, "closed")
		}
	}
	calls(2)
	before, _ := scrape()
	calls(500)
	after, text := scrape()
	if before == 0 || before != after || strings.Contains(text, "nxxx") {
		t.Errorf("%d lines before, %d after", before, after)
	}
	if codeLabel("whatever a guest says") != "other" || codeLabel("limit_x") != "limit" || statusLabel(99999) != "0" {
		t.Error("a label is taken over from outside")
	}
	if !strings.Contains(text, `k8s_breakers{state="open"} 0`) {
		t.Error("a closed breaker is counted as open")
	}
}

func TestStopLetsCallsFinish(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	f := &fake{ops: []*manifest.Op{gadgets}}
	f.answer = func(context.Context, *host.Call) error { close(begun); <-finish; return nil }
	e := newEdge(t, f)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, NewServer(e.Product(), e.log), l, 10*time.Second) }()
	got := make(chan int, 1)
	go func() {
		r, _ := http.NewRequest("GET", "http://"+l.Addr().String()+"/v1/k8s/gadgets?cluster=prod", nil)
		r.Header.Set("X-Org-Id", "acme")
		r.Header.Set("X-User-Id", "u1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			got <- 0
			return
		}
		resp.Body.Close()
		got <- resp.StatusCode
	}()
	<-begun
	stop()
	select {
	case err := <-served:
		t.Fatalf("it stopped under a call: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(finish)
	if status := <-got; status != 200 {
		t.Errorf("the call got %d", status)
	}
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// TestRoutesAreSwappedInOneStep rebuilds the routes while calls are made: none
// of them finds anything missing.
func TestRoutesAreSwappedInOneStep(t *testing.T) {
	both, one := []*manifest.Op{gadgets, widgets}, []*manifest.Op{gadgets}
	f := &fake{ops: both, answer: emitAll("")}
	e := newEdge(t, f)
	done := make(chan int)
	go func() {
		failed := 0
		for range 300 {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/v1/k8s/openapi.json", nil)
			e.Product().ServeHTTP(w, r)
			var doc struct{ Paths map[string]any }
			if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &doc) != nil || doc.Paths["/v1/k8s/gadgets"] == nil {
				failed++
			}
		}
		done <- failed
	}()
	for i := range 100 {
		f.ops = [][]*manifest.Op{both, one}[i%2]
		if err := e.Rebuild(); err != nil {
			t.Error(err)
		}
	}
	if failed := <-done; failed > 0 {
		t.Errorf("%d of 300 failed", failed)
	}
	f.ops = one
	e.Rebuild()
	refused(t, e.do(t, "POST", "/v1/k8s/widgets/web", `{"cluster":"prod"}`), 404, "route_not_found")
	bad := *widgets
	bad.Path = "/v1/k8s/{x"
	f.ops = []*manifest.Op{&bad}
	if err := e.Rebuild(); err == nil {
		t.Error("a pattern that is none was taken")
	}
	if w := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", ""); w.Code != 200 {
		t.Errorf("after a failed rebuild: %d", w.Code)
	}
}
