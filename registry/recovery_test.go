package registry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// whole checks that a cluster is registered as a whole, with one of the tokens,
// or not at all, and answers which.
func whole(t *testing.T, store Store, server *misbehave.Server, org string) string {
	t.Helper()
	r := newRegistry(t, store) // as a replica that has just started
	r.lease = 50 * time.Millisecond
	_, getErr := r.Get(as(t, org), "prod")
	records, err := r.List(as(t, org))
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Reach(as(t, org), "prod")
	if (getErr == nil) != (err == nil) || (len(records) == 1) != (err == nil) {
		t.Fatalf("half a registration: get %v, list %d, reach %v", getErr, len(records), err)
	}
	if err != nil {
		wantRefusal(t, err, "cluster_not_found")
		return ""
	}
	before := len(server.Requests())
	if _, err := get(t.Context(), b, "/version"); err != nil {
		t.Fatalf("half a registration: %v", err)
	}
	return server.Requests()[before].Header.Get("Authorization")
}

// cutting is a store that dies at its n-th write: before it, or after it but
// before its answer.
type cutting struct {
	Store
	left  atomic.Int64
	after bool
}

func (c *cutting) write(do func() error) error {
	left := c.left.Add(-1)
	if left < 0 || left == 0 && !c.after {
		return ErrUnavailable
	}
	if err := do(); err != nil {
		return err
	}
	if left == 0 {
		return ErrUnavailable
	}
	return nil
}

func (c *cutting) Get(ctx context.Context, org Org, ref string, version int) ([]byte, int, error) {
	if c.left.Load() <= 0 {
		return nil, 0, ErrUnavailable
	}
	return c.Store.Get(ctx, org, ref, version)
}

func (c *cutting) Put(ctx context.Context, org Org, ref string, data []byte, cas int) (version int, err error) {
	err = c.write(func() error { version, err = c.Store.Put(ctx, org, ref, data, cas); return err })
	return version, err
}

func (c *cutting) Destroy(ctx context.Context, org Org, ref string, versions ...int) error {
	return c.write(func() error { return c.Store.Destroy(ctx, org, ref, versions...) })
}

// TestCutAtEveryWrite: a process that dies between any two writes of Register or
// Deregister leaves one whole registration or none, and the next call, of either
// kind, finishes or undoes what it began.
func TestCutAtEveryWrite(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	in := func(token string) Registration {
		return Registration{Name: "prod", Kubeconfig: server.Kubeconfig(token), Default: true}
	}
	const old, now, next = sentinel + "-old", sentinel + "-now", sentinel + "-next"
	calls := map[string]struct {
		registered bool // beforehand
		call       func(t *testing.T, r *Registry) error
		can        []string // what may be in force afterwards
	}{
		"the first registration": {false, func(t *testing.T, r *Registry) error { _, err := r.Register(as(t, "acme"), in(now)); return err }, []string{"", "Bearer " + now}},
		"a rotation":             {true, func(t *testing.T, r *Registry) error { _, err := r.Register(as(t, "acme"), in(now)); return err }, []string{"Bearer " + old, "Bearer " + now}},
		"a deregistration":       {true, func(t *testing.T, r *Registry) error { _, err := r.Deregister(as(t, "acme"), "prod"); return err }, []string{"Bearer " + old, ""}},
	}
	for what, c := range calls {
		for _, after := range []bool{false, true} {
			for n := int64(1); ; n++ {
				finished := false
				for _, repair := range []string{"register", "deregister"} {
					t.Run(fmt.Sprintf("%s, write %d, written %t, then %s", what, n, after, repair), func(t *testing.T) {
						store := NewMemory()
						if c.registered {
							if _, err := newRegistry(t, store).Register(as(t, "acme"), in(old)); err != nil {
								t.Fatal(err)
							}
						}
						cut := &cutting{Store: store, after: after}
						cut.left.Store(n)
						dying := newRegistry(t, cut)
						err := c.call(t, dying)
						finished = cut.left.Load() > 0
						if finished && err != nil {
							t.Fatalf("with no write cut: %v", err)
						}
						dying.Close()
						if got := whole(t, store, server, "acme"); !strings.Contains(strings.Join(c.can, "|")+"|", got+"|") || got == "" && c.can[0] != "" && c.can[1] != "" {
							t.Fatalf("in force is %q", got)
						}
						r := newRegistry(t, store)
						r.lease = 50 * time.Millisecond
						org := orgOf(t, "acme")
						if repair == "register" {
							if _, err := r.Register(as(t, "acme"), in(next)); err != nil {
								t.Fatalf("the next registration: %v", err)
							}
							if got := whole(t, store, server, "acme"); got != "Bearer "+next {
								t.Fatalf("in force is %q", got)
							}
							if record, err := r.Get(as(t, "acme"), "prod"); err != nil || !record.Default {
								t.Errorf("%+v, %v", record, err)
							}
							if _, live, _ := store.Versions(t.Context(), org, credentialRef(org, "prod")); len(live) != 1 {
								t.Errorf("versions %v of the credential are kept", live)
							}
							return
						}
						if _, err := r.Deregister(as(t, "acme"), "prod"); err != nil {
							t.Fatalf("the next deregistration: %v", err)
						}
						if removed, err := r.Deregister(as(t, "acme"), "prod"); err != nil || removed {
							t.Errorf("and again: %t, %v", removed, err)
						}
						for ref, item := range store.items {
							if data := item.live[item.newest]; ref != defaultRef(org) || strings.Contains(string(data), "prod") {
								t.Errorf("%s is left: %s", ref, data)
							}
						}
					})
				}
				if finished || t.Failed() {
					break
				}
			}
		}
	}
}

// TestConcurrentRegistrations: of those that register one name at the same time
// one wins, the others hear so, and nothing is half written.
func TestConcurrentRegistrations(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			server := misbehave.New()
			t.Cleanup(server.Close)
			store := open(t)
			org := uniqueOrg("acme")
			for round := range 3 {
				var won atomic.Int64
				var winners sync.Map
				var racing sync.WaitGroup
				for i := range 6 {
					r := newRegistry(t, store)
					token := fmt.Sprintf("%s-%d-%d", sentinel, round, i)
					racing.Go(func() {
						_, err := r.Register(as(t, org), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(token)})
						if err == nil {
							won.Add(1)
							winners.Store("Bearer "+token, true)
						} else if asRefusal(err).Code != "conflict" || asRefusal(err).RetryAfter == 0 {
							t.Errorf("the loser hears %v", err)
						}
					})
				}
				racing.Wait()
				got := whole(t, store, server, org)
				if _, ok := winners.Load(got); !ok || won.Load() == 0 {
					t.Errorf("%d won, and in force is %q", won.Load(), got)
				}
			}
			o := orgOf(t, org)
			r := newRegistry(t, store)
			if _, err := r.Register(as(t, org), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
				t.Fatal(err)
			}
			if _, live, err := store.Versions(t.Context(), o, credentialRef(o, "prod")); err != nil || len(live) != 1 {
				t.Errorf("versions %v of the credential are kept, %v", live, err)
			}
			if _, err := r.Deregister(as(t, org), "prod"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRegisterAgainstDeregister lets both run against one another on several
// replicas, and looks after each round for half a registration.
func TestRegisterAgainstDeregister(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			server := misbehave.New()
			t.Cleanup(server.Close)
			store := open(t)
			org := uniqueOrg("acme")
			var replicas []*Registry
			for range 3 {
				replicas = append(replicas, newRegistry(t, store))
			}
			for round := range 15 {
				var racing sync.WaitGroup
				for i := range 6 {
					r := replicas[i%len(replicas)]
					racing.Go(func() {
						var err error
						if (i+round)%2 == 0 {
							_, err = r.Register(as(t, org), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(fmt.Sprintf("%s-%d-%d", sentinel, round, i))})
						} else {
							_, err = r.Deregister(as(t, org), "prod")
						}
						if err != nil && asRefusal(err).Code != "conflict" {
							t.Error(err)
						}
					})
				}
				racing.Wait()
				whole(t, store, server, org)
			}
			if _, err := replicas[0].Deregister(as(t, org), "prod"); err != nil {
				t.Fatal(err)
			}
			if got := whole(t, store, server, org); got != "" {
				t.Errorf("in force is %q", got)
			}
		})
	}
}

// TestCorruptRecords is C12: what is not of the expected shape is a typed error
// or not registered, and a registration or a deregistration replaces it.
func TestCorruptRecords(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	org := orgOf(t, "acme")
	for _, c := range []struct {
		name, ref, data, code string
	}{
		{"C12 a record of other types", recordRef(org, "prod"), `{"name":1}`, "kms_corrupt"},
		{"C12 an empty record", recordRef(org, "prod"), `{}`, "kms_corrupt"},
		{"C12 another org's record", recordRef(org, "prod"), `{"name":"prod","org":"zoo","credentialVersion":1,"credentialId":"x"}`, "kms_corrupt"},
		{"C18 another cluster's record", recordRef(org, "prod"), `{"name":"other","org":"acme","credentialVersion":1,"credentialId":"x"}`, "kms_corrupt"},
		{"C12 a bound of no namespace", recordRef(org, "prod"), `{"name":"prod","org":"acme","credentialVersion":1,"credentialId":"x","namespaces":[""]}`, "kms_corrupt"},
		{"C12 a record of a missing credential", recordRef(org, "prod"), `{"name":"prod","org":"acme","credentialVersion":9,"credentialId":"x","future":[1]}`, "cluster_not_found"},
		{"C12 a record of another credential", recordRef(org, "prod"), `{"name":"prod","org":"acme","credentialVersion":1,"credentialId":"x"}`, "cluster_not_found"},
		{"C12 a credential of other types", credentialRef(org, "prod"), `{"id":[],"kubeconfig":{}}`, "kms_corrupt"},
	} {
		for _, repair := range []string{"register", "deregister"} {
			t.Run(c.name+", then "+repair, func(t *testing.T) {
				store := NewMemory()
				r := newRegistry(t, store)
				if _, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
					t.Fatal(err)
				}
				if c.ref == credentialRef(org, "prod") {
					store.items[c.ref].live[1] = []byte(c.data)
				} else if _, err := store.Put(t.Context(), org, c.ref, []byte(c.data), 1); err != nil {
					t.Fatal(err)
				}
				fresh := newRegistry(t, store)
				_, err := fresh.Reach(as(t, "acme"), "prod")
				wantRefusal(t, err, c.code)
				if _, err := fresh.List(as(t, "acme")); err != nil {
					t.Errorf("one odd record fails the list: %v", err)
				}
				if repair == "deregister" {
					if removed, err := fresh.Deregister(as(t, "acme"), "prod"); err != nil || !removed || len(store.items) > 0 {
						t.Errorf("%t, %v, %d refs left", removed, err, len(store.items))
					}
					return
				}
				if _, err := fresh.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel + "-new")}); err != nil {
					t.Fatal(err)
				}
				if got := whole(t, store, server, "acme"); got != "Bearer "+sentinel+"-new" {
					t.Errorf("in force is %q", got)
				}
			})
		}
	}
	t.Run("what the KMS holds passes the gate too", func(t *testing.T) {
		store := NewMemory()
		r := newRegistry(t, store)
		if _, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
			t.Fatal(err)
		}
		item := store.items[credentialRef(org, "prod")]
		item.live[1] = []byte(strings.Replace(string(item.live[1]), `\"token\"`, `\"tokenFile\":\"/etc/passwd\",\"token\"`, 1))
		_, err := newRegistry(t, store).Reach(as(t, "acme"), "prod")
		wantRefusal(t, err, "kms_corrupt")
	})
}
