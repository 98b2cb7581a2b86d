package registry

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Bound is one org's reach into one of its clusters: the record, the namespaces
// it may address, and the only way to send the cluster a request. It is good
// for one call of the service, and ends with the registration.
type Bound struct {
	registry *Registry
	entry    *entry
}

// Record is the registration as it was when the cluster was reached. Default
// is not filled in: [Registry.Get] answers that.
func (b *Bound) Record() Record {
	record := b.entry.record
	record.Namespaces = slices.Clone(record.Namespaces)
	return record
}

// Scope is the namespaces a read covers when the caller asks for namespace:
// that one where the bound has it, and for "" every namespace of the bound, to
// be read one by one. [""] is every namespace, on a cluster registered whole.
// Its refusal is outside_bound.
func (b *Bound) Scope(namespace string) ([]string, error) {
	bound := b.entry.record.Namespaces
	if namespace == "" && len(bound) > 0 {
		return slices.Clone(bound), nil
	}
	if len(bound) > 0 && !slices.Contains(bound, namespace) {
		return nil, OutsideBound(namespace)
	}
	return []string{namespace}, nil
}

// One refuses, with outside_bound, a namespace the registration may not
// address. No namespace at all is bad_input.
func (b *Bound) One(namespace string) error {
	if namespace == "" {
		return BadInput("namespace", "is required")
	}
	if bound := b.entry.record.Namespaces; len(bound) > 0 && !slices.Contains(bound, namespace) {
		return OutsideBound(namespace)
	}
	return nil
}

// WholeCluster refuses, with outside_bound, cluster-scoped work on a
// registration that is bound to namespaces.
func (b *Bound) WholeCluster() error {
	if len(b.entry.record.Namespaces) > 0 {
		return Refuse(http.StatusForbidden, "outside_bound", "this registration is bound to namespaces and may not address the cluster as a whole")
	}
	return nil
}

// Do sends one request to the cluster, on a registration that has been seen to
// be in force within the last second. Every HTTP status but a redirect is an
// answer and not an error. A GET that the cluster answers with 429 or 503 and a
// Retry-After that ctx has time for is tried again, three times in all.
//
// Its refusals are those Life ends with, kms_unavailable, breaker_open,
// address_refused, connect_timeout, cluster_unreachable, tls_invalid, redirected,
// bad_upstream, deadline and canceled; those of reading the body are those Life
// ends with, truncated, too_large, deadline and canceled. The caller closes the
// body.
func (b *Bound) Do(ctx context.Context, req *Request) (*http.Response, error) {
	return b.entry.client.do(ctx, req, b.once)
}

func (b *Bound) once(ctx context.Context, req *Request) (*http.Response, error) {
	if err := b.registry.verify(ctx, b.entry); err != nil {
		refusal := *failure(ctx, err)
		refusal.Unsent = true
		return nil, &refusal
	}
	start := time.Now()
	probe, err := b.entry.breaker.enter(start)
	if err != nil {
		return nil, err
	}
	resp, err := b.entry.client.once(ctx, req)
	now := time.Now()
	b.entry.breaker.leave(now, probe, err)
	status := 0
	if resp != nil {
		status = resp.StatusCode
	}
	b.registry.observer.Upstream(b.entry.org.name, b.entry.name, req.Method, status, now.Sub(start))
	return resp, err
}

// Redact overwrites the credential's token wherever it stands in words, which a
// cluster has sent and a caller may come to see.
func (b *Bound) Redact(words []byte) { b.entry.client.redact(words) }

// Seal is plain, encrypted and authenticated for purpose with a key derived
// from the cluster's credential, as base64url. Another org, cluster, purpose or
// credential does not open it; any replica does.
func (b *Bound) Seal(purpose string, plain []byte) string {
	aead := b.aead(purpose)
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, plain, nil))
}

// Open is what [Bound.Seal] sealed for the same purpose. Its refusal is
// bad_continue.
func (b *Bound) Open(purpose, token string) ([]byte, error) {
	plain, err := b.open(purpose, token)
	if err != nil {
		return nil, Refuse(http.StatusBadRequest, "bad_continue", "the continue token is not one of this list")
	}
	return plain, nil
}

func (b *Bound) open(purpose, token string) ([]byte, error) {
	aead := b.aead(purpose)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return nil, err
	}
	if len(sealed) < aead.NonceSize() || strings.ContainsAny(token, "\r\n") { // which base64 skips
		return nil, errors.New("not what Seal answers")
	}
	return aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], nil)
}

// aead has a key of its own for each credential, org, cluster and purpose. The
// names hold no NUL, so no two lists of them are the same info.
func (b *Bound) aead(purpose string) cipher.AEAD {
	info := b.entry.org.name + "\x00" + b.entry.name + "\x00" + purpose
	key, err := hkdf.Key(sha256.New, b.entry.secret, []byte("hanzo k8s seal 1"), info, 32)
	if err != nil {
		panic(err) // only for keys longer than SHA-256 can derive
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for keys of another length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for blocks of another size
	}
	return aead
}

// Life ends when the registration has, or its credential has been rotated away,
// within a second of that happening on any replica: what runs on the Bound must
// stop. Its cause is deregistered; rotated, after which the cluster can be reached
// anew; kms_unavailable, where the KMS has not said for a while whether the
// registration is in force; or overloaded, when the service stops.
func (b *Bound) Life() context.Context { return b.entry.client.life }
