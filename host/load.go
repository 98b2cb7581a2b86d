package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/host/rewrite"
)

// Host serves the ops of the modules loaded into it. It is safe for concurrent
// use.
type Host struct {
	config  Config
	engine  *engine
	ctx     context.Context // of the host's own work, until Close
	cancel  context.CancelFunc
	table   atomic.Pointer[table]
	pending sync.WaitGroup // modules being built, and the trimmer
	closing sync.Once
	failure error // of freeing the engine

	shipping sync.Mutex // one shipment at a time

	looked   atomic.Bool // at the module directory
	releases *releases
	mu       sync.Mutex // orders changes of the table
	closed   bool
	refused  map[string]Status // what could not be shipped, by source or name
	retired  []*Module         // replaced or removed, perhaps still serving
}

// table is what the host serves at one moment. It is never changed, only replaced.
type table struct {
	modules map[string]*Module
	ops     map[string]*Op
	sorted  []*Op
}

// trimEvery is how often idle instances that nobody needed are closed.
const trimEvery = 30 * time.Second

// New makes a Host without modules. Its instances live until Close.
func New(ctx context.Context, c Config) (*Host, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = nobody{}
	}
	return newHost(ctx, c, functions)
}

func newHost(ctx context.Context, c Config, functions []function) (*Host, error) {
	r, err := openReleases(c.Trust.StateDir)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(context.WithoutCancel(ctx), functions, c)
	if err != nil {
		return nil, err
	}
	h := &Host{config: c, engine: e, releases: r, refused: map[string]Status{}}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.table.Store(&table{modules: map[string]*Module{}, ops: map[string]*Op{}})
	h.pending.Add(1)
	go h.trim()
	return h, nil
}

func (h *Host) trim() {
	defer h.pending.Done()
	t := time.NewTicker(trimEvery)
	defer t.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-t.C:
			for _, m := range h.table.Load().modules {
				if m.instances != nil && m.State() == Ready {
					m.instances.trim()
				}
			}
		}
	}
}

// Start takes a built-in module and makes its ops known; it is compiled in the
// background, and a call of one of its ops waits for that. The error is for what
// can be told at once: a bad manifest, or a name, token or route that another
// module has. [Module.Wait] tells how the rest went.
func (h *Host) Start(wasm []byte) (*Module, error) {
	m, err := readModule(wasm)
	if err != nil {
		return nil, err
	}
	h.prepare(m)
	h.mu.Lock()
	if err := h.place(m, nil); err != nil {
		h.mu.Unlock()
		return nil, err
	}
	h.pending.Add(1)
	h.mu.Unlock()
	h.changed()
	go func() {
		defer h.pending.Done()
		if err := h.build(h.ctx, m, wasm); err != nil {
			h.config.Log.Error("a module does not load", "module", m.Manifest.Name, "digest", m.Digest, "error", err)
		}
		if h.Ready() == nil {
			debug.FreeOSMemory() // compiling took several times what came of it
		}
	}()
	return m, nil
}

// Load takes a built-in module and returns once it serves. One that fails is
// removed again.
func (h *Host) Load(ctx context.Context, wasm []byte) (*Module, error) {
	m, err := h.Start(wasm)
	if err != nil {
		return nil, err
	}
	if err := m.Wait(ctx); err != nil {
		h.mu.Lock()
		h.displace(m)
		h.mu.Unlock()
		h.changed()
		return nil, fmt.Errorf("module %s: %w", m.Manifest.Name, err)
	}
	return m, nil
}

// readModule reads the manifest of a module's file and touches nothing else of it.
func readModule(wasm []byte) (*Module, error) {
	section, err := rewrite.ExtractSection(wasm, manifest.Section)
	if err != nil {
		return nil, err
	}
	if section == nil {
		return nil, fmt.Errorf("no custom section %q: not a guest module", manifest.Section)
	}
	mf, err := manifest.Parse(section)
	if err != nil {
		return nil, err
	}
	return &Module{Manifest: mf, Digest: Digest(wasm), Size: len(wasm), ready: make(chan struct{})}, nil
}

// Digest is a module file's identity, "sha256:<hex>".
func Digest(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsDigest tells whether a text is of the form that Digest gives.
func IsDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// prepare gives m its ops, with their limits under the operator's ceiling.
func (h *Host) prepare(m *Module) {
	m.setState(Loading, nil)
	for i := range m.Manifest.Ops {
		op := &m.Manifest.Ops[i]
		m.Ops = append(m.Ops, &Op{
			Op:      op,
			Module:  m,
			limits:  limitsOf(op, h.config.Ceiling),
			cluster: slices.ContainsFunc(op.In, func(f manifest.Field) bool { return f.Name == "cluster" }),
		})
	}
}

// build compiles m and opens its instances.
func (h *Host) build(ctx context.Context, m *Module, wasm []byte) error {
	var pages int64
	for _, op := range m.Ops {
		pages = max(pages, op.limits.MemoryPages)
	}
	p, err := h.engine.build(ctx, m.Manifest, wasm, uint32(pages))
	if err != nil {
		m.setState(Failed, err)
	} else {
		m.instances = newInstances(h.ctx, p, h.config.Pool)
		m.setState(Ready, nil)
	}
	h.mu.Lock()
	if h.serving(m.Manifest.Name) == m {
		h.config.Metrics.Serving(m.Manifest.Name, m.State())
	}
	h.mu.Unlock()
	close(m.ready)
	return err
}

// place puts m into the table, in place of old where that is not nil. The lock
// is held.
func (h *Host) place(m, old *Module) error {
	if h.closed {
		return errClosed
	}
	if err := h.clash(m, old); err != nil {
		return err
	}
	next := h.table.Load().without(old)
	next.modules[m.Manifest.Name] = m
	for _, op := range m.Ops {
		next.ops[op.Token] = op
	}
	h.publish(next)
	return nil
}

// taken is why a module may not have a name, a token or a route: another has it.
type taken string

func (t taken) Error() string { return string(t) }

// clash tells what of m belongs to another module than old. The lock is held.
func (h *Host) clash(m, old *Module) error {
	t := h.table.Load()
	if other, ok := t.modules[m.Manifest.Name]; ok && other != old {
		return taken(fmt.Sprintf("there is a module %q already", m.Manifest.Name))
	}
	for _, other := range t.sorted {
		if other.Module == old {
			continue
		}
		for _, op := range m.Ops {
			if other.Token == op.Token {
				return taken(fmt.Sprintf("the token %s belongs to module %q", op.Token, other.Module.Manifest.Name))
			}
			if other.Overlaps(op.Op) {
				return taken(fmt.Sprintf("the route %s belongs to %s of module %q", other.Route(), other.Token, other.Module.Manifest.Name))
			}
		}
	}
	return nil
}

// displace takes m out of the table. The lock is held.
func (h *Host) displace(m *Module) {
	h.publish(h.table.Load().without(m))
}

// publish puts t in the place of the table. The lock is held.
func (h *Host) publish(t *table) {
	t.sorted = t.sorted[:0]
	for _, op := range t.ops {
		t.sorted = append(t.sorted, op)
	}
	slices.SortFunc(t.sorted, func(a, b *Op) int { return strings.Compare(a.Token, b.Token) })
	before := h.table.Swap(t)
	for name, m := range t.modules {
		if before.modules[name] != m {
			h.config.Metrics.Serving(name, m.State())
		}
	}
	for name := range before.modules {
		if t.modules[name] == nil {
			h.config.Metrics.Serving(name, Removed)
		}
	}
}

// changed tells that the ops served have changed. The lock is not held.
func (h *Host) changed() {
	if h.config.Changed != nil {
		h.config.Changed()
	}
}

func (t *table) without(m *Module) *table {
	next := &table{modules: map[string]*Module{}, ops: map[string]*Op{}}
	for name, o := range t.modules {
		if o != m {
			next.modules[name] = o
		}
	}
	for token, op := range t.ops {
		if op.Module != m {
			next.ops[token] = op
		}
	}
	return next
}

// Ops are the ops served, sorted by token. The slice is not to be changed.
func (h *Host) Ops() []*Op { return h.table.Load().sorted }

// Lookup finds an op by its token.
func (h *Host) Lookup(token string) (*Op, bool) {
	op, ok := h.table.Load().ops[token]
	return op, ok
}

// Ready tells whether every module that was started has been built; the error
// names one that is not, or that failed.
func (h *Host) Ready() error {
	for _, m := range h.table.Load().modules {
		switch s := m.State(); s {
		case Ready:
		case Failed:
			return fmt.Errorf("module %s: %w", m.Manifest.Name, m.Err())
		default:
			return fmt.Errorf("module %s is %s", m.Manifest.Name, s)
		}
	}
	return nil
}

var errClosed = errors.New("the host is closed")

// Close stops taking calls, waits for those under way until ctx ends, and then
// frees everything. Where ctx ends first it may be called again to wait on.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		for _, m := range h.table.Load().modules {
			h.retired = append(h.retired, m)
		}
		h.publish(&table{modules: map[string]*Module{}, ops: map[string]*Op{}})
	}
	modules := slices.Clone(h.retired)
	h.mu.Unlock()
	h.cancel()
	h.pending.Wait()
	for _, m := range modules {
		m.retire(Removed)
	}
	for _, m := range modules {
		if m.instances == nil {
			continue
		}
		select {
		case <-m.instances.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h.closing.Do(func() { h.failure = h.engine.close(ctx) })
	return h.failure
}
