package ops_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanzoai/k8s/guests/build"
	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/ops/live"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/testcluster"
)

// dropped is how long a module may take from its file to its first answer.
const dropped = 2 * time.Second

// dock is a running service and the folder that it takes modules from.
type dock struct {
	*live.Service
	dir string
	key *ecdsa.PrivateKey
}

// TestShipped writes a guest, drops it into a service that runs, calls it over
// REST and the call plane, replaces it, and takes it away again.
func TestShipped(t *testing.T) {
	d, world := openDock(t)
	body := map[string]any{"name": "shipped", "kubeconfig": string(world.Clusters[0].Admin()), "default": true}
	if status, text := d.ask(t, http.MethodPost, "/v1/k8s/clusters", body); status != http.StatusCreated {
		t.Fatalf("registering a cluster: %d %s", status, text)
	}
	const path = "/v1/k8s/widgets?cluster=shipped&namespace=team-a"
	if status, text := d.ask(t, http.MethodGet, path, nil); status != http.StatusNotFound {
		t.Fatalf("before it is shipped: %d %s", status, text)
	}

	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "widgets")
	if err := build.New("widgets", source, "", checkout); err != nil {
		t.Fatal(err)
	}
	took := d.ship(t, source, func() bool {
		status, text := d.ask(t, http.MethodGet, path, nil)
		return status == http.StatusOK && strings.Contains(text, `"name":`)
	})
	t.Logf("from the file dropped to the first answer: %d ms", took.Milliseconds())
	if took > dropped {
		t.Errorf("the first answer came after %s, want less than %s", took, dropped)
	}

	// The consumer's own structs, of which the service knows nothing.
	type query struct {
		Cluster   string `json:"cluster"`
		Namespace string `json:"namespace"`
	}
	type pod struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Node      string `json:"node"`
	}
	type placed struct {
		Items []pod `json:"items"`
	}
	t.Setenv("ZIP_RUNTIME_DIR", d.Zip)
	acme := zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u1"})
	got, err := zip.Ask[query, placed](acme, ops.Name, "k8s_widgets_list", &query{Cluster: "shipped", Namespace: "team-a"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(got.Items, func(p pod) bool { return p.Namespace == "team-a" && p.Name != "" && p.Node != "" }) {
		t.Errorf("over the call plane: %+v", got)
	}
	zoo := zip.WithCaller(t.Context(), zip.Caller{Org: "zoo", User: "u1"})
	if got, err := zip.Ask[query, placed](zoo, ops.Name, "k8s_widgets_list", &query{Cluster: "shipped", Namespace: "team-a"}); err == nil {
		t.Errorf("another org reached the cluster: %+v", got)
	}
	if !d.documented(t) {
		t.Error("the OpenAPI document has no /v1/k8s/widgets")
	}

	main := filepath.Join(source, "main.go")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("v0.1.0"), []byte("v0.2.0"))
	text = bytes.ReplaceAll(text, []byte("`json:\"node,omitempty\"`"), []byte("`json:\"host,omitempty\"`"))
	text = bytes.ReplaceAll(text, []byte(`w.Str("node"`), []byte(`w.Str("host"`))
	text = bytes.ReplaceAll(text, []byte(`"node": "node-1"`), []byte(`"host": "node-1"`))
	if err := os.WriteFile(main, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// Meanwhile others call it, and are answered by the one or by the other.
	stop, callers := make(chan struct{}), sync.WaitGroup{}
	var calls atomic.Int64
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond): // an org may not call as fast as it can
				}
				calls.Add(1)
				if status, text := d.ask(t, http.MethodGet, path, nil); status != http.StatusOK {
					t.Errorf("while it is replaced: %d %s", status, text)
					return
				}
			}
		})
	}
	took = d.ship(t, source, func() bool {
		_, text := d.ask(t, http.MethodGet, path, nil)
		return strings.Contains(text, `"host":`)
	})
	close(stop)
	callers.Wait()
	if calls.Load() < 8 {
		t.Errorf("only %d calls were made while it was replaced", calls.Load())
	}
	t.Logf("from a higher version dropped to its first answer: %d ms", took.Milliseconds())

	began := time.Now()
	if err := os.Remove(filepath.Join(d.dir, "widgets.wasm")); err != nil {
		t.Fatal(err)
	}
	d.until(t, func() bool {
		status, _ := d.ask(t, http.MethodGet, path, nil)
		return status == http.StatusNotFound
	})
	t.Logf("from its file removed to 404: %d ms", time.Since(began).Milliseconds())
	if d.documented(t) {
		t.Error("the OpenAPI document still has /v1/k8s/widgets")
	}
	if got, err := zip.Ask[query, placed](acme, ops.Name, "k8s_widgets_list", &query{Cluster: "shipped"}); err == nil {
		t.Errorf("over the call plane it still answers: %+v", got)
	}
}

// openDock builds the service and starts it with a folder to ship into.
func openDock(t *testing.T) (*dock, *testcluster.World) {
	t.Helper()
	world, err := testcluster.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(world.Close)
	binary := filepath.Join(t.TempDir(), "k8s")
	if out, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d := &dock{dir: t.TempDir()}
	if d.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&d.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(keys, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("K8S_GUEST_DIR", d.dir)
	t.Setenv("K8S_GUEST_KEYS", keys)
	t.Setenv("K8S_STATE_DIR", filepath.Join(t.TempDir(), "state"))
	if d.Service, err = live.Start(t.Context(), binary, world.Vault); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d, world
}

// ship builds and signs a guest, drops it into the folder, and gives the time
// from then until serves is true.
func (d *dock) ship(t *testing.T, source string, serves func() bool) time.Duration {
	t.Helper()
	out := filepath.Join(t.TempDir(), "widgets.wasm")
	if _, err := build.Build(source, out); err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := host.Sign(d.key, wasm)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	file := filepath.Join(d.dir, "widgets.wasm")
	for name, text := range map[string][]byte{file: wasm, file + host.SignatureSuffix: signature} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.until(t, serves)
	return time.Since(began)
}

// until polls, and gives up after a while with the name of the log.
func (d *dock) until(t *testing.T, done func() bool) {
	t.Helper()
	for limit := time.Now().Add(15 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it never came to that; see %s", d.Log)
		}
	}
}

func (d *dock) documented(t *testing.T) bool {
	t.Helper()
	status, text := d.ask(t, http.MethodGet, "/v1/k8s/openapi.json", nil)
	if status != http.StatusOK {
		t.Fatalf("the OpenAPI document: %d %s", status, text)
	}
	return strings.Contains(text, `"/v1/k8s/widgets"`)
}

// ask sends a request of acme's.
func (d *dock) ask(t *testing.T, method, target string, body any) (int, string) {
	t.Helper()
	status, text := exchange(method, d.URL+target, body, "X-Org-Id", "acme", "X-User-Id", "u1")
	if status == 0 {
		t.Fatalf("%s", text)
	}
	return status, string(text)
}
