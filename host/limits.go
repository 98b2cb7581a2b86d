package host

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// Defaults are the limits of one call where neither the op's manifest nor the
// operator says otherwise. A unit of fuel is one instruction of the dearest way
// that the code could take to the next test, or 32 bytes of a bulk copy: up to
// 0.3 ns, and on average some 0.04 ns of what Go's compiler makes, of which a
// pod's row takes half a million.
var Defaults = manifest.Limits{
	Fuel:        2_000_000_000,
	FuelPerItem: 4_000_000,
	MemoryPages: 1024, // 64 MiB
	HostCalls:   10_000,
	BytesIn:     1 << 30,
	Items:       1_000_000,
	BytesOut:    64 << 20,
	HostMillis:  60_000,
	Millis:      60_000,
}

// LongMillis is the default deadline of an op that waits by design.
const LongMillis = 300_000

// limitsOf gives an op's limits: what its manifest asks for, else the default,
// and never more than the ceiling where the ceiling sets one.
func limitsOf(op *manifest.Op, ceiling manifest.Limits) manifest.Limits {
	l := Defaults
	if op.Long {
		l.Millis, l.HostMillis = LongMillis, LongMillis
	}
	asked := op.Limits
	for i, p := range fields(&l) {
		if v := *fields(&asked)[i]; v > 0 {
			*p = v
		}
		if top := *fields(&ceiling)[i]; top > 0 && *p > top {
			*p = top
		}
	}
	return l
}

func fields(l *manifest.Limits) [9]*int64 {
	return [9]*int64{
		&l.Fuel, &l.FuelPerItem, &l.MemoryPages, &l.HostCalls, &l.BytesIn,
		&l.Items, &l.BytesOut, &l.HostMillis, &l.Millis,
	}
}

// meter counts what one call uses. Its methods answer a refusal once a limit is
// passed; in the guest's own goroutine hand that to refuse, elsewhere carry it
// to the reader as the stream's error. All of them are safe for concurrent use,
// except item.
type meter struct {
	limits  manifest.Limits
	addFuel func(n int64) // of the running instance; only in the guest's goroutine

	used struct{ hostCalls, bytesIn, items, bytesOut atomic.Int64 }

	// turn is odd while the guest is in a host function, and grows with each
	// entry and exit, which is how the watchdog sees one that hangs.
	turn atomic.Uint64
}

// hostCall counts one host call. A limit of n allows n calls and two more per
// item: its next and its emit.
func (m *meter) hostCall() *registry.Refusal {
	if n := m.used.hostCalls.Add(1); n > m.limits.HostCalls+2*m.used.items.Load() {
		return over("host_calls", 500, "the operation made more than %d host calls", m.limits.HostCalls)
	}
	return nil
}

// bytesIn counts n decompressed bytes from the cluster.
func (m *meter) bytesIn(n int) *registry.Refusal {
	if m.used.bytesIn.Add(int64(n)) > m.limits.BytesIn {
		return over("bytes_in", 502, "the cluster answered with more than %d bytes", m.limits.BytesIn)
	}
	return nil
}

// item counts one item delivered to the guest and adds its fuel.
func (m *meter) item() *registry.Refusal {
	if m.used.items.Add(1) > m.limits.Items {
		return over("items", 502, "the answer has more than %d items", m.limits.Items)
	}
	if m.addFuel != nil {
		m.addFuel(m.limits.FuelPerItem)
	}
	return nil
}

// bytesOut counts n bytes of the answer.
func (m *meter) bytesOut(n int) *registry.Refusal {
	if m.used.bytesOut.Add(int64(n)) > m.limits.BytesOut {
		return over("bytes_out", 502, "the answer is larger than %d bytes", m.limits.BytesOut)
	}
	return nil
}

func (m *meter) enter() { m.turn.Add(1) }
func (m *meter) leave() { m.turn.Add(1) }

func (m *meter) hostMillis() time.Duration {
	return time.Duration(m.limits.HostMillis) * time.Millisecond
}

func over(which string, status int, format string, limit int64) *registry.Refusal {
	return &registry.Refusal{
		Status:  status,
		Code:    "limit_" + which,
		Message: fmt.Sprintf(format, limit),
		Details: map[string]any{"limit": limit},
	}
}
