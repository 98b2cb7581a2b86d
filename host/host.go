// Package host is the sandbox: it loads guest modules, keeps clean instances of
// them, and runs one op at a time in each, with fuel, limits and the host
// functions through which alone a guest reaches a cluster.
//
// A Host knows no op. What it serves is what the manifests of its modules say.
package host

import (
	"context"
	"crypto/ecdsa"
	"log/slog"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// Registry is what the host needs of a registry.Registry.
type Registry interface {
	List(ctx context.Context) ([]registry.Record, error)
	Get(ctx context.Context, name string) (registry.Record, error)
	Register(ctx context.Context, in registry.Registration) (registry.Record, error)
	Deregister(ctx context.Context, name string) (removed bool, err error)
	Reach(ctx context.Context, name string) (*registry.Bound, error)
	Admit(ctx context.Context, cluster string, long bool) (release func(), err error)
}

// Kind is one row of the closed table of custom resource kinds. All are
// namespaced.
type Kind struct {
	Kind, Group, Version, Resource string
}

// Config is what a Host is made of. Only Registry is needed to serve.
type Config struct {
	Registry Registry
	Kinds    []Kind       // the closed table
	Log      *slog.Logger // nil: slog.Default
	Metrics  Observer     // nil: none

	// Ceiling caps what a manifest may ask for, and the defaults; zero is no cap.
	Ceiling manifest.Limits

	// CacheDir keeps compiled code between runs. It is code: it is made 0700,
	// must be owned by this process's user, and must never be shared or shipped.
	// Empty: compile at every start.
	CacheDir string

	// Interpreter runs guests without compiling them: slow, for tests.
	Interpreter bool

	// Pool bounds each module's instances.
	Pool PoolConfig

	// Verify is the share of calls, one in Verify, after which the restored
	// instance is hashed and compared with its snapshot. 0: one in 1024; 1: all.
	Verify int

	// Changed is called after the ops served have changed, perhaps twice at once.
	// It must not change them again.
	Changed func()

	// Trust says which modules may be shipped into this host.
	Trust Trust
}

// PoolConfig bounds the instances of one module. Zero fields take the default.
type PoolConfig struct {
	Floor   int           // kept ready even when idle; default 1
	Ceiling int           // at most, running ones included; default 256
	Org     int           // running calls of one org at most; default 64
	Cluster int           // running calls to one cluster at most; default 32
	Waiting int           // callers that may wait, for one or for a place among their org's; default 256
	Wait    time.Duration // for at most; default 5 s
}

// Trust says which modules may be shipped into a running host. Without Keys
// none is. It does not apply to built-in modules, which Load and Start take.
type Trust struct {
	Keys      []*ecdsa.PublicKey // P-256; one good signature is enough
	Deny      map[string]bool    // digests that never run, "sha256:<hex>"
	Grants    []manifest.Grant   // the ceiling; nil: what the built-in ops hold
	Downgrade bool               // a lower or equal version may replace a higher
	MaxSize   int                // of a module, in bytes; default 16 MiB

	// StateDir keeps the version and digest last shipped under each name from run
	// to run, so that an older module stays refused. It is made 0700, must be owned
	// by this process's user, and may be shared by hosts. Empty: they are forgotten
	// with the process.
	StateDir string
}

// Op is an op that the host serves, and the module that answers it.
type Op struct {
	*manifest.Op
	Module *Module

	limits  manifest.Limits
	cluster bool // the In has a cluster
}

// Call is one call of an op, as the edge hands it over.
type Call struct {
	Token string
	Op    *Op    // held by the caller; nil is whichever has the token
	Input []byte // the In, a JSON object checked against the op's schema

	Cluster   string // the In's cluster, "" if it has none
	Namespace string // the In's namespace, "" if it has none

	// Secrets holds the values of secret fields by the handle that stands for
	// each in Input.
	Secrets map[string][]byte

	Answer Answer
	Stats  Stats // filled in by Host.Call, whatever comes of it

	lost time.Duration // in a run that a rotation of the credential cut off
}

// Answer takes what a guest emits. Bytes are valid only during the call. An
// error ends the call.
type Answer interface {
	Item(obj []byte) error       // one element of the op's Items list, a JSON object
	Rest(obj []byte) error       // the Out's other fields, a JSON object
	Continue(token string) error // the token of the next page

	// Again forgets what was given, for the op to run once more. It is false, and
	// does nothing, where some of it has left already.
	Again() bool
}

// Stats is what one call cost: for the audit line and the metrics.
type Stats struct {
	Digest   string // of the module that answered, "sha256:<hex>"
	Fuel     int64  // units used
	Items    int64
	BytesIn  int64 // from the cluster, decompressed
	BytesOut int64
	Calls    []HostCall    // what was asked of the cluster
	Waited   time.Duration // for an instance
	Took     time.Duration // in all
}

// HostCall is the requests of one verb on one resource that a call made of its
// cluster and that were answered alike.
type HostCall struct {
	Verb     string // RBAC's word
	Resource string // v1/pods, or a kind's name
	Status   int    // HTTP, 0 if none came
	Count    int    // of the requests
	Bytes    int64  // of the answers, decompressed
}
