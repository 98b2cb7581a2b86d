package registry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// TestAdmission: an org, and each of its clusters, has so many places for short
// calls and so many for long ones, and another org's are not among them.
func TestAdmission(t *testing.T) {
	limits := Limits{Short: 2, Long: 3, OrgShort: 3, OrgLong: 4, OrgRate: -1}
	type call struct {
		org, cluster string
		long         bool
	}
	short := func(org, cluster string) call { return call{org, cluster, false} }
	long := func(org, cluster string) call { return call{org, cluster, true} }
	for _, c := range []struct {
		name string
		held []call
		call call
		code string
	}{
		{"an empty house", nil, short("acme", "a"), ""},
		{"B12 short ones of a cluster", []call{short("acme", "a"), short("acme", "a")}, short("acme", "a"), "overloaded"},
		{"another cluster", []call{short("acme", "a"), short("acme", "a")}, short("acme", "b"), ""},
		{"another org's of that name", []call{short("acme", "a"), short("acme", "a")}, short("zoo", "a"), ""},
		{"short ones of an org", []call{short("acme", "a"), short("acme", "a"), short("acme", "b")}, short("acme", "c"), "rate_limited"},
		{"B12 long ones leave short ones in", []call{long("acme", "a"), long("acme", "a"), long("acme", "a")}, short("acme", "a"), ""},
		{"short ones leave long ones in", []call{short("acme", "a"), short("acme", "a")}, long("acme", "a"), ""},
		{"B12 long ones of a cluster", []call{long("acme", "a"), long("acme", "a"), long("acme", "a")}, long("acme", "a"), "overloaded"},
		{"long ones of an org", []call{long("acme", "a"), long("acme", "a"), long("acme", "b"), long("acme", "b")}, long("acme", "c"), "rate_limited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegistry(t, NewMemory(), func(config *Config) { config.Limits = limits })
			admit := func(c call) (func(), error) { return r.Admit(as(t, c.org), c.cluster, c.long) }
			var releases []func()
			for _, held := range c.held {
				release, err := admit(held)
				if err != nil {
					t.Fatal(err)
				}
				releases = append(releases, release)
			}
			release, err := admit(c.call)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				release()
			} else {
				refusal := wantRefusal(t, err, c.code)
				want := map[string]int{"overloaded": http.StatusServiceUnavailable, "rate_limited": http.StatusTooManyRequests}[c.code]
				if refusal.Status != want || refusal.RetryAfter <= 0 {
					t.Errorf("status %d, after %s", refusal.Status, refusal.RetryAfter)
				}
			}
			for _, release := range releases {
				release()
				release() // again does nothing
			}
			for org, load := range r.admission.orgs {
				if load.short != 0 || load.long != 0 || len(load.clusters) != 0 {
					t.Errorf("%s holds %d short, %d long, %d clusters after all is released", org, load.short, load.long, len(load.clusters))
				}
			}
		})
	}
}

// TestAdmissionRate: calls over an org's rate wait for their turns, those whose
// turn is too far off are refused, and neither costs another org anything.
func TestAdmissionRate(t *testing.T) {
	a := admission{limits: Limits{OrgRate: 10, OrgBurst: 5}.complete(), orgs: map[Org]*load{}}
	now := time.Now()
	type outcome struct {
		Waits   []time.Duration // of those admitted
		Refused int
	}
	ask := func(org string, n int) (got outcome) {
		for range n {
			release, wait, err := a.admit(Org{org}, "prod", false, now)
			if err == nil {
				got.Waits = append(got.Waits, wait.Round(time.Millisecond))
				release()
			} else if r := asRefusal(err); r.Code != "rate_limited" || r.RetryAfter <= 0 {
				t.Error(err)
			} else {
				got.Refused++
			}
		}
		return got
	}
	want := func(what string, got, want outcome) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	const ms = time.Millisecond
	want("a burst, and those whose turn comes in time", ask("acme", 20), outcome{[]time.Duration{0, 0, 0, 0, 0, 100 * ms, 200 * ms}, 13})
	want("another org beside it", ask("zoo", 5), outcome{make([]time.Duration, 5), 0})
	now = now.Add(100 * ms)
	want("one turn later: those refused took none", ask("acme", 20), outcome{[]time.Duration{200 * ms}, 19})
	now = now.Add(time.Second)
	want("after a rest", ask("acme", 5), outcome{make([]time.Duration, 5), 0})
	for i := range 3 * tidyAbove {
		now = now.Add(time.Second)
		ask(fmt.Sprint(i), 1)
	}
	if n := len(a.orgs); n > tidyAbove+1 {
		t.Errorf("%d orgs are remembered", n)
	}
}

// TestAdmissionWaits: a call that is too early begins at its turn, and one whose
// caller leaves before that gives its place back.
func TestAdmissionWaits(t *testing.T) {
	r := newRegistry(t, NewMemory(), func(config *Config) {
		config.Limits = Limits{OrgRate: 10, OrgBurst: 1, Short: 1}
	})
	begun := time.Now()
	for range 2 {
		release, err := r.Admit(as(t, "acme"), "prod", false)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if took := time.Since(begun); took < 90*time.Millisecond {
		t.Errorf("two calls at ten a second begin within %s", took)
	}
	ctx, cancel := context.WithCancel(as(t, "acme"))
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err := r.Admit(ctx, "prod", false)
	wantRefusal(t, err, "canceled")
	release, err := r.Admit(as(t, "acme"), "prod", false)
	if err != nil {
		t.Fatalf("the place of one that left: %v", err)
	}
	release()
}

func TestBreaker(t *testing.T) {
	silence, refusal := Refuse(504, "connect_timeout", ""), Refuse(499, "canceled", "")
	var states []string
	b := breaker{changed: func(state string) { states = append(states, state) }}
	now := time.Unix(1000, 0)
	call := func(err error) string {
		probe, refused := b.enter(now)
		if refused != nil {
			if asRefusal(refused).RetryAfter <= 0 {
				t.Error("the refusal does not say when to come again")
			}
			return asRefusal(refused).Code
		}
		b.leave(now, probe, err)
		return ""
	}
	want := func(what, code string, err error) {
		t.Helper()
		if got := call(err); got != code {
			t.Fatalf("%s: %q, want %q", what, got, code)
		}
	}
	for range breakerFailures - 1 {
		want("a failure", "", silence)
	}
	want("an answer in between", "", nil)
	for range breakerFailures {
		want("a caller that leaves is nobody's failure", "", refusal)
		want("a failure", "", silence)
	}
	want("open", "breaker_open", nil)
	now = now.Add(breakerPause - time.Millisecond)
	want("still open", "breaker_open", nil)
	now = now.Add(time.Millisecond)
	probe, err := b.enter(now)
	if err != nil || !probe {
		t.Fatalf("after the pause one is let through: %t, %v", probe, err)
	}
	want("but one", "breaker_open", nil)
	b.leave(now, probe, silence)
	now = now.Add(breakerPause)
	want("the second pause is longer", "breaker_open", nil)
	now = now.Add(breakerPause)
	want("a probe whose caller leaves tells nothing", "", refusal)
	want("so another is let through, and closes it", "", nil)
	for range breakerFailures - 1 {
		want("closed", "", silence)
	}
	if diff := cmp.Diff([]string{"open", "half_open", "open", "half_open", "half_open", "closed"}, states); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for range 20 {
		call(silence)
		now = now.Add(breakerLongest)
	}
	if b.pause != breakerLongest {
		t.Errorf("the pause is %s", b.pause)
	}
}

// watching is an Observer that keeps what it is told.
type watching struct {
	mu       sync.Mutex
	breaker  []string
	upstream []int
	kms      []error
}

func (w *watching) KMS(_ string, _ time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kms = append(w.kms, err)
}

// outcomes are those of the calls of the KMS since they were last asked for.
func (w *watching) outcomes() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.kms
	w.kms = nil
	return all
}

func (w *watching) Upstream(_, _, _ string, status int, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.upstream = append(w.upstream, status)
}

func (w *watching) Breaker(org, cluster, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaker = append(w.breaker, org+"/"+cluster+" "+state)
}

// TestDeadCluster is B13: a cluster that dies costs its callers little, and the
// others nothing, until it is back.
func TestDeadCluster(t *testing.T) {
	dying, well := misbehave.New(), misbehave.New()
	t.Cleanup(dying.Close)
	t.Cleanup(well.Close)
	observer := &watching{}
	r := newRegistry(t, NewMemory(), func(c *Config) { c.Observer = observer })
	for name, server := range map[string]*misbehave.Server{"dying": dying, "well": well} {
		if _, err := r.Register(as(t, "acme"), Registration{Name: name, Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
			t.Fatal(err)
		}
	}
	bad, good := reach(t, r, "acme", "dying"), reach(t, r, "acme", "well")
	dying.On("/version", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for range breakerFailures {
		_, err := get(t.Context(), bad, "/version")
		wantRefusal(t, err, "cluster_unreachable")
	}
	asked := len(dying.Requests())
	for range 20 {
		_, err := get(t.Context(), bad, "/version")
		if refusal := wantRefusal(t, err, "breaker_open"); refusal.RetryAfter <= 0 || refusal.Status != http.StatusServiceUnavailable {
			t.Errorf("%+v", refusal)
		}
		if _, err := get(t.Context(), good, "/version"); err != nil {
			t.Errorf("the other cluster: %v", err)
		}
	}
	if n := len(dying.Requests()) - asked; n > 0 {
		t.Errorf("%d requests went to a cluster that does not answer", n)
	}
	dying.Reset()
	bad.entry.breaker.mu.Lock()
	bad.entry.breaker.until = time.Now()
	bad.entry.breaker.mu.Unlock()
	for range 3 {
		if _, err := get(t.Context(), bad, "/version"); err != nil {
			t.Errorf("after it is back: %v", err)
		}
	}
	want := []string{"acme/dying open", "acme/dying half_open", "acme/dying closed"}
	if diff := cmp.Diff(want, observer.breaker); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if kms := observer.outcomes(); len(kms) == 0 || !slices.Contains(observer.upstream, 200) || !slices.Contains(observer.upstream, 0) {
		t.Errorf("the observer saw %d calls of the KMS and upstream %v", len(kms), observer.upstream)
	}
}
