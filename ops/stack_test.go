package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/k8s/guests"
	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster"
)

// stack is the whole service over the test world: both clusters, the real Vault,
// the built-in guests, a listener and the call plane's socket.
type stack struct {
	world *testcluster.World
	url   string
	audit *lines
	log   *lines

	scrape http.Handler
}

// lines is what was written to a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// boot is the time that the world and the guests may take.
const boot = 40 * time.Minute

var shared = sync.OnceValues(func() (*stack, error) {
	ctx, cancel := context.WithTimeout(context.Background(), boot)
	defer cancel()
	world, err := testcluster.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &stack{world: world, audit: &lines{}, log: &lines{}}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := registry.OpenVault(ctx, registry.VaultConfig{Address: world.Vault.Addr, Auth: "token", Token: world.Vault.RootToken, Log: log})
	if err != nil {
		return nil, err
	}
	metrics := ops.NewMetrics()
	clusters, err := registry.New(registry.Config{
		Store: store, Policy: registry.Policy{AllowPrivate: true}, Log: log, Observer: metrics,
		Limits: registry.Limits{OrgRate: -1, OrgBurst: -1},
	})
	if err != nil {
		return nil, err
	}
	sandbox, err := host.New(ctx, host.Config{Registry: clusters, Kinds: ops.Kinds, Log: log, Metrics: metrics})
	if err != nil {
		return nil, err
	}
	modules, err := guests.Builtin()
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if _, err := sandbox.Load(ctx, m.WASM); err != nil {
			return nil, err
		}
	}
	service, err := ops.New(ops.Options{Host: sandbox, Log: log, Audit: slog.New(slog.NewJSONHandler(s.audit, nil)), Metrics: metrics})
	if err != nil {
		return nil, err
	}
	s.url = httptest.NewServer(service.Product()).URL
	s.scrape = metrics.Handler()
	dir, err := os.MkdirTemp("", "ops-")
	if err != nil {
		return nil, err
	}
	os.Setenv("ZIP_RUNTIME_DIR", dir)
	listener, err := zip.Listen(ops.Name)
	if err != nil {
		return nil, err
	}
	go (&zip.Server{Handler: service.Peers(), Log: log}).Serve(listener)
	for i, org := range []string{"acme", "zoo"} {
		body := map[string]any{"name": "prod", "kubeconfig": string(world.Clusters[i].Admin()), "default": true}
		if status, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", body); status != http.StatusCreated {
			return nil, fmt.Errorf("registering prod of %s: %d %s", org, status, text)
		}
	}
	body := map[string]any{"name": "bound", "kubeconfig": string(world.Clusters[0].Admin()), "namespaces": []string{"team-a"}}
	if status, text := s.call("acme", http.MethodPost, "/v1/k8s/clusters", body); status != http.StatusCreated {
		return nil, fmt.Errorf("registering bound of acme: %d %s", status, text)
	}
	return s, nil
})

func theStack(t *testing.T) *stack {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// metrics is what Prometheus would read.
func (s *stack) metrics(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.scrape.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// call sends one request as a gateway does for a user of org.
func (s *stack) call(org, method, target string, body any) (int, []byte) {
	return exchange(method, s.url+target, body, "X-Org-Id", org, "X-User-Id", "u1")
}

// exchange sends one request with headers, by name and value. Where it fails the
// status is 0 and the text says why.
func exchange(method, url string, body any, header ...string) (int, []byte) {
	var content io.Reader
	if body != nil {
		text, _ := json.Marshal(body)
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, url, content)
	if err != nil {
		return 0, []byte(err.Error())
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return resp.StatusCode, text
}

// request is how an op is called over REST with an input: its fields go into the
// path, the query or the body, as the method has it.
func request(method, path string, in any) (target string, body any) {
	fields := make(map[string]any)
	if in != nil {
		text, _ := json.Marshal(in)
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		d.Decode(&fields)
	}
	for name, value := range fields {
		if place := "{" + name + "}"; strings.Contains(path, place) {
			path = strings.ReplaceAll(path, place, url.PathEscape(fmt.Sprint(value)))
			delete(fields, name)
		}
	}
	if method != http.MethodGet && method != http.MethodDelete {
		return path, fields
	}
	query := url.Values{}
	for name, value := range fields {
		query.Set(name, fmt.Sprint(value))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}
