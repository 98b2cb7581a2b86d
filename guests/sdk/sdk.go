// Package sdk is what a guest of the k8s service is written with. A guest is a
// package main that names its ops and answers them:
//
//	func init() { sdk.Handle("k8s_widgets_list", list) }
//
//	func main() {}
//
//	// list answers the widgets of a namespace. …
//	//
//	//k8s:op k8s_widgets_list GET /v1/k8s/widgets in=WidgetsIn out=Widgets items=widgets
//	//k8s:grant list example.com/v1/widgets
//	func list(c *sdk.Call) error {
//		return c.ListJSON(sdk.Query{Resource: "example.com/v1/widgets", Namespace: c.Str("namespace")}, widget)
//	}
//
// `k8s guest build` makes a module of it, with the prose and the schemas that
// its source has. What a guest can do is what [Call] has methods for; the host
// checks each against the op's grants and the registration's bound.
//
// The package links no fmt, no reflection and no encoding/json: a call begins
// with the memory of the last one restored, so what is small is fast.
package sdk

import "github.com/hanzoai/k8s/guests/sdk/lens"

// Handler answers one op. Its error is a *[Refusal] of its own, or the
// *[Failure] that a method of Call returned.
type Handler func(*Call) error

type op struct {
	token   string
	handler Handler
}

var ops []op

// Handle names the handler of an op. It is called from init, once per token.
func Handle(token string, h Handler) { ops = append(ops, op{token, h}) }

// The buffers that every call begins with. They are there before the snapshot
// is taken, so that a call of ordinary size allocates none.
var (
	buffers = [][]byte{make([]byte, 64<<10), make([]byte, 64<<10), make([]byte, 64<<10)}
	writer  = Writer{buf: make([]byte, 0, 64<<10), open: make([]frame, 0, 8), entries: make([]Entry, 0, 64)}
	request = Writer{buf: make([]byte, 0, 4<<10), open: make([]frame, 0, 8)}
)

// serve runs one call to its end.
func serve() int32 {
	c := &Call{out: &writer, request: &request, buffers: append([][]byte(nil), buffers...)}
	buf := c.buffer()
	n := hostInput(buf)
	if int(n) > len(buf) {
		buf = make([]byte, n)
		n = hostInput(buf)
	}
	if n < 0 {
		return 1
	}
	envelope, err := lens.JSON(buf[:n])
	if err != nil {
		return c.outcome(&Refusal{Status: 502, Code: "bad_input", Message: "the call cannot be read"})
	}
	c.in = envelope.Get("in")
	token := envelope.Get("op").Str()
	for _, op := range ops {
		if op.token == token {
			return c.outcome(op.handler(c))
		}
	}
	return c.outcome(&Refusal{Status: 404, Code: "not_found", Message: "this module has no op " + token})
}

// outcome tells the host how the call ended.
func (c *Call) outcome(err error) int32 {
	switch e := err.(type) {
	case nil:
		return 0
	case *Failure:
		if e == c.last {
			return 1 // the host still has it
		}
		hostFail(e.refusal().encode(c.out))
	case *Refusal:
		hostFail(e.encode(c.out))
	default:
		hostFail((&Refusal{Status: 502, Code: "bad_upstream", Message: err.Error()}).encode(c.out))
	}
	return 1
}
