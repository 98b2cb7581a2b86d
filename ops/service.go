// Package ops is the edge of the service: it turns the manifests of the loaded
// modules into routes, peer ops and documents, and every call into one
// host.Call.
//
// An op is one handler behind two transports. Over HTTP its input comes from
// path, query and body and its answer is JSON; over the call plane both are ZAP
// objects. Either way the input becomes one JSON object that is checked against
// the op's schema before a guest sees it, and what a guest answers is checked
// against the schema before a caller sees it.
//
// Nothing here knows an op by name: a module that arrives later gets all of it.
package ops

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/hanzoai/k8s/host"
)

// Name is what the service is called by its peers.
const Name = "k8s"

// Prefix is where the service's routes begin.
const Prefix = "/v1/k8s"

// Host is what the edge needs of a host.Host.
type Host interface {
	Ops() []*host.Op
	Hold(op *host.Op) (release func(), ok bool)
	Call(ctx context.Context, in *host.Call) error
}

// Options is what a Service is made of. Only Host is needed.
type Options struct {
	Host    Host
	Log     *slog.Logger // nil: slog.Default
	Audit   *slog.Logger // one line per call; nil: Log
	Metrics *Metrics     // nil: none
	MaxBody int64        // of a request, in bytes; 0: 1 MiB
	Gateway Gateway      // how a gateway proves itself on the product listener
}

// Service serves the ops of a host. It is safe for concurrent use.
type Service struct {
	host    Host
	log     *slog.Logger
	audit   *slog.Logger
	metrics *Metrics
	maxBody int64
	gateway Gateway
	table   atomic.Pointer[table]

	rebuilding sync.Mutex // one at a time, so that the last to begin is the last to end
}

// New is a Service with the ops its host serves now. A manifest that cannot be
// routed or laid out is an error.
func New(o Options) (*Service, error) {
	s := &Service{
		host: o.Host, log: o.Log, audit: o.Audit, metrics: o.Metrics, maxBody: o.MaxBody, gateway: o.Gateway,
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.audit == nil {
		s.audit = s.log
	}
	if s.maxBody == 0 {
		s.maxBody = 1 << 20
	}
	return s, s.Rebuild()
}

// Rebuild makes the routes anew from the ops that the host serves now, and puts
// them in the place of the old ones in one step. Calls that are under way are
// not disturbed. On an error the old routes stay.
func (s *Service) Rebuild() error {
	s.rebuilding.Lock()
	defer s.rebuilding.Unlock()
	t, err := s.newTable(s.host.Ops())
	if err != nil {
		return err
	}
	s.table.Store(t)
	for token := range t.byToken {
		s.metrics.serves(token)
	}
	return nil
}

// Surface is the REST surface: the ops under /v1/k8s, the OpenAPI document, the
// reference page and the declaration. It takes the caller from the identity
// headers, so whoever it is served to must be a gateway or its equal.
func (s *Service) Surface() http.Handler {
	return s.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.table.Load().rest.ServeHTTP(w, r)
	}))
}

// Product is Surface behind the gateway's proof: the product listener.
func (s *Service) Product() http.Handler { return s.gateway.check(s.Surface()) }

// Peers is the call plane: POST /.well-known/zip/op/<token> with ZAP bodies. It
// is for the socket alone, whose peers are processes of this machine user.
func (s *Service) Peers() http.Handler {
	return s.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.table.Load().peers.ServeHTTP(w, r)
	}))
}

// guard keeps a panic in one request from being more than that request's end,
// and from saying anything of what it was working on.
func (s *Service) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				s.log.Error("a request panicked", "where", panicked())
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
