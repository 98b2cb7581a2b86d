package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster"
)

// binary builds the service once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "k8s-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "k8s")
	out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), file, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	return cmd
}

// read is true for a variable that the service reads.
func read(name string) bool {
	if name == "ZIP_RUNTIME_DIR" || name == "XDG_RUNTIME_DIR" {
		return true
	}
	for _, s := range ops.Settings {
		if s.Name == name || s.Secret && s.Name+"_FILE" == name {
			return true
		}
	}
	return false
}

// TestProjectionsOpenNothing writes the projections with a key store configured
// that cannot be reached: they are written before anything is opened.
func TestProjectionsOpenNothing(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]string{"declare": "k8s.plugin.json", "openapi": "openapi.json", "rbac": "rbac.yaml"} {
		out := filepath.Join(dir, file)
		cmd := command(t, []string{"KMS_ADDR=https://127.0.0.1:1", "KMS_TOKEN=x", "PORT=1", "HOST=0.0.0.0"}, name, out)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s wrote another document than the committed %s", name, file)
		}
	}
}

// TestRefusesToStart tries configurations with which it must not serve.
func TestRefusesToStart(t *testing.T) {
	for _, tt := range []struct{ env, says string }{
		{"HOST=0.0.0.0", "set K8S_GATEWAY_SECRET or K8S_CLIENT_CA"},
		{"K8S_GATEWAY_SECRET=short", "shorter than"},
		{"PORT=http", "PORT is not a port"},
		{"K8S_GUEST_DIR=/nowhere", "K8S_GUEST_KEYS"},
		{"KMS_ADDR=https://127.0.0.1:1", "token"},
	} {
		t.Run(tt.env, func(t *testing.T) {
			cmd := command(t, []string{"OPS_PORT=0", "PORT=0", "ZIP_RUNTIME_DIR=" + filepath.Join(t.TempDir(), "z"), tt.env})
			text, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(text), tt.says) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// TestServes starts the service with nothing but ports set, uses every listener
// that it has, and stops it.
func TestServes(t *testing.T) {
	dir, err := os.MkdirTemp("", "k8s-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	product, operators := freePort(t), freePort(t)
	child := filepath.Join(dir, "child.sock")
	runtime := filepath.Join(dir, "zip")
	var log bytes.Buffer
	cmd := command(t, []string{"PORT=" + product, "OPS_PORT=" + operators, "OPS_HOST=127.0.0.1", "ZIP_RUNTIME_DIR=" + runtime, "ZIP_ADDR=" + child})
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready(t, "http://127.0.0.1:"+operators+"/readyz")

	for _, tt := range []struct {
		url    string
		status int
		holds  string
	}{
		{"http://127.0.0.1:" + operators + "/healthz", 200, "ok"},
		{"http://127.0.0.1:" + operators + "/metrics", 200, "k8s_guest_instances"},
		{"http://127.0.0.1:" + operators + "/v1/k8s/guests", 200, `"state":"ready"`},
		{"http://127.0.0.1:" + operators + "/v1/k8s/clusters", 404, ""},
		{"http://127.0.0.1:" + product + "/healthz", 404, "route_not_found"},
		{"http://127.0.0.1:" + product + "/metrics", 404, "route_not_found"},
		{"http://127.0.0.1:" + product + "/v1/k8s/guests", 404, "route_not_found"},
		{"http://127.0.0.1:" + product + "/v1/k8s/clusters", 403, "no_tenant"},
		{"http://127.0.0.1:" + product + "/v1/k8s/docs", 200, "k8s_pods_list"},
		{"http://127.0.0.1:" + product + "/v1/k8s/openapi.json", 200, `"openapi"`},
		{"http://127.0.0.1:" + product + "/.well-known/zip/plugin.json", 200, "k8s_pods_list"},
	} {
		resp, err := http.Get(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status || !strings.Contains(string(body), tt.holds) {
			t.Errorf("%s: %d %.200s", tt.url, resp.StatusCode, body)
		}
	}

	t.Setenv("ZIP_RUNTIME_DIR", runtime)
	ctx := zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u1"})
	if _, err := zip.Ask[struct{}, plane.Clusters](ctx, "k8s", plane.ClustersList, nil); err != nil {
		t.Errorf("over the call plane: %v", err)
	}
	if status, body := framed(t, child, "/v1/k8s/clusters"); status != 200 || body != "{}" {
		t.Errorf("over ZIP_ADDR: %d %s", status, body)
	}

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, &log)
	}
	for _, socket := range []string{child, filepath.Join(runtime, "k8s.sock")} {
		if _, err := os.Stat(socket); err == nil {
			t.Errorf("it left %s behind", socket)
		}
	}
	if !strings.Contains(log.String(), "KMS_ADDR is not set") {
		t.Errorf("it does not say that credentials are in memory: %s", &log)
	}
}

// TestNotReadyBeforeTheModuleDirectory: a replica is ready once it has looked at
// the module directory, so that a restart answers no shipped op with 404.
func TestNotReadyBeforeTheModuleDirectory(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	clusters, err := registry.New(registry.Config{Store: registry.NewMemory(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer clusters.Close()
	sandbox, err := host.New(t.Context(), host.Config{Registry: clusters, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close(context.Background())
	waits := func(config *ops.Config) (names []string) {
		for _, c := range readiness(config, sandbox, registry.NewMemory()) {
			if c.Check(t.Context()) != nil {
				names = append(names, c.Name)
			}
		}
		return names
	}
	if got := waits(&ops.Config{}); got != nil {
		t.Errorf("without a module directory it waits for %v", got)
	}
	config := &ops.Config{GuestDir: t.TempDir()}
	if got := waits(config); !slices.Equal(got, []string{"guests"}) {
		t.Errorf("before the module directory was looked at it waits for %v", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error)
	go func() { watched <- sandbox.Watch(ctx, config.GuestDir) }()
	for limit := time.Now().Add(10 * time.Second); waits(config) != nil && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-watched; err != nil {
		t.Error(err)
	}
	if got := waits(config); got != nil {
		t.Errorf("after it was looked at it waits for %v", got)
	}
}

// TestServesWhatIsShipped starts the service with a module in its directory.
func TestServesWhatIsShipped(t *testing.T) {
	dir := t.TempDir()
	modules := filepath.Join(dir, "modules")
	if err := os.Mkdir(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	grants := filepath.Join(dir, "grants.yaml")
	if err := os.WriteFile(grants, []byte("kind: ClusterRole\nrules: [{apiGroups: [apps], resources: [daemonsets], verbs: [list]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(modules, "daemonsets.wasm")
	for _, args := range [][]string{
		{"guest", "build", "guests/examples/daemonsets", "--out", module},
		{"guest", "keygen", filepath.Join(dir, "mine")},
		{"guest", "sign", "--key", filepath.Join(dir, "mine.key"), module},
	} {
		if out, err := command(t, nil, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	product, operators := freePort(t), freePort(t)
	var log bytes.Buffer
	cmd := command(t, []string{"PORT=" + product, "OPS_PORT=" + operators, "OPS_HOST=127.0.0.1", "ZIP_RUNTIME_DIR=" + filepath.Join(dir, "zip"),
		"K8S_GUEST_GRANTS=" + grants, "K8S_GUEST_DIR=" + modules, "K8S_GUEST_KEYS=" + filepath.Join(dir, "mine.pub"), "K8S_STATE_DIR=" + filepath.Join(dir, "state")})
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready(t, "http://127.0.0.1:"+operators+"/readyz")
	resp, err := http.Get("http://127.0.0.1:" + product + "/v1/k8s/daemonsets?cluster=none")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if _, err := os.Stat(filepath.Join(dir, "state", "guest-versions.json")); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, &log)
	}
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "no_tenant") {
		t.Errorf("as soon as it is ready: %d %s\n%s", resp.StatusCode, body, &log)
	}
}

// framed sends one REST request in a frame, as a host does to its child.
func framed(t *testing.T, socket, target string) (int, string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := zip.AppendRequest(nil, &zip.Request{Method: "GET", Target: target, Proto: "HTTP/1.1", Header: []zip.Line{
		{Key: "Host", Value: "k8s"}, {Key: "X-Org-Id", Value: "acme"}, {Key: "X-User-Id", Value: "u1"},
	}})
	if err := zip.WriteFrame(conn, request); err != nil {
		t.Fatal(err)
	}
	msg, err := zip.ReadFrame(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := zip.ParseResponse(msg)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status, string(response.Body)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func ready(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		resp, err := http.Get(url)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatal("the service is not ready")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestGuestCommands makes keys, signs a module and looks at it.
func TestGuestCommands(t *testing.T) {
	dir := t.TempDir()
	module := filepath.Join(dir, "pods.wasm")
	wasm, err := os.ReadFile("guests/bin/pods.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(module, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := command(t, nil, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("guest", "keygen", filepath.Join(dir, "mine"))
	if info, err := os.Stat(filepath.Join(dir, "mine.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v %v", info, err)
	}
	run("guest", "sign", "--key", filepath.Join(dir, "mine.key"), module)
	if _, err := os.Stat(module + ".sig"); err != nil {
		t.Error(err)
	}
	public := filepath.Join(dir, "mine.pub")
	text, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := host.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	out := run("guest", "inspect", module, "--key", public)
	for _, want := range []string{"signer   " + host.Fingerprint(keys[0]) + " of " + public + "\n", "digest   " + host.Digest(wasm) + "\n", "k8s_pods_list", "GET /v1/k8s/pods", "labelSelector string", "imports", "pods/log", "verbs: [get]"} {
		if !strings.Contains(out, want) {
			t.Errorf("inspect does not say %s: %s", want, out)
		}
	}
	run("guest", "keygen", filepath.Join(dir, "other"))
	other := filepath.Join(dir, "other.pub")
	altered := filepath.Join(dir, "altered.wasm")
	unsigned := filepath.Join(dir, "unsigned.wasm")
	signature, err := os.ReadFile(module + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	// A byte of the last section, which is data: the manifest still reads.
	changed := bytes.Clone(wasm)
	changed[bytes.LastIndex(changed, []byte("runtime"))] ^= 1
	for name, text := range map[string][]byte{altered: changed, altered + ".sig": signature, unsigned: wasm} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{module, "--key", other, "--key", public}, host.Fingerprint(keys[0]) + " of " + public},
		{[]string{module, "--key", other}, "none of the 1 keys given"},
		{[]string{altered, "--key", other, "--key", public}, "none of the 2 keys given"},
		{[]string{module}, "unknown: no --key"},
		{[]string{unsigned, "--key", public}, "none: it is unsigned"},
	} {
		if out := run(append([]string{"guest", "inspect"}, tt.args...)...); !strings.Contains(out, "signer   "+tt.says) {
			t.Errorf("%v does not say %q: %.300s", tt.args, tt.says, out)
		}
	}
	configured := command(t, []string{"K8S_GUEST_KEYS=" + public}, "guest", "inspect", module)
	if out, err := configured.CombinedOutput(); err != nil || !strings.Contains(string(out), "signer   "+host.Fingerprint(keys[0])) {
		t.Errorf("with the operator's keys: %v: %.300s", err, out)
	}
	if out, err := command(t, nil, "guest", "inspect", module, "--key", module).CombinedOutput(); err == nil {
		t.Errorf("a module was taken for a key: %s", out)
	}
	if out, err := command(t, nil, "guest", "keygen", filepath.Join(dir, "mine")).CombinedOutput(); err == nil {
		t.Errorf("a key was overwritten: %s", out)
	}
}

// TestGuestNew makes a guest outside this module, whose test passes and which
// becomes a module at once.
func TestGuestNew(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "widgets")
	if out, err := command(t, nil, "guest", "new", "widgets", "--dir", dir, "--checkout", here).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	test := exec.Command("go", "test", "./...")
	test.Dir = dir
	if out, err := test.CombinedOutput(); err != nil {
		t.Fatalf("its test: %v: %s", err, out)
	}
	build := command(t, nil, "guest", "build", ".")
	build.Dir = dir
	out, err := build.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "k8s_widgets") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "widgets.wasm")); err != nil {
		t.Error(err)
	}
	if out, err := command(t, nil, "guest", "new", "widgets", "--dir", dir).CombinedOutput(); err == nil {
		t.Errorf("a folder was overwritten: %s", out)
	}
}

// TestGuestTestReads calls the ops of a guest on a real cluster, and then on what
// was recorded there, which is answered alike.
func TestGuestTestReads(t *testing.T) {
	world, err := testcluster.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(world.Close)
	dir := t.TempDir()
	kubeconfig, objects := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "objects.json")
	status, recorded, err := world.Clusters[0].Do(t.Context(), http.MethodGet, "/api/v1/pods", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	for file, text := range map[string][]byte{kubeconfig: world.Clusters[0].Admin(), objects: recorded} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	items := func(flag, file string) (lines []string) {
		t.Helper()
		out, err := command(t, nil, "guest", "test", "guests/bin/pods.wasm", flag, file, "--in", `{"namespace":"team-a","labelSelector":null,"fieldSelector":null,"limit":null,"pod":null}`).CombinedOutput()
		if !strings.Contains(string(out), "units of fuel") || strings.Contains(string(out), "left out") {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "  {") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	want := items("--kubeconfig", kubeconfig)
	if len(want) == 0 || !strings.Contains(want[0], `"namespace":"team-a"`) {
		t.Errorf("on the cluster: %q", want)
	}
	if diff := cmp.Diff(want, items("--objects", objects)); diff != "" {
		t.Errorf("on what was recorded (-cluster +recorded)\n%s", diff)
	}
}

// TestGuestTestObjects calls the ops of a guest on objects that were recorded.
func TestGuestTestObjects(t *testing.T) {
	objects := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(objects, []byte(`apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: DaemonSet
  metadata: {name: cilium, namespace: kube-system, labels: {app: cilium}}
  spec:
    selector: {matchLabels: {app: cilium}}
    template:
      spec:
        containers: [{name: agent, image: "cilium:1.18"}]
    madeUp: 1
  status: {desiredNumberScheduled: 3, numberReady: 2, updatedNumberScheduled: 1, currentNumberScheduled: 3, numberMisscheduled: 0}
- apiVersion: apps/v1
  kind: DaemonSet
  metadata: {name: other, namespace: elsewhere}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(t.TempDir(), "daemonsets.wasm")
	if out, err := command(t, nil, "guest", "build", "guests/examples/daemonsets", "--out", module).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := command(t, nil, append([]string{"guest", "test", module, "--objects", objects}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	const cilium = `  {"namespace":"kube-system","name":"cilium","wanted":3,"ready":2,"updated":1,"images":["cilium:1.18"]}` + "\n"
	const other = `  {"namespace":"elsewhere","name":"other","wanted":0,"ready":0,"updated":0}` + "\n"
	out := run()
	if !strings.Contains(out, cilium) || strings.Contains(out, other) || !strings.Contains(out, "DaemonSet.spec.madeUp") {
		t.Errorf("with the op's example: %s", out)
	}
	cost := regexp.MustCompile(`1 items, ([0-9]+) units of fuel, ([0-9]+) bytes in, ([0-9]+) out`).FindStringSubmatch(out)
	if cost == nil || slices.Contains(cost, "0") {
		t.Errorf("what it cost: %q in %s", cost, out)
	}
	if out := run("--in", `{"namespace":null}`); !strings.Contains(out, other+cilium) {
		t.Errorf("in every namespace: %s", out)
	}
	if out := run("--in", `{"namespace":null,"limit":1}`); !strings.Contains(out, other+"  and there is another page") || strings.Contains(out, cilium) {
		t.Errorf("a page of one: %s", out)
	}
	if out := run("--in", `{"namespace":null,"labelSelector":"app=cilium"}`); !strings.Contains(out, cilium) || strings.Contains(out, other) {
		t.Errorf("by a label: %s", out)
	}
	if out, err := command(t, nil, "guest", "test", "guests/bin/pods.wasm", "--objects", "main_test.go").CombinedOutput(); err == nil {
		t.Errorf("a Go file was taken for objects: %s", out)
	}
	if out, err := command(t, nil, "guest", "test", "guests/bin/pods.wasm", "--objects", objects, "--kubeconfig", objects).CombinedOutput(); err == nil || !strings.Contains(string(out), "can't be used together") {
		t.Errorf("two clusters at once: %v: %s", err, out)
	}
}

// TestGuestTest tests a guest's package, and a module that does not load.
func TestGuestTest(t *testing.T) {
	out, err := command(t, nil, "guest", "test", "guests/examples/daemonsets").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"ok  ", "loaded   in ", "k8s_daemonsets_list", "GET /v1/k8s/daemonsets", "resources: [daemonsets]"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %s: %s", want, out)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken.wasm")
	if err := os.WriteFile(broken, []byte("\x00asm\x01\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, nil, "guest", "test", broken).CombinedOutput(); err == nil || !strings.Contains(string(out), "not a guest module") {
		t.Errorf("%v: %s", err, out)
	}
}
