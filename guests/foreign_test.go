package guests_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// restarted is an item of the example in C.
type restarted struct {
	Namespace, Name, Node string
	Restarts              int
}

// restarts collects an answer.
type restarts struct {
	items []restarted
}

func (r *restarts) Item(obj []byte) error {
	var item restarted
	if err := json.Unmarshal(obj, &item); err != nil {
		return err
	}
	r.items = append(r.items, item)
	return nil
}

func (r *restarts) Rest([]byte) error     { return nil }
func (r *restarts) Continue(string) error { return nil }
func (r *restarts) Again() bool           { return false }

// TestGuestInC builds the example that is not in Go by its own Makefile, and
// lists pods through it in the engine.
func TestGuestInC(t *testing.T) {
	for tool, debian := range map[string]string{"clang": "clang", "wasm-ld": "lld", "make": "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("there is no %s: apt-get install %s", tool, debian)
		}
	}
	file := filepath.Join(t.TempDir(), "restarts.wasm")
	if out, err := exec.Command("make", "-C", "examples/restarts", "OUT="+file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := misbehave.New()
	t.Cleanup(server.Close)
	ctx := zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u1"})
	quiet := slog.New(slog.DiscardHandler)
	clusters, err := registry.New(registry.Config{Store: registry.NewMemory(), Policy: registry.Policy{AllowPrivate: true}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clusters.Close)
	if _, err := clusters.Register(ctx, registry.Registration{Name: "prod", Kubeconfig: server.Kubeconfig("t")}); err != nil {
		t.Fatal(err)
	}
	engine, err := host.New(ctx, host.Config{Registry: clusters, Log: quiet, Verify: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	if _, err := engine.Load(ctx, wasm); err != nil {
		t.Fatal(err)
	}

	pod := func(name, node string, restarts ...int32) []byte {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "first", RestartCount: 1}}
		for _, n := range restarts {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "app", RestartCount: n})
		}
		return marshalled(t, p)
	}
	huge := marshalled(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "huge", Annotations: map[string]string{"a": strings.Repeat("x", 1<<20)}}})
	for name, tt := range map[string]struct {
		pods [][]byte
		in   string
		asks string // of the cluster
		want []restarted
		code string
	}{
		"ordinary": {pods: [][]byte{ordinaryPod(t)}, asks: "/api/v1/pods", want: []restarted{{"web", "shop-7d4b9c-x2x7p", "node-1", 2}}},
		"several": {pods: [][]byte{pod("a", "n1", 2, 300), pod("b", ""), pod("c", "n2", 70000)}, asks: "/api/v1/pods",
			want: []restarted{{"web", "a", "n1", 303}, {"web", "b", "", 1}, {"web", "c", "n2", 70001}}},
		"none":               {asks: "/api/v1/pods"},
		"larger than a page": {pods: [][]byte{pod("a", "n1"), huge, pod("b", "n1")}, asks: "/api/v1/pods", want: []restarted{{"web", "a", "n1", 1}, {"web", "huge", "", 0}, {"web", "b", "n1", 1}}},
		"a hostile name":     {pods: [][]byte{pod("\"},\\\n\x01", "n1")}, asks: "/api/v1/pods", want: []restarted{{"web", "\"},\\\n\x01", "n1", 1}}},
		"what is asked for":  {in: `,"namespace":"web","labelSelector":"app in (a,\"b\")"`, asks: `/api/v1/namespaces/web/pods app in (a,"b")`},
		"no message":         {pods: [][]byte{{0x0a, 0x7f, 0x01}}, asks: "/api/v1/pods", code: "guest_fault"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Reset()
			server.On("/api/v1/", misbehave.Body(http.StatusOK, "application/vnd.kubernetes.protobuf", podList(t, tt.pods)))
			answer := &restarts{}
			call := &host.Call{Token: "k8s_restarts_list", Input: []byte(`{"cluster":"prod"` + tt.in + `}`), Cluster: "prod", Answer: answer}
			if strings.Contains(tt.in, `"namespace":"web"`) {
				call.Namespace = "web"
			}
			err := engine.Call(ctx, call)
			var refused *registry.Refusal
			if errors.As(err, &refused); tt.code == "" && err != nil || tt.code != "" && (refused == nil || refused.Code != tt.code) {
				t.Errorf("refused: %v, want %q", err, tt.code)
			}
			if diff := cmp.Diff(tt.want, answer.items); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			asked := ""
			for _, r := range server.Requests() {
				if strings.HasSuffix(r.Path, "/pods") {
					query, _ := http.NewRequest(http.MethodGet, "/?"+r.Query, nil)
					asked = strings.TrimSpace(r.Path + " " + query.URL.Query().Get("labelSelector"))
				}
			}
			if asked != tt.asks {
				t.Errorf("asked for %q, want %q", asked, tt.asks)
			}
			t.Logf("%d items, %d units of fuel, %d bytes in", call.Stats.Items, call.Stats.Fuel, call.Stats.BytesIn)
		})
	}
}

func marshalled(t *testing.T, pod *corev1.Pod) []byte {
	t.Helper()
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// podList is an API server's answer: items (2) of a PodList, in the envelope of
// its protobuf.
func podList(t *testing.T, pods [][]byte) string {
	t.Helper()
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		raw = append(raw, 2<<3|2)
		for n := len(pod); ; n >>= 7 {
			if n < 0x80 {
				raw = append(raw, byte(n))
				break
			}
			raw = append(raw, byte(n)|0x80)
		}
		raw = append(raw, pod...)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: raw}
	body, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(body)
}
