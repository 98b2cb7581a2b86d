package host

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

// askFor calls an op as an org, for one of its clusters.
func (s *sandbox) askFor(ctx context.Context, org, cluster, token, input string) (code string, waited time.Duration) {
	ctx = zip.WithCaller(ctx, zip.Caller{Org: org, User: "u"})
	c := &Call{Token: token, Input: []byte(input), Cluster: cluster, Answer: deaf{}}
	if err := s.Call(ctx, c); err != nil {
		return err.(*registry.Refusal).Code, c.Stats.Waited
	}
	return "", c.Stats.Waited
}

// TestShares: calls that hang on one cluster leave room for the org's other
// clusters, and all that an org does leaves room for other orgs.
func TestShares(t *testing.T) {
	for _, long := range []bool{false, true} {
		// Four clusters' worth, of which ops that wait by design have three quarters.
		pool := PoolConfig{Ceiling: 64, Org: 8, Cluster: 4, Waiting: 64, Wait: 50 * time.Millisecond}
		s := newSandbox(t, func(c *Config) { c.Pool = pool })
		s.load(t, sleeper(long))
		perCluster, perOrg := 4, 8
		if long {
			perCluster, perOrg = 3, 6
		}
		ctx, cancel := context.WithCancel(t.Context())
		var hung sync.WaitGroup
		hang := func(cluster string, n int) {
			for range n {
				hung.Go(func() { s.askFor(ctx, "acme", cluster, "k8s_sleeper_run", evil) })
			}
		}
		op, _ := s.Lookup("k8s_sleeper_run")
		shares := op.Module.instances.shares
		acme, err := registry.Tenant(zip.WithCaller(ctx, zip.Caller{Org: "acme", User: "u"}))
		if err != nil {
			t.Fatal(err)
		}
		running := func(o holder, n int) func() bool {
			o.org = acme
			return func() bool {
				shares.mu.Lock()
				defer shares.mu.Unlock()
				return shares.held[o] != nil && shares.held[o].users == n
			}
		}
		expect := func(org, cluster, want string) {
			t.Helper()
			if code, waited := s.askFor(t.Context(), org, cluster, "k8s_sleeper_run", good); code != want {
				t.Errorf("long %v: a call of %s to %s: %q, want %q", long, org, cluster, code, want)
			} else if want != "" && !long && waited < pool.Wait {
				t.Errorf("refused after %s, want %s", waited, pool.Wait)
			}
		}
		hang("dead", perCluster)
		eventually(t, "the cluster's share is taken", running(holder{cluster: "dead"}, perCluster))
		expect("acme", "dead", "overloaded")
		expect("acme", "other", "")
		expect("zoo", "dead", "")

		hang("dead-too", perOrg-perCluster)
		eventually(t, "the org's share is taken", running(holder{whole: true}, perOrg))
		expect("acme", "other", "overloaded")
		expect("zoo", "other", "")

		cancel()
		hung.Wait()
		expect("acme", "dead", "")
		shares.mu.Lock()
		if len(shares.held) != 0 {
			t.Errorf("long %v: %d shares are still held", long, len(shares.held))
		}
		shares.mu.Unlock()
	}
}

// TestShareQueueIsBounded: more callers than may wait are refused at once.
func TestShareQueueIsBounded(t *testing.T) {
	s := newShares(PoolConfig{Ceiling: 8, Cluster: 1, Waiting: 2, Wait: time.Minute})
	leave, err := s.enter(t.Context(), registry.Org{}, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	for range 2 {
		go func() {
			leave, err := s.enter(t.Context(), registry.Org{}, "c", false)
			if err == nil {
				leave()
			}
			served <- err
		}()
	}
	eventually(t, "two wait", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.held[holder{cluster: "c"}].users == 3
	})
	if _, err := s.enter(t.Context(), registry.Org{}, "c", false); err == nil {
		t.Error("a third may wait")
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(registry.Refuse(499, "canceled", "gone"))
	if _, err := s.enter(gone, registry.Org{}, "other", false); err != context.Cause(gone) {
		t.Errorf("a caller that has gone: %v", err)
	}
	leave()
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if len(s.held) != 0 {
		t.Errorf("%d shares are still held", len(s.held))
	}
}

// unadmitting admits nobody, and may not be asked for anything else.
type unadmitting struct {
	noRegistry
	t *testing.T
}

func (r unadmitting) Admit(context.Context, string, bool) (func(), error) {
	return nil, registry.Refuse(429, "rate_limited", "too many").After(time.Second)
}

func (r unadmitting) Reach(context.Context, string) (*registry.Bound, error) {
	r.t.Error("who was not admitted reached a cluster")
	return nil, registry.NotFound("")
}

// TestNobodyUnadmitted: an org that asks too much costs the key store nothing,
// whatever it asks for and whether it has it.
func TestNobodyUnadmitted(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Registry = unadmitting{t: t} })
	s.load(t, sleeper(false))
	s.load(t, guestModule{
		name: "reacher", fields: []manifest.Field{{Name: "cluster", Kind: manifest.String, Required: true, Format: manifest.Label}},
		grants: []manifest.Grant{{Verbs: []string{"list"}, Version: "v1", Resource: "pods"}},
	})
	for _, token := range []string{"k8s_sleeper_run", "k8s_reacher_run"} {
		if code, _ := s.askFor(t.Context(), "acme", "any", token, good); code != "rate_limited" {
			t.Errorf("%s: %q", token, code)
		}
	}
}
