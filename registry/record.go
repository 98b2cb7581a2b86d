package registry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"
)

// Record is what the registry says of a cluster. It never carries a credential.
type Record struct {
	Name              string   `json:"name,omitempty"`
	Org               string   `json:"org,omitempty"`
	Provider          string   `json:"provider,omitempty"`
	Endpoint          string   `json:"endpoint,omitempty"` // the apiserver's https URL
	Nodes             int      `json:"nodes"`              // 0 on a bounded registration, as are the GPUs
	NvidiaGpu         int      `json:"nvidiaGpu"`          // allocatable across the nodes
	AmdGpu            int      `json:"amdGpu"`
	Namespaces        []string `json:"namespaces,omitempty"`        // the bound, sorted; empty is the whole cluster
	Registered        string   `json:"registered,omitempty"`        // RFC 3339, UTC
	Default           bool     `json:"default"`                     // the org's default cluster; one at most is
	CredentialExpires string   `json:"credentialExpires,omitempty"` // RFC 3339, UTC; "" when the credential does not say
}

// stored is a record as the KMS has it.
//
// A record's newest version decides everything: which version of the credential
// is in force, and whether there is a registration at all. A version of the
// credential that no record names is a leftover.
type stored struct {
	Record

	// Registration is random, and one registration's own through its rotations.
	Registration string `json:"registration"`

	// CredentialVersion and CredentialID name the credential in force. Version
	// numbers begin again when a secret is destroyed, and the random id does not.
	CredentialVersion int    `json:"credentialVersion"`
	CredentialID      string `json:"credentialId"`

	// Removal is set, and random, once a deregistration has begun. Such a record
	// is no registration; it keeps others away until what belonged to it is gone.
	Removal string `json:"removal,omitempty"`
}

// credential is the sealed kubeconfig as the KMS has it.
type credential struct {
	ID         string `json:"id"`
	Kubeconfig string `json:"kubeconfig"`
}

// pointer is the org's default cluster. A registration that has ended is not
// one, whatever has been registered under its name since.
type pointer struct {
	Cluster      string `json:"cluster"`
	Registration string `json:"registration"`
}

// read is the newest record of org's cluster, nil when there is none, and its
// version. A deregistration under way is a record too.
func (r *Registry) read(ctx context.Context, org Org, cluster string) (*stored, int, error) {
	data, version, err := r.store.Get(ctx, org, recordRef(org, cluster), 0)
	if err != nil || data == nil {
		return nil, version, r.kms(err)
	}
	var rec stored
	if json.Unmarshal(data, &rec) != nil || rec.Name != cluster || rec.Org != org.name ||
		rec.Removal == "" && (rec.CredentialVersion < 1 || rec.CredentialID == "") ||
		slices.ContainsFunc(rec.Namespaces, func(ns string) bool { return checkName("", ns) != nil }) {
		r.log.Error("a stored record is not of the expected shape", "org", org.name, "cluster", cluster)
		return nil, version, corrupt()
	}
	return &rec, version, nil
}

// write puts rec as the newest version of its record, if the one before is
// still cas. Where it cannot tell whether the write was done it looks.
func (r *Registry) write(ctx context.Context, org Org, rec *stored, cas int) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return corrupt()
	}
	_, err = r.store.Put(ctx, org, recordRef(org, rec.Name), data, cas)
	if err == nil {
		return nil
	}
	now, _, readErr := r.read(ctx, org, rec.Name)
	switch {
	case readErr != nil:
		return r.kms(err)
	case now != nil && now.CredentialID == rec.CredentialID && now.Removal == rec.Removal:
		return nil
	case errors.Is(err, ErrVersion):
		return conflict(rec.Name)
	}
	return r.kms(err)
}

// readCredential is the kubeconfig rec names, nil when the KMS no longer has it.
func (r *Registry) readCredential(ctx context.Context, org Org, rec *stored) ([]byte, error) {
	data, _, err := r.store.Get(ctx, org, credentialRef(org, rec.Name), rec.CredentialVersion)
	if err != nil || data == nil {
		return nil, r.kms(err)
	}
	var c credential
	if json.Unmarshal(data, &c) != nil {
		r.log.Error("a stored credential is not of the expected shape", "org", org.name, "cluster", rec.Name)
		return nil, corrupt()
	}
	if c.ID != rec.CredentialID {
		return nil, nil
	}
	return []byte(c.Kubeconfig), nil
}

// readDefault is the org's default cluster, the zero pointer when it has none,
// and the pointer's version.
func (r *Registry) readDefault(ctx context.Context, org Org) (pointer, int, error) {
	data, version, err := r.store.Get(ctx, org, defaultRef(org), 0)
	if err != nil || data == nil {
		return pointer{}, version, r.kms(err)
	}
	var p pointer
	if json.Unmarshal(data, &p) != nil {
		r.log.Error("the stored default cluster is not of the expected shape", "org", org.name)
		return pointer{}, version, nil
	}
	return p, version, nil
}

// writeDefault makes p the org's default cluster, whichever was before.
func (r *Registry) writeDefault(ctx context.Context, org Org, p pointer) error {
	data, err := json.Marshal(p)
	if err != nil {
		return corrupt()
	}
	for range 5 {
		_, version, err := r.readDefault(ctx, org)
		if err != nil {
			return err
		}
		if _, err = r.store.Put(ctx, org, defaultRef(org), data, version); !errors.Is(err, ErrVersion) {
			return r.kms(err)
		}
	}
	return Refuse(http.StatusConflict, "conflict", "the default cluster is being changed by other calls").After(time.Second)
}

func (p pointer) names(rec *stored) bool {
	return p.Registration != "" && p.Cluster == rec.Name && p.Registration == rec.Registration
}

// kms is a store's error as a caller may see it.
func (r *Registry) kms(err error) error {
	switch {
	case err == nil:
		return nil
	case asRefusal(err) != nil:
		return err
	case errors.Is(err, ErrCorrupt):
		return corrupt()
	case errors.Is(err, context.Canceled):
		return canceled()
	}
	return kmsUnavailable()
}

func corrupt() *Refusal {
	return Refuse(http.StatusInternalServerError, "kms_corrupt", "what the key store holds for this cluster cannot be read; register or deregister it anew")
}
