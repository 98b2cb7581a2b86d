package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hanzoai/k8s/registry"
)

// Call runs one op and fills in in.Stats. Its error is a *registry.Refusal.
//
// It returns as soon as the guest has: what is left to do, restoring the
// instance, nobody waits for. When ctx ends, so do the requests it made of the
// cluster, and the guest.
//
// A run that a rotation of the cluster's credential cuts off is made once more,
// on the new one, unless it has asked the cluster to change something or some of
// its answer has left.
func (h *Host) Call(ctx context.Context, in *Call) error {
	began := time.Now()
	op := in.Op
	if op == nil {
		var ok bool
		if op, ok = h.retain(in.Token); !ok {
			return registry.Refuse(404, "not_found", "there is no operation %s", in.Token)
		}
		defer op.Module.release()
	}
	in.Stats.Digest = op.Module.Digest
	r := h.call(ctx, op, in)
	in.Stats.Took = time.Since(began)
	code := ""
	if r != nil {
		code = r.Code
	}
	h.config.Metrics.Called(op.Token, code, &in.Stats)
	if r != nil {
		return r
	}
	return nil
}

// Hold keeps an op's module until release, so that an input that is read by the
// op's schema is answered by the code of that schema, whatever is shipped
// meanwhile. It is false of a module that serves no more.
func (h *Host) Hold(op *Op) (release func(), ok bool) {
	return op.Module.release, op.Module.retain()
}

// retain finds an op and keeps its module until release.
func (h *Host) retain(token string) (*Op, bool) {
	for {
		op, ok := h.Lookup(token)
		if !ok {
			return nil, false
		}
		if op.Module.retain() {
			return op, true
		}
		// The module was replaced between the two: the table has moved on.
		if again, ok := h.Lookup(token); ok && again == op {
			return nil, false
		}
	}
}

func (h *Host) call(ctx context.Context, op *Op, in *Call) *registry.Refusal {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(op.limits.Millis)*time.Millisecond, deadline())
	defer cancel()
	if r := h.wait(ctx, op.Module); r != nil {
		return r
	}
	// First of all, so that an org that asks too much costs the key store nothing.
	release, err := h.config.Registry.Admit(ctx, in.Cluster, op.Long)
	if err != nil {
		return refusalOf(ctx, err)
	}
	defer release()
	began := time.Now()
	r, harmless := h.run(ctx, op, in)
	if r != nil && r.Code == "rotated" && harmless && in.Answer.Again() {
		in.lost = time.Since(began)
		r, _ = h.run(ctx, op, in)
	}
	return r
}

// run runs op once. harmless says that nothing was asked of the cluster that
// could have changed it.
func (h *Host) run(ctx context.Context, op *Op, in *Call) (r *registry.Refusal, harmless bool) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var b *registry.Bound
	var err error
	if op.cluster && len(op.Grants) > 0 {
		if b, err = h.config.Registry.Reach(ctx, in.Cluster); err != nil {
			return refusalOf(ctx, err), true
		}
	}
	org, _ := registry.Tenant(ctx) // Admit has refused who is of none
	waiting := time.Now()
	leave, err := op.Module.instances.shares.enter(ctx, org, in.Cluster, op.Long)
	if err != nil {
		in.Stats.Waited += time.Since(waiting)
		return refusalOf(ctx, err), true
	}
	defer leave()
	i, err := op.Module.instances.get(ctx, op.Long)
	in.Stats.Waited += time.Since(waiting)
	if err != nil {
		return refusalOf(ctx, err), true
	}
	why := Stopped
	defer func() { op.Module.instances.put(i, op.Long, why) }()

	m := &meter{limits: op.limits}
	c := newCall(ctx, h, op, in, b, m)
	w := watch(m, stop)
	var ret [1]uint64
	guest := &run{Context: c.ctx, call: c, meter: m}
	fuel, err := i.invoke(guest, i.handle, op.limits.Fuel, ret[:])
	w.end()
	defer c.end()

	in.Stats.Fuel += fuel
	in.Stats.Items += m.used.items.Load()
	in.Stats.BytesIn += m.used.bytesIn.Load()
	in.Stats.BytesOut += m.used.bytesOut.Load()
	if err != nil {
		r, why = h.fault(guest, i, err)
	} else {
		r, why = c.outcome(int32(uint32(ret[0]))), ""
	}
	return r, !c.wrote.Load()
}

// wait waits for a module that is still being built.
func (h *Host) wait(ctx context.Context, m *Module) *registry.Refusal {
	select {
	case <-m.ready:
	default:
		t := time.NewTimer(h.config.Pool.withDefaults().Wait)
		defer t.Stop()
		select {
		case <-m.ready:
		case <-t.C:
			return registry.Refuse(503, "overloaded", "the operation is still being made ready").After(time.Second)
		case <-ctx.Done():
			return ending(ctx)
		}
	}
	if m.instances == nil {
		return registry.Refuse(503, "overloaded", "the operation could not be made ready").After(30 * time.Second)
	}
	return nil
}

// fault tells why a guest did not return.
func (h *Host) fault(r *run, i *instance, err error) (*registry.Refusal, Discard) {
	var refused *registry.Refusal
	switch {
	case errors.As(err, &refused):
		return refused, Stopped
	case errors.Is(err, errOver):
		return ending(r), Late
	case errors.Is(err, errExited):
		h.last(r, err)
		return guestFault("the operation's code exited"), Exited
	case i.exhausted():
		return registry.Refuse(500, "fuel_exhausted", "the operation used up the computing time it is allowed"), Exhausted
	}
	h.last(r, err)
	return guestFault("the operation's code failed"), Trapped
}

// last logs a guest's last words, for the operator alone: they may hold
// anything the guest has read.
func (h *Host) last(r *run, err error) {
	op := r.call.op
	h.config.Log.Error("a guest failed", "op", op.Token, "module", op.Module.Digest, "error", brief(err), "said", firstLine(r.crash))
}

func refusalOf(ctx context.Context, err error) *registry.Refusal {
	var r *registry.Refusal
	if errors.As(err, &r) {
		return r
	}
	if r := ending(ctx); r != nil {
		return r
	}
	return guestFault(fmt.Sprintf("the operation could not be started: %v", brief(err)))
}

// watchdog ends a call that stays in one host function for too long. Host
// functions only bump a counter; the watchdog looks at it now and then.
type watchdog struct {
	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

func watch(m *meter, stop context.CancelCauseFunc) *watchdog {
	limit := m.hostMillis()
	tick := max(limit/4, time.Millisecond)
	var turn uint64
	var since time.Time
	w := &watchdog{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(tick, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.over {
			return
		}
		switch now := m.turn.Load(); {
		case now&1 == 0 || now != turn:
			turn, since = now, time.Now()
		case time.Since(since) >= limit-tick:
			stop(over("host_millis", 504, "the cluster took longer than %d ms over one request", m.limits.HostMillis))
			return
		}
		w.timer.Reset(tick)
	})
	return w
}

func (w *watchdog) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}
