package ops_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// paged is the ops that list page by page, by token.
func paged(t *testing.T) (tokens []string) {
	t.Helper()
	for token, op := range opsByToken(t) {
		if has(op, "limit") && has(op, "continue") {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 {
		t.Fatal("no op lists page by page")
	}
	slices.Sort(tokens)
	return tokens
}

func has(op *manifest.Op, name string) bool {
	return slices.ContainsFunc(op.In, func(f manifest.Field) bool { return f.Name == name })
}

// page is one page of a list: what is on it, as kind, namespace and name, and
// the token of the next.
func (s *stack) page(t *testing.T, op *manifest.Op, in fields) (names []string, next string) {
	t.Helper()
	r := s.ask("acme", op, in)
	if r.status != http.StatusOK {
		t.Fatalf("%s of %v: %s", op.Token, in, r)
	}
	out := r.object()
	items, _ := out[op.Items].([]any)
	for _, item := range items {
		o := item.(fields)
		names = append(names, fmt.Sprint(o["kind"], " ", o["namespace"], "/", o["name"]))
	}
	next, _ = out["continue"].(string)
	return names, next
}

// paging is a registration bound to four namespaces: with three of everything,
// with nothing, with two of everything, and one that does not exist.
func paging(t *testing.T, s *stack, name string) {
	t.Helper()
	s.register(t, name, s.alpha().Admin(), s.populated(t, 3), s.namespace(t), s.populated(t, 2), "nowhere")
}

// listed is the input that lists everything of an op in the registration, or in
// all of prod where what it lists is in no namespace, or takes half a minute to
// be measured in a new one.
func listed(op *manifest.Op, cluster string) fields {
	in := fields{"cluster": cluster}
	switch op.Token {
	case plane.NodesList, plane.VolumesListPersistent, plane.MetricsPods:
		in["cluster"] = "prod"
	case plane.ResourcesList:
		in["kind"] = "App"
	}
	return in
}

// TestPagesAreTheWholeList reads every list page by page, with limits around
// the places where a namespace and the list end: nothing is lost, nothing comes
// twice, and no page but the last is short. Events come oldest first within a
// page, everything else in the order of the whole list.
func TestPagesAreTheWholeList(t *testing.T) {
	s := theStack(t)
	paging(t, s, "paged")
	if err := s.alpha().WaitMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := opsByToken(t)
	examined, pages := 0, 0
	for _, token := range paged(t) {
		op := list[token]
		t.Run(token, func(t *testing.T) {
			for _, limit := range []int{1, 2, 3, 4, 1000} {
				// In all of prod, another test may be at work.
				var diff string
				for range 5 {
					want, _ := s.page(t, op, listed(op, "paged"))
					if len(want) < 2 {
						t.Fatalf("there is too little to page: %v", want)
					}
					var got []string
					for next := ""; ; {
						in := listed(op, "paged")
						in["limit"] = limit
						if next != "" {
							in["continue"] = next
						}
						var names []string
						names, next = s.page(t, op, in)
						got = append(got, names...)
						pages++
						if next == "" {
							break
						}
						if len(names) != limit {
							t.Fatalf("limit %d: a page of %d goes on", limit, len(names))
						}
					}
					if token == plane.WorkloadsListEvents {
						slices.Sort(want)
						slices.Sort(got)
					}
					if diff = cmp.Diff(want, got); diff == "" {
						break
					}
				}
				if diff != "" {
					t.Errorf("limit %d: (-whole +paged)\n%s", limit, diff)
				}
			}
		})
		examined++
	}
	t.Logf("examined %d lists in %d pages", examined, pages)
}

// TestContinueTokensAreWorthNothingElsewhere uses the token of every list with
// another org, cluster, op, namespace and filter, and damaged: each is a 400.
func TestContinueTokensAreWorthNothingElsewhere(t *testing.T) {
	s := theStack(t)
	first, empty, second := s.populated(t, 2), s.namespace(t), s.populated(t, 1)
	admin := s.alpha().Admin()
	s.register(t, "here", admin, first, empty, second)
	s.register(t, "there", admin, first, empty, second)
	s.register(t, "smaller", admin, first, empty)
	// The very same registration, of another org.
	in := fields{"name": "here", "kubeconfig": string(admin), "namespaces": []string{first, empty, second}}
	if status, text := s.call("zoo", http.MethodPost, "/v1/k8s/clusters", in); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	t.Cleanup(func() { s.call("zoo", http.MethodDelete, "/v1/k8s/clusters/here", nil) })
	if status, text := s.call("zoo", http.MethodPost, "/v1/k8s/clusters", fields{"name": "wide", "kubeconfig": string(admin)}); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	t.Cleanup(func() { s.call("zoo", http.MethodDelete, "/v1/k8s/clusters/wide", nil) })
	list, tokens := opsByToken(t), paged(t)
	examined, refused := 0, 0
	for i, token := range tokens {
		op := list[token]
		t.Run(token, func(t *testing.T) {
			in := listed(op, "here")
			in["limit"] = 1
			_, next := s.page(t, op, in)
			if next == "" {
				t.Fatal("the first page is the last")
			}
			in["continue"] = next
			if r := s.ask("acme", op, in); r.status != http.StatusOK {
				t.Fatalf("its own list: %s", r)
			}
			check := func(what, org string, op *manifest.Op, more fields) {
				t.Helper()
				other := maps.Clone(in)
				maps.Copy(other, more)
				for name := range other {
					if !has(op, name) {
						delete(other, name)
					}
				}
				if r := s.ask(org, op, other); r.status != http.StatusBadRequest || r.code != "bad_continue" {
					t.Errorf("%s: %s", what, r)
				}
				refused++
			}
			wide := in["cluster"] == "prod"
			if wide {
				check("another org", "zoo", op, fields{"cluster": "wide"})
			} else {
				check("another org", "zoo", op, nil)
				check("another cluster", "acme", op, fields{"cluster": "there"})
				check("another bound", "acme", op, fields{"cluster": "smaller"})
			}
			other := tokens[(i+1)%len(tokens)]
			check("another op", "acme", list[other], listed(list[other], "here"))
			if has(op, "namespace") {
				check("another namespace", "acme", op, fields{"namespace": first})
			}
			if has(op, "labelSelector") {
				check("another selector", "acme", op, fields{"labelSelector": "app=web"})
			}
			if has(op, "nodeName") {
				check("another node", "acme", op, fields{"nodeName": "n1"})
			}
			if has(op, "kind") {
				check("another kind", "acme", op, fields{"kind": "Datastore"})
			}
			flipped := []byte(next)
			flipped[len(next)/2] ^= 1
			check("a changed one", "acme", op, fields{"continue": string(flipped)})
			check("half of one", "acme", op, fields{"continue": next[:len(next)/2]})
			check("one with more", "acme", op, fields{"continue": next + "AAAA"})
			check("two", "acme", op, fields{"continue": next + next})
			check("none of ours", "acme", op, fields{"continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"})
		})
		examined++
	}
	t.Logf("examined %d lists: %d uses refused", examined, refused)
}

// TestExpiredContinueToken pages through events, which the API server reads
// from etcd itself, and has etcd forget the list's revision in between: the next
// page is a 410.
func TestExpiredContinueToken(t *testing.T) {
	s := theStack(t)
	ns, op := s.populated(t, 2), opsByToken(t)[plane.WorkloadsListEvents]
	in := fields{"cluster": "prod", "namespace": ns, "limit": 1}
	_, next := s.page(t, op, in)
	in["continue"] = next
	if _, again := s.page(t, op, in); again == "" {
		t.Fatal("the second page is the last")
	}
	must(t, s.alpha(), http.MethodPost, "/api/v1/namespaces/"+ns+"/events", `{"metadata":{"name":"later"},"involvedObject":{"namespace":"`+ns+`"}}`)
	if err := s.alpha().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := s.ask("acme", op, in); r.status != http.StatusGone || r.code != "expired" || r.object()["events"] != nil {
		t.Errorf("an expired token: %s", r)
	}
	delete(in, "continue")
	s.page(t, op, in)
}

// TestListThatExpiresInTheMiddle lists without a limit from a cluster that
// forgets the list after its first page: that is a 410, and not the first page.
func TestListThatExpiresInTheMiddle(t *testing.T) {
	s := theStack(t)
	cluster := misbehave.New()
	t.Cleanup(cluster.Close)
	s.register(t, "forgetful", cluster.Kubeconfig("SENTINEL"))
	gone := misbehave.Status(http.StatusGone, "Expired", "The provided continue parameter is too old", -1)
	one := misbehave.Pages("AppList", "hanzo.ai/v1", func(string) ([]string, string) {
		return []string{`{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"namespace":"a","name":"shop","resourceVersion":"1"}}`}, "more"
	})
	cluster.On("/apis/hanzo.ai/v1/apps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") != "" {
			gone(w, r)
			return
		}
		one(w, r)
	})
	op := opsByToken(t)[plane.ResourcesList]
	for _, limit := range []int{0, 1, 2} {
		in := fields{"cluster": "forgetful", "kind": "App", "limit": limit}
		r := s.ask("acme", op, in)
		if limit == 1 {
			if r.status != http.StatusOK {
				t.Fatalf("the first page: %s", r)
			}
			in["continue"] = r.object()["continue"]
			r = s.ask("acme", op, in)
		}
		if r.status != http.StatusGone || r.code != "expired" || strings.Contains(string(r.body), "shop") {
			t.Errorf("limit %d: %s", limit, r)
		}
	}
}
