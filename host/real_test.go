package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if started {
		if w, err := realWorld(); err == nil {
			w.Close()
		}
	}
	os.Exit(code)
}

var (
	started   bool
	realWorld = sync.OnceValues(func() (*testcluster.World, error) {
		started = true
		ctx, cancel := context.WithTimeout(context.Background(), 45*time.Minute)
		defer cancel()
		return testcluster.Open(ctx)
	})
)

// real is a cluster as an org that registered it meets it.
type real struct {
	t   *testing.T
	ctx context.Context
	c   *testcluster.Cluster
	reg *registry.Registry
}

func realCluster(t *testing.T) *real {
	t.Helper()
	w, err := realWorld()
	if err != nil {
		t.Fatal(err)
	}
	reg, err := registry.New(registry.Config{
		Store: registry.NewMemory(), Policy: registry.Policy{AllowPrivate: true}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reg.Close)
	return &real{t: t, ctx: zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u"}), c: w.Alpha(), reg: reg}
}

// namespaces makes n namespaces of the test's own, in order.
func (r *real) namespaces(n int) (names []string) {
	r.t.Helper()
	for range n {
		ns, err := r.c.Namespace(r.ctx, "host")
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { r.c.DropNamespace(context.Background(), ns) })
		names = append(names, ns)
	}
	slices.Sort(names)
	return names
}

// guest is a guest on the cluster, registered for the namespaces given or whole.
func (r *real) guest(input string, bound ...string) *guest {
	r.t.Helper()
	name := fmt.Sprintf("c%x", len(bound))
	if _, err := r.reg.Reach(r.ctx, name); err != nil {
		if _, err := r.reg.Register(r.ctx, registry.Registration{Name: name, Kubeconfig: r.c.Admin(), Namespaces: bound}); err != nil {
			r.t.Fatal(err)
		}
	}
	b, err := r.reg.Reach(r.ctx, name)
	if err != nil {
		r.t.Fatal(err)
	}
	op := &manifest.Op{Token: "k8s_test_op", Items: "items", In: pageFields, Grants: append(slices.Clone(everything),
		manifest.Grant{Verbs: []string{"get", "list", "create", "delete"}, Version: "v1", Resource: "configmaps"},
		manifest.Grant{Verbs: []string{"list"}, Version: "v1", Resource: "persistentvolumeclaims"},
	)}
	a := &answered{}
	h := &Host{config: Config{Registry: r.reg, Kinds: []Kind{{"App", "hanzo.ai", "v1", "apps"}, {"Absent", "nowhere.example", "v1", "absents"}}, Log: slog.New(slog.DiscardHandler)}}
	c := newCall(r.ctx, h, &Op{Op: op}, &Call{Token: op.Token, Input: []byte(input), Answer: a}, b, &meter{limits: Defaults})
	r.t.Cleanup(c.end)
	return &guest{t: r.t, c: c, m: make(ram, 4<<20), answer: a}
}

// do is one function on a guest of its own that must not fail.
func (r *real) do(function, request string, bound ...string) (items []string, trailer string) {
	r.t.Helper()
	g := r.guest(`{}`, bound...)
	items, trailer, code := g.do(function, request)
	if code != "" {
		r.t.Fatalf("%s %s: %+v", function, request, g.failure())
	}
	return items, trailer
}

func (r *real) app(ns, name, spec string) string {
	return fmt.Sprintf(`{"kind":"App","namespace":%q,"name":%q,"object":{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":%q},"spec":%s}}`, ns, name, name, spec)
}

func TestRealPagingIsExact(t *testing.T) {
	r := realCluster(t)
	bound := r.namespaces(3)
	var want []string
	for i, n := range []int{7, 0, 13} {
		for k := range n {
			name := fmt.Sprintf("m-%02d", k)
			r.do("create", fmt.Sprintf(`{"resource":"v1/configmaps","namespace":%q,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"of":"test"}}}}`, bound[i], name))
			want = append(want, bound[i]+"/"+name)
		}
	}
	for _, limit := range []int{0, 1, 6, 7, 20, 21} {
		var got []string
		token := ""
		for {
			g := r.guest(fmt.Sprintf(`{"limit":%d,"continue":%q}`, limit, token), bound...)
			items, trailer, code := g.do("list", `{"resource":"v1/configmaps","labelSelector":"of=test"}`)
			if code != "" || limit > 0 && len(items) > limit {
				t.Fatalf("limit %d: %q, %d items", limit, code, len(items))
			}
			g.c.outcome(0)
			got = append(got, names(items)...)
			if token = g.answer.next; token == "" {
				if !strings.Contains(trailer, composite) {
					t.Errorf("limit %d: the trailer is %s", limit, trailer)
				}
				break
			}
			if len(items) != limit {
				t.Errorf("limit %d: a page of %d goes on", limit, len(items))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d:\n%s", limit, diff)
		}
	}
}

func TestRealWatch(t *testing.T) {
	r := realCluster(t)
	bound := r.namespaces(2)
	a, b := bound[0], bound[1]
	watch := func(version string, wait int) (got []string, end struct {
		Version string
		Expired bool
	}) {
		t.Helper()
		items, trailer := r.do("watch", fmt.Sprintf(`{"kind":"App","version":%q,"waitSeconds":%d}`, version, wait), bound...)
		for _, i := range items {
			var e struct {
				Type   string
				Object struct {
					Metadata struct{ Namespace, Name string }
				}
			}
			if err := json.Unmarshal([]byte(i), &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Type+" "+e.Object.Metadata.Namespace+"/"+e.Object.Metadata.Name)
		}
		if err := json.Unmarshal([]byte(trailer), &end); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		return got, end
	}
	expect := func(what string, got, want []string, expired bool) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || expired {
			t.Errorf("%s: expired %v\n%s", what, expired, diff)
		}
	}
	got, end := watch("", 1)
	expect("nothing yet", got, nil, end.Expired)
	r.do("apply", r.app(a, "one", `{"n":1}`), bound...)
	r.do("apply", r.app(b, "two", `{"n":1}`), bound...)
	got, end = watch(end.Version, 20)
	for len(got) < 2 && !end.Expired {
		var more []string
		more, end = watch(end.Version, 5)
		got = append(got, more...)
	}
	slices.Sort(got)
	expect("made", got, []string{"ADDED " + a + "/one", "ADDED " + b + "/two"}, end.Expired)
	got, end = watch(end.Version, 1)
	expect("seen before", got, nil, end.Expired)
	r.do("apply", r.app(a, "one", `{"n":2}`), bound...)
	r.do("delete", fmt.Sprintf(`{"kind":"App","namespace":%q,"name":"one"}`, a), bound...)
	got, end = watch(end.Version, 20)
	expect("changed and gone", got, []string{"DELETED " + a + "/one", "MODIFIED " + a + "/one"}, end.Expired)
	got, end = watch("", 1)
	expect("what there is", got, []string{"ADDED " + b + "/two"}, end.Expired)
	if _, end = watch(joinVersions(bound, []string{"1", "1"}), 5); !end.Expired {
		t.Error("version 1 is not expired")
	}
}

func TestRealRefusals(t *testing.T) {
	r := realCluster(t)
	ns := r.namespaces(1)[0]
	other := `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"owned"},"spec":{"image":"a"}}`
	path := "/apis/hanzo.ai/v1/namespaces/" + ns + "/apps"
	if code, text, err := r.c.Do(r.ctx, "POST", path+"?fieldManager=somebody", []byte(other)); err != nil || code != 201 {
		t.Fatalf("%d %s %v", code, text, err)
	}
	for _, test := range []struct {
		name, function, request, code string
		status                        int
	}{
		{"no pod", "get", fmt.Sprintf(`{"resource":"v1/pods","namespace":%q,"name":"p"}`, ns), "not_found", 404},
		{"no app", "get", fmt.Sprintf(`{"kind":"App","namespace":%q,"name":"p"}`, ns), "not_found", 404},
		{"no kind", "list", `{"kind":"Absent"}`, "kind_not_available", 404},
		{"no kind, one", "get", `{"kind":"Absent","namespace":"default","name":"p"}`, "kind_not_available", 404},
		{"a bad selector", "list", `{"resource":"v1/pods","labelSelector":"!!"}`, "bad_input", 400},
		{"it exists", "create", fmt.Sprintf(`{"resource":"v1/namespaces","object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}}`, ns), "already_exists", 409},
		{"no namespace", "create", `{"resource":"v1/configmaps","namespace":"nowhere","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}}`, "not_found", 404},
		{"an unknown field", "create", fmt.Sprintf(`{"resource":"v1/configmaps","namespace":%q,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"dada":{}}}`, ns), "bad_input", 400},
		{"invalid", "create", fmt.Sprintf(`{"resource":"v1/configmaps","namespace":%q,"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"bad key!":"v"}}}`, ns), "invalid", 422},
		{"somebody else's field", "apply", r.app(ns, "owned", `{"image":"b"}`), "conflict", 409},
		{"evict what is not there", "evict", fmt.Sprintf(`{"namespace":%q,"pod":"p"}`, ns), "", 0},
		{"a log of nothing", "logs", fmt.Sprintf(`{"namespace":%q,"pod":"p"}`, ns), "not_found", 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := r.guest(`{}`)
			items, _, code := g.do(test.function, test.request)
			if code != test.code {
				t.Fatalf("code %q, want %q; %q; %v", code, test.code, items, g.c.last)
			}
			if code != "" && g.failure().Status != test.status {
				t.Errorf("%+v", g.failure())
			}
			if test.code == "invalid" && g.failure().Causes == nil {
				t.Error("an invalid object without causes")
			}
			if test.code == "conflict" {
				if diff := cmp.Diff([]Conflict{{".spec.image", "somebody"}}, g.c.last.Details["conflicts"]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestRealWrites(t *testing.T) {
	r := realCluster(t)
	ns := r.namespaces(1)[0]
	if items, _ := r.do("version", `{}`); !strings.Contains(items[0], `"gitVersion"`) {
		t.Error(items)
	}
	if items, _ := r.do("can", `{"verb":"list","group":"apps","resource":"deployments"}`); !strings.Contains(items[0], `"allowed":true`) {
		t.Error(items)
	}
	nodes, _ := r.do("list", `{"resource":"v1/nodes"}`)
	if len(nodes) == 0 {
		t.Fatal("no nodes")
	}
	_, node := nameOfProtobuf([]byte(nodes[0]))
	for _, schedulable := range []bool{false, true} {
		r.do("cordon", fmt.Sprintf(`{"node":%q,"schedulable":%v}`, node, schedulable))
		_, text, err := r.c.Do(r.ctx, "GET", "/api/v1/nodes/"+string(node), nil)
		if err != nil || strings.Contains(string(text), `"unschedulable":true`) == schedulable {
			t.Errorf("schedulable %v: %v", schedulable, err)
		}
	}
	claim := fmt.Sprintf(`{"resource":"v1/persistentvolumeclaims","namespace":%q,"object":{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"storageClassName":"none-such","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}`, ns)
	r.do("create", claim)
	g := r.guest(`{}`)
	if _, _, code := g.do("expand", fmt.Sprintf(`{"namespace":%q,"name":"c","storage":"2Gi","version":"1"}`, ns)); code != "conflict" && code != "forbidden" && code != "invalid" {
		t.Errorf("an old version: %q", code)
	}
	r.do("apply", r.app(ns, "x", `{"big":9007199254740993}`))
	if items, _ := r.do("get", fmt.Sprintf(`{"kind":"App","namespace":%q,"name":"x"}`, ns)); !strings.Contains(items[0], `9007199254740993`) {
		t.Error("E22: a large integer is lost")
	}
	for _, want := range []string{`{"removed":true}`, `{"removed":false}`} {
		if items, _ := r.do("delete", fmt.Sprintf(`{"kind":"App","namespace":%q,"name":"x"}`, ns)); items[0] != want {
			t.Errorf("%s, want %s", items[0], want)
		}
	}
	if items, _ := r.do("list", `{"resource":"v1/namespaces"}`, ns, "nowhere"); len(items) != 1 {
		t.Errorf("%d namespaces in the bound", len(items))
	}
	readings, _ := r.do("stats", `{}`)
	if len(readings) != len(nodes) {
		t.Errorf("%d readings of %d nodes", len(readings), len(nodes))
	}
}

// TestRealEvictionIsHeldBack has a budget that lets no pod go.
func TestRealEvictionIsHeldBack(t *testing.T) {
	r := realCluster(t)
	ns := r.namespaces(1)[0]
	yaml := `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: all, namespace: NS}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`
	if err := r.c.Apply(r.ctx, []byte(strings.ReplaceAll(yaml, "NS", ns))); err != nil {
		t.Fatal(err)
	}
	var pod string
	for wait := time.Now().Add(time.Minute); pod == ""; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(wait) {
			t.Fatal("no pod")
		}
		items, _ := r.do("list", fmt.Sprintf(`{"resource":"v1/pods","namespace":%q,"fieldSelector":"status.phase=Running"}`, ns))
		if len(items) == 1 {
			_, name := nameOfProtobuf([]byte(items[0]))
			pod = string(name)
		}
	}
	g := r.guest(`{}`)
	if _, _, code := g.do("evict", fmt.Sprintf(`{"namespace":%q,"pod":%q}`, ns, pod)); code != "blocked_by_pdb" {
		t.Errorf("%q: %v", code, g.c.last)
	}
	if _, _, code := g.do("evict", fmt.Sprintf(`{"namespace":%q,"pod":%q,"uid":"0b7c5f1e-2f6d-4b0a-9d4e-3f1f6a3f9b11"}`, ns, pod)); code != "conflict" && code != "blocked_by_pdb" {
		t.Errorf("another uid: %q", code)
	}
	if err := r.c.SetLog(r.ctx, ns, pod, "web", []byte("first\nsecond\nthird\n")); err != nil {
		t.Fatal(err)
	}
	if items, trailer := r.do("logs", fmt.Sprintf(`{"namespace":%q,"pod":%q,"tailLines":2}`, ns, pod)); strings.Join(items, "") != "second\nthird\n" || trailer != `{"truncated":false}` {
		t.Errorf("%q %s", items, trailer)
	}
	if _, _, code := g.do("logs", fmt.Sprintf(`{"namespace":%q,"pod":%q,"container":"other"}`, ns, pod)); code != "bad_input" {
		t.Errorf("another container: %q", code)
	}
	if code, _, err := r.c.Do(r.ctx, http.MethodDelete, "/apis/policy/v1/namespaces/"+ns+"/poddisruptionbudgets/all", nil); err != nil || code != 200 {
		t.Fatal(code, err)
	}
	if items, _, code := g.do("evict", fmt.Sprintf(`{"namespace":%q,"pod":%q}`, ns, pod)); code != "" || items[0] != `{"status":201}` {
		t.Errorf("without the budget: %q %q", code, items)
	}
}
