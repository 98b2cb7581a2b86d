package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/testcluster"
)

// sentinel is in every credential of these tests, and must be in nothing the
// package says.
const sentinel = "SENTINEL-c2VjcmV0"

// said is everything the package has logged in this process.
var said lockedBuffer

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.b.Bytes(), []byte(text))
}

func TestMain(m *testing.M) {
	if name := vaultCommand(); name != "" {
		os.Exit(runVaultCommand())
	}
	goroutines, sockets := runtime.NumGoroutine(), openSockets()
	code := m.Run()
	if opened.world != nil {
		opened.world.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code == 0 {
		code = settle(goroutines, sockets)
	}
	if code == 0 && said.has(sentinel) {
		fmt.Fprintln(os.Stderr, "FAIL: a credential is in the log")
		code = 1
	}
	os.Exit(code)
}

// settle waits for what the tests started to be gone.
func settle(goroutines, sockets int) int {
	var now, open int
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if now, open = runtime.NumGoroutine(), openSockets(); now <= goroutines+2 && open <= sockets {
			return 0
		}
	}
	fmt.Fprintf(os.Stderr, "FAIL: %d goroutines and %d sockets at the start, %d and %d at the end\n", goroutines, sockets, now, open)
	buf := make([]byte, 1<<20)
	fmt.Fprintf(os.Stderr, "%s\n", buf[:runtime.Stack(buf, true)])
	return 1
}

// openSockets counts this process's sockets; the registry opens no other files.
func openSockets() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

var opened struct {
	once  sync.Once
	world *testcluster.World
	err   error
}

// realWorld is two real clusters and a real Vault, one world for all tests.
func realWorld(t *testing.T) *testcluster.World {
	t.Helper()
	opened.once.Do(func() { opened.world, opened.err = testcluster.Open(context.Background()) })
	if opened.err != nil {
		t.Fatal(opened.err)
	}
	return opened.world
}

// as is a context of a call by a validated user of org's.
func as(t *testing.T, org string) context.Context {
	t.Helper()
	return zip.WithCaller(t.Context(), zip.Caller{Org: org, User: "u-" + org})
}

func orgOf(t *testing.T, name string) Org {
	t.Helper()
	org, err := Tenant(as(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return org
}

func testLog() *slog.Logger { return slog.New(slog.NewJSONHandler(&said, nil)) }

// newRegistry is a registry that may dial this machine.
func newRegistry(t *testing.T, store Store, edit ...func(*Config)) *Registry {
	t.Helper()
	c := Config{Store: store, Policy: Policy{AllowPrivate: true, Near: -1}, Log: testLog()}
	for _, e := range edit {
		e(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// wantRefusal checks that err is a refusal with code, and that it says nothing
// it must not.
func wantRefusal(t *testing.T, err error, code string) *Refusal {
	t.Helper()
	got := asRefusal(err)
	if got == nil {
		t.Fatalf("got error %v, want refusal %s", err, code)
	}
	if got.Code != code {
		t.Fatalf("got refusal %s (%s), want %s", got.Code, got.Message, code)
	}
	if text := fmt.Sprintf("%+v %s", *got, err); bytes.Contains([]byte(text), []byte(sentinel)) {
		t.Fatalf("the refusal repeats the credential: %s", text)
	}
	return got
}

// fake is an apiserver of the test's own: TLS and HTTP/2, one node, and
// whatever the test puts in handle.
type fake struct {
	*httptest.Server

	mu     sync.Mutex
	handle map[string]http.HandlerFunc // by path
	seen   []seen
}

// seen is one request as the fake got it.
type seen struct{ Path, Authorization, Cert string }

func newFake(t *testing.T, edit ...func(*httptest.Server)) *fake {
	t.Helper()
	f := &fake{handle: map[string]http.HandlerFunc{}}
	f.on("/api/v1/nodes", answer(nodeList(`{"status":{"allocatable":{"nvidia.com/gpu":"4"}}}`)))
	f.Server = httptest.NewUnstartedServer(f)
	f.Server.EnableHTTP2 = true
	f.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	f.Server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	for _, e := range edit {
		e(f.Server)
	}
	f.Server.StartTLS()
	t.Cleanup(func() {
		f.Server.CloseClientConnections()
		f.Server.Close()
	})
	return f
}

func nodeList(items string) string {
	return `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[` + items + `]}`
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func (f *fake) on(path string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle[path] = h
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := seen{Path: r.URL.Path, Authorization: r.Header.Get("Authorization")}
	if len(r.TLS.PeerCertificates) > 0 {
		s.Cert = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	f.mu.Lock()
	f.seen = append(f.seen, s)
	h := f.handle[r.URL.Path]
	f.mu.Unlock()
	if h == nil {
		h = http.NotFound
	}
	h(w, r)
}

// requests is what the fake was asked so far, and forgets it.
func (f *fake) requests() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.seen
	f.seen = nil
	return got
}

func (f *fake) ca() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}))
}

// kubeconfig is one for the fake with the given token.
func (f *fake) kubeconfig(token string) []byte {
	return kubeconfigFor(f.URL, f.ca(), map[string]any{"token": token})
}

func kubeconfigFor(server, ca string, user map[string]any) []byte {
	cluster := map[string]any{"server": server}
	if ca != "" {
		cluster["certificate-authority-data"] = ca
	}
	doc, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": cluster}},
		"users":    []any{map[string]any{"name": "u", "user": user}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
	})
	if err != nil {
		panic(err)
	}
	return doc
}

// register registers the fake as name for org, and fails the test if it cannot.
func (f *fake) register(t *testing.T, r *Registry, org, name, token string, namespaces ...string) Record {
	t.Helper()
	if len(namespaces) > 0 {
		f.on("/api/v1/namespaces/"+namespaces[0]+"/pods", answer(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`))
	}
	record, err := r.Register(as(t, org), Registration{Name: name, Kubeconfig: f.kubeconfig(token), Namespaces: namespaces})
	if err != nil {
		t.Fatalf("registering %s for %s: %v", name, org, err)
	}
	return record
}

// get reads path through b and answers its body.
func get(ctx context.Context, b *Bound, path string) (string, error) {
	resp, err := b.Do(ctx, &Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// reach is a Bound that lives as long as the test.
func reach(t *testing.T, r *Registry, org, name string) *Bound {
	t.Helper()
	b, err := r.Reach(as(t, org), name)
	if err != nil {
		t.Fatalf("reaching %s as %s: %v", name, org, err)
	}
	return b
}
