package ops

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

// writeSlack is how much longer than its call an answer may take to be written.
const writeSlack = 30 * time.Second

// transport is how one call's input comes in and its outcome goes out.
type transport interface {
	name() string
	input(r *http.Request, op *route, maxBody int64) (*Input, error)
	answer(w http.ResponseWriter, op *route) answer
	refuse(w http.ResponseWriter, refusal *registry.Refusal, requestID string)
}

type restTransport struct{}

func (restTransport) name() string { return "rest" }

func (restTransport) input(r *http.Request, op *route, maxBody int64) (*Input, error) {
	return op.bind(r, func(name string) string { return chi.URLParam(r, name) }, maxBody)
}

func (restTransport) answer(w http.ResponseWriter, op *route) answer {
	return newJSONAnswer(w, op.out, op.status)
}

func (restTransport) refuse(w http.ResponseWriter, refusal *registry.Refusal, requestID string) {
	writeProblem(w, refusal, requestID)
}

type zapTransport struct{}

func (zapTransport) name() string { return "zip" }

func (zapTransport) input(r *http.Request, op *route, maxBody int64) (*Input, error) {
	body, err := readBody(r, maxBody)
	if err != nil {
		return nil, err
	}
	return zapInput(op.schema, op.inLayout, body)
}

func (zapTransport) answer(w http.ResponseWriter, op *route) answer {
	return newZAPAnswer(w, op.out, op.outLayout)
}

func (zapTransport) refuse(w http.ResponseWriter, refusal *registry.Refusal, _ string) {
	writeFault(w, refusal)
}

// serve is one call, from its identity to its answer. The audit line is written
// before the answer is: a whole answer never leaves without one. Of an answer
// too long to be held back it is the end that waits for the line.
//
// The op's module is held from before the input is read, so that what answers is
// what the input was checked for.
func (s *Service) serve(w http.ResponseWriter, r *http.Request, op *route, tr transport) {
	release, ok := s.host.Hold(op.served)
	if !ok {
		s.moved(w, r, op, tr)
		return
	}
	defer release()
	line := &auditLine{start: time.Now(), op: op.Token, transport: tr.name(), requestID: requestID(r.Header), trace: traceparent(r.Header), status: op.status}
	w.Header().Set("X-Request-Id", line.requestID)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.NewResponseController(w).SetWriteDeadline(line.start.Add(op.time + writeSlack))

	ctx, cancel := context.WithTimeout(registry.WithTraceparent(r.Context(), line.trace), op.time)
	defer cancel()

	out := tr.answer(w, op)
	defer out.release()
	recorded := false
	defer func() {
		if !recorded { // a panic
			s.record(line, &registry.Refusal{Status: http.StatusInternalServerError, Code: "internal"})
		}
	}()
	err := s.call(ctx, r, op, tr, out, line)
	if err == nil {
		err = out.complete()
	}
	var refusal *registry.Refusal
	if err != nil {
		refusal = refusalOf(ctx, err)
		if refusal.Code == "internal" {
			s.log.Error("a call failed", "op", op.Token, "requestId", line.requestID, "error", err)
		}
	}
	s.record(line, refusal)
	recorded = true
	switch {
	case refusal == nil:
		if err := out.send(); err != nil {
			panic(http.ErrAbortHandler)
		}
	case out.begun() || refusal.Status == statusGone:
		panic(http.ErrAbortHandler)
	default:
		tr.refuse(w, refusal, line.requestID)
	}
}

// moved serves a request whose op's module was replaced or removed just after
// the request was routed.
func (s *Service) moved(w http.ResponseWriter, r *http.Request, op *route, tr transport) {
	next := s.table.Load().byToken[op.Token]
	if next != nil && next != op && next.Method == op.Method && next.Path == op.Path {
		s.serve(w, r, next, tr)
		return
	}
	id := requestID(r.Header)
	w.Header().Set("X-Request-Id", id)
	tr.refuse(w, registry.Refuse(http.StatusNotFound, "route_not_found", "there is no such operation any more"), id)
}

// call takes the caller, binds the input and runs the op.
func (s *Service) call(ctx context.Context, r *http.Request, op *route, tr transport, out answer, line *auditLine) error {
	caller, err := zip.CallerFromHeader(r.Header)
	if err != nil {
		return noTenant(err)
	}
	caller.RequestID = line.requestID
	line.user, line.actedBy = caller.User, caller.ActedBy
	ctx = zip.WithInbound(ctx, caller)
	org, err := registry.Tenant(ctx)
	if err != nil {
		return err
	}
	line.org = org.String()
	in, err := tr.input(r, op, s.maxBody)
	if err != nil {
		return err
	}
	line.cluster, line.namespace = in.Cluster, in.Namespace
	call := &host.Call{
		Token: op.Token, Op: op.served, Input: in.JSON, Cluster: in.Cluster, Namespace: in.Namespace, Secrets: in.Secrets, Answer: out,
	}
	err = s.host.Call(ctx, call)
	line.stats = call.Stats
	return err
}

// noTenant is the refusal for an identity that cannot be believed.
func noTenant(err error) *registry.Refusal {
	var identity *zip.IdentityError
	if errors.As(err, &identity) {
		return registry.Refuse(http.StatusForbidden, "no_tenant", "%s %s", identity.Field, identity.Reason)
	}
	return registry.Refuse(http.StatusForbidden, "no_tenant", "the call carries no identity")
}
