package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// misbehaving is an apiserver that does what the test says, registered as
// acme's prod.
func misbehaving(t *testing.T, opts ...misbehave.Option) (*misbehave.Server, *Registry, *Bound) {
	t.Helper()
	server := misbehave.New(opts...)
	t.Cleanup(server.Close)
	r := newRegistry(t, NewMemory())
	if _, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
		t.Fatal(err)
	}
	return server, r, reach(t, r, "acme", "prod")
}

// newTestClient is a client of its own for a kubeconfig, impatient.
func newTestClient(t *testing.T, kubeconfig []byte, policy Policy) *client {
	t.Helper()
	cfg, err := safeRESTConfig(kubeconfig, Policy{AllowPrivate: true}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(cfg, policy)
	if err != nil {
		t.Fatal(err)
	}
	c.dialer.Timeout = time.Second
	t.Cleanup(func() { c.close(errors.New("the test is over")) })
	return c
}

func version(ctx context.Context, c *client) error {
	resp, err := c.do(ctx, &Request{Method: http.MethodGet, Path: "/version"}, c.once)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// TestRedirects is B2.
func TestRedirects(t *testing.T) {
	elsewhere := misbehave.New()
	t.Cleanup(elsewhere.Close)
	server, r, b := misbehaving(t)
	paths := []string{"/version", "/api", "/apis", "/api/v1/namespaces/a/pods/p/log", "/api/v1/pods"}
	for _, path := range paths {
		for _, code := range []int{301, 302, 303, 307, 308, 300, 304} {
			server.On(path, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", elsewhere.URL()+path)
				w.WriteHeader(code)
			})
			t.Run(fmt.Sprintf("B2 %d %s", code, path), func(t *testing.T) {
				for _, stream := range []bool{false, true} {
					_, err := b.Do(t.Context(), &Request{Method: http.MethodGet, Path: path, Stream: stream})
					if refusal := wantRefusal(t, err, "redirected"); refusal.Status != http.StatusBadGateway {
						t.Errorf("status %d", refusal.Status)
					}
				}
			})
		}
	}
	t.Run("B2 on a watch's reconnect", func(t *testing.T) {
		server.On("/api/v1/pods", misbehave.Sequence(misbehave.Watch(), misbehave.Redirect(elsewhere.URL())))
		watch := &Request{Method: http.MethodGet, Path: "/api/v1/pods", Query: url.Values{"watch": {"1"}}, Stream: true}
		resp, err := b.Do(t.Context(), watch)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		_, err = b.Do(t.Context(), watch)
		wantRefusal(t, err, "redirected")
	})
	t.Run("B2 at registration", func(t *testing.T) {
		server.On("/api/v1/nodes", misbehave.Redirect(elsewhere.URL()))
		_, err := r.Register(as(t, "acme"), Registration{Name: "other", Kubeconfig: server.Kubeconfig(sentinel)})
		wantRefusal(t, err, "redirected")
	})
	if n := len(elsewhere.Requests()); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestBombs is B4: what is read is bounded in decompressed bytes, exactly.
func TestBombs(t *testing.T) {
	server, _, b := misbehaving(t)
	const limit = 1 << 20
	read := func(t *testing.T, max int64) (int64, error) {
		t.Helper()
		resp, err := b.Do(t.Context(), &Request{Method: http.MethodGet, Path: "/api/v1/pods", MaxBytes: max})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return io.Copy(io.Discard, resp.Body)
	}
	for name, behave := range map[string]misbehave.Behaviour{
		"B4 a string of 256 MB, compressed": misbehave.Bomb(256 << 20),
		"B4 a list that never ends":         misbehave.Endless(),
		"B4 one byte too many":              misbehave.JSON(strings.Repeat("a", limit+1)),
	} {
		t.Run(name, func(t *testing.T) {
			server.On("/api/v1/pods", behave)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := read(t, limit)
			runtime.ReadMemStats(&after)
			wantRefusal(t, err, "too_large")
			if n > limit {
				t.Errorf("%d bytes came through", n)
			}
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
				t.Errorf("the heap grew by %d MB", grown>>20)
			}
		})
	}
	for name, max := range map[string]int64{"B4 as many as allowed": limit, "B4 the default": 0} {
		t.Run(name, func(t *testing.T) {
			server.On("/api/v1/pods", misbehave.JSON(strings.Repeat("a", limit)))
			if n, err := read(t, max); n != limit || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

// TestAnswersCutShort is B6: a body that does not end as it should is never
// taken for a whole one.
func TestAnswersCutShort(t *testing.T) {
	const list = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{},{},{}]}`
	for name, opts := range map[string][]misbehave.Option{"HTTP/2": nil, "HTTP/1.1": {misbehave.HTTP1()}} {
		server, _, b := misbehaving(t, opts...)
		for _, c := range []struct {
			name   string
			behave misbehave.Behaviour
			code   string
		}{
			{"B6 cut", misbehave.Cut(20, list), "truncated"},
			{"B6 cut without a length", misbehave.CutUnannounced(20, list), "truncated"},
			{"B6 stalled head", misbehave.Stall(), "deadline"},
			{"B6 stalled body", misbehave.StallAfter(20, list), "deadline"},
			{"B6 slow body", misbehave.Slow(20, list), "deadline"},
			{"B14 an encoding nobody asked for", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "br")
				_, _ = io.WriteString(w, list)
			}, "bad_upstream"},
			{"B6 GOAWAY", misbehave.GoAway(20, list), ""},
		} {
			t.Run(name+" "+c.name, func(t *testing.T) {
				server.On("/api/v1/pods", c.behave)
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				text, err := get(ctx, b, "/api/v1/pods")
				if c.code != "" {
					wantRefusal(t, err, c.code)
				} else if err != nil || text != list {
					t.Errorf("got %q, %v", text, err)
				}
			})
		}
	}
	t.Run("B6 HTTP/1 without an end", func(t *testing.T) {
		upstream := newFake(t, func(s *httptest.Server) { s.EnableHTTP2 = false })
		upstream.on("/version", func(w http.ResponseWriter, _ *http.Request) {
			conn, buffer, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}")
			_ = buffer.Flush()
			_ = conn.Close()
		})
		wantRefusal(t, version(t.Context(), newTestClient(t, upstream.kubeconfig(sentinel), Policy{AllowPrivate: true})), "bad_upstream")
	})
	t.Run("the caller leaves", func(t *testing.T) {
		server, _, b := misbehaving(t)
		server.On("/api/v1/pods", misbehave.Stall())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := get(ctx, b, "/api/v1/pods")
		wantRefusal(t, err, "canceled")
	})
}

// TestRetryAfter is B7.
func TestRetryAfter(t *testing.T) {
	ok := misbehave.JSON(`{}`)
	const body = `{"kind":"Eviction"}`
	for _, c := range []struct {
		name     string
		method   string
		behave   misbehave.Behaviour
		status   int
		requests int
	}{
		{"B7 once", "GET", misbehave.Sequence(misbehave.Status(429, "TooManyRequests", "", 0), ok), 200, 2},
		{"B7 unavailable once", "GET", misbehave.Sequence(misbehave.Status(503, "ServiceUnavailable", "", 0), ok), 200, 2},
		{"B7 for ever", "GET", misbehave.Status(429, "TooManyRequests", "", 0), 429, attempts},
		{"B7 in a day", "GET", misbehave.Status(503, "ServiceUnavailable", "", 86400), 503, 1},
		{"B7 later than the deadline", "GET", misbehave.Status(429, "TooManyRequests", "", 5), 429, 1},
		{"B7 unsaid", "GET", misbehave.Status(503, "ServiceUnavailable", "", -1), 503, 1},
		{"B7 another status", "GET", misbehave.Status(500, "InternalError", "", 0), 500, 1},
		{"B7 a create", "POST", misbehave.Status(429, "TooManyRequests", "", 0), 429, 1},
		{"B7 a delete", "DELETE", misbehave.Status(503, "ServiceUnavailable", "", 0), 503, 1},
		{"B7 nonsense", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")
			w.WriteHeader(429)
		}, 429, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, _, b := misbehaving(t)
			server.Reset()
			server.On("/api/v1/pods", c.behave)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			request := &Request{Method: c.method, Path: "/api/v1/pods"}
			if c.method != "GET" {
				request.Body, request.ContentType = []byte(body), "application/json"
			}
			start := time.Now()
			resp, err := b.Do(ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			got := server.Requests()
			if resp.StatusCode != c.status || len(got) != c.requests {
				t.Errorf("status %d after %d requests, want %d after %d", resp.StatusCode, len(got), c.status, c.requests)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %s", took)
			}
			if c.method != "GET" && string(got[0].Body) != body {
				t.Errorf("the body came as %q", got[0].Body)
			}
		})
	}
}

// TestManyWatches is B12: streams by the hundred on a server that takes 100 a
// connection, and a read beside them; and B16: all of them end with their callers.
func TestManyWatches(t *testing.T) {
	server, _, b := misbehaving(t)
	server.On("/api/v1/pods", misbehave.WatchOpen())
	before := runtime.NumGoroutine()
	const watches = 300
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var opened, ended sync.WaitGroup
	var failed atomic.Value
	for range watches {
		opened.Add(1)
		ended.Go(func() {
			resp, err := b.Do(ctx, &Request{Method: http.MethodGet, Path: "/api/v1/pods", Query: url.Values{"watch": {"1"}}, Stream: true})
			opened.Done()
			if err != nil {
				failed.Store(err)
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
		})
	}
	opened.Wait()
	if err := failed.Load(); err != nil {
		t.Fatal(err)
	}
	if !server.WaitLive("/api/v1/pods", watches, 5*time.Second) {
		t.Fatalf("%d watches are open", server.Live("/api/v1/pods"))
	}
	start := time.Now()
	if _, err := get(t.Context(), b, "/version"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("a read beside %d watches took %s", watches, took)
	}
	cancel()
	ended.Wait()
	if !server.WaitLive("/api/v1/pods", 0, 5*time.Second) {
		t.Errorf("%d watches outlive their callers", server.Live("/api/v1/pods"))
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

// TestWhatIsSent is C17 and B13: the credential and the request, no other
// header, and no client-side queue.
func TestWhatIsSent(t *testing.T) {
	server, _, b := misbehaving(t)
	server.Reset()
	ctx := WithTraceparent(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	resp, err := b.Do(ctx, &Request{Method: http.MethodGet, Path: Path("api", "v1", "namespaces", "a/b?c#d%2e", "pods"), Query: url.Values{"limit": {"5"}}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := server.Requests()[0]
	if got.Path != "/api/v1/namespaces/a/b?c#d%2e/pods" || got.Query != "limit=5" || got.Proto != "HTTP/2.0" {
		t.Errorf("sent %s %s?%s", got.Proto, got.Path, got.Query)
	}
	allowed := map[string]bool{"Accept": true, "Accept-Encoding": true, "Authorization": true, "User-Agent": true, "Traceparent": true}
	for name := range got.Header {
		if !allowed[name] {
			t.Errorf("sent a header %s", name)
		}
	}
	if got.Header.Get("Authorization") != "Bearer "+sentinel || got.Header.Get("Traceparent") != Traceparent(ctx) {
		t.Error("the credential or the trace was not sent")
	}
	for _, path := range []string{"", "api", "/", "/api//v1", "/api/../x", "/api/%2e%2e/x", "/api/.", "/a?b", "/a#b", "/%zz", "//host/x"} {
		_, err := b.Do(t.Context(), &Request{Method: http.MethodGet, Path: path})
		wantRefusal(t, err, "bad_input")
	}
	start := time.Now()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := get(t.Context(), b, "/version"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("B13 100 requests took %s", took)
	}
}
