package ops_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/guests"
	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// Until a change made on one replica is in force on another, and what a busy
// machine may add to the measuring of that.
const (
	inForce = time.Second
	slack   = 500 * time.Millisecond
)

// compiled is where the replicas of this test binary keep compiled guests.
var compiled = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "ops-compiled-") })

// replica is the whole service once more, over a store that others may share.
func replica(t *testing.T, store registry.Store) *stack {
	t.Helper()
	s := alone(t, store)
	s.world = theStack(t).world
	return s
}

// alone is the whole service without the test world. Its log is at debug.
func alone(t *testing.T, store registry.Store) *stack {
	t.Helper()
	cache, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{audit: &lines{}, log: &lines{}}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	metrics := ops.NewMetrics()
	clusters, err := registry.New(registry.Config{
		Store: store, Policy: registry.Policy{AllowPrivate: true}, Log: log, Observer: metrics,
		Limits: registry.Limits{OrgRate: -1, OrgBurst: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(clusters.Close)
	sandbox, err := host.New(t.Context(), host.Config{Registry: clusters, Kinds: ops.Kinds, Log: log, Metrics: metrics, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sandbox.Close(context.Background()) })
	modules, err := guests.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if _, err := sandbox.Load(t.Context(), m.WASM); err != nil {
			t.Fatal(err)
		}
	}
	service, err := ops.New(ops.Options{Host: sandbox, Log: log, Audit: slog.New(slog.NewJSONHandler(s.audit, nil)), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service.Product())
	t.Cleanup(server.Close)
	s.url = server.URL
	s.scrape = service.OpsHandler(nil, nil)
	return s
}

// sharedVault is a store on the world's Vault, a client of its own.
func sharedVault(t *testing.T) registry.Store {
	t.Helper()
	vault := theStack(t).world.Vault
	store, err := registry.OpenVault(t.Context(), registry.VaultConfig{Address: vault.Addr, Auth: "token", Token: vault.RootToken})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func anOrg() string { return "org-" + strings.ToLower(rand.Text()[:10]) }

// enrol registers a cluster of an org's.
func (s *stack) enrol(t *testing.T, org, name string, kubeconfig []byte) {
	t.Helper()
	if status, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", fields{"name": name, "kubeconfig": string(kubeconfig)}); status != http.StatusCreated {
		t.Fatalf("registering %s of %s: %d %s", name, org, status, text)
	}
}

func (s *stack) dismiss(t *testing.T, org, name string) {
	t.Helper()
	if status, text := s.call(org, http.MethodDelete, "/v1/k8s/clusters/"+name, nil); status != http.StatusOK {
		t.Fatalf("deregistering %s of %s: %d %s", name, org, status, text)
	}
}

// codeOf is the code of a refusal.
func codeOf(text []byte) string {
	var problem struct{ Code string }
	json.Unmarshal(text, &problem)
	return problem.Code
}

// ended is how a call that ran in the background came to its end.
type ended struct {
	reply
	at time.Time
}

func (s *stack) background(org, method, target string, body any) <-chan ended {
	end := make(chan ended, 1)
	go func() {
		status, text := s.call(org, method, target, body)
		end <- ended{reply{status, codeOf(text), text}, time.Now()}
	}()
	return end
}

// expectEnd waits for a call to end because its registration did, for good.
func expectEnd(t *testing.T, what string, call <-chan ended, since time.Time) {
	t.Helper()
	select {
	case end := <-call:
		if end.status != http.StatusNotFound || end.code != "deregistered" {
			t.Errorf("%s ended with %s", what, end)
		}
		if took := end.at.Sub(since); took > inForce+slack {
			t.Errorf("%s ended %s after its registration", what, took)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("%s has no end", what)
	}
}

const labWatch = "/v1/k8s/resources/watch?cluster=lab&kind=App&waitSeconds=55&version="

// watchVersion is a version of the lab's objects to watch from.
func (s *stack) watchVersion(t *testing.T, org string) string {
	t.Helper()
	status, text := s.call(org, http.MethodGet, "/v1/k8s/resources?cluster=lab&kind=App", nil)
	var list struct{ Version string }
	if json.Unmarshal(text, &list); status != http.StatusOK || list.Version == "" {
		t.Fatalf("%d %s", status, text)
	}
	return url.QueryEscape(list.Version)
}

// TestReplicas: what is registered, rotated and deregistered through one replica
// is so on another within a second, even where that one is asked all the time;
// what runs there on what is no more ends and says why; and no request carries
// a credential that is not in force.
func TestReplicas(t *testing.T) {
	one, two := replica(t, sharedVault(t)), replica(t, sharedVault(t))
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	var mu sync.Mutex
	latest, watches := map[string]time.Time{}, map[string]int{} // by Authorization
	lab.On("", func(w http.ResponseWriter, r *http.Request) {
		credential := r.Header.Get("Authorization")
		mu.Lock()
		latest[credential] = time.Now()
		if r.URL.Query().Has("watch") {
			watches[credential]++
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				watches[credential]--
			}()
		}
		mu.Unlock()
		misbehave.WatchOpen()(w, r)
	})
	used := func(token string) time.Time {
		mu.Lock()
		defer mu.Unlock()
		return latest["Bearer "+token]
	}
	org := anOrg()
	one.enrol(t, org, "lab", lab.Kubeconfig("SENTINEL-first"))
	version := two.watchVersion(t, org)

	var calls atomic.Int64
	busy, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for busy.Err() == nil {
				two.call(org, http.MethodGet, "/v1/k8s/resources?cluster=lab&kind=App", nil)
				calls.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	watch := two.background(org, http.MethodGet, labWatch+version, nil)
	until(t, "the watch", func() bool { return lab.Live("/apis/hanzo.ai") > 0 })
	time.Sleep(200 * time.Millisecond)

	one.enrol(t, org, "lab", lab.Kubeconfig("SENTINEL-second"))
	rotated := time.Now()
	time.Sleep(inForce + slack)
	select {
	case end := <-watch:
		t.Errorf("a watch ended with the credential it began on: %s", end)
	default:
	}
	mu.Lock()
	if diff := cmp.Diff(map[string]int{"Bearer SENTINEL-first": 0, "Bearer SENTINEL-second": 1}, watches); diff != "" {
		t.Errorf("watches by credential (-want +got)\n%s", diff)
	}
	mu.Unlock()
	if last := used("SENTINEL-first"); last.Sub(rotated) > inForce+slack {
		t.Errorf("the old credential was used %s after its rotation", last.Sub(rotated))
	}
	if used("SENTINEL-second").Before(rotated) {
		t.Error("the new credential is not used")
	}

	one.dismiss(t, org, "lab")
	gone := time.Now()
	expectEnd(t, "a watch on a cluster that is no more", watch, gone)
	time.Sleep(time.Until(gone.Add(inForce)))
	for name, s := range map[string]*stack{"one": one, "two": two} {
		if status, text := s.call(org, http.MethodGet, "/v1/k8s/resources?cluster=lab&kind=App", nil); status != http.StatusNotFound || codeOf(text) != "cluster_not_found" {
			t.Errorf("replica %s: %d %s", name, status, text)
		}
	}
	before := len(lab.Requests())
	time.Sleep(slack)
	stop()
	wait.Wait()
	if n := len(lab.Requests()) - before; n > 0 {
		t.Errorf("%d requests came to a cluster that nobody has", n)
	}
	if calls.Load() < 20 {
		t.Errorf("the other replica was asked only %d times", calls.Load())
	}
	if left := lab.Live(""); left > 0 {
		t.Errorf("%d requests go on", left)
	}
}

// TestDrainEndsWithItsRegistration deregisters, through one replica, the cluster
// on which another is draining a node.
func TestDrainEndsWithItsRegistration(t *testing.T) {
	d := toDrain(t)
	d.guarded("guarded")
	one, two := replica(t, sharedVault(t)), replica(t, sharedVault(t))
	org := anOrg()
	one.enrol(t, org, "leaving", d.s.alpha().Admin())
	drain := two.background(org, http.MethodPost, "/v1/k8s/nodes/"+d.node+"/cordon", fields{"cluster": "leaving", "drain": true, "timeoutSeconds": 120})
	until(t, "the drain", func() bool {
		var node struct{ Spec struct{ Unschedulable bool } }
		json.Unmarshal(must(t, d.s.alpha(), http.MethodGet, "/api/v1/nodes/"+d.node, ""), &node)
		return node.Spec.Unschedulable
	})
	one.dismiss(t, org, "leaving")
	expectEnd(t, "a drain", drain, time.Now())
	// Nothing of it goes on.
	d.release("guarded")
	time.Sleep(7 * time.Second) // a drain asks again every 5
	d.has("after its registration", true, "guarded")
}

// TestRegistrationsThroughBothReplicasAtOnce: of many that register and
// deregister one name through two replicas, each is told one thing, and what is
// there in the end is one whole registration or none.
func TestRegistrationsThroughBothReplicasAtOnce(t *testing.T) {
	replicas := []*stack{replica(t, sharedVault(t)), replica(t, sharedVault(t))}
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	org := anOrg()
	var wait sync.WaitGroup
	var won, lost atomic.Int64
	for i := range 12 {
		wait.Go(func() {
			s := replicas[i%2]
			status, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", fields{"name": "lab", "kubeconfig": string(lab.Kubeconfig(fmt.Sprintf("SENTINEL-%d", i)))})
			switch {
			case status == http.StatusCreated:
				won.Add(1)
			case status == http.StatusConflict:
				lost.Add(1)
			default:
				t.Errorf("%d %s", status, text)
			}
		})
	}
	wait.Wait()
	if won.Load() == 0 {
		t.Error("nobody won")
	}
	t.Logf("%d won, %d lost", won.Load(), lost.Load())
	time.Sleep(inForce)
	tokens := map[string]bool{}
	for _, s := range replicas {
		before := len(lab.Requests())
		if status, text := s.call(org, http.MethodGet, "/v1/k8s/resources?cluster=lab&kind=App", nil); status != http.StatusOK {
			t.Errorf("%d %s", status, text)
		}
		for _, r := range lab.Requests()[before:] {
			tokens[r.Header.Get("Authorization")] = true
		}
	}
	if len(tokens) != 1 {
		t.Errorf("the replicas use %d credentials", len(tokens))
	}
	replicas[0].dismiss(t, org, "lab")
}
