// Package registry keeps the clusters each org has registered and is the only
// way to reach one. It owns tenancy, the cluster records, the KMS that holds
// the credentials, the gate a kubeconfig must pass, the address policy, and the
// only constructor of a Kubernetes client in the module.
//
// Its errors are [*Refusal].
package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
)

// Config is what a [Registry] is made of. Only Store is required.
type Config struct {
	Store    Store
	Policy   Policy
	Limits   Limits
	Log      *slog.Logger // nil is slog.Default
	Observer Observer     // nil is none

	// Fresh is how long a record that has been read is acted on before it is
	// read again; 0 is 500 ms, and more than 750 ms is not taken, so that a
	// change made by another replica is in force within a second.
	Fresh time.Duration

	// Clients is how many clusters' clients are kept; 0 is 1024. Those in use
	// are kept beyond it.
	Clients int

	// Idle is how long a client nobody uses is kept; 0 is 10 minutes.
	Idle time.Duration
}

// lease is how long a deregistration may be about its business before another
// call finishes it. Its own calls end well before.
const lease = 3 * time.Second

// Registry is the clusters of every org, each reachable only as its org. Any
// number of replicas may share one store.
type Registry struct {
	store     Store
	policy    Policy
	log       *slog.Logger
	observer  Observer
	admission admission

	fresh, idle, lease time.Duration
	maxClients         int

	loads   singleflight.Group
	watches sync.WaitGroup

	mu       sync.Mutex
	entries  map[key]*entry
	readings map[*reading]struct{} // those going on
	closed   bool
}

// New is a Registry over c.Store.
func New(c Config) (*Registry, error) {
	if c.Store == nil {
		return nil, errors.New("registry: there is no store")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Observer == nil {
		c.Observer = unobserved{}
	}
	if c.Fresh <= 0 || c.Fresh > 750*time.Millisecond {
		c.Fresh = 500 * time.Millisecond
	}
	if c.Clients <= 0 {
		c.Clients = 1024
	}
	if c.Idle <= 0 {
		c.Idle = 10 * time.Minute
	}
	return &Registry{
		store:     observed{c.Store, c.Observer},
		policy:    c.Policy,
		log:       c.Log,
		observer:  c.Observer,
		admission: admission{limits: c.Limits.complete(), orgs: map[Org]*load{}},
		fresh:     c.Fresh, idle: c.Idle, lease: lease, maxClients: c.Clients,
		entries: map[key]*entry{}, readings: map[*reading]struct{}{},
	}, nil
}

// Close ends every client and all that runs on it. Nothing can be reached
// afterwards.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	entries := r.entries
	r.entries = nil
	r.mu.Unlock()
	for _, e := range entries {
		e.client.close(shuttingDown())
	}
	r.watches.Wait()
}

func shuttingDown() *Refusal {
	return Refuse(http.StatusServiceUnavailable, "overloaded", "the service is stopping").After(time.Second)
}

// List is every cluster the caller's org has registered, by name. A record that
// cannot be read is left out, and logged. Its refusals are no_tenant and
// kms_unavailable.
func (r *Registry) List(ctx context.Context) ([]Record, error) {
	org, err := Tenant(ctx)
	if err != nil {
		return nil, err
	}
	folders, err := r.store.List(ctx, org, clustersRef(org))
	if err != nil {
		return nil, r.kms(err)
	}
	at, _, err := r.readDefault(ctx, org)
	if err != nil {
		return nil, err
	}
	found := make([]*stored, len(folders))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, folder := range folders {
		name, ok := strings.CutSuffix(folder, "/")
		if !ok || checkName("cluster", name) != nil {
			continue
		}
		group.Go(func() error {
			rec, _, err := r.read(ctx, org, name)
			if isCorrupt(err) || rec != nil && rec.Removal != "" {
				return nil
			}
			found[i] = rec
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	records := []Record{}
	for _, rec := range found {
		if rec != nil {
			rec.Default = at.names(rec)
			records = append(records, rec.Record)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return records, nil
}

// Get is the record of one cluster of the caller's org. Its refusals are
// no_tenant, bad_input, cluster_not_found and kms_unavailable.
func (r *Registry) Get(ctx context.Context, name string) (Record, error) {
	org, err := Tenant(ctx)
	if err != nil {
		return Record{}, err
	}
	if err := checkName("cluster", name); err != nil {
		return Record{}, err
	}
	rec, _, err := r.read(ctx, org, name)
	if err != nil {
		return Record{}, err
	}
	if rec == nil || rec.Removal != "" {
		return Record{}, NotFound(name)
	}
	at, _, err := r.readDefault(ctx, org)
	if err != nil {
		return Record{}, err
	}
	rec.Default = at.names(rec)
	return rec.Record, nil
}

func isCorrupt(err error) bool {
	refusal := asRefusal(err)
	return refusal != nil && refusal.Code == "kms_corrupt"
}

// newID is a random name nobody can guess.
func newID() string { return rand.Text() }
