package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hanzoai/k8s/testcluster"
)

// runner is one run.
type runner struct {
	options options
	out     io.Writer
	world   *testcluster.World
	fleet   *fleet
	tenants []*tenant
	count   *tally
}

func (r *runner) printf(format string, args ...any) { fmt.Fprintf(r.out, format, args...) }

// load is the run with faults. Before and after it every tenant reads all it
// has, from every replica: what the first replica holds is compared between the
// two.
func (r *runner) load(ctx context.Context) error {
	if lost := r.verify(ctx, 2*time.Minute); lost > 0 {
		return r.count.print(r.out, 0)
	}
	before, err := r.rest(ctx, held{})
	if err != nil {
		return err
	}

	faulty, cancel := context.WithTimeout(ctx, r.options.duration)
	defer cancel()
	var wait sync.WaitGroup
	for _, fault := range []func(context.Context){r.moods, r.kill, r.rotate, r.churn} {
		wait.Go(func() { fault(faulty) })
	}
	begun := time.Now()
	for i := range r.options.callers {
		wait.Go(func() { r.caller(faulty, r.tenants[i%len(r.tenants)]) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	took := time.Since(begun)

	for _, t := range r.tenants {
		t.lab.mood.Store(nil)
	}
	lost := r.verify(ctx, 2*time.Minute)
	after, err := r.rest(ctx, before)
	if err != nil {
		return err
	}
	r.labs()
	if err := r.sweep(ctx); err != nil {
		return err
	}
	r.printf("registrations lost: %d\n", lost)
	r.printf("the replica that lived had %s before, %s after\n", before, after)
	if grown(before, after) {
		r.count.breach("the replica that lived has grown")
	}
	return r.count.print(r.out, took)
}

// grown says that a replica at rest holds more than before, but for what the
// runtime itself has a few more or less of.
func grown(before, after held) bool {
	return after.goroutines > before.goroutines*11/10+20 || after.descriptors > before.descriptors*11/10+20
}

// rest is what the first replica holds once its callers are gone and idle
// connections have had their time, or as soon as it is no more than before.
func (r *runner) rest(ctx context.Context, before held) (held, error) {
	r.fleet.client.CloseIdleConnections()
	for deadline := time.Now().Add(90 * time.Second); ; {
		select {
		case <-ctx.Done():
			return held{}, ctx.Err()
		case <-time.After(2 * time.Second):
		}
		now, _, err := r.fleet.held(ctx, r.fleet.members[0])
		if err != nil || before == (held{}) || !grown(before, now) || time.Now().After(deadline) {
			return now, err
		}
	}
}

// labs asks the labs what they were sent.
func (r *runner) labs() {
	var late time.Duration
	served := 0
	for _, t := range r.tenants {
		t.lab.mu.Lock()
		late = max(late, t.lab.late)
		served += t.lab.served
		if t.lab.foreign > 0 {
			r.count.breach("%d requests with another's credential came to a cluster", t.lab.foreign)
		}
		t.lab.mu.Unlock()
	}
	r.printf("the clusters that misbehave had %d requests; the latest with a credential that was rotated away came %d ms after its rotation\n", served, late.Milliseconds())
	if late > inForce+slack {
		r.count.breach("a credential was used %s after its rotation", late)
	}
}

// sweep looks for every credential in all that the replicas have written, in
// their environments and arguments, and in their metrics; and for the tenants'
// objects in all of it.
func (r *runner) sweep(ctx context.Context) error {
	secrets := [][]byte{[]byte("content-mark")}
	for _, t := range r.tenants {
		for _, s := range t.secrets() {
			secrets = append(secrets, []byte(s))
		}
	}
	examined := 0
	look := func(place string, text []byte) {
		examined += len(text)
		for _, secret := range secrets {
			if bytes.Contains(text, secret) {
				r.count.breach("%s holds a credential or an object's content", place)
				return
			}
		}
	}
	for _, s := range r.fleet.ever {
		err := filepath.WalkDir(filepath.Dir(s.Log), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			look(path, text)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, m := range r.fleet.members {
		s := m.service.Load()
		for _, file := range []string{"environ", "cmdline", "comm"} {
			path := fmt.Sprintf("/proc/%d/%s", s.PID(), file)
			text, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // there is no /proc everywhere
				return err
			}
			look(path, text)
		}
		_, metrics, err := r.fleet.held(ctx, m)
		if err != nil {
			return err
		}
		look("the metrics", []byte(metrics))
	}
	r.printf("%d credentials were looked for in %.1f MB of logs, audit lines, metrics and environments\n", len(secrets)-1, float64(examined)/1e6)
	return nil
}
