package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// registered registers a server with a real registry and reaches it as its org.
func registered(t *testing.T, s *misbehave.Server, namespaces ...string) (*registry.Registry, context.Context, *registry.Bound) {
	t.Helper()
	reg, err := registry.New(registry.Config{
		Store: registry.NewMemory(), Policy: registry.Policy{AllowPrivate: true, Near: -1}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reg.Close)
	ctx := zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u"})
	if _, err := reg.Register(ctx, registry.Registration{Name: "prod", Kubeconfig: s.Kubeconfig(sentinel), Namespaces: namespaces}); err != nil {
		t.Fatal(err)
	}
	b, err := reg.Reach(ctx, "prod")
	if err != nil {
		t.Fatal(err)
	}
	return reg, ctx, b
}

// through is a guest whose cluster is reached by a real registry.Bound.
func through(t *testing.T, ctx context.Context, reg Registry, b *registry.Bound) *guest {
	t.Helper()
	op := &manifest.Op{Token: "k8s_test_op", Grants: everything, In: pageFields, Items: "items"}
	a := &answered{}
	h := &Host{config: Config{Registry: reg, Kinds: []Kind{{"App", "hanzo.ai", "v1", "apps"}}, Log: slog.New(slog.DiscardHandler)}}
	c := newCall(ctx, h, &Op{Op: op}, &Call{Token: op.Token, Input: []byte(`{"limit":2}`), Answer: a}, b, &meter{limits: Defaults})
	t.Cleanup(c.end)
	return &guest{t: t, c: c, m: make(ram, 16<<20), answer: a}
}

// TestRowsOverRealReach is the part of section B that the transport and the host
// functions answer together.
func TestRowsOverRealReach(t *testing.T) {
	s := misbehave.New()
	t.Cleanup(s.Close)
	reg, ctx, b := registered(t, s)
	list := `{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"1"},"items":[{"a":"` + strings.Repeat("x", 4000) + `"}]}`
	apps, namespaced, pod := "/apis/hanzo.ai/v1/apps", "/apis/hanzo.ai/v1/namespaces/a/apps", "/api/v1/namespaces/a/pods/p"
	for _, test := range []struct {
		name, path        string
		do                misbehave.Behaviour
		function, request string
		code              string
	}{
		{"B2 a list", apps, misbehave.Redirect("https://127.0.0.1:1/"), "list", listApps, "redirected"},
		{"B2 /version", "/version", misbehave.Redirect("/version2"), "version", `{}`, "redirected"},
		{"B2 a log", pod + "/log", misbehave.Redirect("/elsewhere"), "logs", logOf, "redirected"},
		{"B2 a watch", namespaced, misbehave.Redirect("/elsewhere"), "watch", `{"kind":"App","namespace":"a","version":"5"}`, "redirected"},
		{"B2 a write", pod + "/eviction", misbehave.Redirect("/elsewhere"), "evict", `{"namespace":"a","pod":"p"}`, "redirected"},
		{"B4 a bomb", apps, misbehave.Bomb(200 << 20), "list", listApps, "too_large"},
		{"B4 without end", apps, misbehave.Endless(), "list", listApps, "too_large"},
		{"B6 cut", apps, misbehave.Cut(90, list), "list", listApps, "truncated"},
		{"B6 cut, the length unsaid", apps, misbehave.CutUnannounced(90, list), "list", listApps, "truncated"},
		{"B6 cut watch", namespaced, misbehave.Watch(misbehave.Half(event("ADDED", 7))), "watch", `{"kind":"App","namespace":"a","version":"5","waitSeconds":9}`, "truncated"},
		{"B6 GOAWAY on the way", apps, misbehave.GoAway(90, list), "list", listApps, ""},
		{"B14 a page", apps, misbehave.HTML(200), "list", listApps, "bad_upstream"},
		{"B14 a 502", apps, misbehave.HTML(502), "list", listApps, "bad_upstream"},
		{"B14 nothing", apps, misbehave.EmptyBody(), "list", listApps, "bad_upstream"},
		{"B14 {}", apps, misbehave.EmptyObject(), "list", listApps, "bad_upstream"},
		{"B14 another kind", apps, misbehave.WrongKind(), "list", listApps, "bad_upstream"},
		{"B4 deep", apps, misbehave.DeepNesting(10_000), "list", listApps, "bad_upstream"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.Reset()
			s.On(test.path, test.do)
			g := through(t, ctx, reg, b)
			if _, _, code := g.do(test.function, test.request); code != test.code {
				t.Errorf("code %q, want %q", code, test.code)
			}
			for _, r := range s.Requests() {
				if strings.Contains(r.Path, "elsewhere") || r.Path == "/version2" {
					t.Errorf("a redirect was followed to %s", r.Path)
				}
				if name := fmt.Sprint(r.Header); strings.Contains(name, "Impersonate") || strings.Contains(name, "X-Org") {
					t.Errorf("C17: %v", r.Header)
				}
			}
		})
	}
}

func TestRowB12(t *testing.T) {
	s := misbehave.New(misbehave.MaxStreams(100))
	t.Cleanup(s.Close)
	reg, ctx, b := registered(t, s)
	path := "/apis/hanzo.ai/v1/namespaces/a/apps"
	s.On(path, misbehave.WatchOpen())
	s.On(path+"/p", misbehave.JSON(`{"kind":"App","apiVersion":"hanzo.ai/v1","metadata":{"name":"p"}}`))
	watches := make(chan string, 300)
	ctx, cancel := context.WithCancel(ctx)
	for range 300 {
		g := through(t, ctx, reg, b)
		g.m = make(ram, 4<<10)
		go func() {
			request := `{"kind":"App","namespace":"a","version":"5","waitSeconds":55}`
			g.m.Write(0, []byte(request))
			h, _ := g.run("watch", 0, uint32(len(request)))
			n, _ := g.run("next", uint32(h), 0, 1024)
			watches <- fmt.Sprint(n)
		}()
	}
	if !s.WaitLive(path, 300, 20*time.Second) {
		t.Errorf("%d watches are open", s.Live(path))
	}
	began := time.Now()
	if _, _, code := through(t, ctx, reg, b).do("get", getApp); code != "" || time.Since(began) > 2*time.Second {
		t.Errorf("a get among 300 watches: %q after %s", code, time.Since(began))
	}
	began = time.Now()
	cancel()
	for range 300 {
		<-watches
	}
	if !s.WaitLive(path, 0, 2*time.Second) || time.Since(began) > 3*time.Second {
		t.Errorf("%d requests are open %s after the callers went", s.Live(path), time.Since(began))
	}
}

func TestCursorOfARealSeal(t *testing.T) {
	s := misbehave.New()
	t.Cleanup(s.Close)
	reg, ctx, b := registered(t, s)
	s.On("/apis/hanzo.ai/v1/apps", misbehave.Pages("AppList", "hanzo.ai/v1", func(token string) ([]string, string) {
		if token == "" {
			return []string{`{"n":1}`, `{"n":2}`}, "more"
		}
		return []string{`{"n":3}`}, ""
	}))
	g := through(t, ctx, reg, b)
	items, _, code := g.do("list", listApps)
	if r := g.c.outcome(0); r != nil || code != "" || len(items) != 2 || g.answer.next == "" {
		t.Fatalf("%q %d items %v", code, len(items), r)
	}
	token := g.answer.next
	resume := func(b *registry.Bound) (int, string) {
		g := through(t, ctx, reg, b)
		g.c.in.Input, _ = json.Marshal(map[string]any{"limit": 2, "continue": token})
		items, _, code := g.do("list", listApps)
		return len(items), code
	}
	if n, code := resume(b); n != 1 || code != "" {
		t.Errorf("%d items, %q", n, code)
	}
	// A rotation ends it.
	if _, err := reg.Register(ctx, registry.Registration{Name: "prod", Kubeconfig: s.Kubeconfig("another")}); err != nil {
		t.Fatal(err)
	}
	rotated, err := reg.Reach(ctx, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if n, code := resume(rotated); n != 0 || code != "bad_continue" {
		t.Errorf("after a rotation: %d items, %q", n, code)
	}
	if _, _, code := through(t, ctx, reg, b).do("list", listApps); code != "rotated" {
		t.Errorf("on the credential that was rotated away: %q", code)
	}
}

func TestRowC7(t *testing.T) {
	s := misbehave.New()
	t.Cleanup(s.Close)
	reg, ctx, b := registered(t, s)
	s.On("/apis/hanzo.ai/v1/namespaces/a/apps", misbehave.WatchOpen())
	g := through(t, ctx, reg, b)
	time.AfterFunc(100*time.Millisecond, func() {
		if _, err := reg.Deregister(ctx, "prod"); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	_, _, code := g.do("watch", `{"kind":"App","namespace":"a","version":"5","waitSeconds":55}`)
	if code != "deregistered" || time.Since(began) > 2*time.Second {
		t.Errorf("C7: %q after %s", code, time.Since(began))
	}
}
