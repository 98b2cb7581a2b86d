package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hanzoai/k8s/testcluster"
)

// What a tenant has in its namespace.
const (
	pods       = 3
	configMaps = 3
	apps       = 2
)

// tenant is one org: a namespace on a real cluster, full of objects with its
// mark, and a cluster of its own that misbehaves. It has registered the former
// twice, bound to the namespace: as real, as everybody, and as own-<mark>, a name
// that nobody else has. The latter it has registered as lab.
type tenant struct {
	org, mark  string
	namespace  string
	cluster    *testcluster.Cluster
	kubeconfig []byte
	lab        *lab

	page    atomic.Pointer[string] // a continue token that it has been given
	version atomic.Pointer[string] // a version of the lab's objects, to watch from
}

func (t *tenant) own() string { return "own-" + t.mark }

// newTenant makes what a tenant has. With wide its credential reads the whole
// cluster, so that only its registration's bound confines it.
func newTenant(ctx context.Context, cluster *testcluster.Cluster, wide bool) (*tenant, error) {
	mark := "mark" + strings.ToLower(rand.Text()[:16])
	t := &tenant{org: "load-" + strings.ToLower(rand.Text()[:10]), mark: mark, cluster: cluster, lab: newLab(mark)}
	var err error
	if t.namespace, err = cluster.Namespace(ctx, "load"); err != nil {
		return t, err
	}
	var manifest bytes.Buffer
	add := func(n int, object string) {
		for i := range n {
			fmt.Fprintf(&manifest, object+"\n---\n", t.namespace, mark, i)
		}
	}
	meta := `"metadata":{"name":"%[2]s-%[3]d","namespace":%[1]q,"labels":{"mark":%[2]q}}`
	add(pods, `{"apiVersion":"v1","kind":"Pod",`+meta+`,"spec":{"containers":[{"name":"main","image":"registry.example/content-%[2]s:1"}]}}`)
	add(configMaps, `{"apiVersion":"v1","kind":"ConfigMap",`+meta+`,"data":{"content":"content-%[2]s"}}`)
	add(apps, `{"apiVersion":"hanzo.ai/v1","kind":"App",`+meta+`,"spec":{"content":"content-%[2]s"}}`)
	if err := cluster.Apply(ctx, manifest.Bytes()); err != nil {
		return t, err
	}
	read := []string{"get", "list", "watch"}
	rules := []testcluster.Rule{{Resources: []string{"pods", "configmaps"}, Verbs: read}, {Groups: []string{"hanzo.ai"}, Resources: []string{"apps"}, Verbs: read}}
	var within []string
	if !wide {
		within = []string{t.namespace}
	}
	t.kubeconfig, err = cluster.ServiceAccount(ctx, t.namespace, rules, within...)
	return t, err
}

func (t *tenant) close(ctx context.Context) error {
	t.lab.Close()
	if t.namespace == "" {
		return nil
	}
	return t.cluster.DropNamespace(ctx, t.namespace)
}

var bearer = regexp.MustCompile(`token: "?([A-Za-z0-9_.-]{20,})`)

// secrets is every credential that the tenant's clusters have been sent.
func (t *tenant) secrets() (all []string) {
	if found := bearer.FindSubmatch(t.kubeconfig); found != nil {
		all = append(all, string(found[1]))
	}
	return append(all, "credential-"+t.mark)
}

// registrations is what each tenant has, but for the marks.
func (t *tenant) registrations() []string {
	return slices.Sorted(slices.Values([]string{"lab", t.own(), "real"}))
}

// open starts everything and registers every cluster.
func (r *runner) open(ctx context.Context) error {
	begun := time.Now()
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(4)
	r.tenants = make([]*tenant, r.options.tenants)
	for i := range r.tenants {
		group.Go(func() (err error) {
			r.tenants[i], err = newTenant(inner, r.world.Clusters[i%len(r.world.Clusters)], i%4 < 2)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.loopback(); err != nil {
		return err
	}
	var err error
	if r.fleet, err = startFleet(ctx, r.options.binary, r.world.Vault, r.options.replicas); err != nil {
		return err
	}
	group, inner = errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, t := range r.tenants {
		group.Go(func() error { return r.register(inner, t) })
	}
	err = group.Wait()
	r.printf("%d orgs with %d clusters are registered through %d replicas after %.1f s\n",
		len(r.tenants), 3*len(r.tenants), len(r.fleet.members), time.Since(begun).Seconds())
	return err
}

func (r *runner) register(ctx context.Context, t *tenant) error {
	token := t.lab.token()
	for _, in := range []map[string]any{
		{"name": "real", "kubeconfig": string(t.kubeconfig), "namespaces": []string{t.namespace}, "default": true},
		{"name": t.own(), "kubeconfig": string(t.kubeconfig), "namespaces": []string{t.namespace}},
		{"name": "lab", "kubeconfig": string(t.lab.Kubeconfig(token))},
	} {
		got, err := r.fleet.ask(ctx, r.fleet.members[0], t.org, http.MethodPost, "/v1/k8s/clusters", in)
		if err != nil || got.status != http.StatusCreated {
			return fmt.Errorf("registering %s: %d %s %w", in["name"], got.status, got.body, err)
		}
	}
	return nil
}

// close takes away what open brought.
func (r *runner) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group := errgroup.Group{}
	group.SetLimit(8)
	for _, t := range r.tenants {
		if t == nil {
			continue
		}
		group.Go(func() error {
			if r.fleet != nil {
				for _, name := range t.registrations() {
					_, _ = r.fleet.ask(ctx, r.fleet.members[0], t.org, http.MethodDelete, "/v1/k8s/clusters/"+name, nil)
				}
			}
			return t.close(ctx)
		})
	}
	err := group.Wait()
	if r.fleet != nil {
		r.fleet.stop()
	}
	return err
}

// verify asks every replica for everything that every tenant has, through every
// registration, until it gets it or patience is over. lost counts what a tenant
// has registered and does not get.
func (r *runner) verify(ctx context.Context, patience time.Duration) (lost int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var missing atomic.Int64
	group := errgroup.Group{}
	group.SetLimit(16)
	for _, t := range r.tenants {
		for n, m := range r.fleet.members {
			group.Go(func() error {
				for _, c := range t.everything() {
					if err := r.insist(ctx, t, m, c); err != nil {
						missing.Add(1)
						r.count.breach("replica %d, %s %s: %v", n, c.method, c.target, err)
					}
				}
				return nil
			})
		}
	}
	_ = group.Wait()
	return int(missing.Load())
}

// insist makes a call until it is answered.
func (r *runner) insist(ctx context.Context, t *tenant, m *member, c call) error {
	for {
		got, err := r.fleet.ask(ctx, m, t.org, c.method, c.target, nil)
		switch {
		case err != nil:
		case got.status != http.StatusOK:
			err = fmt.Errorf("%d %s", got.status, got.code)
		default:
			return c.whole(t, got)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// loopback makes sure that nothing here is anywhere else.
func (r *runner) loopback() error {
	var all []string
	for _, t := range r.tenants {
		all = append(all, t.lab.URL(), t.cluster.Server)
	}
	for _, at := range append(all, r.world.Vault.Addr) {
		if !strings.Contains(at, "://127.0.0.1:") {
			return errors.New("not on loopback: " + at)
		}
	}
	return nil
}

// marked counts the elements of a list in an answer, and those with the mark.
func marked(body []byte, list, mark string) (all, own int) {
	var answer map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(body, &answer) != nil || json.Unmarshal(answer[list], &items) != nil {
		return 0, 0
	}
	for _, item := range items {
		if bytes.Contains(item, []byte(mark)) {
			own++
		}
	}
	return len(items), own
}
