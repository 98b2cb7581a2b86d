package registry

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// slow is a store whose reads wait.
type slow struct {
	Store
	asked   chan Org      // told of each read of a record
	proceed chan struct{} // closed when they may go on
}

func (s *slow) Get(ctx context.Context, org Org, ref string, version int) ([]byte, int, error) {
	if version == 0 && ref == recordRef(org, "prod") {
		s.asked <- org
		<-s.proceed
	}
	return s.Store.Get(ctx, org, ref, version)
}

// TestFirstCalls: however many calls a cluster's first are, and whoever of them
// leaves, one reads the key store for them and one connects; and none is
// another tenant's.
func TestFirstCalls(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	before := newRegistry(t, NewMemory())
	orgs := []string{"acme", "zoo"}
	for _, org := range orgs {
		if _, err := before.Register(as(t, org), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(org)}); err != nil {
			t.Fatal(err)
		}
	}
	store := &slow{Store: before.store, asked: make(chan Org, 100), proceed: make(chan struct{})}
	r := newRegistry(t, store)
	server.Reset()
	conns := server.Conns()

	first, leave := context.WithCancel(as(t, "acme"))
	left := make(chan error, 1)
	go func() {
		_, err := r.Reach(first, "prod")
		left <- err
	}()
	<-store.asked
	const callers = 50
	var all sync.WaitGroup
	for _, org := range orgs {
		for i := range callers {
			all.Go(func() {
				b, err := r.Reach(as(t, org), "prod")
				if err != nil {
					t.Errorf("%s: %v", org, err)
					return
				}
				if text, err := get(t.Context(), b, "/api/v1/namespaces/"+org+"/pods/"+fmt.Sprint(i)); err != nil {
					t.Errorf("%s: %v %s", org, err, text)
				}
			})
		}
	}
	if org := <-store.asked; org.name != "zoo" {
		t.Errorf("%s is read for twice", org.name)
	}
	leave()
	wantRefusal(t, <-left, "canceled")
	close(store.proceed)
	all.Wait()

	if n := len(store.asked); n > 2 {
		t.Errorf("the record was read %d times more", n)
	}
	if n := server.Conns() - conns; n != len(orgs) {
		t.Errorf("%d connections for %d clusters", n, len(orgs))
	}
	sent := map[string]int{}
	for _, r := range server.Requests() {
		sent[r.Path[len("/api/v1/namespaces/"):][:3]+" "+r.Header.Get("Authorization")]++
	}
	if diff := cmp.Diff(map[string]int{"acm Bearer acme": callers, "zoo Bearer zoo": callers}, sent); diff != "" {
		t.Errorf("requests by tenant and credential (-want +got)\n%s", diff)
	}
}

// gated makes the first dial of a client wait.
func gated(b *Bound) (dials func() int, dialling <-chan struct{}, proceed chan<- struct{}) {
	began, gate := make(chan struct{}, 100), make(chan struct{})
	var mu sync.Mutex
	n := 0
	control := b.entry.client.dialer.ControlContext
	b.entry.client.dialer.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		mu.Lock()
		n++
		isFirst := n == 1
		mu.Unlock()
		began <- struct{}{}
		if isFirst {
			<-gate
		}
		return control(ctx, network, address, c)
	}
	return func() int { mu.Lock(); defer mu.Unlock(); return n }, began, gate
}

// TestFirstConnection: those that wait for it share what becomes of it, but not
// that the caller who began it has left.
func TestFirstConnection(t *testing.T) {
	const callers = 30
	// many sends requests at once, and answers how they ended.
	many := func(t *testing.T, b *Bound) func() map[string]int {
		var mu sync.Mutex
		ends := map[string]int{}
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				_, err := get(t.Context(), b, "/version")
				code := "ok"
				if err != nil {
					code = asRefusal(err).Code
				}
				mu.Lock()
				defer mu.Unlock()
				ends[code]++
			})
		}
		return func() map[string]int {
			all.Wait()
			return ends
		}
	}
	want := func(t *testing.T, got map[string]int, code string) {
		t.Helper()
		if diff := cmp.Diff(map[string]int{code: callers}, got); diff != "" {
			t.Errorf("ends (-want +got)\n%s", diff)
		}
	}
	t.Run("it fails", func(t *testing.T) {
		server, _, b := misbehaving(t)
		dials, dialling, proceed := gated(b)
		ends := many(t, b)
		<-dialling
		time.Sleep(50 * time.Millisecond)
		server.Close()
		close(proceed)
		want(t, ends(), "cluster_unreachable")
		if n := dials(); n != 1 {
			t.Errorf("%d dials for one failure", n)
		}
		if b.entry.breaker.failures != 1 || b.entry.breaker.pause != 0 {
			t.Errorf("one failure counts as %d", b.entry.breaker.failures)
		}
	})
	t.Run("its maker leaves", func(t *testing.T) {
		_, _, b := misbehaving(t)
		dials, dialling, proceed := gated(b)
		defer close(proceed)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := get(ctx, b, "/version")
			left <- err
		}()
		<-dialling
		ends := many(t, b)
		time.Sleep(50 * time.Millisecond)
		leave()
		wantRefusal(t, <-left, "canceled")
		want(t, ends(), "ok")
		if n := dials(); n != 2 {
			t.Errorf("%d dials, want the one that was left and another", n)
		}
	})
	t.Run("it is lost, and another is the first", func(t *testing.T) {
		server, _, b := misbehaving(t)
		want(t, many(t, b)(), "ok")
		conns := server.Conns()
		b.entry.client.short.CloseIdleConnections()
		want(t, many(t, b)(), "ok")
		if n := server.Conns() - conns; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
	t.Run("it is of HTTP/1.1, and takes one request", func(t *testing.T) {
		server, _, b := misbehaving(t, misbehave.HTTP1())
		server.On("/version", func(w http.ResponseWriter, r *http.Request) {
			server.WaitLive("/version", callers, 5*time.Second)
			time.Sleep(50 * time.Millisecond) // all have seen all
			misbehave.Healthy()(w, r)
		})
		start := time.Now()
		want(t, many(t, b)(), "ok")
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("they wait for one another: %s", took)
		}
	})
}
