package registry

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// TestProof is what registration makes of a cluster that misbehaves: nothing of
// it is registered, and its page or its words do not come through as they are.
func TestProof(t *testing.T) {
	node := func(i int) string {
		return fmt.Sprintf(`{"metadata":{"name":"n%d"},"status":{"allocatable":{"nvidia.com/gpu":"8","amd.com/gpu":"2"}}}`, i)
	}
	pages := func(page func(string) ([]string, string)) misbehave.Behaviour {
		return misbehave.Pages("NodeList", "v1", page)
	}
	for _, c := range []struct {
		name   string
		behave misbehave.Behaviour
		code   string // "" is registered
		nodes  int
	}{
		{"B14 login page", misbehave.HTML(200), "bad_upstream", 0},
		{"B14 load balancer", misbehave.HTML(502), "bad_upstream", 0},
		{"B14 empty", misbehave.EmptyBody(), "bad_upstream", 0},
		{"B14 empty object", misbehave.EmptyObject(), "bad_upstream", 0},
		{"B14 another kind", misbehave.WrongKind(), "bad_upstream", 0},
		{"B4 nested", misbehave.DeepNesting(20000), "bad_upstream", 0},
		{"B4 endless", misbehave.Endless(), "too_large", 0},
		{"B6 cut", misbehave.Cut(30, nodeList(node(1))), "truncated", 0},
		{"B15 forbidden", misbehave.Status(403, "Forbidden", strings.Repeat("no \x1b[31m\n<script>"+sentinel, 1<<15), -1), "forbidden", 0},
		{"unauthorized", misbehave.Status(401, "Unauthorized", sentinel, -1), "unauthorized", 0},
		{"B7 throttled", misbehave.Status(429, "TooManyRequests", sentinel, 86400), "throttled", 0},
		{"B11 an empty page with more to come", pages(func(token string) ([]string, string) {
			return map[string][]string{"": nil, "a": {node(1)}, "b": nil, "c": {node(2), node(3)}}[token], map[string]string{"": "a", "a": "b", "b": "c"}[token]
		}), "", 3},
		{"B11 a token that repeats", pages(func(string) ([]string, string) { return []string{node(1)}, "again" }), "bad_upstream", 0},
		{"B11 tokens without end", func() misbehave.Behaviour {
			var n atomic.Int64
			return pages(func(string) ([]string, string) { return nil, fmt.Sprint(n.Add(1)) })
		}(), "bad_upstream", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := misbehave.New()
			t.Cleanup(server.Close)
			store := NewMemory()
			r := newRegistry(t, store)
			server.On("/api/v1/nodes", c.behave)
			record, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)})
			if c.code == "" {
				if err != nil || record.Nodes != c.nodes || record.NvidiaGpu != 8*c.nodes || record.AmdGpu != 2*c.nodes {
					t.Errorf("%+v, %v", record, err)
				}
				return
			}
			refusal := wantRefusal(t, err, c.code)
			if len(refusal.Message) > 2*maxMessage || strings.ContainsAny(refusal.Message, "\x1b\n") || strings.Contains(refusal.Message, "Sign in") {
				t.Errorf("the message is %q", refusal.Message)
			}
			if len(store.items) > 0 {
				t.Error("something was stored")
			}
		})
	}
}

// TestRedact: a cluster that repeats its credential does not get it told on, and
// nothing else of what it says changes, its length least of all.
func TestRedact(t *testing.T) {
	c := &client{token: "tok-en"}
	for in, want := range map[string]string{
		"":                      "",
		"no such thing":         "no such thing",
		"Bearer tok-en refused": "Bearer ****** refused",
		"tok-entok-en":          "************",
		"tok-e":                 "tok-e",
	} {
		words := []byte(in)
		if c.redact(words); string(words) != want {
			t.Errorf("redact(%q) = %q, want %q", in, words, want)
		}
	}
	words := []byte("anything")
	if (&client{}).redact(words); string(words) != "anything" {
		t.Errorf("without a token: %q", words)
	}
}
