package registry

import (
	"context"
	"errors"
	"time"
)

// Store is a versioned key-value store of secrets with check-and-set: KV
// version 2 as Vault and OpenBao have it. The org is whose call it is, and a
// store may hold the call to that org's refs. Its errors are [ErrVersion],
// [ErrDenied], [ErrCorrupt], [ErrUnavailable] and, where the caller left before
// there was an answer, [context.Canceled]; none says anything of the data.
type Store interface {
	// Get is the data at ref, a JSON object, in the given version, 0 being the
	// newest, and that version's number. Data that is absent, soft-deleted or
	// destroyed is nil.
	Get(ctx context.Context, org Org, ref string, version int) (data []byte, found int, err error)

	// Versions is the number of ref's newest version, 0 when there is none, and
	// the numbers of those whose data is still there.
	Versions(ctx context.Context, org Org, ref string) (newest int, live []int, err error)

	// Put writes data, a JSON object, if ref's newest version is still cas, 0
	// being that there is none, and answers the new version.
	Put(ctx context.Context, org Org, ref string, data []byte, cas int) (version int, err error)

	// List is the names directly under ref; a folder's ends with a slash.
	List(ctx context.Context, org Org, ref string) ([]string, error)

	// Destroy removes the data of the given versions of ref for good, or with
	// none given all of them and that there ever was one. What is not there is
	// no error.
	Destroy(ctx context.Context, org Org, ref string, versions ...int) error
}

var (
	// ErrVersion is the error of a Put that names another version than the newest.
	ErrVersion = errors.New("registry: the stored version is another")
	// ErrDenied is the error of a store that does not let this org have the ref.
	ErrDenied = errors.New("registry: the key store denies the call")
	// ErrCorrupt is the error of stored data that is not of the expected shape.
	ErrCorrupt = errors.New("registry: stored data is not of the expected shape")
	// ErrUnavailable is the error of a store that does not answer as it should.
	ErrUnavailable = errors.New("registry: the key store does not answer")
)

// Observer is told what the registry does, for metrics. Its methods are called
// from many goroutines and must not block.
type Observer interface {
	// KMS is one call of the store: get, versions, put, list or destroy.
	KMS(operation string, took time.Duration, err error)
	// Upstream is one request to a cluster, up to its answer's header; status is
	// 0 when there was none.
	Upstream(org, cluster, method string, status int, took time.Duration)
	// Breaker is a change of a cluster's breaker: open, half_open or closed.
	Breaker(org, cluster, state string)
}

// unobserved is the Observer of a registry that has none.
type unobserved struct{}

func (unobserved) KMS(string, time.Duration, error)                    {}
func (unobserved) Upstream(string, string, string, int, time.Duration) {}
func (unobserved) Breaker(string, string, string)                      {}

// observed is a Store whose calls an Observer sees.
type observed struct {
	Store
	observer Observer
}

func (s observed) done(operation string, start time.Time, err *error) {
	s.observer.KMS(operation, time.Since(start), *err)
}

func (s observed) Get(ctx context.Context, org Org, ref string, version int) (data []byte, found int, err error) {
	defer s.done("get", time.Now(), &err)
	return s.Store.Get(ctx, org, ref, version)
}

func (s observed) Versions(ctx context.Context, org Org, ref string) (newest int, live []int, err error) {
	defer s.done("versions", time.Now(), &err)
	return s.Store.Versions(ctx, org, ref)
}

func (s observed) Put(ctx context.Context, org Org, ref string, data []byte, cas int) (version int, err error) {
	defer s.done("put", time.Now(), &err)
	return s.Store.Put(ctx, org, ref, data, cas)
}

func (s observed) List(ctx context.Context, org Org, ref string) (names []string, err error) {
	defer s.done("list", time.Now(), &err)
	return s.Store.List(ctx, org, ref)
}

func (s observed) Destroy(ctx context.Context, org Org, ref string, versions ...int) (err error) {
	defer s.done("destroy", time.Now(), &err)
	return s.Store.Destroy(ctx, org, ref, versions...)
}
