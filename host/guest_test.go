package host

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/registry"
)

// TestHostilePointers is every function that takes a pointer, given bad ones.
func TestHostilePointers(t *testing.T) {
	size := uint32(16 << 20)
	for _, p := range [][2]uint32{{size, 1}, {size - 1, 2}, {0, size + 1}, {0xffffffff, 1}, {0xffffffff, 0xffffffff}, {1, 0xffffffff}, {0x80000000, 0x80000000}} {
		for _, f := range functions {
			if f.params < 2 || f.name == "input" || f.name == "next" || f.name == "emit" {
				continue
			}
			g := world{}.guest(t)
			if _, ended := g.run(f.name, p[0], p[1]); ended == nil || ended.Code != "guest_fault" {
				t.Errorf("%s(%#x, %#x): %v", f.name, p[0], p[1], ended)
			}
		}
		g := world{}.guest(t)
		if _, ended := g.run("emit", 0, p[0], p[1]); ended == nil {
			t.Errorf("emit(%#x, %#x) passes", p[0], p[1])
		}
	}
	// What is copied must fit where the guest says it goes.
	for _, at := range []uint32{size, size - 3, 0xffffffff} {
		g := world{}.guest(t)
		if _, ended := g.run("input", at, 1<<20); ended == nil {
			t.Errorf("input at %#x passes", at)
		}
		g = world{}.guest(t)
		h := g.c.open(&values{items: [][]byte{[]byte("item")}})
		if _, ended := g.run("next", uint32(h), at, 1<<20); ended == nil {
			t.Errorf("next at %#x passes", at)
		}
	}
}

func TestInput(t *testing.T) {
	g := world{input: `{"cluster":"c"}`}.guest(t)
	want := `{"op":"k8s_test_op","in":{"cluster":"c"}}`
	if n, ended := g.run("input", 0, uint32(len(want)-1)); ended != nil || int(n) != len(want) || g.m[0] != 0 {
		t.Errorf("a small buffer: %d, %v, %q", n, ended, g.m[:4])
	}
	n, _ := g.run("input", 0, uint32(len(want)))
	if string(g.m[:n]) != want {
		t.Errorf("%s", g.m[:n])
	}
	g = world{}.guest(t)
	n, _ = g.run("input", 0, 1024)
	if string(g.m[:n]) != `{"op":"k8s_test_op","in":{}}` {
		t.Errorf("%s", g.m[:n])
	}
}

func TestHandles(t *testing.T) {
	g := world{}.guest(t)
	h := uint32(g.c.open(&values{items: [][]byte{[]byte("one"), {}, []byte("three")}}))
	for i, step := range []struct {
		size uint32
		n    int32
		text string
	}{{2, 3, ""}, {2, 3, ""}, {3, 3, "one"}, {0, 0, ""}, {4, 5, ""}, {9, 5, "three"}, {9, -1, ""}, {9, -1, ""}, {9, -1, ""}} {
		clear(g.m[:16])
		n, ended := g.run("next", h, 0, step.size)
		if ended != nil || n != step.n || !bytes.HasPrefix(g.m, []byte(step.text)) || step.text == "" && g.m[0] != 0 {
			t.Errorf("step %d: %d %v %q", i, n, ended, g.m[:8])
		}
	}
	if n, ended := g.run("close", h); n != 0 || ended != nil {
		t.Error(n, ended)
	}
	for _, use := range []struct {
		name string
		h    uint32
	}{{"next", h}, {"close", h}, {"next", 9}, {"close", 0}, {"next", 0xffffffff}} {
		if _, ended := g.run(use.name, use.h, 0, 8); ended == nil || ended.Code != "guest_fault" {
			t.Errorf("%s(%d): %v", use.name, use.h, ended)
		}
	}
	g = world{}.guest(t)
	if n, ended := g.run("next", 0, 0, 100); n != -1 || ended != nil {
		t.Errorf("no failure yet: %d %v", n, ended)
	}
	var ended *registry.Refusal
	func() {
		defer func() { ended, _ = recover().(*registry.Refusal) }()
		for range maxHandles + 1 {
			g.c.open(&values{})
		}
	}()
	if ended == nil || ended.Code != "limit_handles" || len(g.c.handles) != maxHandles {
		t.Errorf("%v, %d open", ended, len(g.c.handles))
	}
	for range 3 * maxHandles { // those that are closed do not count
		g.run("close", g.c.handles[0].id)
		g.c.open(&values{})
	}
}

func TestFail(t *testing.T) {
	for _, test := range []struct {
		text string
		want *registry.Refusal // nil: the guest is at fault
	}{
		{`{"code":"pods_in_the_way","status":409,"message":"a\u001b[31mb","pods":[{"name":"p"}],"retryAfter":5}`,
			&registry.Refusal{Status: 409, Code: "pods_in_the_way", Message: "a [31mb", RetryAfter: 5 * time.Second, Details: map[string]any{"pods": json.RawMessage(`[{"name":"p"}]`)}}},
		{`{"code":"x1","status":422,"type":"about:evil","title":"t","instance":"/"}`, &registry.Refusal{Status: 422, Code: "x1"}},
		{`{"code":"x","status":404,"retryAfter":999999999}`, &registry.Refusal{Status: 404, Code: "x", RetryAfter: maxRetry}},
		{`{"code":"x","status":200}`, nil},
		{`{"code":"x","status":401}`, nil},
		{`{"code":"x","status":500}`, nil},
		{`{"code":"x","status":503}`, nil},
		{`{"code":"x"}`, nil},
		{`{"status":400}`, nil},
		{`{"code":"Bad Code","status":400}`, nil},
		{`{"code":"_x","status":400}`, nil},
		{`{"code":"` + strings.Repeat("x", 65) + `","status":400}`, nil},
		{`{"code":"x","status":400,"more":"` + strings.Repeat("x", maxRefusal) + `"}`, nil},
		{`nonsense`, nil},
		{``, nil},
	} {
		g := world{}.guest(t)
		g.m.Write(0, []byte(test.text))
		_, ended := g.run("fail", 0, uint32(len(test.text)))
		if test.want == nil {
			if ended == nil || ended.Code != "guest_fault" {
				t.Errorf("%.60s: %v", test.text, ended)
			}
			continue
		}
		if diff := cmp.Diff(test.want, g.c.outcome(1)); diff != "" || ended != nil {
			t.Errorf("%s: %v\n%s", test.text, ended, diff)
		}
		if r := g.c.outcome(0); r != nil {
			t.Errorf("a guest that answers all the same: %v", r)
		}
	}
	if r := (world{}).guest(t).c.outcome(7); r.Code != "guest_fault" {
		t.Error(r)
	}
}

func TestEmit(t *testing.T) {
	g := world{}.guest(t)
	g.m.Write(0, []byte(`{"a":1}`))
	for range 2 {
		g.run("emit", 0, 0, 7)
	}
	if n, ended := g.run("emit", 1, 0, 7); n != 0 || ended != nil {
		t.Error(n, ended)
	}
	if diff := cmp.Diff(answered{items: []string{`{"a":1}`, `{"a":1}`}, rest: `{"a":1}`}, *g.answer, cmp.AllowUnexported(answered{})); diff != "" {
		t.Error(diff)
	}
	for _, what := range []uint32{1, 2, 0xffffffff} {
		if _, ended := g.run("emit", what, 0, 7); ended == nil {
			t.Errorf("emit(%d) passes", what)
		}
	}
}

func TestLogIsOneLineAndBounded(t *testing.T) {
	var out bytes.Buffer
	g := world{log: slog.New(slog.NewTextHandler(&out, nil))}.guest(t)
	text := "a\nlevel=ERROR msg=forged\x1b[2J" + strings.Repeat("x", 5000)
	g.m.Write(0, []byte(text))
	for range 1000 {
		g.run("log", 0, uint32(len(text)))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != maxLines || len(lines[0]) > maxLine+200 || strings.ContainsAny(lines[0], "\x1b\r") || !strings.Contains(lines[0], `line="a level=ERROR`) {
		t.Errorf("%d lines, the first %.100q of %d bytes", len(lines), lines[0], len(lines[0]))
	}
}

// records is a registry of one org.
type records struct {
	Registry
	got registry.Registration
}

func (r *records) List(context.Context) ([]registry.Record, error) {
	return []registry.Record{{Name: "a", Org: "acme"}, {Name: "b", Org: "acme"}}, nil
}

func (r *records) Get(_ context.Context, name string) (registry.Record, error) {
	return registry.Record{}, registry.NotFound(name)
}

func (r *records) Register(_ context.Context, in registry.Registration) (registry.Record, error) {
	r.got = in
	return registry.Record{Name: in.Name}, nil
}

func (r *records) Deregister(context.Context, string) (bool, error) { return true, nil }

func TestClusters(t *testing.T) {
	reg := &records{}
	w := world{registry: reg, secrets: map[string][]byte{"handle-1": []byte(sentinel)}}
	w.op.Token = "k8s_clusters_register"
	g := w.guest(t)
	items, _, code := g.do("clusters_list", `{}`)
	if len(items) != 2 || code != "" || !strings.HasPrefix(items[0], `{"name":"a","org":"acme",`) {
		t.Errorf("%q %q", items, code)
	}
	if _, _, code := g.do("clusters_get", `{"cluster":"x"}`); code != "cluster_not_found" {
		t.Error(code)
	}
	if _, _, code := g.do("clusters_register", `{"name":"p","kubeconfig":"handle-2"}`); code != "bad_input" {
		t.Errorf("a made up handle: %q", code)
	}
	register := `{"name":"p","kubeconfig":"handle-1","provider":"byo","namespaces":["a"],"default":true}`
	if items, _, code = g.do("clusters_register", register); code != "" || len(items) != 1 {
		t.Fatal(code)
	}
	want := registry.Registration{Name: "p", Kubeconfig: []byte(sentinel), Provider: "byo", Namespaces: []string{"a"}, Default: true}
	if diff := cmp.Diff(want, reg.got); diff != "" {
		t.Error(diff)
	}
	if _, _, code := g.do("clusters_register", register); code != "bad_input" {
		t.Errorf("the handle serves twice: %q", code)
	}
	if bytes.Contains(g.m, []byte(sentinel)) {
		t.Error("the secret is in the guest's memory")
	}
	if items, _, _ = g.do("clusters_deregister", `{"cluster":"p"}`); len(items) != 1 || items[0] != `{"removed":true}` {
		t.Error(items)
	}
}

// TestRegistryIsTheRegistrysOwn: an op of any other module has no way to the
// registry, whatever it imports.
func TestRegistryIsTheRegistrysOwn(t *testing.T) {
	w := world{registry: &records{}, secrets: map[string][]byte{"handle-1": []byte(sentinel)}}
	w.op.Token = "k8s_widgets_list"
	g := w.guest(t)
	for function, request := range map[string]string{
		"clusters_list": `{}`, "clusters_get": `{"cluster":"a"}`, "clusters_deregister": `{"cluster":"a"}`,
		"clusters_register": `{"name":"p","kubeconfig":"handle-1","provider":"byo","namespaces":[],"default":false}`,
	} {
		if _, _, code := g.do(function, request); code != "not_granted" {
			t.Errorf("%s: %q", function, code)
		}
	}
}

func TestWithoutACluster(t *testing.T) {
	g := world{}.guest(t)
	g.c.bound = nil
	for function, request := range map[string]string{"get": getPod, "list": listPods, "stats": `{}`, "version": `{}`, "evict": `{"namespace":"a","pod":"p"}`} {
		if _, _, code := g.do(function, request); code != "not_granted" {
			t.Errorf("%s: %q", function, code)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", " a\n\tb ": "a  b", "\x1b[2J": "[2J", "a\u2028b\u202ec": "a b c",
		"aaaaaaaaaaaaaaa": "aaaaaaaaaa", "ééééééé": "ééééé", "aééééé": "aéééé", "\xff\xff\xff\xff": "\uFFFD", "aaaaaaaaa\xff\xff": "aaaaaaaaa",
	} {
		if got := clean(in, 10); got != want {
			t.Errorf("clean(%q) is %q, want %q", in, got, want)
		}
	}
}
