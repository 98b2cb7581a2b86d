package host

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/k8s/registry"
)

// bound is what a run needs of a registry.Bound.
type bound interface {
	Record() registry.Record
	Scope(namespace string) ([]string, error)
	One(namespace string) error
	WholeCluster() error
	Do(ctx context.Context, req *registry.Request) (*http.Response, error)
	Redact(words []byte)
	Seal(purpose string, plain []byte) string
	Open(purpose, token string) ([]byte, error)
	Life() context.Context
}

// call is one run of one op. Only the guest's goroutine uses it, except for what
// says otherwise.
type call struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	op       *Op
	bound    bound // nil for an op that reaches no cluster
	registry Registry
	kinds    []Kind
	log      *slog.Logger
	in       *Call
	meter    *meter // safe for concurrent use

	input   []byte // what the guest reads: {"op":…,"in":…}
	handles []*handle
	lastID  uint32

	last     *registry.Refusal // the last failure
	lastJSON []byte            // and how the guest reads it, once it has asked
	refused  *registry.Refusal // what the guest said with fail
	rest     bool              // the guest has emitted the other fields
	lines    int               // of the log

	life  <-chan struct{}                  // closed when the bound ends; nil for none
	cut   atomic.Pointer[registry.Refusal] // the bound's end, once something asked for has not come because of it
	wrote atomic.Bool                      // a request that is no read may have reached the cluster

	paged  bool   // the call has begun the list that the caller pages through
	cursor string // what continues it

	mu    sync.Mutex // guards in.Stats.Calls until done
	done  bool
	spent map[string]bool // one-use handles of secrets
}

// newCall readies the run of op for what a caller asked. b is nil for an op
// that reaches no cluster.
func newCall(ctx context.Context, h *Host, op *Op, in *Call, b *registry.Bound, m *meter) *call {
	c := &call{op: op, registry: h.config.Registry, kinds: h.config.Kinds, log: h.config.Log, in: in, meter: m}
	if b != nil {
		c.bound = b
	}
	c.begin(ctx)
	return c
}

func (c *call) begin(ctx context.Context) {
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if c.bound != nil {
		c.life = c.bound.Life().Done()
	}
	c.input = make([]byte, 0, len(c.op.Token)+len(c.in.Input)+24)
	c.input = append(c.input, `{"op":"`...)
	c.input = append(c.input, c.op.Token...)
	c.input = append(c.input, `","in":`...)
	if len(c.in.Input) == 0 {
		c.input = append(c.input, "{}"...)
	}
	c.input = append(c.input, c.in.Input...)
	c.input = append(c.input, '}')
}

// end closes every stream. Requests under way are cancelled.
func (c *call) end() {
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.cancel(errEnded)
	for _, h := range c.handles {
		h.s.close()
	}
	c.handles = nil
}

var errEnded = errors.New("the call has ended")

// outcome is the refusal that handle's result stands for, nil for none.
func (c *call) outcome(ret int32) *registry.Refusal {
	switch cut := c.cut.Load(); {
	case cut != nil: // whatever the guest made of it
		return cut
	case ret == 0:
		if r := ending(c.ctx); r != nil { // what was answered may lack what did not come
			return r
		}
		if c.cursor != "" {
			return refusal(c.in.Answer.Continue(c.cursor))
		}
		return nil
	case c.refused != nil:
		return c.refused
	case c.last != nil:
		return c.last
	}
	return guestFault("the operation failed without saying why")
}

// over is why the call can ask for nothing more, nil if it can.
func (c *call) over() *registry.Refusal {
	if r := ending(c.ctx); r != nil {
		return r
	}
	return c.ended()
}

// ended is why the bound has ended, nil if it has not. Who asks has something to
// ask of the bound, or has not got it. It is safe for concurrent use.
func (c *call) ended() *registry.Refusal {
	if c.bound == nil || c.bound.Life().Err() == nil {
		return nil
	}
	r := refusal(context.Cause(c.bound.Life()))
	c.cut.Store(r)
	return r
}

func ending(ctx context.Context) *registry.Refusal {
	if ctx.Err() == nil {
		return nil
	}
	var r *registry.Refusal
	if errors.As(context.Cause(ctx), &r) {
		return r
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return deadline()
	}
	return &registry.Refusal{Status: 499, Code: "canceled", Message: "the caller has gone"}
}

// record notes a request made of the cluster. What it keeps does not grow with
// the requests: a drain makes thousands, and so does a cluster that pages without
// end. It is safe for concurrent use.
func (c *call) record(h HostCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	all := c.in.Stats.Calls
	i := slices.IndexFunc(all, func(o HostCall) bool {
		return o.Verb == h.Verb && o.Resource == h.Resource && o.Status == h.Status
	})
	if i < 0 {
		h.Count = 1
		c.in.Stats.Calls = append(all, h)
		return
	}
	all[i].Count++
	all[i].Bytes += h.Bytes
}

// failed remembers a failure for next(0, …) and outcome.
func (c *call) failed(r *registry.Refusal) int32 {
	if r != c.last {
		c.last, c.lastJSON = r, nil
	}
	return failed
}

// failure is a refusal as a guest reads it.
type failure struct {
	Code       string `json:"code"`
	Status     int    `json:"status"`
	Reason     string `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	Causes     any    `json:"causes,omitempty"`
	Conflicts  any    `json:"conflicts,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds, rounded up
}

func (c *call) readFailure(m memory, ptr, size uint32) int32 {
	if c.last == nil {
		return endOfItems
	}
	if c.lastJSON == nil {
		c.lastJSON, _ = json.Marshal(failure{
			Code: c.last.Code, Status: c.last.Status, Reason: c.last.Reason, Message: c.last.Message,
			Causes: c.last.Details["causes"], Conflicts: c.last.Details["conflicts"],
			RetryAfter: int((c.last.RetryAfter + time.Second - 1) / time.Second),
		})
	}
	return c.put(m, ptr, size, c.lastJSON)
}
