package registry

import (
	"context"
	"errors"
)

// Store is a versioned key-value store of secrets with check-and-set: KV
// version 2 as Vault and OpenBao have it. Every ref starts with the org's own
// prefix, and a store may hold the call to it.
type Store interface {
	// Get is the data at ref, a JSON object, in its newest version, or in the
	// given version where that is not 0. Data that is absent, soft-deleted or
	// destroyed is nil, with the version a Put must name.
	Get(ctx context.Context, org Org, ref string, version int) (data []byte, current int, err error)

	// Put writes data, a JSON object, if ref's newest version is still cas, 0
	// being that there is none, and returns the new version. Its error is
	// [ErrVersion] where it is not.
	Put(ctx context.Context, org Org, ref string, data []byte, cas int) (version int, err error)

	// List is the names directly under ref, a folder's with a trailing slash.
	List(ctx context.Context, org Org, ref string) ([]string, error)

	// Destroy removes for good the given versions of ref, or with none given
	// all of them and that there ever was one.
	Destroy(ctx context.Context, org Org, ref string, versions ...int) error
}

// ErrVersion is the error of a Put that named another version than the newest.
var ErrVersion = errors.New("registry: the stored version is another")

// ErrUnavailable is the error of a store that does not answer, or not as it
// should. It says nothing to a caller beyond that.
var ErrUnavailable = errors.New("registry: the key store does not answer")

// ErrCorrupt is the error of stored data that is not of the expected shape.
var ErrCorrupt = errors.New("registry: stored data is not of the expected shape")
