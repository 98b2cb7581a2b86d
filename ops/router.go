package ops

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

// peerPrefix is the path of the call plane's ops; a token follows.
const peerPrefix = "/.well-known/zip/op/"

// declarationPath is where the declaration is served.
const declarationPath = "/.well-known/zip/plugin.json"

// route is one op ready to be called: its schemas compiled, on either wire.
type route struct {
	*manifest.Op
	served *host.Op
	binding
	out       *shape
	inLayout  *zip.Layout
	outLayout *zip.Layout
	status    int // of a success
	time      time.Duration
}

// table is every route of one set of modules.
type table struct {
	byToken map[string]*route
	rest    *chi.Mux
	peers   http.Handler
}

func newRoute(served *host.Op) (*route, error) {
	op := served.Op
	r := &route{Op: op, served: served, binding: bindingOf(op), out: shapeOf(op), status: op.Status}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	millis := op.Limits.Millis
	switch {
	case millis > 0:
	case op.Long:
		millis = host.LongMillis
	default:
		millis = host.Defaults.Millis
	}
	r.time = time.Duration(millis) * time.Millisecond
	var err error
	if r.inLayout, err = layoutOf(r.schema); err != nil {
		return nil, fmt.Errorf("ops: %s: its input: %w", op.Token, err)
	}
	if r.outLayout, err = layoutOf(r.out.schema); err != nil {
		return nil, fmt.Errorf("ops: %s: its output: %w", op.Token, err)
	}
	return r, nil
}

// newTable routes ops.
func (s *Service) newTable(served []*host.Op) (_ *table, err error) {
	t := &table{rest: chi.NewMux(), byToken: make(map[string]*route, len(served))}
	defer func() {
		// chi panics at a pattern that it cannot take.
		if v := recover(); v != nil {
			err = fmt.Errorf("ops: the routes: %v", v)
		}
	}()
	var list []*manifest.Op
	for _, op := range served {
		r, err := newRoute(op)
		if err != nil {
			return nil, err
		}
		list = append(list, op.Op)
		t.byToken[op.Token] = r
		t.rest.Method(op.Method, op.Path, s.restHandler(r))
	}
	document := func(path, media string, body []byte) {
		t.rest.Get(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Write(body)
		})
	}
	openapi := OpenAPI(list)
	document(Prefix+"/openapi.json", "application/json", openapi)
	document(declarationPath, "application/json", Declaration(list))
	page := docsPage(list)
	t.rest.Get(Prefix+"/docs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(page)
	})
	t.rest.NotFound(s.notFound)
	t.rest.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { s.notAllowed(w, r, t.rest) })
	t.peers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.peer(w, r, t.byToken) })
	return t, nil
}

func sorted(list []*manifest.Op) []*manifest.Op {
	return slices.SortedFunc(slices.Values(list), func(a, b *manifest.Op) int { return cmp.Compare(a.Token, b.Token) })
}

func (s *Service) notFound(w http.ResponseWriter, r *http.Request) {
	id := requestID(r.Header)
	w.Header().Set("X-Request-Id", id)
	writeProblem(w, registry.Refuse(http.StatusNotFound, "route_not_found", "there is nothing at this path"), id)
}

func (s *Service) notAllowed(w http.ResponseWriter, r *http.Request, mux *chi.Mux) {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allow []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPost, http.MethodPut} {
		if mux.Match(chi.NewRouteContext(), method, path) {
			allow = append(allow, method)
		}
	}
	id := requestID(r.Header)
	w.Header().Set("Allow", strings.Join(allow, ", "))
	w.Header().Set("X-Request-Id", id)
	writeProblem(w, registry.Refuse(http.StatusMethodNotAllowed, "method_not_allowed", "the path takes %s", strings.Join(allow, ", ")), id)
}

// peer finds the op of a call-plane request.
func (s *Service) peer(w http.ResponseWriter, r *http.Request, ops map[string]*route) {
	token, ok := strings.CutPrefix(r.URL.Path, peerPrefix)
	op := ops[token]
	switch {
	case !ok || op == nil || r.URL.RawQuery != "" || r.URL.RawPath != "":
		writeFault(w, registry.Refuse(http.StatusNotFound, "route_not_found", "there is no such operation"))
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		writeFault(w, registry.Refuse(http.StatusMethodNotAllowed, "method_not_allowed", "an operation takes POST"))
	default:
		s.serve(w, r, op, zapTransport{})
	}
}

func (s *Service) restHandler(op *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, op, restTransport{}) })
}

// panicked is the function and line that a panic being recovered came from,
// without its value: that could be anything.
func panicked() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	for {
		frame, more := frames.Next()
		if !more || !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		}
	}
}
