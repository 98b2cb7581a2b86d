package host

import (
	"context"

	"github.com/hanzoai/k8s/registry"
)

// memory is what a host function sees of the guest's memory.
type memory interface {
	Read(ptr, n uint32) ([]byte, bool)
	Write(ptr uint32, b []byte) bool
}

// call is one run of one op.
type call struct {
	ctx   context.Context
	op    *Op
	bound *registry.Bound
	host  *Host
	in    *Call
	meter *meter
}

// newCall readies the run of op for what a caller asked. bound is nil for an op
// that reaches no cluster.
func newCall(ctx context.Context, h *Host, op *Op, in *Call, bound *registry.Bound, m *meter) *call {
	return &call{ctx: ctx, op: op, bound: bound, host: h, in: in, meter: m}
}

// end closes what the guest left open.
func (c *call) end() {}

// outcome is the refusal that handle's result stands for, nil for none.
func (c *call) outcome(ret int32) *registry.Refusal {
	if ret == 0 {
		return nil
	}
	return &registry.Refusal{Status: 500, Code: "guest_fault", Message: "the operation failed without saying why"}
}

// functions is the import module "k8s".
var functions []function
