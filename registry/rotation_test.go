package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// within is how soon a change made by one replica is in force on another.
const within = time.Second

// stores are what the tests of replicas run on.
var stores = map[string]func(*testing.T) Store{
	"memory": func(*testing.T) Store { return NewMemory() },
	"vault":  func(t *testing.T) Store { return realVault(t) },
}

// watchForever opens a stream that the cluster never ends, and answers what its
// end was.
func watchForever(t *testing.T, b *Bound) <-chan error {
	t.Helper()
	resp, err := b.Do(t.Context(), &Request{Method: http.MethodGet, Path: "/api/v1/pods", Query: url.Values{"watch": {"1"}}, Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		defer resp.Body.Close()
		_, err := io.Copy(io.Discard, resp.Body)
		ended <- err
	}()
	return ended
}

// wantEnd waits until what runs on b has ended, and checks how and how soon.
func wantEnd(t *testing.T, b *Bound, stream <-chan error, since time.Time, code string) {
	t.Helper()
	timeout := time.After(5 * time.Second)
	select {
	case <-b.Life().Done():
	case <-timeout:
		t.Fatal("the bound has no end")
	}
	select {
	case err := <-stream:
		wantRefusal(t, err, code)
	case <-timeout:
		t.Fatal("the stream has no end")
	}
	wantRefusal(t, context.Cause(b.Life()), code)
	if took := time.Since(since); took > within {
		t.Errorf("it took %s", took)
	}
	_, err := get(t.Context(), b, "/version")
	if refusal := wantRefusal(t, err, code); !refusal.Unsent || code == "rotated" && (refusal.Status != http.StatusServiceUnavailable || refusal.RetryAfter <= 0) {
		t.Errorf("%+v", refusal)
	}
}

// authorizations is which tokens the server has been sent since the n-th request.
func authorizations(server *misbehave.Server, n int) map[string]int {
	got := map[string]int{}
	for _, r := range server.Requests()[n:] {
		got[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]++
	}
	return got
}

// TestRotationOnAnotherReplica: a rotation on one replica is in force on the
// other within a second, even where the other never stops reading (C10), and
// ends what runs there.
func TestRotationOnAnotherReplica(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			server := misbehave.New()
			t.Cleanup(server.Close)
			server.On("/api/v1/pods", misbehave.WatchOpen())
			one, two := newRegistry(t, open(t)), (*Registry)(nil)
			two = newRegistry(t, one.store)
			org := uniqueOrg("acme")
			register := func(token string) {
				t.Helper()
				if _, err := one.Register(as(t, org), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(token)}); err != nil {
					t.Fatal(err)
				}
			}
			register(sentinel + "-old")
			sealed := reach(t, one, org, "prod").Seal("list", []byte("page"))
			b := reach(t, two, org, "prod")
			if _, err := b.Open("list", sealed); err != nil {
				t.Errorf("another replica's token: %v", err)
			}
			stream := watchForever(t, b)

			register(sentinel + "-new")
			rotated := time.Now()
			// A caller that reads all the time does not keep the old credential alive.
			var last time.Time
			for time.Since(rotated) < within+200*time.Millisecond {
				before := len(server.Requests())
				start := time.Now()
				if again, err := two.Reach(as(t, org), "prod"); err == nil {
					if _, err := get(t.Context(), again, "/version"); err == nil && authorizations(server, before)[sentinel+"-old"] > 0 {
						last = start
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
			if !last.IsZero() && last.Sub(rotated) > within {
				t.Errorf("the old credential was used %s after it was rotated away", last.Sub(rotated))
			}
			select {
			case <-b.Life().Done():
			default:
				t.Error("the bound made before has no end")
			}
			wantEnd(t, b, stream, time.Now(), "rotated")
			before := len(server.Requests())
			after := reach(t, two, org, "prod")
			if _, err := get(t.Context(), after, "/version"); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(map[string]int{sentinel + "-new": 1}, authorizations(server, before)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			_, err := after.Open("list", sealed)
			wantRefusal(t, err, "bad_continue")
			if _, err := one.Deregister(as(t, org), "prod"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestDeregistrationOnAnotherReplica is C7: from the 204 on the name is not
// found there, and within a second anywhere, and what runs ends.
func TestDeregistrationOnAnotherReplica(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			server := misbehave.New()
			t.Cleanup(server.Close)
			server.On("/api/v1/pods", misbehave.WatchOpen())
			one := newRegistry(t, open(t))
			two := newRegistry(t, one.store)
			org := uniqueOrg("acme")
			if _, err := one.Register(as(t, org), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
				t.Fatal(err)
			}
			here, there := reach(t, one, org, "prod"), reach(t, two, org, "prod")
			streamHere, streamThere := watchForever(t, here), watchForever(t, there)
			if removed, err := one.Deregister(as(t, org), "prod"); err != nil || !removed {
				t.Fatal(removed, err)
			}
			done := time.Now()
			_, err := one.Reach(as(t, org), "prod")
			wantRefusal(t, err, "cluster_not_found")
			wantEnd(t, here, streamHere, done, "deregistered")
			wantEnd(t, there, streamThere, done, "deregistered")
			_, err = two.Reach(as(t, org), "prod")
			wantRefusal(t, err, "cluster_not_found")
			before := len(server.Requests())
			time.Sleep(50 * time.Millisecond)
			if n := len(server.Requests()) - before; n > 0 {
				t.Errorf("%d requests came after the end", n)
			}
		})
	}
}

// TestRegisteredAnew: where a name has been deregistered and registered again, on
// either replica, what ran on the first registration does not pass for a rotation.
func TestRegisteredAnew(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	server.On("/api/v1/pods", misbehave.WatchOpen())
	one := newRegistry(t, NewMemory())
	two := newRegistry(t, one.store)
	register := func() {
		t.Helper()
		if _, err := one.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
			t.Fatal(err)
		}
	}
	register()
	here, there := reach(t, one, "acme", "prod"), reach(t, two, "acme", "prod")
	streamHere, streamThere := watchForever(t, here), watchForever(t, there)
	if removed, err := one.Deregister(as(t, "acme"), "prod"); err != nil || !removed {
		t.Fatal(removed, err)
	}
	register()
	done := time.Now()
	wantEnd(t, here, streamHere, done, "deregistered")
	wantEnd(t, there, streamThere, done, "deregistered")
}

// TestRetryAfterARotation: a read that waits because a cluster asked it to does
// not come back with a credential that was rotated away meanwhile.
func TestRetryAfterARotation(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	server.On("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	one := newRegistry(t, NewMemory())
	two := newRegistry(t, one.store)
	if _, err := one.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel + "-old")}); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Registry{"here": one, "on another replica": two} {
		t.Run(name, func(t *testing.T) {
			b := reach(t, r, "acme", "prod")
			ended := make(chan error, 1)
			go func() {
				_, err := get(t.Context(), b, "/version")
				ended <- err
			}()
			for len(server.Requests()) == 0 || server.Requests()[len(server.Requests())-1].Path != "/version" {
				time.Sleep(time.Millisecond)
			}
			if _, err := one.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel + "-new")}); err != nil {
				t.Fatal(err)
			}
			rotated := time.Now()
			wantRefusal(t, <-ended, "rotated")
			if took := time.Since(rotated); took > within {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestRotationReplacesAll is C8: of the old credential nothing is presented
// again, and no version of it is kept.
func TestRotationReplacesAll(t *testing.T) {
	upstream := newFake(t)
	store := NewMemory()
	r := newRegistry(t, store)
	cert, key := pair(t, "admin-of-old", time.Now().Add(time.Hour))
	first, err := r.Register(as(t, "acme"), Registration{Name: "prod", Default: true, Provider: "kind", Kubeconfig: kubeconfigFor(upstream.URL, upstream.ca(),
		map[string]any{"client-certificate-data": cert, "client-key-data": key})})
	if err != nil {
		t.Fatal(err)
	}
	if got := upstream.requests(); len(got) != 1 || got[0].Cert != "admin-of-old" || got[0].Authorization != "" {
		t.Fatalf("the certificate was not presented: %+v", got)
	}
	second := upstream.register(t, r, "acme", "prod", sentinel, "team-a")
	if _, err := get(t.Context(), reach(t, r, "acme", "prod"), "/version"); err != nil {
		t.Fatal(err)
	}
	for _, s := range upstream.requests() {
		if s.Cert != "" || s.Authorization != "Bearer "+sentinel {
			t.Errorf("after the rotation: %+v", s)
		}
	}
	want := Record{Name: "prod", Org: "acme", Provider: "byo", Endpoint: upstream.URL, Namespaces: []string{"team-a"}, Registered: first.Registered, Default: true}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, live, _ := store.Versions(t.Context(), orgOf(t, "acme"), credentialRef(orgOf(t, "acme"), "prod")); len(live) != 1 {
		t.Errorf("versions %v of the credential are kept", live)
	}
}

func TestDefaultCluster(t *testing.T) {
	upstream := newFake(t)
	r := newRegistry(t, NewMemory())
	defaults := func() string {
		t.Helper()
		records, err := r.List(as(t, "acme"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, record := range records {
			one, err := r.Get(as(t, "acme"), record.Name)
			if diff := cmp.Diff(record, one); err != nil || diff != "" {
				t.Fatalf("%v: listed and got (-list +get)\n%s", err, diff)
			}
			if record.Default {
				names = append(names, record.Name)
			}
		}
		return strings.Join(names, ",")
	}
	register := func(name string, isDefault bool) {
		t.Helper()
		record, err := r.Register(as(t, "acme"), Registration{Name: name, Kubeconfig: upstream.kubeconfig(sentinel), Default: isDefault})
		if err != nil || isDefault && !record.Default {
			t.Fatalf("%+v, %v", record, err)
		}
	}
	steps := []struct {
		do   func()
		want string
	}{
		{func() { register("a", false) }, ""},
		{func() { register("b", true) }, "b"},
		{func() { register("a", true) }, "a"},
		{func() { register("a", false) }, "a"}, // a rotation leaves it
		{func() { _, _ = r.Deregister(as(t, "acme"), "a") }, ""},
		{func() { register("a", false) }, ""}, // another registration of that name is another
		{func() { register("b", true) }, "b"},
	}
	for i, step := range steps {
		step.do()
		if got := defaults(); got != step.want {
			t.Errorf("step %d: the default is %q, want %q", i, got, step.want)
		}
	}
	var racing sync.WaitGroup
	for i := range 4 {
		racing.Go(func() {
			_, err := r.Register(as(t, "acme"), Registration{Name: fmt.Sprintf("r%d", i), Kubeconfig: upstream.kubeconfig(sentinel), Default: true})
			if err != nil && asRefusal(err).Code != "conflict" {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	if got := defaults(); got == "" || strings.Contains(got, ",") {
		t.Errorf("after a race the default is %q", got)
	}
}

// broken is a store that can be made not to answer.
type broken struct {
	Store
	down atomic.Bool
}

func (s *broken) Get(ctx context.Context, org Org, ref string, version int) ([]byte, int, error) {
	if s.down.Load() {
		return nil, 0, ErrUnavailable
	}
	return s.Store.Get(ctx, org, ref, version)
}

// TestKMSOutage: without the KMS nothing new begins, once what was read last is
// too old, and what runs may run on for a while.
func TestKMSOutage(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	server.On("/api/v1/pods", misbehave.WatchOpen())
	store := &broken{Store: NewMemory()}
	r := newRegistry(t, store)
	if _, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
		t.Fatal(err)
	}
	b := reach(t, r, "acme", "prod")
	stream := watchForever(t, b)
	store.down.Store(true)
	time.Sleep(within)
	_, err := r.Reach(as(t, "acme"), "prod")
	wantRefusal(t, err, "kms_unavailable")
	_, err = get(t.Context(), b, "/version")
	wantRefusal(t, err, "kms_unavailable")
	select {
	case err := <-stream:
		t.Errorf("the stream ended: %v", err)
	default:
	}
	store.down.Store(false)
	if _, err := get(t.Context(), b, "/version"); err != nil {
		t.Errorf("after the outage: %v", err)
	}
	store.down.Store(true)
	b.entry.checked.Store(time.Now().Add(-unverifiedFor).UnixNano())
	select {
	case err := <-stream:
		wantRefusal(t, err, "kms_unavailable")
	case <-time.After(5 * time.Second):
		t.Error("the stream goes on without end")
	}
}

// TestTenThousandRotations is B17: memory, sockets and goroutines stay flat.
func TestTenThousandRotations(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	r := newRegistry(t, NewMemory())
	org := orgOf(t, "acme")
	measure := func() (heap uint64, goroutines, sockets int) {
		var m runtime.MemStats
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine(), openSockets()
	}
	var heap uint64
	var goroutines, sockets int
	for i := range 10_000 {
		cfg, err := safeRESTConfig(server.Kubeconfig(fmt.Sprintf("%s-%d", sentinel, i)), r.policy, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := sealed(cfg)
		if err != nil {
			t.Fatal(err)
		}
		rec := &stored{Record: Record{Name: "prod", Org: org.name}}
		if _, err := r.commit(t.Context(), org, rec, kubeconfig, false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(as(t, "acme"))
		b, err := r.Reach(ctx, "prod")
		if err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			if _, err := get(ctx, b, "/version"); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if i == 500 {
			server.Reset()
			heap, goroutines, sockets = measure()
		}
	}
	server.Reset()
	// The standard library keeps a closed connection until its next ping is due.
	var heap2 uint64
	var goroutines2, sockets2 int
	for deadline := time.Now().Add(8 * time.Second); ; {
		heap2, goroutines2, sockets2 = measure()
		if heap2 <= heap+4<<20 && goroutines2 <= goroutines+4 && sockets2 <= sockets+2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("heap %d KB, %d goroutines, %d sockets after 500 rotations; %d KB, %d, %d after 10000",
				heap>>10, goroutines, sockets, heap2>>10, goroutines2, sockets2)
		}
	}
	if n := server.OpenConns(); n > 2 {
		t.Errorf("%d connections are open", n)
	}
}

// TestRegisterAndDeregister is B17 along the whole way, with a certificate of
// its own each time.
func TestRegisterAndDeregister(t *testing.T) {
	upstream := newFake(t)
	store := NewMemory()
	r := newRegistry(t, store)
	var goroutines int
	for i := range 60 {
		cert, key := pair(t, fmt.Sprintf("admin-%d", i), time.Now().Add(time.Hour))
		for _, user := range []map[string]any{{"client-certificate-data": cert, "client-key-data": key}, {"token": fmt.Sprintf("%s-%d", sentinel, i)}} {
			if _, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: kubeconfigFor(upstream.URL, upstream.ca(), user)}); err != nil {
				t.Fatal(err)
			}
			upstream.requests()
			if _, err := get(t.Context(), reach(t, r, "acme", "prod"), "/api/v1/nodes"); err != nil {
				t.Fatal(err)
			}
			if got := upstream.requests()[0]; (got.Cert == "") == (got.Authorization == "") || got.Cert != "" && got.Cert != fmt.Sprintf("admin-%d", i) {
				t.Fatalf("presented %+v", got)
			}
		}
		if removed, err := r.Deregister(as(t, "acme"), "prod"); err != nil || !removed {
			t.Fatal(removed, err)
		}
		if i == 10 {
			time.Sleep(100 * time.Millisecond)
			goroutines = runtime.NumGoroutine()
		}
	}
	time.Sleep(100 * time.Millisecond)
	if now := runtime.NumGoroutine(); now > goroutines+5 {
		t.Errorf("%d goroutines after 10 rounds, %d after 60", goroutines, now)
	}
	if len(store.items) > 0 {
		t.Errorf("%d refs are left", len(store.items))
	}
}

// TestClientsAreLetGo: beyond the limit the one longest unused goes, and one
// nobody uses goes after a while; one in use stays.
func TestClientsAreLetGo(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	server.On("/api/v1/pods", misbehave.WatchOpen())
	r := newRegistry(t, NewMemory(), func(c *Config) { c.Clients, c.Idle, c.Fresh = 2, 300*time.Millisecond, 100*time.Millisecond })
	for _, name := range []string{"a", "b", "c"} {
		if _, err := r.Register(as(t, "acme"), Registration{Name: name, Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
			t.Fatal(err)
		}
	}
	used := reach(t, r, "acme", "a")
	stream := watchForever(t, used)
	for _, name := range []string{"b", "c", "b", "c"} {
		ctx, cancel := context.WithCancel(as(t, "acme"))
		b, err := r.Reach(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := get(ctx, b, "/version"); err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(10 * time.Millisecond)
	}
	entries := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.entries)
	}
	if n := entries(); n != 2 {
		t.Errorf("%d clients are kept", n)
	}
	for deadline := time.Now().Add(5 * time.Second); entries() != 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d clients are kept", entries())
		}
	}
	select {
	case err := <-stream:
		t.Errorf("the one in use has ended: %v", err)
	default:
	}
	for deadline := time.Now().Add(5 * time.Second); server.OpenConns() > 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open", server.OpenConns())
		}
	}
	if _, err := get(t.Context(), reach(t, r, "acme", "b"), "/version"); err != nil {
		t.Errorf("one let go is reached again: %v", err)
	}
	r.Close()
	if err := <-stream; asRefusal(err) == nil {
		t.Errorf("after Close the stream ended with %v", err)
	}
	_, err := get(t.Context(), used, "/version")
	if asRefusal(err) == nil || errors.Is(err, context.Canceled) {
		t.Errorf("after Close: %v", err)
	}
}
