package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/host/rewrite"
	w "github.com/hanzoai/k8s/host/wasmtest"
	"github.com/hanzoai/k8s/registry"
)

// sandbox is a host for tests, with everything it tells its observer.
type sandbox struct {
	*Host
	seen *ledger
	logs *lockedBuffer
}

func newSandbox(t testing.TB, change ...func(*Config)) *sandbox {
	t.Helper()
	s := &sandbox{seen: &ledger{discarded: map[Discard]int{}, called: map[string]int{}, pools: map[string][3]int{}, serving: map[string]State{}}, logs: &lockedBuffer{}}
	c := Config{
		Registry: noRegistry{},
		Log:      slog.New(slog.NewTextHandler(s.logs, nil)),
		Metrics:  s.seen,
		Verify:   1,
	}
	for _, f := range change {
		f(&c)
	}
	h, err := New(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.Host = h
	t.Cleanup(func() { s.drain(t) })
	return s
}

// drain closes the host and checks that every instance was closed exactly once.
func (s *sandbox) drain(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	if made, gone := s.seen.balance(); made != gone {
		t.Errorf("%d instances made, %d discarded", made, gone)
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	for module, left := range s.seen.pools {
		if left != [3]int{} {
			t.Errorf("live, idle and waiting of %s end as %v", module, left)
		}
	}
}

// ledger is an Observer that counts.
type ledger struct {
	mu        sync.Mutex
	made      int
	restored  int
	blocks    int
	verified  [2]int // equal, not
	discarded map[Discard]int
	called    map[string]int
	pools     map[string][3]int // live, idle, waiting
	high      int               // the most instances of a module live at once
	serving   map[string]State
	refused   int
	standing  int
}

func (l *ledger) Pool(module string, live, idle, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pools[module]
	l.pools[module] = [3]int{p[0] + live, p[1] + idle, p[2] + waiting}
	l.high = max(l.high, p[0]+live)
}

func (l *ledger) Made(string, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
}

func (l *ledger) Restored(_ string, blocks int, _ time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restored++
	l.blocks += blocks
}

func (l *ledger) Verified(_ string, equal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if equal {
		l.verified[0]++
	} else {
		l.verified[1]++
	}
}

func (l *ledger) Discarded(_ string, why Discard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.discarded[why]++
}

func (l *ledger) Called(_, code string, _ *Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called[code]++
}

func (l *ledger) Serving(module string, s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving[module] = s
}

func (l *ledger) Refused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
}

func (l *ledger) Standing(refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.standing = refused
}

func (l *ledger) balance() (made, gone int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.discarded {
		gone += n
	}
	return l.made, gone
}

func (l *ledger) discards(why Discard) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.discarded[why]
}

// tally is what a ledger counts beside discards.
type tally struct {
	restored, blocks, equal, different, high int
}

func (l *ledger) tally() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	return tally{l.restored, l.blocks, l.verified[0], l.verified[1], l.high}
}

// eventually waits for what happens off the path of a call.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it did not come to pass: %s", what)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// noRegistry has two clusters to list and nothing to reach.
type noRegistry struct{}

func (noRegistry) List(context.Context) ([]registry.Record, error) {
	return []registry.Record{{Name: "one"}, {Name: "two"}}, nil
}
func (noRegistry) Get(_ context.Context, name string) (registry.Record, error) {
	return registry.Record{}, registry.NotFound(name)
}
func (noRegistry) Register(context.Context, registry.Registration) (registry.Record, error) {
	return registry.Record{}, registry.BadInput("name", "no")
}
func (noRegistry) Deregister(context.Context, string) (bool, error) { return false, nil }
func (noRegistry) Reach(_ context.Context, name string) (*registry.Bound, error) {
	return nil, registry.NotFound(name)
}
func (noRegistry) Admit(context.Context, string, bool) (func(), error) { return func() {}, nil }

// heard is an Answer that keeps what was emitted.
type heard struct {
	items []string
	rest  string
}

func (h *heard) Item(b []byte) error { h.items = append(h.items, string(b)); return nil }
func (h *heard) Rest(b []byte) error { h.rest = string(b); return nil }
func (h *heard) Continue(string) error {
	return errors.New("no list was paged")
}
func (h *heard) Again() bool { *h = heard{}; return true }

// deaf is an Answer that keeps nothing.
type deaf struct{}

func (deaf) Item([]byte) error     { return nil }
func (deaf) Rest([]byte) error     { return nil }
func (deaf) Continue(string) error { return nil }
func (deaf) Again() bool           { return true }

// ask calls an op and gives the answer and the refusal's code.
func (s *sandbox) ask(token, input string) (*heard, string) {
	h, _, code := s.askWithin(context.Background(), token, input)
	return h, code
}

func (s *sandbox) askWithin(ctx context.Context, token, input string) (*heard, *Call, string) {
	h := &heard{}
	c := &Call{Token: token, Input: []byte(input), Answer: h}
	err := s.Call(ctx, c)
	var r *registry.Refusal
	switch {
	case err == nil:
		return h, c, ""
	case errors.As(err, &r):
		s.logs.Write([]byte(r.Error() + "\n"))
		return h, c, r.Code
	}
	return h, c, fmt.Sprintf("untyped: %v", err)
}

// guestModule is a guest written for a test. Its handle does what is asked for
// when its input begins with {"evil" and answers {"ok":true} otherwise, which is
// also what it does in the rehearsal.
type guestModule struct {
	name    string   // op k8s_<name>_run
	version string   // default v1.0.0
	imports []string // of "k8s", besides input and emit
	wasi    []string
	hidden  []string // imported, and not in the manifest
	limits  manifest.Limits
	grants  []manifest.Grant
	fields  []manifest.Field
	path    string // default /v1/k8s/<name>
	claims  string // the token in the manifest, default k8s_<name>_run
	pages   uint32 // default 2
	long    bool
	locals  string // of the evil code

	// evil adds what the module needs and gives the code that runs, which leaves
	// an i32 for handle to return. f finds an imported function.
	evil func(m *w.Module, f func(string) uint32) w.Code
	// raw may change the module further.
	raw func(m *w.Module)
}

// Where a test guest keeps things.
const (
	inputAt = 1024
	okAt    = 512
	freeAt  = 4096
)

const ok = `{"ok":true}`

func (g guestModule) token() string { return "k8s_" + g.name + "_run" }

func (g guestModule) manifest() *manifest.Manifest {
	version := g.version
	if version == "" {
		version = "v1.0.0"
	}
	path := g.path
	if path == "" {
		path = "/v1/k8s/" + g.name
	}
	token := g.claims
	if token == "" {
		token = g.token()
	}
	return &manifest.Manifest{
		ABI: manifest.ABI, Name: g.name, Version: version,
		Imports: append([]string{"input", "emit"}, g.imports...),
		Ops: []manifest.Op{{
			Token: token, Method: "POST", Path: path, Summary: "A test.", Doc: "A test.",
			Grants: g.grants, In: g.fields, Items: "items", Limits: g.limits, Long: g.long,
			Out: []manifest.Field{
				{Name: "ok", Kind: manifest.Bool},
				{Name: "items", Kind: manifest.List, Of: manifest.Object, Fields: []manifest.Field{{Name: "name", Kind: manifest.String}}},
			},
		}},
	}
}

var wasiSignatures = map[string][2]string{
	"proc_exit": {"i", ""}, "random_get": {"ii", "i"}, "poll_oneoff": {"iiii", "i"}, "fd_write": {"iiii", "i"},
	"clock_time_get": {"iIi", "i"}, "sched_yield": {"", "i"}, "args_sizes_get": {"ii", "i"}, "environ_sizes_get": {"ii", "i"},
	"path_open": {"iiiiiIIii", "i"}, "fd_read": {"iiii", "i"}, "fd_fdstat_get": {"ii", "i"},
}

// params of the functions of "k8s".
func arity(name string) string {
	for _, f := range functions {
		if f.name == name {
			return strings.Repeat("i", f.params)
		}
	}
	return "ii"
}

func (g guestModule) build(t testing.TB) []byte {
	t.Helper()
	var m w.Module
	at := map[string]uint32{}
	for _, name := range slices.Concat([]string{"input", "emit"}, g.imports, g.hidden) {
		at[name] = m.Import("k8s", name, arity(name), "i")
	}
	for _, name := range g.wasi {
		s := wasiSignatures[name]
		at[name] = m.Import("wasi_snapshot_preview1", name, s[0], s[1])
	}
	f := func(name string) uint32 {
		i, ok := at[name]
		if !ok {
			t.Fatalf("%s is not imported", name)
		}
		return i
	}
	m.Memory(max(g.pages, 2), -1)
	m.Data(okAt, ok)
	evil := w.I32(0)
	if g.evil != nil {
		evil = g.evil(&m, f)
	}
	// The first letter of the input's first key.
	key := uint32(inputAt + len(`{"op":"`) + len(g.token()) + len(`","in":{"`))
	handle := m.Func("", "i", g.locals,
		w.I32(inputAt), w.I32(2048), w.Call(f("input")), w.Drop,
		w.I32(0), w.With(0x2d, 0, key), w.I32('e'), w.Op(0x46),
		w.If(0x7f, evil, w.Op(0x05),
			w.I32(1), w.I32(okAt), w.I32(int32(len(ok))), w.Call(f("emit"))))
	m.Export("handle", w.ExportFunc, handle)
	if g.raw != nil {
		g.raw(&m)
	}
	text, err := json.Marshal(g.manifest())
	if err != nil {
		t.Fatal(err)
	}
	return rewrite.AppendSection(m.Bytes(), manifest.Section, text)
}

func (s *sandbox) load(t testing.TB, g guestModule) *Module {
	t.Helper()
	m, err := s.Load(context.Background(), g.build(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	good = `{"good":true}`
	evil = `{"evil":true}`
)

func TestCallAnswers(t *testing.T) {
	s := newSandbox(t)
	m := s.load(t, guestModule{name: "clusters", imports: []string{"clusters_list", "next"},
		evil: func(m *w.Module, f func(string) uint32) w.Code {
			m.Data(600, "{}")
			next := w.Join(w.I32(1), w.I32(freeAt), w.I32(1024), w.Call(f("next")), w.Set(0))
			emit := w.Join(w.I32(0), w.I32(freeAt), w.Get(0), w.Call(f("emit")), w.Drop)
			return w.Join(w.I32(600), w.I32(2), w.Call(f("clusters_list")), w.Drop, next, emit, next, emit, w.I32(0))
		}, locals: "i"})
	if got, code := s.ask("k8s_clusters_run", good); code != "" || got.rest != ok {
		t.Errorf("answer %+v, refusal %q", got, code)
	}
	got, call, code := s.askWithin(context.Background(), "k8s_clusters_run", evil)
	if code != "" || len(got.items) != 2 || !strings.Contains(got.items[1], `"two"`) {
		t.Errorf("answer %+v, refusal %q\n%s", got, code, s.logs)
	}
	if st := call.Stats; st.Digest != m.Digest || st.Fuel <= 0 || st.BytesOut == 0 || st.Took <= 0 || st.Items != 2 {
		t.Errorf("stats %+v", st)
	}
	if _, code := s.ask("k8s_clusters_walk", good); code != "not_found" {
		t.Errorf("an op that is not there: %q", code)
	}
}

func TestManyModulesManyCallers(t *testing.T) {
	s := newSandbox(t)
	names := []string{"a", "b", "c"}
	for _, n := range names {
		s.load(t, guestModule{name: n})
	}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for range 50 {
				if got, code := s.ask("k8s_"+names[i%3]+"_run", good); code != "" || got.rest != ok {
					t.Errorf("answer %+v, refusal %q", got, code)
				}
			}
		})
	}
	wg.Wait()
}

// TestStart checks that ops are known before their module is compiled, that a
// call waits for that, and what becomes of a module that fails.
func TestStart(t *testing.T) {
	s := newSandbox(t)
	m, err := s.Start(guestModule{name: "soon"}.build(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, found := s.Lookup("k8s_soon_run"); !found {
		t.Error("its op is not known")
	}
	if got, code := s.ask("k8s_soon_run", good); code != "" || got.rest != ok {
		t.Errorf("answer %+v, refusal %q", got, code)
	}
	if m.State() != Ready || s.Ready() != nil {
		t.Errorf("state %s, Ready() = %v", m.State(), s.Ready())
	}
	bad, err := s.Start(guestModule{name: "never", hidden: []string{"list"}}.build(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.Wait(context.Background()); err == nil || bad.State() != Failed {
		t.Errorf("Wait() = %v, state %s", err, bad.State())
	}
	if _, code := s.ask("k8s_never_run", good); code != "overloaded" {
		t.Errorf("a call of a module that failed: %q", code)
	}
	if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("Ready() = %v, want it to name the module", err)
	}
}

func TestClashes(t *testing.T) {
	s := newSandbox(t)
	s.load(t, guestModule{name: "first"})
	for name, g := range map[string]guestModule{
		`there is a module "first" already`: {name: "first"},
		`the route POST /v1/k8s/first`:      {name: "second", path: "/v1/k8s/first"},
		`the token k8s_first_run`:           {name: "third", claims: "k8s_first_run"},
	} {
		if _, err := s.Load(context.Background(), g.build(t)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

func TestInterpreterAnswersAlike(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Interpreter = true })
	s.load(t, guestModule{name: "slow"})
	if got, code := s.ask("k8s_slow_run", good); code != "" || got.rest != ok {
		t.Errorf("answer %+v, refusal %q", got, code)
	}
}

// withManifest puts the manifest of one module into another.
func withManifest(wasm, from []byte) []byte {
	section, err := rewrite.ExtractSection(from, manifest.Section)
	if err != nil {
		panic(err)
	}
	return rewrite.AppendSection(wasm, manifest.Section, section)
}
