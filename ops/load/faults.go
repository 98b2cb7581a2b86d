package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// inForce is how soon a change made through one replica is in force on another.
const inForce = time.Second

// slack is what the measuring itself may take on a machine that is busy with
// all that it measures.
const slack = 500 * time.Millisecond

// every does something at intervals until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
			do()
		}
	}
}

func (r *runner) someone() *tenant { return r.tenants[rand.IntN(len(r.tenants))] }

func (r *runner) anywhere() *member { return r.fleet.members[rand.IntN(len(r.fleet.members))] }

// moods changes what the labs do.
func (r *runner) moods(ctx context.Context) {
	every(ctx, r.options.duration/80, func() {
		for i, t := range r.tenants {
			if rand.IntN(3) == 0 {
				t.lab.misbehave(r.tenants[(i+1)%len(r.tenants)].lab, r.count)
			}
		}
	})
}

// kill kills one replica after the other, but never the first, and starts it
// again.
func (r *runner) kill(ctx context.Context) {
	n := 0
	every(ctx, r.options.duration/8, func() {
		m := r.fleet.members[1+n%(len(r.fleet.members)-1)]
		n++
		m.kill()
		r.count.fault("replica: kill -9")
		// One that comes up late comes up after the load, rather than not at all.
		if err := r.fleet.start(context.WithoutCancel(ctx), m); err != nil {
			r.count.breach("a replica does not come back: %v", err)
		}
	})
}

// rotate gives clusters new credentials.
func (r *runner) rotate(ctx context.Context) {
	every(ctx, r.options.duration/200, func() {
		t := r.someone()
		token := t.lab.token()
		in := map[string]any{"name": "lab", "kubeconfig": string(t.lab.Kubeconfig(token))}
		if rand.IntN(4) == 0 {
			in = map[string]any{"name": "real", "kubeconfig": string(t.kubeconfig), "namespaces": []string{t.namespace}}
		}
		one, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		got, err := r.fleet.ask(one, r.anywhere(), t.org, http.MethodPost, "/v1/k8s/clusters", in)
		switch {
		case err == nil && got.status == http.StatusCreated && in["name"] == "lab":
			t.lab.rotated(token)
			r.count.fault("credential: rotated")
		case err == nil && got.status == http.StatusCreated:
			r.count.fault("credential: registered again")
		default:
			r.count.fault("credential: not rotated, the cluster or the replica being what they were")
		}
		if err == nil {
			if err := r.clean(t, "", got); err != nil {
				r.count.breach("a registration: %v", err)
			}
		}
	})
}

// churn registers clusters and deregisters them, and makes sure that they are
// gone everywhere within a second.
func (r *runner) churn(ctx context.Context) {
	n := 0
	every(ctx, r.options.duration/100, func() {
		n++
		t, name := r.someone(), fmt.Sprintf("passing-%d", n)
		in := map[string]any{"name": name, "kubeconfig": string(t.kubeconfig), "namespaces": []string{t.namespace}}
		if err := r.settle(ctx, t, http.MethodPost, "/v1/k8s/clusters", in, http.StatusCreated); err != nil {
			r.count.breach("registering %s: %v", name, err)
			return
		}
		target := "/v1/k8s/pods?cluster=" + name
		r.once(ctx, t, r.anywhere(), call{kind: "real", method: http.MethodGet, target: target, list: "pods", items: pods})
		if err := r.settle(ctx, t, http.MethodDelete, "/v1/k8s/clusters/"+name, nil, http.StatusOK); err != nil {
			r.count.breach("deregistering %s: %v", name, err)
			return
		}
		r.count.fault("registration: come and gone")
		time.Sleep(inForce)
		for range r.fleet.members {
			r.once(ctx, t, r.anywhere(), call{kind: "foreign", method: http.MethodGet, target: target, only: []int{http.StatusNotFound}})
		}
	})
}

// settle makes a change through whichever replica does it. Replicas that are
// killed in the middle of it are what it has to get over; ctx's end is not.
func (r *runner) settle(ctx context.Context, t *tenant, method, target string, in any, want int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for {
		got, err := r.fleet.ask(ctx, r.anywhere(), t.org, method, target, in)
		switch {
		case err == nil && got.status == want:
			return nil
		case errors.Is(err, errKilled):
		case err != nil:
			return err
		case got.code != "conflict" && got.code != "kms_unavailable" && got.code != "rate_limited" && got.code != "overloaded" && got.code != "deadline":
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still %d %s %w", got.status, got.code, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
