// Package registry keeps the clusters each org has registered and is the only
// way to reach one. It owns tenancy, the cluster records, the KMS that holds
// the credentials, the gate a kubeconfig must pass, the address policy, and the
// only constructor of a Kubernetes client in the module.
package registry

import (
	"context"
	"errors"
	"log/slog"
)

// Record is what the registry says of a cluster. It never carries a credential.
type Record struct {
	Name              string   `json:"name,omitempty"`
	Org               string   `json:"org,omitempty"`
	Provider          string   `json:"provider,omitempty"`
	Endpoint          string   `json:"endpoint,omitempty"` // the apiserver's https URL
	Nodes             int      `json:"nodes"`
	NvidiaGpu         int      `json:"nvidiaGpu"`
	AmdGpu            int      `json:"amdGpu"`
	Namespaces        []string `json:"namespaces,omitempty"` // the bound; empty is the whole cluster
	Registered        string   `json:"registered,omitempty"` // RFC 3339, UTC
	Default           bool     `json:"default"`
	CredentialExpires string   `json:"credentialExpires,omitempty"` // RFC 3339; "" when the credential does not say
}

// Registration is the input of [Registry.Register].
type Registration struct {
	Name       string   // DNS-1123 label
	Kubeconfig []byte   // YAML or JSON, 256 KiB at most
	Provider   string   // "" is byo
	Namespaces []string // the bound; empty is the whole cluster
	Default    bool     // make it the org's default cluster
}

// Config is what a [Registry] is made of.
type Config struct {
	Store Store
	Log   *slog.Logger // nil is slog.Default
}

// Registry is the clusters of every org, each reachable only as its org.
type Registry struct{ store Store }

// New is a Registry over c.Store.
func New(c Config) (*Registry, error) {
	if c.Store == nil {
		return nil, errors.New("registry: no store")
	}
	return &Registry{store: c.Store}, nil
}

// Close ends every client and every stream.
func (r *Registry) Close() {}

// List is every cluster of the caller's org, by name.
func (r *Registry) List(ctx context.Context) ([]Record, error) { return nil, kmsUnavailable() }

// Get is one cluster of the caller's org.
func (r *Registry) Get(ctx context.Context, name string) (Record, error) {
	return Record{}, NotFound(name)
}

// Register registers a cluster for the caller's org, or rotates its credential.
func (r *Registry) Register(ctx context.Context, in Registration) (Record, error) {
	return Record{}, kmsUnavailable()
}

// Deregister forgets a cluster of the caller's org.
func (r *Registry) Deregister(ctx context.Context, name string) (removed bool, err error) {
	return false, kmsUnavailable()
}

// Reach is the caller's org's way into its cluster called name.
func (r *Registry) Reach(ctx context.Context, name string) (*Bound, error) {
	return nil, NotFound(name)
}

// Admit takes a place for one call to the caller's org's cluster, among the
// short or the long ones; release gives it back.
func (r *Registry) Admit(ctx context.Context, cluster string, long bool) (release func(), err error) {
	return func() {}, nil
}
