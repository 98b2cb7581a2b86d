package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// Who does what in the measurement: the first tenant's cluster dies or is a
// black hole, the second tenant floods, and the others are those who must not
// notice. In calm those two have as many callers, who call now and then.
const (
	crowd    = 64 // callers of each of the two
	unhurry  = time.Second
	steady   = 4                      // callers of each other tenant
	beat     = 200 * time.Millisecond // between two calls of one of those
	recovery = 300 * time.Millisecond // between two windows
)

// list is the call that everybody makes.
const list = "/v1/k8s/resources?cluster=lab&kind=App"

// trouble is what one tenant makes.
type trouble struct {
	name string
	of   *tenant
	mood *mood         // of its lab
	hole *hole         // that its lab is behind
	pace time.Duration // of each of its callers

	calm, troubled []time.Duration // of the others' calls
	ratios         []float64       // p99 in trouble by p99 in calm, of each round
	failed         [2]int          // of the others' calls, in calm and in trouble
	outcomes       map[string]int  // of its own calls
}

// measure compares windows of calm with windows of trouble, in turns, so that
// what else the machine does falls on both. Each round has its own ratio and the
// median one is held against the target: one stall of the whole machine is all of
// the p99 of a window, and of all windows together. The control is calm
// throughout: how far it is from 1 is what chance makes of the others' ratios.
func (r *runner) measure(ctx context.Context) error {
	if lost := r.verify(ctx, 2*time.Minute); lost > 0 {
		return r.count.print(r.out, 0)
	}
	hole, err := newHole(r.tenants[0].lab)
	if err != nil {
		return err
	}
	defer hole.Close()
	control := &trouble{name: "nothing", of: r.tenants[0], pace: unhurry, outcomes: map[string]int{}}
	troubles := []*trouble{
		control,
		{name: "a dead cluster", of: r.tenants[0], mood: &mood{"dead", misbehave.Stall()}, pace: unhurry, outcomes: map[string]int{}},
		{name: "a black hole", of: r.tenants[0], hole: hole, pace: unhurry, outcomes: map[string]int{}},
		{name: "a flood", of: r.tenants[1], pace: time.Duration(crowd * float64(time.Second) / float64(r.options.flood)), outcomes: map[string]int{}},
	}
	if only := r.options.only; only != "" {
		troubles = slices.DeleteFunc(troubles, func(t *trouble) bool { return t.name != only })
		if len(troubles) == 0 {
			return fmt.Errorf("there is no trouble %q", only)
		}
	}
	others := len(r.tenants) - 2
	r.printf("\n%d orgs' %d callers, each with a cluster of its own, at %.0f calls a second; %d rounds of %s of calm and %[5]s of each trouble\n\n",
		others, others*steady, float64(others*steady)/beat.Seconds(), r.options.rounds, r.options.window)
	for n := range r.options.rounds {
		for _, t := range troubles {
			turns := []bool{false, true}
			if n%2 == 1 {
				slices.Reverse(turns)
			}
			var p99 [2]time.Duration
			for _, on := range turns {
				took, failed, err := r.window(ctx, t, on)
				if err != nil {
					return err
				}
				which, all := 0, &t.calm
				if on {
					which, all = 1, &t.troubled
				}
				t.failed[which] += failed
				*all = append(*all, took...)
				p99[which] = quantile(took, .99)
			}
			t.ratios = append(t.ratios, float64(p99[1])/float64(p99[0]))
		}
	}
	r.printf("%-16s %8s %8s %9s %9s %8s %8s\n", "the others', ms", "calm p50", "p99", "trbl. p50", "p99", "p50 is", "p99 is")
	for _, t := range troubles {
		c, d := [2]time.Duration{quantile(t.calm, .5), quantile(t.calm, .99)}, [2]time.Duration{quantile(t.troubled, .5), quantile(t.troubled, .99)}
		median := quantile(t.ratios, .5)
		r.printf("%-16s %8.1f %8.1f %9.1f %9.1f %7.2fx %7.2fx  the median round, of %.2f to %.2f; all %d and %d calls together %.2fx\n",
			t.name, millis(c[0]), millis(c[1]), millis(d[0]), millis(d[1]), float64(d[0])/float64(c[0]), median,
			t.ratios[0], t.ratios[len(t.ratios)-1], len(t.calm), len(t.troubled), float64(d[1])/float64(c[1]))
		r.printf("%-16s its own calls: %v\n", "", t.outcomes)
		if t.failed != [2]int{} {
			r.count.breach("%s: %d calls of the others failed in calm, %d in trouble", t.name, t.failed[0], t.failed[1])
		}
		if t != control && r.options.target > 0 && median > r.options.target {
			r.count.breach("%s: the others' p99 is more than %.2f of calm", t.name, r.options.target)
		}
	}
	if last := troubles[len(troubles)-1]; last.of == r.tenants[1] && last.outcomes["429 rate_limited"] == 0 {
		r.count.breach("a flood was not limited")
	}
	return r.count.print(r.out, 0)
}

// window is one turn of everybody, with the trouble or without. It answers how
// long the others' calls took, and how many of them failed.
func (r *runner) window(ctx context.Context, t *trouble, on bool) (took []time.Duration, failed int, err error) {
	// A new credential is a new client, with a breaker that knows nothing.
	if err := r.renew(ctx, t); err != nil {
		return nil, 0, err
	}
	time.Sleep(recovery)
	if on {
		t.of.lab.mood.Store(t.mood)
		defer t.of.lab.mood.Store(nil)
		if t.hole != nil {
			t.hole.dig(true)
			defer t.hole.dig(false)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.window)
	defer cancel()
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, of := range r.tenants[:2] {
		pace, troubled := unhurry, on && of == t.of
		if troubled {
			pace = t.pace
		}
		r.callers(ctx, &wait, of, crowd, pace, func(got reply, _ time.Duration, err error) {
			outcome := strings.TrimSpace(fmt.Sprint(got.status, " ", got.code))
			switch {
			case err != nil:
				outcome = "unanswered"
			case (got.status == http.StatusTooManyRequests || got.status == http.StatusServiceUnavailable) && got.header.Get("Retry-After") == "":
				r.count.breach("%s without Retry-After", outcome)
			}
			if troubled {
				mu.Lock()
				defer mu.Unlock()
				t.outcomes[outcome]++
			}
		})
	}
	for _, of := range r.tenants[2:] {
		r.callers(ctx, &wait, of, steady, beat, func(got reply, d time.Duration, err error) {
			// A call that the window's end cuts short has taken that long at least.
			cut := err != nil && ctx.Err() != nil
			if err == nil {
				err = call{list: "resources", items: labApps}.whole(of, got)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, d)
			if !cut && (err != nil || got.status != http.StatusOK) {
				failed++
			}
		})
	}
	wait.Wait()
	if len(took) == 0 {
		return nil, 0, fmt.Errorf("%s: nobody else had an answer in %s", t.name, r.options.window)
	}
	return took, failed, nil
}

// callers has n callers of a tenant's call at a pace until ctx ends, spread over
// it. One that has to wait longer for its answer does not make up for that.
func (r *runner) callers(ctx context.Context, wait *sync.WaitGroup, t *tenant, n int, pace time.Duration, done func(reply, time.Duration, error)) {
	at := time.Duration(slices.Index(r.tenants, t)) * pace / time.Duration(n*len(r.tenants))
	for i := range n {
		wait.Go(func() {
			next := time.After(at + pace*time.Duration(i)/time.Duration(n))
			for {
				select {
				case <-next:
				case <-ctx.Done():
					return
				}
				next = time.After(pace)
				begun := time.Now()
				got, err := r.fleet.ask(ctx, r.fleet.members[0], t.org, http.MethodGet, list, nil)
				done(got, time.Since(begun), err)
			}
		})
	}
}

// renew registers the lab of a trouble's tenant anew.
func (r *runner) renew(ctx context.Context, t *trouble) error {
	token := t.of.lab.token()
	kubeconfig := t.of.lab.Kubeconfig(token)
	if t.hole != nil {
		kubeconfig = t.hole.kubeconfig(token)
	}
	return r.settle(ctx, t.of, http.MethodPost, "/v1/k8s/clusters", map[string]any{"name": "lab", "kubeconfig": string(kubeconfig)}, http.StatusCreated)
}
