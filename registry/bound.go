package registry

import (
	"context"
	"net/http"
	"net/url"
	"slices"
)

// Bound is one org's reach into one of its clusters: the record, the
// namespaces it may address, and the only way to send the cluster a request.
type Bound struct {
	record Record
}

// Record is the registration as it was when the cluster was reached. Default
// is not filled in; [Registry.Get] answers it.
func (b *Bound) Record() Record { return b.record }

// Scope is the namespaces a read covers when the caller asks for namespace:
// itself where the bound has it, and for "" every namespace of the bound, one
// by one. [""] is every namespace of a cluster registered whole. Its refusal is
// outside_bound.
func (b *Bound) Scope(namespace string) ([]string, error) {
	if namespace == "" && len(b.record.Namespaces) > 0 {
		return slices.Clone(b.record.Namespaces), nil
	}
	if namespace != "" {
		if err := b.One(namespace); err != nil {
			return nil, err
		}
	}
	return []string{namespace}, nil
}

// One refuses, with outside_bound, an object in a namespace the registration
// may not address. "" is no namespace.
func (b *Bound) One(namespace string) error {
	if namespace == "" {
		return BadInput("namespace", "is required")
	}
	if len(b.record.Namespaces) > 0 && !slices.Contains(b.record.Namespaces, namespace) {
		return OutsideBound(namespace)
	}
	return nil
}

// WholeCluster refuses, with outside_bound, cluster-scoped work on a
// registration that is bound to namespaces.
func (b *Bound) WholeCluster() error {
	if len(b.record.Namespaces) > 0 {
		return Refuse(http.StatusForbidden, "outside_bound", "this registration is bound to namespaces and may not address the cluster as a whole")
	}
	return nil
}

// Request is one request to a cluster.
type Request struct {
	Method      string
	Path        string     // made by [Path]
	Query       url.Values // nil is none
	Accept      string
	ContentType string // of Body
	Body        []byte
	Stream      bool  // a watch or a followed log: it does not share the connections of short requests
	MaxBytes    int64 // cap on the answer's decompressed bytes; 0 is 64 MiB
}

// Do sends one request to the cluster. Every HTTP status but a redirect is an
// answer and not an error; a failure to get one is a [Refusal]. Reading past
// MaxBytes of the body, or a body cut short, is a Refusal from its Read. The
// caller closes the body.
func (b *Bound) Do(ctx context.Context, req *Request) (*http.Response, error) {
	return nil, Deregistered(b.record.Name)
}

// Seal is plain, encrypted and authenticated for purpose with a key derived
// from the cluster's credential, as base64url. Another org, cluster, purpose or
// credential cannot open it; any replica can.
func (b *Bound) Seal(purpose string, plain []byte) string { return "" }

// Open is what [Bound.Seal] sealed. Its refusal is bad_continue.
func (b *Bound) Open(purpose, token string) ([]byte, error) { return nil, nil }

// Done is closed when the registration has ended or its credential has been
// rotated away: what runs on the Bound must stop.
func (b *Bound) Done() <-chan struct{} { return nil }
