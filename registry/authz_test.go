package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/testcluster"
)

// The attacker's side: what a tenant can try, on the real Vault and two real
// clusters.

// two is a registry in which acme has alpha and zoo has beta, by the names given.
func two(t *testing.T, acmes, zoos string) (r *Registry, acme, zoo string) {
	t.Helper()
	world := realWorld(t)
	acme, zoo = uniqueOrg("acme"), uniqueOrg("zoo")
	r = newRegistry(t, realVault(t))
	for _, in := range []struct {
		org, name string
		cluster   *testcluster.Cluster
	}{{acme, acmes, world.Alpha()}, {zoo, zoos, world.Beta()}} {
		if _, err := r.Register(as(t, in.org), Registration{Name: in.name, Kubeconfig: in.cluster.Admin()}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx := zip.WithCaller(context.Background(), zip.Caller{Org: in.org, User: "u"})
			if _, err := r.Deregister(ctx, in.name); err != nil {
				t.Error(err)
			}
		})
	}
	return r, acme, zoo
}

// TestForeignClusterNameIsNotFound: a name only another org has is answered as
// one nobody has, byte for byte, and by the same calls of the KMS.
func TestForeignClusterNameIsNotFound(t *testing.T) {
	r, acme, zoo := two(t, "secret-prod", "other")
	if _, err := r.Get(as(t, acme), "secret-prod"); err != nil {
		t.Fatalf("the owner's: %v", err)
	}
	// What the owner has in the cache must not shorten another's way to a 404.
	reach(t, r, acme, "secret-prod")
	asked := &counting{}
	r.store = observed{r.store, asked}
	try := func(name string, ask func(string) error) (string, int32) {
		t.Helper()
		before := asked.calls.Load()
		refusal := wantRefusal(t, ask(name), "cluster_not_found")
		text, err := json.Marshal(refusal)
		if err != nil || refusal.Status != http.StatusNotFound {
			t.Fatal(refusal.Status, err)
		}
		return strings.ReplaceAll(string(text), name, "NAME"), asked.calls.Load() - before
	}
	for what, ask := range map[string]func(string) error{
		"Get":   func(name string) error { _, err := r.Get(as(t, zoo), name); return err },
		"Reach": func(name string) error { _, err := r.Reach(as(t, zoo), name); return err },
	} {
		foreign, work := try("secret-prod", ask)
		unknown, same := try("nobody-has1", ask)
		if foreign != unknown {
			t.Errorf("%s: foreign %s, unknown %s", what, foreign, unknown)
		}
		if work != same || work == 0 {
			t.Errorf("%s: a foreign name takes %d calls of the KMS, an unknown one %d", what, work, same)
		}
	}
	records, err := r.List(as(t, zoo))
	if err != nil || len(records) != 1 || records[0].Name != "other" {
		t.Errorf("zoo lists %v, %v", records, err)
	}
}

type counting struct {
	unobserved
	calls atomic.Int32
}

func (c *counting) KMS(string, time.Duration, error) { c.calls.Add(1) }

// TestSameNameInTwoOrgsAreTwoClusters: prod is alpha to acme and beta to zoo,
// in the record, in what is read and in what opens a sealed token.
func TestSameNameInTwoOrgsAreTwoClusters(t *testing.T) {
	r, acme, zoo := two(t, "prod", "prod")
	world := realWorld(t)
	uid := func(text string) string {
		var ns struct{ Metadata struct{ UID string } }
		if err := json.Unmarshal([]byte(text), &ns); err != nil || ns.Metadata.UID == "" {
			t.Fatalf("%v: %s", err, text)
		}
		return ns.Metadata.UID
	}
	var bounds []*Bound
	for i, org := range []string{acme, zoo} {
		record, err := r.Get(as(t, org), "prod")
		if err != nil {
			t.Fatal(err)
		}
		if record.Endpoint != world.Clusters[i].Server || record.Org != org || record.Nodes < 1 {
			t.Errorf("%s's prod is %+v, want the cluster at %s", org, record, world.Clusters[i].Server)
		}
		b := reach(t, r, org, "prod")
		bounds = append(bounds, b)
		got, err := get(t.Context(), b, "/api/v1/namespaces/kube-system")
		if err != nil {
			t.Fatal(err)
		}
		_, want, err := world.Clusters[i].Do(t.Context(), "GET", "/api/v1/namespaces/kube-system", nil)
		if err != nil || uid(got) != uid(string(want)) {
			t.Errorf("%s reads another cluster's kube-system (%v)", org, err)
		}
	}
	token := bounds[0].Seal("list", []byte("page 2"))
	if plain, err := bounds[0].Open("list", token); err != nil || string(plain) != "page 2" {
		t.Errorf("acme's own token: %q, %v", plain, err)
	}
	_, err := bounds[1].Open("list", token)
	wantRefusal(t, err, "bad_continue")
}

// TestRefsAreOrgPrefixed: every call of the store is for a ref under the
// caller's own org, whatever the org is called.
func TestRefsAreOrgPrefixed(t *testing.T) {
	upstream := newFake(t)
	// C4: near-equal names are different orgs, in every key there is.
	orgs := []string{"acme", "Acme", "ACME", "K", "k", "\u212a", "\ufb01", "fi", "\uff11", "1", "\u00e9", "e\u0301", "a b", "%2e%2e", "acme%2fk8s", "a;b"}
	memory := NewMemory()
	spy := &spying{Store: memory, t: t}
	r := newRegistry(t, spy)
	for i, org := range orgs {
		record := upstream.register(t, r, org, "prod", fmt.Sprintf("%s-%d", sentinel, i))
		if record.Org != orgOf(t, org).name {
			t.Errorf("%q registers as %q", org, record.Org)
		}
	}
	for i, org := range orgs {
		upstream.requests()
		if _, err := get(t.Context(), reach(t, r, org, "prod"), "/api/v1/nodes"); err != nil {
			t.Fatal(err)
		}
		if got := upstream.requests()[0].Authorization; got != fmt.Sprintf("Bearer %s-%d", sentinel, i) {
			t.Errorf("%q reaches with another org's credential", org)
		}
	}
	for _, org := range orgs {
		if records, err := r.List(as(t, org)); err != nil || len(records) != 1 {
			t.Errorf("%q lists %d clusters, %v", org, len(records), err)
		}
		if removed, err := r.Deregister(as(t, org), "prod"); err != nil || !removed {
			t.Errorf("%q deregisters: %t, %v", org, removed, err)
		}
	}
	if spy.calls.Load() == 0 {
		t.Error("nothing was looked at")
	}
	for ref := range memory.items {
		if !strings.HasSuffix(ref, "/k8s/default") {
			t.Errorf("%s is left", ref)
		}
	}
	for _, org := range []string{"", " ", "a/b", "..", ".", "a\x00b", "a\nb", "a,b", strings.Repeat("a", 129), "+", "a*", `a\b`} {
		_, err := r.List(as(t, org))
		if refusal := asRefusal(err); refusal == nil || refusal.Code != "no_tenant" || refusal.Status != http.StatusForbidden {
			t.Errorf("org %q: %v, want no_tenant", org, err)
		}
	}
	for _, name := range []string{"", "..", ".", "a/b", "../../zoo/k8s/clusters/prod", "A", "a.b", "-a", "a-", strings.Repeat("a", 64), "a%2f", "a\x00"} {
		for what, ask := range map[string]func() error{
			"Get":        func() error { _, err := r.Get(as(t, "acme"), name); return err },
			"Reach":      func() error { _, err := r.Reach(as(t, "acme"), name); return err },
			"Deregister": func() error { _, err := r.Deregister(as(t, "acme"), name); return err },
			"Register": func() error {
				_, err := r.Register(as(t, "acme"), Registration{Name: name, Kubeconfig: upstream.kubeconfig("t")})
				return err
			},
		} {
			if refusal := asRefusal(ask()); refusal == nil || refusal.Code != "bad_input" {
				t.Errorf("%s of %q: %v, want bad_input", what, name, refusal)
			}
		}
	}
}

// spying is a Store that looks at the refs it is asked for.
type spying struct {
	Store
	t     *testing.T
	calls atomic.Int32
}

func (s *spying) check(org Org, ref string) {
	s.calls.Add(1)
	if !strings.HasPrefix(ref+"/", "orgs/"+org.name+"/k8s/") || strings.Count(ref, "/") > 5 {
		s.t.Errorf("as %q the store is asked for %q", org.name, ref)
	}
}

func (s *spying) Get(ctx context.Context, org Org, ref string, version int) ([]byte, int, error) {
	s.check(org, ref)
	return s.Store.Get(ctx, org, ref, version)
}

func (s *spying) Versions(ctx context.Context, org Org, ref string) (int, []int, error) {
	s.check(org, ref)
	return s.Store.Versions(ctx, org, ref)
}

func (s *spying) Put(ctx context.Context, org Org, ref string, data []byte, cas int) (int, error) {
	s.check(org, ref)
	return s.Store.Put(ctx, org, ref, data, cas)
}

func (s *spying) List(ctx context.Context, org Org, ref string) ([]string, error) {
	s.check(org, ref)
	return s.Store.List(ctx, org, ref)
}

func (s *spying) Destroy(ctx context.Context, org Org, ref string, versions ...int) error {
	s.check(org, ref)
	return s.Store.Destroy(ctx, org, ref, versions...)
}

// TestDeregisterCannotReachAcrossOrgs: what one org deregisters is its own.
func TestDeregisterCannotReachAcrossOrgs(t *testing.T) {
	r, acme, zoo := two(t, "prod", "other")
	b := reach(t, r, acme, "prod")
	if removed, err := r.Deregister(as(t, zoo), "prod"); err != nil || removed {
		t.Errorf("zoo deregisters acme's prod: %t, %v", removed, err)
	}
	select {
	case <-b.Life().Done():
		t.Error("acme's reach has ended")
	default:
	}
	if _, err := r.Get(as(t, acme), "prod"); err != nil {
		t.Errorf("acme's prod: %v", err)
	}
	if _, err := get(t.Context(), b, "/version"); err != nil {
		t.Errorf("acme's prod: %v", err)
	}
	at := realWorld(t).Vault
	org := orgOf(t, acme)
	if status, _, err := at.Do(t.Context(), "GET", "/v1/secret/data/"+credentialRef(org, "prod"), nil); err != nil || status != http.StatusOK {
		t.Errorf("acme's credential in Vault: %d, %v", status, err)
	}
	if removed, err := r.Deregister(as(t, acme), "prod"); err != nil || !removed {
		t.Fatalf("acme's own: %t, %v", removed, err)
	}
	for _, kind := range []string{"data", "metadata"} {
		for _, ref := range []string{credentialRef(org, "prod"), recordRef(org, "prod")} {
			if status, _, err := at.Do(t.Context(), "GET", "/v1/secret/"+kind+"/"+ref, nil); err != nil || status != http.StatusNotFound {
				t.Errorf("%s %s after deregistering: %d, %v", kind, ref, status, err)
			}
		}
	}
	if removed, err := r.Deregister(as(t, acme), "prod"); err != nil || removed {
		t.Errorf("again: %t, %v", removed, err)
	}
	if _, err := r.Get(as(t, zoo), "other"); err != nil {
		t.Errorf("zoo's own: %v", err)
	}
}

// bounded is acme's alpha, registered for two namespaces of its own with a
// service account that may read pods there and nowhere else.
func bounded(t *testing.T) (r *Registry, b *Bound, namespaces []string) {
	t.Helper()
	alpha := realWorld(t).Alpha()
	for range 2 {
		ns, err := alpha.Namespace(t.Context(), "bound")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = alpha.DropNamespace(context.Background(), ns) })
		namespaces = append(namespaces, ns)
	}
	account := "reader-" + strings.ToLower(newID()[:8])
	kubeconfig, err := alpha.ServiceAccount(t.Context(), account, []testcluster.Rule{{Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}, namespaces...)
	if err != nil {
		t.Fatal(err)
	}
	r = newRegistry(t, NewMemory())
	record, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: kubeconfig, Namespaces: namespaces, Default: true})
	if err != nil {
		t.Fatal(err)
	}
	if record.Nodes != 0 || record.CredentialExpires == "" || !record.Default {
		t.Errorf("the record is %+v", record)
	}
	return r, reach(t, r, "acme", "prod"), namespaces
}

// TestForeignNamespaceIsRefused: a namespace outside the bound, and the cluster
// as a whole, before anything is dialled.
func TestForeignNamespaceIsRefused(t *testing.T) {
	r, b, namespaces := bounded(t)
	for _, ns := range namespaces {
		if err := b.One(ns); err != nil {
			t.Errorf("%s: %v", ns, err)
		}
		if got, err := b.Scope(ns); err != nil || len(got) != 1 || got[0] != ns {
			t.Errorf("%s: %v, %v", ns, got, err)
		}
	}
	for _, ns := range []string{"kube-system", "default", namespaces[0] + "x", strings.ToUpper(namespaces[0]), " " + namespaces[0], "*", "..", namespaces[0] + "/pods"} {
		wantRefusal(t, b.One(ns), "outside_bound")
		got, err := b.Scope(ns)
		wantRefusal(t, err, "outside_bound")
		if got != nil {
			t.Errorf("%q: refused, and answered %v", ns, got)
		}
	}
	wantRefusal(t, b.One(""), "bad_input")
	wantRefusal(t, b.WholeCluster(), "outside_bound")
	// A credential that reaches further than its bound gains nothing by it, and
	// one that does not reach its bound is not registered.
	_, err := r.Register(as(t, "acme"), Registration{Name: "other", Kubeconfig: realWorld(t).Alpha().Admin(), Namespaces: []string{"team-a"}})
	if err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, reach(t, r, "acme", "other").One("kube-system"), "outside_bound")
	account, err := realWorld(t).Alpha().ServiceAccount(t.Context(), "reader-"+strings.ToLower(newID()[:8]),
		[]testcluster.Rule{{Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}, namespaces[0])
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Register(as(t, "acme"), Registration{Name: "no", Kubeconfig: account, Namespaces: []string{"kube-system"}})
	if refusal := wantRefusal(t, err, "forbidden"); refusal.Reason != "Forbidden" {
		t.Errorf("the reason is %q", refusal.Reason)
	}
	_, err = r.Register(as(t, "acme"), Registration{Name: "no", Kubeconfig: account})
	wantRefusal(t, err, "forbidden")
}

// TestBoundedListDoesNotWiden: no namespace is every namespace of the bound and
// no other, and the answer's owner can do what it likes with it.
func TestBoundedListDoesNotWiden(t *testing.T) {
	_, b, namespaces := bounded(t)
	want := []string{min(namespaces[0], namespaces[1]), max(namespaces[0], namespaces[1])}
	for range 2 {
		got, err := b.Scope("")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		got[0], got[1] = "", "kube-system"
		b.Record().Namespaces[0] = "kube-system"
	}
	wantRefusal(t, b.One("kube-system"), "outside_bound")
	for _, ns := range want {
		if _, err := get(t.Context(), b, Path("api", "v1", "namespaces", ns, "pods")); err != nil {
			t.Error(err)
		}
	}
	whole, acme, _ := two(t, "prod", "prod")
	all := reach(t, whole, acme, "prod")
	if got, err := all.Scope(""); err != nil || len(got) != 1 || got[0] != "" {
		t.Errorf("a cluster registered whole is read as %q, %v", got, err)
	}
	if err := errors.Join(all.WholeCluster(), all.One("kube-system")); err != nil {
		t.Error(err)
	}
}

// TestOrgHeaderWithoutPrincipalIsRefused: an org is somebody's, or nobody's.
func TestOrgHeaderWithoutPrincipalIsRefused(t *testing.T) {
	r := newRegistry(t, NewMemory())
	inbound := func(c zip.Caller) context.Context { return zip.WithInbound(t.Context(), c) }
	stated := zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u"})
	for name, ctx := range map[string]context.Context{
		"nobody":                            t.Context(),
		"an org without a user":             inbound(zip.Caller{Org: "acme"}),
		"an org and a blank user":           inbound(zip.Caller{Org: "acme", User: " \t"}),
		"an org and a name but no user":     inbound(zip.Caller{Org: "acme", Name: "n", Email: "e", IsAdmin: true}),
		"a user without an org":             inbound(zip.Caller{User: "u"}),
		"a user and a blank org":            inbound(zip.Caller{User: "u", Org: "  "}),
		"an owner is no org":                inbound(zip.Caller{User: "u", Owner: "acme"}),
		"stated beside an anonymous caller": zip.WithInbound(stated, zip.Caller{}),
	} {
		t.Run(name, func(t *testing.T) {
			for what, ask := range map[string]func() error{
				"Tenant":     func() error { _, err := Tenant(ctx); return err },
				"List":       func() error { _, err := r.List(ctx); return err },
				"Get":        func() error { _, err := r.Get(ctx, "prod"); return err },
				"Reach":      func() error { _, err := r.Reach(ctx, "prod"); return err },
				"Deregister": func() error { _, err := r.Deregister(ctx, "prod"); return err },
				"Register":   func() error { _, err := r.Register(ctx, Registration{Name: "prod"}); return err },
				"Admit":      func() error { _, err := r.Admit(ctx, "prod", false); return err },
			} {
				if refusal := asRefusal(ask()); refusal == nil || refusal.Code != "no_tenant" || refusal.Status != http.StatusForbidden {
					t.Errorf("%s: %v, want no_tenant", what, refusal)
				}
			}
		})
	}
	if org, err := Tenant(stated); err != nil || org.String() != "acme" {
		t.Errorf("a user of acme is %q, %v", org, err)
	}
}
