package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hanzoai/k8s/host/rewrite"
)

// bare is a guest on the runtime alone, fed by the smallest host there is: what
// it takes for is the guest's own time.
type bare struct {
	module api.Module
	handle api.Function
	items  [][]byte
	at     int
	out    []byte
}

const fuelPods = 500

func newBare(ctx context.Context, rt wazero.Runtime, wasm []byte, items [][]byte) (*bare, error) {
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return nil, err
	}
	b := &bare{items: items}
	if b.module, err = rt.InstantiateModule(context.WithValue(ctx, bareKey{}, b), code, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")); err != nil {
		return nil, err
	}
	b.handle = b.module.ExportedFunction("handle")
	return b, nil
}

type bareKey struct{}

// provide gives the imports of code: those a list needs, and none that does
// anything else.
func provide(ctx context.Context, rt wazero.Runtime, code wazero.CompiledModule) error {
	builder := rt.NewHostModuleBuilder("k8s")
	for _, f := range code.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != "k8s" {
			continue
		}
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			stack[0] = api.EncodeI32(ctx.Value(bareKey{}).(*bare).call(name, m.Memory(), stack))
		}), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	_, err := builder.Instantiate(ctx)
	return err
}

func (b *bare) call(name string, m api.Memory, stack []uint64) int32 {
	give := func(item []byte, at, room uint64) int32 {
		if uint64(len(item)) <= room {
			m.Write(uint32(at), item)
		}
		return int32(len(item))
	}
	switch name {
	case "input":
		return give([]byte(`{"op":"k8s_pods_list","in":{"cluster":"bench"}}`), stack[0], stack[1])
	case "list":
		b.at = 0
		return 1
	case "next":
		if b.at == len(b.items) {
			return -1
		}
		b.at++
		return give(b.items[b.at-1], stack[1], stack[2])
	case "emit":
		item, _ := m.Read(uint32(stack[1]), uint32(stack[2]))
		b.out = append(b.out, item...)
		return 0
	case "close":
		return 0
	}
	return -2
}

func (b *bare) run(ctx context.Context) (time.Duration, error) {
	b.out = b.out[:0]
	if fuel, ok := b.module.ExportedGlobal(rewrite.Fuel).(api.MutableGlobal); ok {
		fuel.Set(1 << 60)
	}
	begun := time.Now()
	ret, err := b.handle.Call(context.WithValue(ctx, bareKey{}, b))
	took := time.Since(begun)
	if err == nil && ret[0] != 0 {
		err = fmt.Errorf("the guest gave %d", ret[0])
	}
	return took, err
}

// fuel measures what the counter costs the lens: the module of the pods as it
// was built, against the same one rewritten.
func (r *report) fuel(ctx context.Context) error {
	wasm, err := builtin("pods")
	if err != nil {
		return err
	}
	rewritten, err := rewrite.Rewrite(wasm, rewrite.Options{Fuel: 1 << 60, MaxPages: 1024, MaxTable: 1 << 16})
	if err != nil {
		return err
	}
	var items [][]byte
	for i := range fuelPods {
		item, err := pod("bench", i).Marshal()
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return err
	}
	if err := provide(ctx, rt, code); err != nil {
		return err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return err
	}
	plain, err := newBare(ctx, rt, wasm, items)
	if err != nil {
		return err
	}
	counted, err := newBare(ctx, rt, rewritten.Binary, items)
	if err != nil {
		return err
	}
	for range r.options.rounds {
		var walls [2][]time.Duration
		for n := range 2 * 60 {
			took, err := []*bare{plain, counted}[n%2].run(ctx)
			if err != nil {
				return err
			}
			walls[n%2] = append(walls[n%2], took)
		}
		slices.Sort(walls[0])
		slices.Sort(walls[1])
		p50 := func(w []time.Duration) float64 { return float64(w[len(w)/2]) / float64(time.Microsecond) }
		r.fuelCost = append(r.fuelCost, 100*(p50(walls[1])/p50(walls[0])-1))
		r.perPod = append(r.perPod, p50(walls[1])/fuelPods)
	}
	if !bytes.Equal(plain.out, counted.out) || len(plain.out) == 0 {
		return errors.New("the rewritten guest answers otherwise")
	}
	return nil
}
