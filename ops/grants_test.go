package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/testcluster"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// privilege is one verb on one resource, or on one path.
type privilege struct{ verb, group, resource, url string }

func (p privilege) String() string {
	if p.url != "" {
		return p.verb + " " + p.url
	}
	return p.verb + " " + strings.TrimSuffix(p.resource+"."+p.group, ".")
}

func (p privilege) rule() testcluster.Rule {
	if p.url != "" {
		return testcluster.Rule{NonResourceURLs: []string{p.url}, Verbs: []string{p.verb}}
	}
	return testcluster.Rule{Groups: []string{p.group}, Resources: []string{p.resource}, Verbs: []string{p.verb}}
}

// privileges is what an op's grants come to, for one of the closed kinds where
// it has grants on them.
func privileges(op *manifest.Op, kind string) (all []privilege) {
	for _, g := range op.Grants {
		for _, verb := range g.Verbs {
			p := privilege{verb: verb, group: g.Group, resource: g.Resource, url: g.URL}
			if g.Subresource != "" {
				p.resource += "/" + g.Subresource
			}
			if g.Kinds {
				i := slices.IndexFunc(ops.Kinds, func(k host.Kind) bool { return k.Kind == kind })
				p.group, p.resource = ops.Kinds[i].Group, ops.Kinds[i].Resource
			}
			all = append(all, p)
		}
	}
	return all
}

// confined is a service account that may do what a test says, registered as two
// clusters of acme's: whole, and bound to a namespace.
type confined struct {
	s          *stack
	cluster    *testcluster.Cluster
	account    string
	kubeconfig []byte
	namespace  string // populated, and the bound
	node       string // a node of the test's own, that takes no pods of others
	owner      string // an owner reference that makes a pod a managed one
	n          int    // counts the calls, so that each can make something new
}

const (
	whole = "confined"       // the cluster's name
	bound = "confined-bound" // and its name as a bounded registration
)

// confine makes the service account, with rules enough to be registered.
func confine(t *testing.T, s *stack, account string) *confined {
	t.Helper()
	c := &confined{s: s, cluster: s.alpha(), account: account, namespace: s.populated(t, 1)}
	c.node = s.node(t)
	c.owner = s.controller(t, c.namespace)
	kubeconfig, err := c.cluster.ServiceAccount(t.Context(), account, []testcluster.Rule{
		{Resources: []string{"nodes", "pods"}, Verbs: []string{"list"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.kubeconfig = kubeconfig
	s.register(t, whole, kubeconfig)
	s.register(t, bound, kubeconfig, c.namespace)
	if err := c.cluster.WaitMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	withoutDefaults(t, c.cluster)
	return c
}

// withoutDefaults takes away, for the time of the test, what every Kubernetes
// lets whoever has a credential do: asking for its version and what it may do
// itself. An operator may have done so too, and otherwise it could not be shown
// that the grants for it are needed.
func withoutDefaults(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	for _, name := range []string{"system:basic-user", "system:discovery", "system:public-info-viewer"} {
		path := "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		var binding fields
		if err := json.Unmarshal(must(t, c, http.MethodGet, path+"/"+name, ""), &binding); err != nil {
			t.Fatal(err)
		}
		meta := binding["metadata"].(fields)
		binding["metadata"] = fields{"name": name, "labels": meta["labels"], "annotations": meta["annotations"]}
		text, err := json.Marshal(binding)
		if err != nil {
			t.Fatal(err)
		}
		must(t, c, http.MethodDelete, path+"/"+name, "")
		t.Cleanup(func() { must(t, c, http.MethodPost, path, string(text)) })
	}
}

// allow gives the account these privileges and no others, and waits until the
// cluster's authorizer has it: a rule that only this set has is its mark.
func (c *confined) allow(t *testing.T, set []privilege) {
	t.Helper()
	c.n++
	mark := privilege{verb: "get", group: "test.example", resource: fmt.Sprintf("set-%d-%d", os.Getpid(), c.n)}
	rules := []testcluster.Rule{mark.rule()}
	for _, p := range set {
		rules = append(rules, p.rule())
	}
	if _, err := c.cluster.ServiceAccount(t.Context(), c.account, rules); err != nil {
		t.Fatal(err)
	}
}

// step is one call, and whether a success of it is one: false where the answer
// shows that the cluster refused.
type step struct {
	in    fields
	shows func(fields) bool
}

// fresh is a name that no call had before.
func (c *confined) fresh(prefix string) string {
	c.n++
	return fmt.Sprintf("%s-%d", prefix, c.n)
}

// some is true of an answer whose list is not empty.
func some(list string) func(fields) bool {
	return func(out fields) bool { all, _ := out[list].([]any); return len(all) > 0 }
}

// steps is what to call of an op, so that all of its grants are needed.
func (c *confined) steps(t *testing.T, op *manifest.Op, kind string) []step {
	t.Helper()
	ns := c.namespace
	in := fields{"cluster": whole, "namespace": ns}
	with := func(more fields) fields {
		out := maps.Clone(in)
		maps.Copy(out, more)
		return out
	}
	collection := ""
	for _, k := range ops.Kinds {
		if k.Kind == kind {
			collection = fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", k.Group, k.Version, ns, k.Resource)
		}
	}
	// resource makes one of the kind, as somebody else, and answers its version.
	resource := func(name string) string {
		text := must(t, c.cluster, http.MethodPost, collection, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":{"a":1}}`,
			strings.Join(strings.Split(collection, "/")[2:4], "/"), kind, name))
		var made struct {
			Metadata struct{ ResourceVersion string }
		}
		json.Unmarshal(text, &made)
		return made.Metadata.ResourceVersion
	}
	switch op.Token {
	case plane.ClustersList:
		return []step{{nil, some("clusters")}}
	case plane.ClustersGet:
		return []step{{in: fields{"cluster": whole}}}
	case plane.ClustersRegister:
		name := c.fresh("confined")
		t.Cleanup(func() { c.s.call("acme", http.MethodDelete, "/v1/k8s/clusters/"+name, nil) })
		return []step{{in: fields{"name": name, "kubeconfig": string(c.kubeconfig)}, shows: func(out fields) bool { return out["nodes"] != json.Number("0") }}}
	case plane.ClustersDeregister:
		name := c.fresh("confined")
		c.s.register(t, name, c.cluster.Admin())
		return []step{{fields{"cluster": name}, func(out fields) bool { return out["removed"] == true }}}
	case plane.ClustersStatus:
		// A cluster that refuses is one that does not answer: a 200 that says so.
		return []step{{fields{"cluster": whole}, func(out fields) bool { return out["connected"] == true }}}
	case plane.NodesList, plane.VolumesListPersistent:
		return []step{{fields{"cluster": whole}, some(op.Items)}}
	case plane.NodesCordon:
		c.s.pin(t, c.namespace, c.fresh("managed"), c.node, c.owner, "")
		return []step{{fields{"cluster": whole, "node": c.node, "drain": true, "timeoutSeconds": 30},
			func(out fields) bool { return out["evicted"] != json.Number("0") && out["remaining"] == nil }}}
	case plane.NodesVolumeStats:
		return []step{{fields{"cluster": whole}, some("volumes")}}
	case plane.NamespacesList:
		// The whole cluster's are listed; a bound's are read one by one.
		return []step{{fields{"cluster": whole}, some("namespaces")}, {fields{"cluster": bound}, some("namespaces")}}
	case plane.NamespacesEnsure:
		name := c.fresh(ns)
		t.Cleanup(func() { c.cluster.DropNamespace(context.Background(), name) })
		return []step{{with(fields{"namespace": name}), created}, {with(fields{"namespace": name}), nil}}
	case plane.NamespacesDelete:
		name := c.fresh(ns)
		must(t, c.cluster, http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
		t.Cleanup(func() { c.cluster.DropNamespace(context.Background(), name) })
		return []step{{with(fields{"namespace": name}), removed}}
	case plane.NamespacesGet, plane.VolumesListClaims, plane.PodsList, plane.WorkloadsListDeployments, plane.WorkloadsListReplicasets,
		plane.WorkloadsListStatefulsets, plane.WorkloadsListServices, plane.WorkloadsListIngresses, plane.WorkloadsListEvents,
		plane.WorkloadsListConfigmaps, plane.JobsList:
		if op.Items == "" {
			return []step{{in: in}}
		}
		// In one namespace, in all of them, and in the bound.
		return []step{{in, some(op.Items)}, {fields{"cluster": whole}, some(op.Items)}, {fields{"cluster": bound}, some(op.Items)}}
	case plane.PodsLogs:
		return []step{{fields{"cluster": whole, "namespace": "team-a", "pod": c.s.pod()}, nil}}
	case plane.VolumesEnsureClaim:
		again := with(fields{"name": c.fresh("claim"), "gi": 1, "storageClass": "expandable"})
		return []step{{again, created}, {again, nil}}
	case plane.VolumesExpandClaim:
		c.n++
		return []step{{in: with(fields{"name": "data-0", "gi": 10 + c.n})}}
	case plane.WorkloadsGetDeployment:
		return []step{{in: with(fields{"name": "web-0"})}}
	case plane.JobsCreate:
		return []step{{in: with(fields{"name": c.fresh("job"), "image": "registry.example/task"})}}
	case plane.JobsGet:
		return []step{{in: with(fields{"name": "once-0"})}}
	case plane.ResourcesList:
		resource(c.fresh("listed"))
		return []step{{with(fields{"kind": kind}), some("resources")}}
	case plane.ResourcesGet:
		name := c.fresh("got")
		resource(name)
		return []step{{in: with(fields{"kind": kind, "name": name})}}
	case plane.ResourcesWatch:
		before := resource(c.fresh("old"))
		resource(c.fresh("new"))
		return []step{{with(fields{"kind": kind}), some("changes")}, {with(fields{"kind": kind, "version": before, "waitSeconds": 5}), some("changes")}}
	case plane.ResourcesApply:
		again := with(fields{"kind": kind, "name": c.fresh("applied"), "spec": fields{"a": 2}})
		return []step{{in: again}, {in: again}}
	case plane.ResourcesDelete:
		name := c.fresh("deleted")
		resource(name)
		return []step{{with(fields{"kind": kind, "name": name}), removed}}
	case plane.AccessCan:
		return []step{{fields{"cluster": whole, "verb": "get", "resource": "pods"}, nil}}
	case plane.MetricsPods:
		return []step{{fields{"cluster": whole, "namespace": "team-a"}, some("pods")}}
	}
	t.Fatalf("there is no call of %s", op.Token)
	return nil
}

func created(out fields) bool { return out["created"] == true }
func removed(out fields) bool { return out["removed"] == true }

// refused makes the calls of an op and says which of them the cluster refused.
// Anything else than success and the cluster's refusal fails the test.
func (c *confined) refused(t *testing.T, op *manifest.Op, steps []step) (which []int) {
	t.Helper()
	for i, step := range steps {
		r := c.s.ask("acme", op, step.in)
		switch {
		case r.status == http.StatusForbidden && r.code == "forbidden":
			which = append(which, i)
		case op.Token == plane.ClustersStatus && r.status == http.StatusOK && !step.shows(r.object()) && strings.Contains(string(r.body), `"reason":"forbidden`):
			which = append(which, i)
		case r.status >= 300:
			t.Errorf("call %d of %s: %s", i, op.Token, r)
		case step.shows != nil && !step.shows(r.object()):
			t.Errorf("call %d of %s shows no success: %s", i, op.Token, r)
		}
	}
	return which
}

// kubelet has a kubelet measure a volume, for the one op that reads kubelets.
func (c *confined) kubelet(t *testing.T, op *manifest.Op) {
	t.Helper()
	if op.Token != plane.NodesVolumeStats {
		return
	}
	k, err := c.cluster.StartKubelet(t.Context(), c.cluster.Name+"-node-2", func() []byte {
		return []byte(`{"node":{},"pods":[{"volume":[{"pvcRef":{"namespace":"a","name":"b"},"usedBytes":7}]}]}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
}

// kinds is the kinds to call an op for: each of the table for one that has
// grants on them, and none otherwise.
func kinds(op *manifest.Op) (names []string) {
	if !slices.ContainsFunc(op.Grants, func(g manifest.Grant) bool { return g.Kinds }) {
		return []string{""}
	}
	for _, k := range ops.Kinds {
		names = append(names, k.Kind)
	}
	return names
}

// TestClusterRoleIsEnough binds a service account to the ClusterRole of
// rbac.yaml, as committed, and to nothing else. Every op succeeds.
func TestClusterRoleIsEnough(t *testing.T) {
	s := theStack(t)
	c := confine(t, s, "committed")
	role, err := os.ReadFile("../rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(role), "\n") {
		if rule, _, _ := strings.Cut(line, "#"); strings.Contains(rule, "secrets") && !strings.Contains(rule, "kmssecrets") && !strings.Contains(rule, "secrets.lux.network") {
			t.Errorf("line %d of rbac.yaml: %s", i+1, line)
		}
	}
	if err := c.cluster.Apply(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	c.allow(t, nil)
	binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"committed-k8s"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"k8s"},` +
		`"subjects":[{"kind":"ServiceAccount","name":"committed","namespace":"kube-system"}]}`
	if err := c.cluster.Apply(t.Context(), []byte(binding)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		must(t, c.cluster, http.MethodDelete, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/committed-k8s", "")
	})
	list := opsByToken(t)
	until(t, "the binding", func() bool { return s.ask("acme", list[plane.NodesList], fields{"cluster": whole}).status == 200 })
	examined, calls := 0, 0
	for _, token := range slices.Sorted(maps.Keys(list)) {
		t.Run(token, func(t *testing.T) {
			c.kubelet(t, list[token])
			for _, kind := range kinds(list[token]) {
				steps := c.steps(t, list[token], kind)
				if which := c.refused(t, list[token], steps); len(which) > 0 {
					t.Errorf("%s: the cluster refused calls %v", kind, which)
				}
				calls += len(steps)
			}
		})
		examined++
	}
	if examined != len(plane.Table()) || calls < examined {
		t.Errorf("examined %d ops in %d calls", examined, calls)
	}
	t.Logf("rbac.yaml alone is enough: examined %d ops in %d calls", examined, calls)
}

// TestNoGrantIsMissingOrSuperfluous gives a service account the grants of one op
// alone, and the op succeeds; and then all of them but one, for each, and the
// cluster refuses. A refusal is a 403, forbidden, but for status, which answers
// connected false with forbidden as its reason.
func TestNoGrantIsMissingOrSuperfluous(t *testing.T) {
	s := theStack(t)
	c := confine(t, s, "confined")
	list := opsByToken(t)
	examined, grants, refusals := 0, 0, 0
	for _, token := range slices.Sorted(maps.Keys(list)) {
		op := list[token]
		t.Run(token, func(t *testing.T) {
			c.kubelet(t, op)
			for _, kind := range kinds(op) {
				all := privileges(op, kind)
				for i, missing := range all {
					grants++
					c.allow(t, slices.Delete(slices.Clone(all), i, i+1))
					if which := c.refused(t, op, c.steps(t, op, kind)); len(which) > 0 {
						refusals++
					} else {
						t.Errorf("%s: it does without %s", kind, missing)
					}
				}
				c.allow(t, all)
				if which := c.refused(t, op, c.steps(t, op, kind)); len(which) > 0 {
					t.Errorf("%s: with its grants alone the cluster refused calls %v", kind, which)
				}
			}
		})
		examined++
	}
	if examined != len(plane.Table()) || grants == 0 || refusals != grants {
		t.Errorf("examined %d ops and %d grants, and saw %d refusals", examined, grants, refusals)
	}
	t.Logf("examined %d ops and %d grants; %d removals were refused", examined, grants, refusals)
}

// TestKindsOutsideTheTable asks every op on kinds for what is not in the table,
// in every spelling, over both transports: it is refused, and the cluster hears
// nothing of it. The kinds in the table do reach it.
func TestKindsOutsideTheTable(t *testing.T) {
	s := theStack(t)
	cluster := misbehave.New()
	t.Cleanup(cluster.Close)
	s.register(t, "heard", cluster.Kubeconfig("SENTINEL"))
	spellings := []string{
		"Secret", "secret", "secrets", "Secrets", "SECRET", " Secret", "Secret ", "Secret\n", "Secret\x00", "v1/Secret", "v1.Secret",
		"Secret.v1", "core/v1/secrets", "Secr\u0435t", "\uff33ecret", "S\u00adecret", "App/../secrets", "../secrets", "%53ecret",
		"KMSsecret", "kmssecrets", "KMSSecret/../Secret", "app", "APP", "apps", "App ", "App\x00", "App,Secret", "hanzo.ai/v1/App",
		"\uff21pp", "Pod", "ConfigMap", "Node", "CustomResourceDefinition", "ClusterRole", "*", "null", "0", "",
	}
	list := opsByToken(t)
	ctx := zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u1"})
	examined, refused, heard := 0, 0, 0
	for _, token := range slices.Sorted(maps.Keys(list)) {
		op := list[token]
		i := slices.IndexFunc(op.In, func(f manifest.Field) bool { return f.Name == "kind" })
		if i < 0 {
			continue
		}
		examined++
		if op.In[i].Format != manifest.KindName || !op.In[i].Required {
			t.Errorf("the kind of %s is %+v", token, op.In[i])
		}
		in := plane.ApplyIn{Cluster: "heard", Namespace: "web", Name: "shop"}
		input := func(kind string) fields {
			out := fields{}
			for _, f := range op.In {
				switch f.Name {
				case "cluster":
					out[f.Name] = in.Cluster
				case "namespace":
					out[f.Name] = in.Namespace
				case "name":
					out[f.Name] = in.Name
				}
			}
			out["kind"] = kind
			return out
		}
		cluster.Reset()
		for _, kind := range spellings {
			r := s.ask("acme", op, input(kind))
			// Where the kind is in the path, an empty one is another path.
			if noRoute := kind == "" && r.status == http.StatusNotFound; !noRoute && (r.status != http.StatusBadRequest || r.code != "bad_input") {
				t.Errorf("%s of %q over REST: %s", token, kind, r)
			}
			in.Kind = kind
			var refusal *zip.Error
			if err := askKind(ctx, token, in); !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest {
				t.Errorf("%s of %q over the socket: %v", token, kind, err)
			}
			refused += 2
		}
		if requests := cluster.Requests(); len(requests) > 0 {
			t.Errorf("%s: the cluster heard %d requests, such as %+v", token, len(requests), requests[0])
		}
		for _, kind := range kinds(op) {
			cluster.Reset()
			s.ask("acme", op, input(kind))
			if len(cluster.Requests()) == 0 {
				t.Errorf("%s of %s did not reach the cluster", token, kind)
			}
			heard++
		}
	}
	if examined == 0 {
		t.Fatal("examined nothing")
	}
	t.Logf("examined %d ops: %d calls refused unheard, %d kinds heard", examined, refused, heard)
}

// askKind calls an op on kinds over the socket. in is the largest of their
// inputs.
func askKind(ctx context.Context, token string, in plane.ApplyIn) error {
	var err error
	switch token {
	case plane.ResourcesList:
		_, err = zip.Ask[plane.ResourcesIn, plane.Resources](ctx, ops.Name, token, &plane.ResourcesIn{Cluster: in.Cluster, Kind: in.Kind, Namespace: in.Namespace})
	case plane.ResourcesGet:
		_, err = zip.Ask[plane.ResourceIn, plane.Resource](ctx, ops.Name, token, &plane.ResourceIn{Cluster: in.Cluster, Kind: in.Kind, Namespace: in.Namespace, Name: in.Name})
	case plane.ResourcesWatch:
		_, err = zip.Ask[plane.WatchIn, plane.Changes](ctx, ops.Name, token, &plane.WatchIn{Cluster: in.Cluster, Kind: in.Kind, Namespace: in.Namespace})
	case plane.ResourcesApply:
		_, err = zip.Ask[plane.ApplyIn, plane.Resource](ctx, ops.Name, token, &in)
	case plane.ResourcesDelete:
		_, err = zip.Ask[plane.DeleteResourceIn, plane.Deleted](ctx, ops.Name, token, &plane.DeleteResourceIn{Cluster: in.Cluster, Kind: in.Kind, Namespace: in.Namespace, Name: in.Name})
	default:
		err = fmt.Errorf("no call of %s", token)
	}
	return err
}
