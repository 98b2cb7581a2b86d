package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/host/rewrite"
)

// compileWorkers is how many modules compile at once, and on how many
// goroutines each.
const compileWorkers = 2

// maxTable bounds each table of a guest, in elements.
const maxTable = 1 << 16

// startFuel is what a start function may burn, and then _initialize.
const startFuel = stretch

// engine is the WASM runtime that all modules share.
type engine struct {
	rt       wazero.Runtime
	cache    wazero.CompilationCache
	provided map[string]int // the parameters of each function of "k8s"
	slots    chan struct{}  // of compilation
	metrics  Observer
	log      *slog.Logger
	verify   int  // one in how many restored instances is compared
	canary   bool // an op that traps in the rehearsal fails the load
}

func newEngine(ctx context.Context, functions []function, c Config) (*engine, error) {
	cache, err := openCache(c.CacheDir)
	if err != nil {
		return nil, err
	}
	kind := wazero.NewRuntimeConfig()
	if c.Interpreter {
		kind = wazero.NewRuntimeConfigInterpreter()
	}
	kind = kind.
		WithCoreFeatures(api.CoreFeaturesV2 &^ api.CoreFeatureSIMD).
		WithCompilationCache(cache).
		WithDebugInfoEnabled(false)
	e := &engine{
		rt:       wazero.NewRuntimeWithConfig(ctx, kind),
		cache:    cache,
		provided: map[string]int{},
		slots:    make(chan struct{}, compileWorkers),
		metrics:  c.Metrics,
		log:      c.Log,
		verify:   c.Verify,
		canary:   true,
	}
	if e.verify == 0 {
		e.verify = 1024
	}
	for _, f := range functions {
		e.provided[f.name] = f.params
	}
	if err := errors.Join(provide(ctx, e.rt, functions), provideWASI(ctx, e.rt)); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	return e, nil
}

func (e *engine) close(ctx context.Context) error {
	return errors.Join(e.rt.Close(ctx), e.cache.Close(ctx))
}

// program is a module's compiled code with the snapshot its instances start from.
type program struct {
	engine   *engine
	name     string
	code     wazero.CompiledModule
	globals  []string
	sticky   []string  // why an instance must not serve twice
	snapshot *snapshot // nil when sticky
	first    *instance // what the snapshot was taken of, until the pool takes it
	init     bool      // the module exports _initialize
}

// build makes a program of a module's file: rewrite, check, compile, start one
// instance, rehearse every op, and take the snapshot. pages bounds the memory.
func (e *engine) build(ctx context.Context, m *manifest.Manifest, wasm []byte, pages uint32) (_ *program, err error) {
	rewritten, err := rewrite.Rewrite(wasm, rewrite.Options{Fuel: startFuel, MaxPages: pages, MaxTable: maxTable})
	if err != nil {
		return nil, err
	}
	if err := e.check(m, rewritten); err != nil {
		return nil, err
	}
	p := &program{engine: e, name: m.Name, globals: rewritten.Globals, sticky: rewritten.Sticky}
	_, p.init = rewritten.Exports["_initialize"]
	if p.code, err = e.compile(ctx, rewritten.Binary); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close(ctx)
		}
	}()
	began := time.Now()
	i, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	p.first = i
	e.metrics.Made(p.name, time.Since(began))
	if err := p.rehearse(ctx, i, m); err != nil {
		return nil, err
	}
	if len(p.sticky) > 0 {
		e.log.Warn("a module's instances can serve only once", "module", m.Name, "because", p.sticky)
		p.drop(Spent)
		return p, nil
	}
	p.snapshot = i.snap()
	return p, nil
}

func (e *engine) compile(ctx context.Context, binary []byte) (_ wazero.CompiledModule, err error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the compiler gave up: %v", p)
		}
	}()
	return e.rt.CompileModule(experimental.WithCompilationWorkers(ctx, compileWorkers), binary)
}

// check compares what a module imports and exports with the ABI and with what
// its manifest says it imports.
func (e *engine) check(m *manifest.Manifest, w *rewrite.Module) error {
	for _, i := range w.Imports {
		var params, results []api.ValueType
		switch i.Module {
		case abiModule:
			n, ok := e.provided[i.Name]
			if !ok {
				return fmt.Errorf("imports %q, which this host does not have", i.Name)
			}
			if !slices.Contains(m.Imports, i.Name) {
				return fmt.Errorf("imports %q, which its manifest does not name", i.Name)
			}
			params, results = slices.Repeat([]api.ValueType{api.ValueTypeI32}, n), []api.ValueType{api.ValueTypeI32}
		case wasiModule:
			f, ok := wasiFunctions[i.Name]
			if !ok {
				return fmt.Errorf("imports the WASI function %q, which this host does not have", i.Name)
			}
			params, results = f.types()
		default:
			return fmt.Errorf("imports from %q; there are only %q and %q", i.Module, abiModule, wasiModule)
		}
		if !same(i.Type.Params, params) || !same(i.Type.Results, results) {
			return fmt.Errorf("imports %s.%s with another type than it has", i.Module, i.Name)
		}
	}
	if x, ok := w.Exports["memory"]; !ok || x.Kind != rewrite.MemoryExport {
		return errors.New(`exports no memory "memory"`)
	}
	x, ok := w.Exports["handle"]
	if !ok || x.Kind != rewrite.FuncExport || !same(x.Type.Params, nil) || !same(x.Type.Results, []api.ValueType{api.ValueTypeI32}) {
		return errors.New(`exports no function "handle" that takes nothing and gives an i32`)
	}
	if x, ok := w.Exports["_initialize"]; ok && (x.Kind != rewrite.FuncExport || len(x.Type.Params)+len(x.Type.Results) > 0) {
		return errors.New(`exports an "_initialize" that is no function without parameters and results`)
	}
	return nil
}

func same(a []rewrite.ValueType, b []api.ValueType) bool {
	return slices.EqualFunc(a, b, func(x rewrite.ValueType, y api.ValueType) bool { return byte(x) == y })
}

// starting is the run in which an instance starts or rehearses.
func starting(ctx context.Context, op *manifest.Op) *run {
	limits := Defaults
	limits.HostCalls = rehearsedCalls
	r := &run{Context: ctx, meter: &meter{limits: limits}}
	if op == nil {
		r.rehearse = newRehearsal("", nil)
	} else {
		r.rehearse = newRehearsal(op.Token, op.Example)
	}
	return r
}

// instantiate makes an instance on which only a start function has run.
func (p *program) instantiate(ctx context.Context) (*instance, error) {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	var own *mapping
	r := starting(experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, max uint64) experimental.LinearMemory {
		if own = newMapping(max); own != nil {
			return own
		}
		return &heap{}
	})), nil)
	mod, err := p.engine.rt.InstantiateModule(r, p.code, config)
	if err != nil {
		return nil, fmt.Errorf("start: %w", brief(err))
	}
	i := &instance{
		program: p,
		mapping: own,
		module:  mod,
		memory:  mod.ExportedMemory("memory"),
		handle:  mod.ExportedFunction("handle"),
		fuel:    mod.ExportedGlobal(rewrite.Fuel).(api.MutableGlobal),
	}
	for _, name := range p.globals {
		i.globals = append(i.globals, mod.ExportedGlobal(name).(api.MutableGlobal))
	}
	return i, nil
}

// heap is a guest's memory in Go's heap.
type heap struct{ b []byte }

// Reallocate is part of wazero's LinearMemory.
func (h *heap) Reallocate(size uint64) []byte {
	h.b = append(h.b[:len(h.b):len(h.b)], make([]byte, size-uint64(len(h.b)))...)
	return h.b
}

// Free is part of wazero's LinearMemory.
func (h *heap) Free() { h.b = nil }

// start makes an instance that is ready for its first call, without a snapshot.
func (p *program) start(ctx context.Context) (*instance, error) {
	i, err := p.instantiate(ctx)
	if err != nil || !p.init {
		return i, err
	}
	r := starting(ctx, nil)
	if _, err := i.invoke(r, i.module.ExportedFunction("_initialize"), startFuel, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("_initialize: %w", brief(err)), i.close())
	}
	return i, nil
}

// rehearse runs every op twice against made-up answers: the heap grows to what
// a call needs before the snapshot, and an op that cannot even do this is found
// before it serves.
func (p *program) rehearse(ctx context.Context, i *instance, m *manifest.Manifest) error {
	for range 2 {
		for n := range m.Ops {
			r := starting(ctx, &m.Ops[n])
			var ret [1]uint64
			if _, err := i.invoke(r, i.handle, rehearsedFuel, ret[:]); err != nil && p.engine.canary {
				if len(r.crash) > 0 {
					err = fmt.Errorf("%w: %s", brief(err), firstLine(r.crash))
				}
				return fmt.Errorf("canary call of %s: %w", m.Ops[n].Token, brief(err))
			}
		}
	}
	return nil
}

// make makes an instance for the pool.
func (p *program) make(ctx context.Context) (*instance, error) {
	if p.snapshot == nil {
		return p.start(ctx)
	}
	i, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	if have, want := i.memory.Size(), uint32(p.snapshot.size()); have < want {
		i.memory.Grow((want - have) >> 16)
	}
	i.mapping.adopt(p.snapshot.image)
	if _, ok := i.restore(); !ok {
		return nil, errors.Join(errors.New("the module starts differently each time"), i.close())
	}
	return i, nil
}

// close frees the code. Every instance must have been closed.
func (p *program) close(ctx context.Context) {
	p.drop(Closed)
	p.code.Close(ctx)
	if p.snapshot != nil {
		p.snapshot.image.close()
	}
}

// drop closes the instance that the snapshot was taken of.
func (p *program) drop(why Discard) {
	if p.first != nil {
		p.engine.metrics.Discarded(p.name, why)
		p.first.close()
		p.first = nil
	}
}

// brief is err without the guest's stack, which is the guest's own text.
func brief(err error) error {
	if line, _, ok := strings.Cut(err.Error(), "\n"); ok {
		return &briefError{line: line, err: err}
	}
	return err
}

type briefError struct {
	line string
	err  error
}

func (e *briefError) Error() string { return e.line }
func (e *briefError) Unwrap() error { return e.err }

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
