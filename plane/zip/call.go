package zip

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// CallPath is where operations are called: it and the operation's token are the
// target of a call's request.
const CallPath = "/.well-known/zip/op/"

// ContentType is that of a call's body and of its answer's.
const ContentType = "application/zap"

// ValidOp reports whether a token can name an operation: letters a to z, digits
// and underscores, at most 128 of them.
func ValidOp(token string) bool {
	if token == "" || len(token) > 128 {
		return false
	}
	for i := range len(token) {
		if c := token[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// OpOf is the operation a request's path calls; false when it calls none.
func OpOf(path string) (token string, ok bool) {
	token, ok = strings.CutPrefix(path, CallPath)
	return token, ok && ValidOp(token)
}

// Ask calls an operation of an app on this machine.
//
// in is the operation's input, nil for one that takes none. The identity is the
// context's: the inbound one, else what [WithCaller] stated. The answer is never
// nil without an error; it is a zero Out when the operation answers with nothing.
//
// Every failure is an [*Error]. A call ends when its context does, and has no
// time limit of its own. It is sent once: a connection from the pool that turns
// out to be dead before the request was read is replaced, but a request that may
// have been acted on is never repeated.
//
// Connections are pooled by app for the life of the process; any number of
// goroutines may Ask at once, each on a connection of its own.
func Ask[In, Out any](ctx context.Context, app, op string, in *In) (*Out, error) {
	var body any
	if in != nil {
		body = in
	}
	out := new(Out)
	if err := ask(ctx, app, op, body, out); err != nil {
		return nil, err
	}
	return out, nil
}

func ask(ctx context.Context, app, op string, in, out any) error {
	if !ValidOp(op) {
		return &Error{Status: http.StatusBadRequest, Code: "bad_op", Msg: "not an operation's token: " + quoteShort(op)}
	}
	path, err := SocketPath(app)
	if err != nil {
		return &Error{Status: http.StatusBadRequest, Code: "bad_app", Msg: "no such app", Err: err}
	}
	if err := ctx.Err(); err != nil {
		return contextError(op, err)
	}
	request := scratches.Get().(*[]byte)
	defer putScratch(request)
	*request, err = appendCall(append((*request)[:0], 0, 0, 0, 0), ctx, app, op, in)
	if err != nil {
		return &Error{Status: http.StatusBadRequest, Code: "bad_input", Msg: "calling " + op, Err: err}
	}
	answer := scratches.Get().(*[]byte)
	defer putScratch(answer)
	var r reply
	*answer, r, err = poolOf(path).exchange(ctx, *request, (*answer)[:0])
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return contextError(op, ended)
		}
		return &Error{Status: http.StatusBadGateway, Msg: "calling " + op + " of " + app, Err: err}
	}
	if r.status < 200 || r.status > 299 {
		return refusal(r)
	}
	if r.status == http.StatusNoContent {
		return nil
	}
	if err := Unmarshal(r.body, out); err != nil {
		return &Error{Status: http.StatusBadGateway, Msg: "the answer of " + op + " of " + app, Err: err}
	}
	return nil
}

func contextError(op string, err error) error {
	e := &Error{Status: 499, Code: "canceled", Msg: "calling " + op, Err: err}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Status, e.Code = http.StatusGatewayTimeout, "deadline"
	}
	return e
}

// refusal is the error an answer other than 2xx stands for. A body that is not a
// Fault is quoted, since it is all there is to go by.
func refusal(r reply) error {
	var f Fault
	if err := Unmarshal(r.body, &f); err != nil || f.Status == 0 && f.Code == "" && f.Msg == "" {
		msg := quoteShort(string(r.body))
		if len(r.body) == 0 {
			msg = http.StatusText(r.status)
		}
		return &Error{Status: r.status, Msg: msg}
	}
	if f.Status == 0 {
		f.Status = int32(r.status)
	}
	return &Error{Status: int(f.Status), Code: f.Code, Msg: f.Msg}
}

func quoteShort(s string) string {
	if len(s) > 256 {
		s = s[:256] + "..."
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// appendCall appends the request of a call, the input marshalled in its place.
func appendCall(dst []byte, ctx context.Context, app, op string, in any) ([]byte, error) {
	start := len(dst)
	dst = beginFrame(dst, RequestFrame)
	at := start + frameRoot
	dst = appendRef(dst, at, http.MethodPost)
	target := len(dst)
	dst = append(append(dst, CallPath...), op...)
	putRef(dst, at+8, target, len(dst)-target)
	dst = appendRef(dst, at+16, proto)

	l := lines{slot: at + 24}
	dst = l.add(dst, "Content-Type", ContentType)
	dst = l.add(dst, "Host", app)
	caller, _ := CallerOf(ctx)
	var err error
	caller.each(func(header, value string) {
		if err == nil {
			err = checkIdentity(header, value)
		}
		dst = l.add(dst, header, value)
	})
	if err != nil {
		return dst, err
	}
	l.end(dst)

	body := len(dst)
	if dst, err = Append(dst, orNone(in)); err != nil {
		return dst, err
	}
	if n := len(dst) - body; n > 0 {
		putRef(dst, at+32, body, n)
	}
	endMessage(dst, start, at)
	return dst, checkFrame(uint64(len(dst) - start))
}

// none is what crosses as no body.
var none *struct{}

func orNone(in any) any {
	if in == nil {
		return none
	}
	return in
}
