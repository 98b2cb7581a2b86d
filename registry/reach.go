package registry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	loadTimeout = 5 * time.Second
	// unverifiedFor is how long what already runs may run on while the KMS does
	// not say whether it still may. No request begins in that time.
	unverifiedFor = 10 * time.Second
)

// key names a cluster. The versions of the record and of the credential are the
// entry's: one entry is in force for a key at a time.
type key struct {
	org  Org
	name string
}

func (k key) String() string { return k.org.name + "/" + k.name }

// entry is a cluster as a record and a credential say, and the client made of
// them. A change of either is another entry.
type entry struct {
	key
	record       Record
	registration string
	credentialID string
	secret       []byte // what Seal's keys are derived from
	client       *client
	breaker      breaker

	checked atomic.Int64 // when the read began that last found the record in force, Unix ns
	used    atomic.Int64 // when it was last reached, Unix ns
	callers atomic.Int64 // calls that have reached it and have not ended
}

// Reach is the caller's org's way into its cluster called name, for as long as
// ctx lasts, which must end with the call. Its refusals are no_tenant, bad_input,
// cluster_not_found and kms_unavailable; a name another org has is not found by
// the same steps as one nobody has.
func (r *Registry) Reach(ctx context.Context, name string) (*Bound, error) {
	org, err := Tenant(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkName("cluster", name); err != nil {
		return nil, err
	}
	at := key{org, name}
	for range 3 {
		e := r.cached(at)
		if e == nil || !r.isFresh(e) {
			if e, err = r.load(ctx, at); err != nil {
				return nil, err
			}
		}
		if r.hold(ctx, e) {
			return &Bound{r, e}, nil
		}
	}
	return nil, conflict(name)
}

// hold counts the call ctx belongs to among those that use e, unless e has been
// replaced meanwhile. What is in use is watched, and not evicted.
func (r *Registry) hold(ctx context.Context, e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[e.key] != e && !r.closed {
		return false
	}
	e.used.Store(time.Now().UnixNano())
	e.callers.Add(1)
	context.AfterFunc(ctx, func() { e.callers.Add(-1) })
	return true
}

func (r *Registry) cached(at key) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[at]
}

// isFresh says that e's record was read lately. Using it does not make it so.
func (r *Registry) isFresh(e *entry) bool {
	return time.Since(time.Unix(0, e.checked.Load())) < r.fresh
}

// verify refuses what e's registration no longer covers.
func (r *Registry) verify(ctx context.Context, e *entry) error {
	if !r.isFresh(e) && e.client.life.Err() == nil {
		if _, err := r.load(ctx, e.key); err != nil && asRefusal(err).Code != "cluster_not_found" {
			return err
		}
	}
	return context.Cause(e.client.life)
}

// load is the entry for what the KMS says now. Of those that ask at the same
// time one reads.
func (r *Registry) load(ctx context.Context, at key) (*entry, error) {
	result := r.loads.DoChan(at.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return r.reload(ctx, at)
	})
	select {
	case got := <-result:
		e, _ := got.Val.(*entry)
		return e, got.Err
	case <-ctx.Done():
		return nil, failure(ctx, ctx.Err())
	}
}

// reload reads what the KMS says until nothing has changed meanwhile.
func (r *Registry) reload(ctx context.Context, at key) (*entry, error) {
	for {
		reading := &reading{of: at}
		r.mu.Lock()
		r.readings[reading] = struct{}{}
		r.mu.Unlock()
		e, err := r.attempt(ctx, at, reading)
		r.mu.Lock()
		delete(r.readings, reading)
		again := reading.overtaken && !r.closed
		r.mu.Unlock()
		if !again {
			return e, err
		}
		if ctx.Err() != nil {
			return nil, kmsUnavailable()
		}
	}
}

// reading is one look at the KMS. It is overtaken when this process changes the
// registration, or another rotates it, while it is going on.
type reading struct {
	of        key
	overtaken bool
}

// attempt reads the record and, where it is not the one in the cache, the
// credential.
func (r *Registry) attempt(ctx context.Context, at key, reading *reading) (*entry, error) {
	start := time.Now()
	rec, version, err := r.read(ctx, at.org, at.name)
	switch {
	case isCorrupt(err):
		r.drop(at, start, corrupt())
		return nil, err
	case err != nil:
		return nil, err
	case rec == nil || rec.Removal != "":
		r.drop(at, start, Deregistered(at.name))
		return nil, NotFound(at.name)
	}
	if e := r.cached(at); e != nil && e.credentialID == rec.CredentialID {
		e.checked.Store(max(e.checked.Load(), start.UnixNano()))
		return e, nil
	}
	kubeconfig, err := r.readCredential(ctx, at.org, rec)
	if err != nil {
		return nil, err
	}
	if kubeconfig == nil {
		// Rotated away between the two reads, or destroyed by somebody else.
		_, now, err := r.read(ctx, at.org, at.name)
		if err != nil {
			return nil, err
		}
		if now == version {
			r.drop(at, start, Deregistered(at.name))
			return nil, NotFound(at.name)
		}
		r.mu.Lock()
		reading.overtaken = true
		r.mu.Unlock()
		return nil, Rotated(at.name)
	}
	e, err := r.newEntry(at, rec, kubeconfig)
	if err != nil {
		return nil, err
	}
	e.checked.Store(start.UnixNano())
	return r.install(e, reading), nil
}

// newEntry makes the client. What the KMS holds passes the same gate as what a
// caller registers, but for having expired meanwhile.
func (r *Registry) newEntry(at key, rec *stored, kubeconfig []byte) (*entry, error) {
	cfg, err := safeRESTConfig(kubeconfig, r.policy, time.Time{})
	if err != nil {
		r.log.Error("a stored credential does not pass the gate", "org", at.org.name, "cluster", at.name, "code", asRefusal(err).Code)
		if asRefusal(err).Code == "address_refused" {
			return nil, addressRefused()
		}
		return nil, corrupt()
	}
	c, err := newClient(cfg, r.policy)
	if err != nil {
		return nil, corrupt()
	}
	e := &entry{key: at, record: rec.Record, registration: rec.Registration, credentialID: rec.CredentialID, secret: append(kubeconfig, rec.CredentialID...), client: c}
	e.record.Default = false
	e.breaker.changed = func(state string) { r.observer.Breaker(at.org.name, at.name, state) }
	e.used.Store(time.Now().UnixNano())
	return e, nil
}

// install puts e in force, ends what was in force before, and answers what is in
// force now: that is not e where its reading has been overtaken, or where
// another reading has found the same credential or is the newer one.
func (r *Registry) install(e *entry, reading *reading) *entry {
	r.mu.Lock()
	old := r.entries[e.key]
	if reading.overtaken || r.closed {
		r.mu.Unlock()
		e.client.close(shuttingDown())
		return e
	}
	if old != nil && (old.credentialID == e.credentialID || old.checked.Load() > e.checked.Load()) {
		r.mu.Unlock()
		e.client.close(errUnused)
		return old
	}
	r.entries[e.key] = e
	evicted := r.leastUsed()
	r.watches.Go(func() { r.watch(e) })
	r.mu.Unlock()
	if old != nil {
		old.client.close(old.succeededBy(e.registration))
	}
	if evicted != nil {
		evicted.client.close(errUnused)
	}
	return e
}

// errUnused ends a client that no call is using.
var errUnused = errors.New("registry: the client is not in use")

// succeededBy is why what runs on e ends when registration is in force: that is
// another where the cluster was deregistered and registered anew.
func (e *entry) succeededBy(registration string) *Refusal {
	if registration != e.registration {
		return Deregistered(e.name)
	}
	return Rotated(e.name)
}

// leastUsed takes the entry out that nobody has reached for longest, where
// there are too many and one is not in use. The caller has the lock.
func (r *Registry) leastUsed() *entry {
	if len(r.entries) <= r.maxClients {
		return nil
	}
	var oldest *entry
	for _, e := range r.entries {
		if e.callers.Load() == 0 && (oldest == nil || e.used.Load() < oldest.used.Load()) {
			oldest = e
		}
	}
	if oldest != nil {
		delete(r.entries, oldest.key)
	}
	return oldest
}

// drop ends, with reason, what runs on a cluster that was not registered at the
// time asOf.
func (r *Registry) drop(at key, asOf time.Time, reason *Refusal) {
	r.mu.Lock()
	e := r.entries[at]
	if e == nil || e.checked.Load() > asOf.UnixNano() {
		r.mu.Unlock()
		return
	}
	delete(r.entries, at)
	r.mu.Unlock()
	e.client.close(reason)
}

// changed is for a change this process has made, after which rec is in force:
// what runs on another credential ends, a reading that began before is made
// again, and nobody who comes after is given its answer.
func (r *Registry) changed(at key, rec *stored) {
	r.mu.Lock()
	for reading := range r.readings {
		reading.overtaken = reading.overtaken || reading.of == at
	}
	e := r.entries[at]
	if e != nil && e.credentialID == rec.CredentialID {
		e = nil
	}
	if e != nil {
		delete(r.entries, at)
	}
	r.mu.Unlock()
	r.loads.Forget(at.String())
	switch {
	case e == nil:
	case rec.Removal != "":
		e.client.close(Deregistered(at.name))
	default:
		e.client.close(e.succeededBy(rec.Registration))
	}
}

// watch reads the record of an entry in use again and again, so that what runs
// on it ends when the registration does. An entry out of use it lets go.
func (r *Registry) watch(e *entry) {
	ticker := time.NewTicker(r.fresh / 2)
	defer ticker.Stop()
	for {
		select {
		case <-e.client.life.Done():
			return
		case <-ticker.C:
		}
		if e.callers.Load() == 0 {
			if time.Since(time.Unix(0, e.used.Load())) > r.idle {
				r.letGo(e)
			}
			continue
		}
		if r.isFresh(e) {
			continue
		}
		_, err := r.load(e.client.life, e.key)
		if err != nil && time.Since(time.Unix(0, e.checked.Load())) > unverifiedFor {
			e.client.close(kmsUnavailable())
			r.letGo(e)
		}
	}
}

// letGo takes e out of the cache, if it is still there and not in use again.
func (r *Registry) letGo(e *entry) {
	r.mu.Lock()
	if r.entries[e.key] != e || e.callers.Load() > 0 && e.client.life.Err() == nil {
		r.mu.Unlock()
		return
	}
	delete(r.entries, e.key)
	r.mu.Unlock()
	e.client.close(errUnused)
}
