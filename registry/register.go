package registry

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

const (
	proveTimeout  = 15 * time.Second
	writeTimeout  = 10 * time.Second
	maxNamespaces = 256
)

// Registration is the input of [Registry.Register].
type Registration struct {
	Name       string   // DNS-1123 label
	Kubeconfig []byte   // YAML or JSON, 256 KiB at most
	Provider   string   // DNS-1123 label; "" is byo
	Namespaces []string // the bound, 256 DNS-1123 labels at most; empty is the whole cluster
	Default    bool     // make it the org's default cluster; false leaves that as it is
}

// Register registers a cluster for the caller's org or, where it has one of
// that name, replaces its bound and its credential. The kubeconfig passes
// [SafeRESTConfig], the cluster proves within 15 s that it answers to it, by
// listing its nodes or, on a bounded registration, pods of the bound, and what
// was validated is sealed in the KMS. It is in force at once in this process
// and within a second in any other; what ran on the old credential ends.
//
// Its refusals are no_tenant, bad_input, too_large, those of SafeRESTConfig, the
// cluster's (those of [Bound.Do], and unauthorized, forbidden, bad_upstream), conflict
// for the loser of two registrations of one name, and kms_unavailable. After a
// refusal the registration there was, or was not, is still in force; only after
// kms_unavailable it may be either.
func (r *Registry) Register(ctx context.Context, in Registration) (Record, error) {
	org, err := Tenant(ctx)
	if err != nil {
		return Record{}, err
	}
	rec := &stored{Record: Record{
		Name: in.Name, Org: org.name, Provider: in.Provider, Namespaces: slices.Clone(in.Namespaces),
		Registered: time.Now().UTC().Format(time.RFC3339),
	}}
	if err := rec.check(); err != nil {
		return Record{}, err
	}
	cfg, err := SafeRESTConfig(in.Kubeconfig, r.policy)
	if err != nil {
		return Record{}, err
	}
	rec.Endpoint = cfg.Host
	if at := credentialExpires(cfg); !at.IsZero() {
		rec.CredentialExpires = at.Format(time.RFC3339)
	}
	c, err := newClient(cfg, r.policy)
	if err != nil {
		return Record{}, err
	}
	err = c.prove(ctx, &rec.Record)
	c.close(errors.New("the proof is over"))
	if err != nil {
		return Record{}, err
	}
	kubeconfig, err := sealed(cfg)
	if err != nil {
		return Record{}, kubeconfigRefused("kubeconfig", "cannot be sealed")
	}
	return r.commit(ctx, org, rec, kubeconfig, in.Default)
}

// check refuses a record's fields that are the caller's, and completes them.
func (rec *stored) check() error {
	if rec.Provider == "" {
		rec.Provider = "byo"
	}
	if err := checkName("name", rec.Name); err != nil {
		return err
	}
	if err := checkName("provider", rec.Provider); err != nil {
		return err
	}
	slices.Sort(rec.Namespaces)
	rec.Namespaces = slices.Compact(rec.Namespaces)
	if len(rec.Namespaces) > maxNamespaces {
		return BadInput("namespaces", "are more than %d", maxNamespaces)
	}
	for _, namespace := range rec.Namespaces {
		if err := checkName("namespaces", namespace); err != nil {
			return err
		}
	}
	return nil
}

// commit writes a registration. First the credential as a new version, which
// nothing names yet; then the record that names it, by check-and-set, which is
// the moment it comes into force; then the old versions are destroyed. Cut
// anywhere, what is in force is one whole registration, and the next call
// removes what is left over.
func (r *Registry) commit(ctx context.Context, org Org, rec *stored, kubeconfig []byte, isDefault bool) (Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	old, version, err := r.settled(ctx, org, rec.Name)
	if err != nil {
		return Record{}, err
	}
	rec.CredentialID, rec.Registration = newID(), newID()
	if old != nil {
		rec.Registration, rec.Registered = old.Registration, old.Registered
	}
	ref := credentialRef(org, rec.Name)
	newest, live, err := r.store.Versions(ctx, org, ref)
	if err != nil {
		return Record{}, r.kms(err)
	}
	data, err := json.Marshal(credential{rec.CredentialID, string(kubeconfig)})
	if err != nil {
		return Record{}, corrupt()
	}
	if rec.CredentialVersion, err = r.store.Put(ctx, org, ref, data, newest); errors.Is(err, ErrVersion) {
		return Record{}, conflict(rec.Name)
	} else if err != nil {
		return Record{}, r.kms(err)
	}
	if err := r.write(ctx, org, rec, version); err != nil {
		if asRefusal(err).Code == "conflict" {
			r.tidy(ctx, org, rec.Name, rec.CredentialVersion)
		}
		return Record{}, err
	}
	// A deregistration that ran from beginning to end between the reads above and
	// the record's write has taken the credential along.
	if kept, err := r.readCredential(ctx, org, rec); err != nil {
		return Record{}, err
	} else if kept == nil {
		if err := r.remove(ctx, org, rec, version+1); err != nil {
			return Record{}, err
		}
		return Record{}, conflict(rec.Name)
	}
	r.changed(key{org, rec.Name}, rec)
	at := pointer{rec.Name, rec.Registration}
	if isDefault {
		err = r.writeDefault(ctx, org, at)
	} else {
		at, _, err = r.readDefault(ctx, org)
	}
	if err != nil {
		return Record{}, err
	}
	rec.Default = at.names(rec)
	r.tidy(ctx, org, rec.Name, live...)
	return rec.Record, nil
}

// tidy destroys versions of a credential that no record names. Where it cannot,
// the next registration or deregistration does.
func (r *Registry) tidy(ctx context.Context, org Org, name string, versions ...int) {
	if len(versions) == 0 {
		return
	}
	if err := r.store.Destroy(ctx, org, credentialRef(org, name), versions...); err != nil {
		r.log.Warn("a credential that is not in force is not destroyed yet", "org", org.name, "cluster", name)
	}
}

// Deregister forgets a cluster of the caller's org: from now on it is not found,
// what runs on it ends, here at once and elsewhere within a second, and every
// version of its credential is destroyed. removed is false when there was
// nothing to remove. Its refusals are no_tenant, bad_input, conflict and
// kms_unavailable, after which another call finishes what this one began.
func (r *Registry) Deregister(ctx context.Context, name string) (removed bool, err error) {
	org, err := Tenant(ctx)
	if err != nil {
		return false, err
	}
	if err := checkName("cluster", name); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	start := time.Now()
	rec, version, err := r.await(ctx, org, name)
	if err != nil {
		return false, err
	}
	if rec == nil && version == 0 {
		newest, _, err := r.store.Versions(ctx, org, credentialRef(org, name))
		if err != nil || newest == 0 {
			r.drop(key{org, name}, start, Deregistered(name))
			return false, r.kms(err)
		}
	}
	if rec == nil {
		rec = &stored{Record: Record{Name: name, Org: org.name}}
	}
	return true, r.remove(ctx, org, rec, version)
}

// remove takes a registration away, rec being the record's version. Its first
// write, by check-and-set, ends the registration and keeps others away until the
// rest is done, for which it has most of the lease.
func (r *Registry) remove(ctx context.Context, org Org, rec *stored, version int) error {
	ctx, cancel := context.WithTimeout(ctx, r.lease*2/3)
	defer cancel()
	end := &stored{Record: Record{Name: rec.Name, Org: org.name}, Registration: rec.Registration, Removal: newID()}
	if err := r.write(ctx, org, end, version); err != nil {
		return err
	}
	r.changed(key{org, rec.Name}, end)
	if err := r.store.Destroy(ctx, org, credentialRef(org, rec.Name)); err != nil {
		return r.kms(err)
	}
	at, _, err := r.readDefault(ctx, org)
	if err == nil && at.names(rec) {
		err = r.writeDefault(ctx, org, pointer{})
	}
	if err != nil {
		return err
	}
	return r.kms(r.store.Destroy(ctx, org, recordRef(org, rec.Name)))
}

// await is the newest record and its version, once no deregistration is about
// its business. One that has had its lease without finishing is answered as it
// stands, for the caller to finish. A record that cannot be read is none.
func (r *Registry) await(ctx context.Context, org Org, name string) (*stored, int, error) {
	var removal string
	var since time.Time
	for {
		rec, version, err := r.read(ctx, org, name)
		switch {
		case isCorrupt(err):
			return nil, version, nil
		case err != nil:
			return nil, 0, err
		case rec == nil || rec.Removal == "":
			return rec, version, nil
		case rec.Removal != removal:
			removal, since = rec.Removal, time.Now()
		case time.Since(since) >= r.lease:
			return rec, version, nil
		}
		if err := sleep(ctx, r.lease/50); err != nil {
			return nil, 0, conflict(name)
		}
	}
}

// settled is the record in force, nil when there is none, and the version its
// successor must name. A deregistration that was cut short it finishes.
func (r *Registry) settled(ctx context.Context, org Org, name string) (*stored, int, error) {
	for {
		rec, version, err := r.await(ctx, org, name)
		if err != nil || rec == nil || rec.Removal == "" {
			return rec, version, err
		}
		if err := r.remove(ctx, org, rec, version); err != nil {
			return nil, 0, err
		}
	}
}
