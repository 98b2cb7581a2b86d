package host

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hanzoai/k8s/registry"
)

// function is one function of the import module "k8s". All its parameters and
// its result are i32.
//
// run stops the guest by panicking with a *registry.Refusal, which becomes the
// call's refusal; the instance is then thrown away.
type function struct {
	name   string
	params int // 0 to 3
	run    func(c *call, m memory, a [3]uint32) int32
}

// memory is what a host function sees of the guest's memory. What Read gives is
// the memory itself, until the guest runs again.
type memory interface {
	Read(ptr, n uint32) ([]byte, bool)
	Write(ptr uint32, b []byte) bool
}

// Modules a guest may import functions from.
const (
	abiModule  = "k8s"
	wasiModule = "wasi_snapshot_preview1"
)

// run is the context of one run of a guest. It is found by type, not by key:
// a host call costs no walk along a context chain.
type run struct {
	context.Context
	call     *call      // nil while a guest warms up
	rehearse *rehearsal // set while a guest warms up
	meter    *meter
	instance *instance
	over     atomic.Bool // the context has ended
	crash    []byte      // what it wrote to standard output and error, up to maxCrash
}

// life is closed when what the call reaches has ended.
func (r *run) life() <-chan struct{} {
	if r.call == nil {
		return nil
	}
	return r.call.life
}

// maxCrash bounds what is kept of a guest's last words.
const maxCrash = 4 << 10

// runKey finds a run below a context that something wrapped.
type runKey struct{}

func (r *run) Value(key any) any {
	if _, ok := key.(runKey); ok {
		return r
	}
	return r.Context.Value(key)
}

func runOf(ctx context.Context) *run {
	if r, ok := ctx.(*run); ok {
		return r
	}
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// errNoRun is a host function called outside of any run: by a start function.
var errNoRun = errors.New("host function called while the module starts")

// provide instantiates the import module "k8s" out of a function table.
func provide(ctx context.Context, rt wazero.Runtime, functions []function) error {
	b := rt.NewHostModuleBuilder(abiModule)
	for _, f := range functions {
		params := make([]api.ValueType, f.params)
		for i := range params {
			params[i] = api.ValueTypeI32
		}
		b.NewFunctionBuilder().
			WithGoModuleFunction(bind(f), params, []api.ValueType{api.ValueTypeI32}).
			Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

func bind(f function) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		r := runOf(ctx)
		if r == nil {
			panic(errNoRun)
		}
		r.pause()
		var a [3]uint32
		for i := range f.params {
			a[i] = uint32(stack[i])
		}
		if r.rehearse != nil {
			stack[0] = uint64(uint32(r.rehearse.answer(f.name, mod.Memory(), a)))
			return
		}
		r.meter.enter()
		res := f.run(r.call, mod.Memory(), a)
		r.meter.leave()
		stack[0] = uint64(uint32(res))
	}
}

// pause is what happens each time the guest asks the host for something: it ends
// there if its call has, and gets fuel for a further stretch.
func (r *run) pause() {
	if r.over.Load() {
		panic(errOver)
	}
	if r.instance != nil {
		r.instance.refuel()
	}
}

// errOver is a guest stopped because the context of its run has ended.
var errOver = errors.New("the call is over")

// refuse stops the guest that is calling.
func refuse(r *registry.Refusal) {
	if r != nil {
		panic(r)
	}
}
