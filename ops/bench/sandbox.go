package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/hanzoai/k8s/guests"
	"github.com/hanzoai/k8s/guests/sdk/lens"
	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

// single is one op on one object, in this process, against an API server that
// answers the same bytes each time: once through the sandbox, and once with the
// same reads and the same projection in plain Go.
type single struct {
	registry *registry.Registry
	host     *host.Host
	ctx      context.Context
	close    func()
}

const singleCluster = "stub"

func newSingle(ctx context.Context, cache string) (*single, error) {
	object := deployment("web", 1)
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(runtime.Object(object), &body); err != nil {
		return nil, err
	}
	stub := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[]}`)
			return
		}
		w.Header().Set("Content-Type", protobufType)
		w.Write(body.Bytes())
	}))
	kubeconfig, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []any{map[string]any{"name": "x", "cluster": map[string]any{
			"server": stub.URL, "certificate-authority-data": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stub.Certificate().Raw}),
		}}},
		"users":    []any{map[string]any{"name": "x", "user": map[string]any{"token": "t"}}},
		"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "x", "user": "x"}}},
	})
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	clusters, err := registry.New(registry.Config{
		Store: registry.NewMemory(), Policy: registry.Policy{AllowPrivate: true}, Log: quiet,
		Limits: registry.Limits{OrgRate: -1},
	})
	if err != nil {
		return nil, err
	}
	ctx = zip.WithInbound(ctx, zip.Caller{Org: "bench", User: "bench"})
	if _, err := clusters.Register(ctx, registry.Registration{Name: singleCluster, Kubeconfig: kubeconfig}); err != nil {
		return nil, err
	}
	sandbox, err := host.New(ctx, host.Config{Registry: clusters, Kinds: ops.Kinds, Log: quiet, CacheDir: cache})
	if err != nil {
		return nil, err
	}
	wasm, err := builtin("workloads")
	if err != nil {
		return nil, err
	}
	if _, err := sandbox.Load(ctx, wasm); err != nil {
		return nil, err
	}
	return &single{clusters, sandbox, ctx, func() {
		sandbox.Close(context.WithoutCancel(ctx))
		clusters.Close()
		stub.Close()
	}}, nil
}

func builtin(name string) ([]byte, error) {
	modules, err := guests.Builtin()
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if m.Name == name {
			return m.WASM, nil
		}
	}
	return nil, fmt.Errorf("there is no module %s", name)
}

// kept is an answer that keeps what it is given.
type kept struct{ rest []byte }

func (k *kept) Item([]byte) error     { return errors.New("no list was asked for") }
func (k *kept) Rest(obj []byte) error { k.rest = bytes.Clone(obj); return nil }
func (k *kept) Continue(string) error { return errors.New("no list was asked for") }
func (k *kept) Again() bool           { return false }

func (s *single) sandboxed() ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	answer := &kept{}
	err := s.host.Call(ctx, &host.Call{
		Token: "k8s_workloads_get_deployment", Cluster: singleCluster, Namespace: "web",
		Input: []byte(`{"cluster":"stub","namespace":"web","name":"web-1"}`), Answer: answer,
	})
	return answer.rest, err
}

func (s *single) native() ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	bound, err := s.registry.Reach(ctx, singleCluster)
	if err != nil {
		return nil, err
	}
	release, err := s.registry.Admit(ctx, singleCluster, false)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := bound.One("web"); err != nil {
		return nil, err
	}
	answer, err := bound.Do(ctx, &registry.Request{
		Method: http.MethodGet, Accept: protobufType,
		Path: registry.Path("apis", "apps", "v1", "namespaces", "web", "deployments", "web-1"),
	})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var fault lens.Fault
	const message, template, updated, ready = 2, 3, 3, 7 // the first of runtime.Unknown
	o := lens.Protobuf(body[len("k8s\x00"):], &fault).Sub(message)
	meta, spec, status := o.Meta(), o.Sub(lens.Spec), o.Sub(lens.Status)
	w := plane.Workload{
		Namespace: meta.Namespace(), Name: meta.Name(), Kind: "Deployment", Replicas: int(spec.Int32(1)),
		Ready: int(status.Int32(ready)), Updated: int(status.Int32(updated)), Owner: meta.Controller(),
	}
	containers := spec.Sub(template).Sub(lens.TemplateSpec)
	for _, list := range []int{lens.PodInitContainers, lens.PodContainers} {
		for image := containers.Texts(list, lens.ContainerImage); image.Next(); {
			w.Images = append(w.Images, image.Text)
		}
	}
	if err := fault.Err(); err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// sandbox measures what the sandbox adds to one op: the difference of the
// medians of calls that alternate.
func (r *report) sandbox(ctx context.Context, cache string) error {
	s, err := newSingle(ctx, cache)
	if err != nil {
		return err
	}
	defer s.close()
	for range r.options.rounds {
		var walls [2][]time.Duration
		for n := range 2 * 1500 {
			run := []func() ([]byte, error){s.sandboxed, s.native}[n%2]
			begun := time.Now()
			if _, err := run(); err != nil {
				return err
			}
			walls[n%2] = append(walls[n%2], time.Since(begun))
		}
		slices.Sort(walls[0])
		slices.Sort(walls[1])
		p50 := func(w []time.Duration) float64 { return float64(w[len(w)/2]) / float64(time.Microsecond) }
		r.added = append(r.added, p50(walls[0])-p50(walls[1]))
		r.native = append(r.native, p50(walls[1]))
	}
	a, err := s.sandboxed()
	if err != nil {
		return err
	}
	b, err := s.native()
	if err != nil {
		return err
	}
	var x, y plane.Workload
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		return err
	}
	if diff := cmp.Diff(x, y); diff != "" {
		return errors.New("the sandbox answers otherwise (-sandbox +native):\n" + diff)
	}
	return r.fuel(ctx)
}
