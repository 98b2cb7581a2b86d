package host

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
	w "github.com/hanzoai/k8s/host/wasmtest"
)

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func signed(t testing.TB, k *ecdsa.PrivateKey, wasm []byte) Shipment {
	t.Helper()
	sig, err := Sign(k, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return Shipment{Wasm: wasm, Signature: sig}
}

// dock is a sandbox that modules can be shipped into.
func dock(t testing.TB, change ...func(*Config)) (*sandbox, *ecdsa.PrivateKey) {
	t.Helper()
	k := newKey(t)
	trust := func(c *Config) { c.Trust.Keys = []*ecdsa.PublicKey{&newKey(t).PublicKey, &k.PublicKey} }
	return newSandbox(t, append([]func(*Config){trust}, change...)...), k
}

// says is a guest that answers {"n":"<letter>"} to what is evil.
func says(name, version string, letter byte) guestModule {
	return guestModule{name: name, version: version, evil: func(m *w.Module, f func(string) uint32) w.Code {
		m.Data(600, `{"n":"`+string(letter)+`"}`)
		return w.Join(w.I32(1), w.I32(600), w.I32(9), w.Call(f("emit")))
	}}
}

func TestShip(t *testing.T) {
	changes := 0
	s, k := dock(t, func(c *Config) { c.Changed = func() { changes++ } })
	m, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v1.0.0", 'a').build(t)))
	if err != nil {
		t.Fatal(err)
	}
	if got, code := s.ask("k8s_widgets_run", evil); code != "" || got.rest != `{"n":"a"}` {
		t.Errorf("answer %+v, refusal %q", got, code)
	}
	again, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v1.0.0", 'a').build(t)))
	if err != nil || again != m {
		t.Errorf("shipped again: %p, %v, want what serves", again, err)
	}
	if _, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v1.0.1", 'b').build(t))); err != nil {
		t.Fatal(err)
	}
	if got, code := s.ask("k8s_widgets_run", evil); code != "" || got.rest != `{"n":"b"}` {
		t.Errorf("answer %+v, refusal %q", got, code)
	}
	if m.State() != Replaced {
		t.Errorf("the old module is %s", m.State())
	}
	want := []Status{{
		Name: "widgets", Version: "v1.0.1", Digest: s.serving("widgets").Digest, Signer: Fingerprint(&k.PublicKey),
		Shipped: true, State: Ready, Ops: []string{"k8s_widgets_run"},
	}}
	if diff := cmp.Diff(want, s.Modules()); diff != "" {
		t.Error(diff)
	}
	if err := s.Remove("widgets"); err != nil {
		t.Fatal(err)
	}
	if _, code := s.ask("k8s_widgets_run", good); code != "not_found" {
		t.Errorf("after it was removed: %q", code)
	}
	if err := s.Remove("widgets"); !errors.Is(err, ErrUnknownModule) {
		t.Errorf("removed twice: %v", err)
	}
	if changes != 3 {
		t.Errorf("told of %d changes, want 3", changes)
	}
}

func TestShipRefuses(t *testing.T) {
	list := []manifest.Grant{{Verbs: []string{"list"}, Version: "v1", Resource: "pods"}}
	cluster := []manifest.Field{{Name: "cluster", Kind: manifest.String}}
	parameter := []manifest.Field{{Name: "cluster", Kind: manifest.String, Required: true}}
	builtin := guestModule{name: "builtin", grants: list, fields: cluster}
	newShipment := func(g guestModule) func(*testing.T, *sandbox, *ecdsa.PrivateKey) Shipment {
		return func(t *testing.T, _ *sandbox, k *ecdsa.PrivateKey) Shipment { return signed(t, k, g.build(t)) }
	}
	for name, c := range map[string]struct {
		shipment func(*testing.T, *sandbox, *ecdsa.PrivateKey) Shipment
		want     string
	}{
		"unsigned": {func(t *testing.T, _ *sandbox, _ *ecdsa.PrivateKey) Shipment {
			return Shipment{Wasm: says("x", "v1.0.0", 'a').build(t)}
		}, ErrSignature.Error()},
		"another's key": {func(t *testing.T, _ *sandbox, _ *ecdsa.PrivateKey) Shipment {
			return signed(t, newKey(t), says("x", "v1.0.0", 'a').build(t))
		}, ErrSignature.Error()},
		"a changed byte": {func(t *testing.T, _ *sandbox, k *ecdsa.PrivateKey) Shipment {
			s := signed(t, k, says("x", "v1.0.0", 'a').build(t))
			s.Wasm[len(s.Wasm)/2] ^= 1
			return s
		}, ErrSignature.Error()},
		"a signature of something else": {func(t *testing.T, _ *sandbox, k *ecdsa.PrivateKey) Shipment {
			s := signed(t, k, []byte("hello"))
			s.Wasm = says("x", "v1.0.0", 'a').build(t)
			return s
		}, ErrSignature.Error()},
		"a signature too large": {func(t *testing.T, _ *sandbox, k *ecdsa.PrivateKey) Shipment {
			return Shipment{Wasm: says("x", "v1.0.0", 'a').build(t), Signature: make([]byte, maxSignature+1)}
		}, ErrSignature.Error()},
		"too large": {func(t *testing.T, s *sandbox, k *ecdsa.PrivateKey) Shipment {
			s.config.Trust.MaxSize = 100
			return signed(t, k, says("x", "v1.0.0", 'a').build(t))
		}, "larger than 100 bytes"},
		"a denied digest": {func(t *testing.T, s *sandbox, k *ecdsa.PrivateKey) Shipment {
			wasm := says("x", "v1.0.0", 'a').build(t)
			s.config.Trust.Deny = map[string]bool{Digest(wasm): true}
			return signed(t, k, wasm)
		}, "is denied"},
		"no module": {func(t *testing.T, _ *sandbox, k *ecdsa.PrivateKey) Shipment {
			return signed(t, k, []byte("hello"))
		}, "not a WebAssembly module"},
		"no manifest": {func(t *testing.T, _ *sandbox, k *ecdsa.PrivateKey) Shipment {
			var m w.Module
			m.Memory(1, -1)
			return signed(t, k, m.Bytes())
		}, "no custom section"},
		"a grant too wide":             {newShipment(guestModule{name: "x", fields: cluster, grants: []manifest.Grant{{Verbs: []string{"list", "delete"}, Version: "v1", Resource: "pods"}}}), `k8s_x_run asks for "delete pods"`},
		"a subresource too many":       {newShipment(guestModule{name: "x", fields: cluster, grants: []manifest.Grant{{Verbs: []string{"list"}, Version: "v1", Resource: "pods", Subresource: "log"}}}), `"list pods/log"`},
		"the closed kinds":             {newShipment(guestModule{name: "x", fields: cluster, grants: []manifest.Grant{{Verbs: []string{"get"}, Kinds: true}}}), `"get on the closed kinds"`},
		"a URL":                        {newShipment(guestModule{name: "x", fields: cluster, grants: []manifest.Grant{{Verbs: []string{"get"}, URL: "/version"}}}), `"get /version"`},
		"the registry":                 {newShipment(guestModule{name: "x", imports: []string{"clusters_list"}}), "a shipped module may not reach the registry"},
		"a built-in's name":            {newShipment(says("builtin", "v9.0.0", 'a')), `there is a module "builtin" already`},
		"a built-in's route":           {newShipment(guestModule{name: "x", path: "/v1/k8s/builtin"}), "the route POST /v1/k8s/builtin belongs to"},
		"a part of a built-in's route": {newShipment(guestModule{name: "x", path: "/v1/k8s/ones/prod"}), "the route POST /v1/k8s/ones/{} belongs to"},
		"more than a built-in's route": {newShipment(guestModule{name: "x", path: "/v1/k8s/{cluster}/of", fields: parameter}), "belongs to the service itself"},
		"a wider route":                {newShipment(guestModule{name: "x", path: "/v1/k8s/all/{cluster}", fields: parameter}), "the route POST /v1/k8s/all/of belongs to"},
		"the service's documents":      {newShipment(guestModule{name: "x", path: "/v1/k8s/docs"}), "belongs to the service itself"},
		"the operators' list":          {newShipment(guestModule{name: "x", path: "/v1/k8s/guests"}), "belongs to the service itself"},
		"every route":                  {newShipment(guestModule{name: "x", path: "/v1/k8s/{cluster}", fields: parameter}), "belongs to the service itself"},
		"a built-in's token":           {newShipment(guestModule{name: "x", claims: "k8s_builtin_run"}), "the token k8s_builtin_run belongs to"},
		"a shipped one's route":        {newShipment(guestModule{name: "x", path: "/v1/k8s/widgets"}), "the route POST /v1/k8s/widgets belongs to"},
		"a lower version":              {newShipment(says("widgets", "v1.1.9", 'z')), "does not go up from v1.2.0"},
		"the same version, else":       {newShipment(says("widgets", "v1.2.0", 'z')), "does not go up from v1.2.0"},
		"an import undeclared":         {newShipment(guestModule{name: "x", hidden: []string{"list"}}), "which its manifest does not name"},
		"a canary that fails":          {newShipment(guestModule{name: "x", raw: func(m *w.Module) { m.Start(m.Func("", "", "", w.Unreachable)) }}), "start:"},
		"a compile bomb": {newShipment(guestModule{name: "x", raw: func(m *w.Module) {
			m.Func("", "", strings.Repeat("i", 9999), w.Code(strings.Repeat("\x02\x40\x0b", 9999)))
		}}), "too large to compile"},
		"a shipped one's name too": {newShipment(says("widgets", "v1.2.0", 'y')), "does not go up"},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := dock(t)
			s.load(t, builtin)
			s.load(t, guestModule{name: "ones", path: "/v1/k8s/ones/{cluster}", fields: parameter})
			s.load(t, guestModule{name: "all", path: "/v1/k8s/all/of"})
			if _, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v1.2.0", 'a').build(t))); err != nil {
				t.Fatal(err)
			}
			before := s.table.Load()
			shipment := c.shipment(t, s, k)
			shipment.Source = "x.wasm"
			_, err := s.Ship(context.Background(), shipment)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Ship() = %v, want %q", err, c.want)
			}
			if s.table.Load() != before {
				t.Error("it changed what is served")
			}
			if got, code := s.ask("k8s_widgets_run", evil); code != "" || got.rest != `{"n":"a"}` {
				t.Errorf("what serves: %+v, %q", got, code)
			}
			told := false
			for _, m := range s.Modules() {
				told = told || m.Source == "x.wasm" && m.State == Refused && strings.Contains(m.Error, c.want)
			}
			if !told {
				t.Errorf("Modules() does not say why: %+v", s.Modules())
			}
			if !strings.Contains(s.logs.String(), "a shipped module is refused") {
				t.Error("nor does the log")
			}
		})
	}
}

func TestCeiling(t *testing.T) {
	grant := func(group, resource, sub string, verbs ...string) manifest.Grant {
		return manifest.Grant{Verbs: verbs, Group: group, Version: "v1", Resource: resource, Subresource: sub}
	}
	for name, c := range map[string]struct {
		ceiling, grant manifest.Grant
		want           string
	}{
		"same":                              {grant("apps", "deployments", "", "list"), grant("apps", "deployments", "", "list"), ""},
		"another group":                     {grant("", "deployments", "", "list"), grant("apps", "deployments", "", "list"), "list deployments.apps"},
		"another verb":                      {grant("", "pods", "", "list"), grant("", "pods", "", "list", "get"), "get pods"},
		"every verb":                        {grant("", "pods", "", "*"), grant("", "pods", "", "list", "delete"), ""},
		"every resource":                    {grant("apps", "*", "", "list"), grant("apps", "daemonsets", "", "list"), ""},
		"every group":                       {grant("*", "*", "", "get"), grant("batch", "jobs", "status", "get"), ""},
		"one subresource of every resource": {grant("apps", "*", "scale", "get"), grant("apps", "deployments", "scale", "get"), ""},
		"no resource by its subresource":    {grant("apps", "*", "scale", "get"), grant("apps", "deployments", "", "get"), "get deployments.apps"},
		"no other subresource":              {grant("", "*", "log", "get"), grant("", "nodes", "proxy", "get"), "get nodes/proxy"},
		"every subresource of one":          {grant("", "pods", "*", "get"), grant("", "pods", "log", "get"), ""},
		"not the one itself":                {grant("", "pods", "*", "get"), grant("", "pods", "", "get"), "get pods"},
		"nothing by nothing":                {manifest.Grant{Verbs: []string{"get"}}, grant("", "pods", "", "get"), "get pods"},
		"no kinds by resource":              {grant("*", "*", "", "*"), manifest.Grant{Verbs: []string{"get"}, Kinds: true}, "get on the closed kinds"},
		"no url by resource":                {grant("*", "*", "", "*"), manifest.Grant{Verbs: []string{"get"}, URL: "/metrics"}, "get /metrics"},
	} {
		if got := exceeds([]manifest.Grant{c.grant}, []manifest.Grant{c.ceiling}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWidenedGrantsAreTold: a version that may do more than the one it replaces
// is within the ceiling, and yet an operator hears of it.
func TestWidenedGrantsAreTold(t *testing.T) {
	grant := func(verbs ...string) []manifest.Grant {
		return []manifest.Grant{{Verbs: verbs, Version: "v1", Resource: "pods"}}
	}
	s, k := dock(t, func(c *Config) { c.Trust.Grants = grant("get", "list") })
	ship := func(version string, verbs ...string) {
		t.Helper()
		g := guestModule{name: "widgets", version: version, grants: grant(verbs...), fields: []manifest.Field{{Name: "cluster", Kind: manifest.String}}}
		if _, err := s.Ship(context.Background(), signed(t, k, g.build(t))); err != nil {
			t.Fatal(err)
		}
	}
	const told = `a shipped module is granted more than the one it replaces" module=widgets version=v1.2.0 first="get pods"`
	ship("v1.0.0", "list")
	ship("v1.1.0", "list")
	if strings.Contains(s.logs.String(), "granted more") {
		t.Errorf("the same grants: %s", s.logs)
	}
	ship("v1.2.0", "list", "get")
	if !strings.Contains(s.logs.String(), told) {
		t.Errorf("wider grants: %s", s.logs)
	}
	ship("v1.3.0", "get")
	if strings.Count(s.logs.String(), "granted more") != 1 {
		t.Errorf("narrower grants: %s", s.logs)
	}
}

func TestVersionsGoUp(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"v1.0.0", "v1.0.0", 0}, {"v1.0.1", "v1.0.0", 1}, {"v1.10.0", "v1.9.9", 1}, {"v2.0.0", "v10.0.0", -1}, {"v0.0.9", "v0.1.0", -1},
	} {
		if got := compareVersions(c.a, c.b); got*c.want < 0 || (got == 0) != (c.want == 0) {
			t.Errorf("compareVersions(%s, %s) = %d", c.a, c.b, got)
		}
	}
	s, k := dock(t)
	ship := func(version string) error {
		_, err := s.Ship(context.Background(), signed(t, k, says("widgets", version, 'a').build(t)))
		return err
	}
	if err := ship("v1.5.0"); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("widgets"); err != nil {
		t.Fatal(err)
	}
	if err := ship("v1.4.0"); err == nil {
		t.Error("a removal let a lower version in")
	}
	if err := ship("v1.5.0"); err != nil {
		t.Errorf("the same version after a removal: %v", err)
	}
	s.config.Trust.Downgrade = true
	if err := ship("v1.4.0"); err != nil {
		t.Errorf("a downgrade that is allowed: %v", err)
	}
}

// TestObserverHearsWhatServes: a module that serves is ready, whatever is refused
// beside it and however late the one before it ends.
func TestObserverHearsWhatServes(t *testing.T) {
	s, k := dock(t)
	hears := func(state State, refused, standing int) {
		t.Helper()
		s.seen.mu.Lock()
		defer s.seen.mu.Unlock()
		if got := s.seen.serving["sleeper"]; got != state || s.seen.refused != refused || s.seen.standing != standing {
			t.Errorf("%q, %d refused, %d standing; want %q, %d, %d", got, s.seen.refused, s.seen.standing, state, refused, standing)
		}
	}
	g := sleeper(false)
	g.name = "sleeper"
	ship := func(version string) error {
		g.version = version
		shipment := signed(t, k, g.build(t))
		shipment.Source = "sleeper.wasm"
		_, err := s.Ship(context.Background(), shipment)
		return err
	}
	if err := ship("v1.0.0"); err != nil {
		t.Fatal(err)
	}
	hears(Ready, 0, 0)
	old := s.serving("sleeper")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		s.askWithin(ctx, g.token(), evil)
		close(done)
	}()
	eventually(t, "the call runs", func() bool { old.mu.Lock(); defer old.mu.Unlock(); return old.calls == 1 })
	if err := ship("v0.9.0"); err == nil {
		t.Fatal("a lower version: accepted")
	}
	hears(Ready, 1, 1)
	if err := ship("v1.1.0"); err != nil {
		t.Fatal(err)
	}
	hears(Ready, 1, 0)
	cancel()
	<-done
	<-old.instances.gone
	hears(Ready, 1, 0)
	s.seen.mu.Lock()
	if live := s.seen.pools["sleeper"][0]; live < 1 {
		t.Errorf("%d instances of what serves", live)
	}
	s.seen.mu.Unlock()
	if err := ship("v0.9.0"); err == nil {
		t.Fatal("a lower version: accepted")
	}
	s.forget("sleeper.wasm")
	hears(Ready, 2, 0)
	if err := s.Remove("sleeper"); err != nil {
		t.Fatal(err)
	}
	hears(Removed, 2, 0)
}

// TestSwapsUnderLoad replaces a module many times while it is called: no call
// fails, each is answered by one version or the next, and nothing is left.
func TestSwapsUnderLoad(t *testing.T) {
	swaps := 1000
	if testing.Short() {
		swaps = 20
	}
	busy := runtime.NumGoroutine()
	s, k := dock(t, func(c *Config) { c.Trust.Downgrade = true })
	versions := []Shipment{
		signed(t, k, says("widgets", "v1.0.0", 'a').build(t)),
		signed(t, k, says("widgets", "v1.0.1", 'b').build(t)),
	}
	if _, err := s.Ship(context.Background(), versions[0]); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var calls atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, code := s.ask("k8s_widgets_run", evil)
				if code != "" || got.rest != `{"n":"a"}` && got.rest != `{"n":"b"}` {
					t.Errorf("answer %+v, refusal %q", got, code)
					return
				}
				calls.Add(1)
			}
		})
	}
	for n := range swaps {
		if _, err := s.Ship(context.Background(), versions[(n+1)%2]); err != nil {
			t.Errorf("swap %d: %v", n, err)
			break
		}
	}
	close(stop)
	wg.Wait()
	if calls.Load() < int64(swaps) {
		t.Errorf("only %d calls beside %d swaps", calls.Load(), swaps)
	}
	eventually(t, "every retired module is freed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range s.retired {
			select {
			case <-m.instances.gone:
			default:
				return false
			}
		}
		return true
	})
	s.drain(t)
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= busy })
}

// TestCallsFinishOnTheirModule replaces a module under a running call.
func TestCallsFinishOnTheirModule(t *testing.T) {
	s, k := dock(t)
	g := sleeper(false)
	old, err := s.Ship(context.Background(), signed(t, k, g.build(t)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan *Call)
	go func() {
		_, call, _ := s.askWithin(ctx, g.token(), evil)
		done <- call
	}()
	eventually(t, "the call runs", func() bool { old.mu.Lock(); defer old.mu.Unlock(); return old.calls == 1 })
	g.version = "v1.0.1"
	if _, err := s.Ship(context.Background(), signed(t, k, g.build(t))); err != nil {
		t.Fatal(err)
	}
	if got, code := s.ask(g.token(), good); code != "" || got.rest != ok {
		t.Errorf("the new module: %+v, %q", got, code)
	}
	select {
	case <-old.instances.gone:
		t.Error("the old module was freed under its call")
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if call := <-done; call.Stats.Digest != old.Digest {
		t.Errorf("the call was answered by %s", call.Stats.Digest)
	}
	select {
	case <-old.instances.gone:
	case <-time.After(5 * time.Second):
		t.Error("the old module was not freed after its last call")
	}
}

// TestHeldOpAnswers: between the swap and the edge's taking notice of it, and
// after that for as long as a call holds it, an op is answered by the module whose
// schema its input was read by.
func TestHeldOpAnswers(t *testing.T) {
	var s *sandbox
	var old *Op
	ask := func(op *Op) (string, string) {
		call := &Call{Token: op.Token, Op: op, Input: []byte(evil), Answer: &answered{}}
		release, held := s.Hold(op)
		if !held {
			return "", ""
		}
		defer release()
		if err := s.Call(context.Background(), call); err != nil {
			t.Error(err)
		}
		return call.Stats.Digest, call.Answer.(*answered).rest
	}
	var during string
	s, k := dock(t, func(c *Config) {
		c.Changed = func() {
			if old != nil {
				during, _ = ask(old)
			}
		}
	})
	first, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v1.0.0", 'a').build(t)))
	if err != nil {
		t.Fatal(err)
	}
	old = first.Ops[0]
	release, ok := s.Hold(old)
	if !ok {
		t.Fatal("what serves cannot be held")
	}
	second, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v1.1.0", 'b').build(t)))
	if err != nil {
		t.Fatal(err)
	}
	if during != first.Digest {
		t.Errorf("before the edge took notice %q answered, want %q", during, first.Digest)
	}
	call := &Call{Token: old.Token, Op: old, Input: []byte(evil), Answer: &answered{}}
	if err := s.Call(context.Background(), call); err != nil || call.Stats.Digest != first.Digest || call.Answer.(*answered).rest != `{"n":"a"}` {
		t.Errorf("a call that held it: %v, answered by %s", err, call.Stats.Digest)
	}
	release()
	select {
	case <-first.instances.gone:
	case <-time.After(5 * time.Second):
		t.Error("the old module was not freed after it was let go")
	}
	if _, ok := s.Hold(old); ok {
		t.Error("what serves no more can be held")
	}
	if digest, rest := ask(second.Ops[0]); digest != second.Digest || rest != `{"n":"b"}` {
		t.Errorf("the new one: %s %s", digest, rest)
	}
}

func TestParseKeys(t *testing.T) {
	block := func(kind string, k any) string {
		der, err := x509.MarshalPKIXPublicKey(k)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	a, b := &newKey(t).PublicKey, &newKey(t).PublicKey
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeys([]byte(block("PUBLIC KEY", a) + "\n" + block("PUBLIC KEY", b)))
	if err != nil || len(keys) != 2 || !keys[0].Equal(a) || !keys[1].Equal(b) {
		t.Errorf("ParseKeys() = %v, %v", keys, err)
	}
	for name, text := range map[string]string{
		"nothing":       "",
		"text":          "hello",
		"text after":    block("PUBLIC KEY", a) + "hello",
		"another curve": block("PUBLIC KEY", &other.PublicKey),
		"another block": block("CERTIFICATE", a),
		"rubbish":       "-----BEGIN PUBLIC KEY-----\naGVsbG8=\n-----END PUBLIC KEY-----\n",
	} {
		if _, err := ParseKeys([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestOpenSSLSignature checks a signature that another program made, of the form
// in which cosign writes one.
func TestOpenSSLSignature(t *testing.T) {
	const key = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE526z7iWhsPr7Kv6N+OhhAdTenaQh
8/ZRy3vhaxHyspOBhcKUdkK0IxrPaSntzmNzSPVpxwUwNm7sHqoEZEDVxQ==
-----END PUBLIC KEY-----
`
	keys, err := ParseKeys([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	trust := Trust{Keys: keys}
	const sig = "MEUCIAhJeDVXn8A4wLdaS3Tv+bZDD6urlvle555/yE77sOjQAiEAwiguMonx3PeJhZsBsFD7c9wzvPcz4SlZ6/jXw086DT8="
	if signer, err := trust.admit([]byte("a guest module\n"), []byte(sig+"\n")); err != nil || signer != Fingerprint(keys[0]) {
		t.Errorf("admit() = %q, %v", signer, err)
	}
	if _, err := trust.admit([]byte("a guest module"), []byte(sig)); !errors.Is(err, ErrSignature) {
		t.Errorf("a file one byte shorter: %v", err)
	}
}
