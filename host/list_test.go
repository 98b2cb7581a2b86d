package host

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/host/manifest"
)

var pageFields = []manifest.Field{{Name: "limit", Kind: manifest.Integer}, {Name: "continue", Kind: manifest.String}}

func TestListIsWholeAndInOrder(t *testing.T) {
	s := newPodServer(map[string]int{"a": 1203, "b": 0, "c": 7})
	var want []string
	for _, p := range s.pods {
		want = append(want, p.Namespace+"/"+p.Name)
	}
	for _, test := range []struct {
		name       string
		namespaces []string
		want       []string
		version    string
	}{
		{"whole", nil, want, `{"version":"70"}`},
		{"bounded", []string{"c", "missing", "a", "b"}, want, `{"version":"` + joinVersions([]string{"a", "b", "c", "missing"}, []string{"71", "71", "71", "77"}) + `"}`},
		{"bounded to one", []string{"c"}, want[1203:], `{"version":"71"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := world{serve: s.ServeHTTP, namespaces: test.namespaces}.guest(t)
			items, trailer, code := g.do("list", `{"resource":"v1/pods"}`)
			if diff := cmp.Diff(test.want, names(items)); diff != "" || code != "" || trailer != test.version {
				t.Errorf("code %q trailer %s (want %s)\n%s", code, trailer, test.version, diff)
			}
			if got := g.c.meter.used.items.Load(); got != int64(len(test.want)) {
				t.Errorf("%d items were metered, %d delivered", got, len(test.want))
			}
		})
	}
}

func TestListCarriesSelectors(t *testing.T) {
	s := newPodServer(map[string]int{"a": 1})
	g := world{serve: s.ServeHTTP}.guest(t)
	g.do("list", `{"resource":"v1/pods","namespace":"a","labelSelector":"app in (x,y)&limit=1","fieldSelector":"spec.nodeName=n"}`)
	want := []string{"/api/v1/namespaces/a/pods?fieldSelector=spec.nodeName%3Dn&labelSelector=app+in+%28x%2Cy%29%26limit%3D1"}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Error(diff)
	}
}

// pageThrough lists with a limit until there is no continue.
func pageThrough(t *testing.T, w world, limit int) (pages [][]string, trailer string) {
	t.Helper()
	w.op.In = pageFields
	token := ""
	for range 10_000 {
		w.input = fmt.Sprintf(`{"limit":%d,"continue":%q}`, limit, token)
		g := w.guest(t)
		items, end, code := g.do("list", `{"resource":"v1/pods"}`)
		if code != "" {
			t.Fatalf("page %d: %s", len(pages), code)
		}
		if r := g.c.outcome(0); r != nil {
			t.Fatal(r)
		}
		pages, trailer = append(pages, names(items)), end
		if token = g.answer.next; token == "" {
			return pages, trailer
		}
	}
	t.Fatal("the pages do not end")
	return nil, ""
}

func TestPagingIsExact(t *testing.T) {
	small := map[string]int{"a": 5, "b": 0, "c": 1, "d": 13, "e": 3}
	large := map[string]int{"a": 5, "b": 0, "c": 1, "d": 1300, "e": 3}
	bound := []string{"a", "b", "c", "d", "e"}
	for _, ignores := range []bool{false, true} {
		for _, namespaces := range [][]string{nil, bound} {
			for _, limit := range []int{1, 2, 3, 5, 6, 22, 499, 500, 501, 1309, 1310} {
				sizes := small
				if limit > 22 {
					sizes = large
				}
				t.Run(fmt.Sprintf("ignores=%v/bound=%d/limit=%d", ignores, len(namespaces), limit), func(t *testing.T) {
					s := newPodServer(sizes)
					s.ignores = ignores
					var want []string
					for _, p := range s.pods {
						want = append(want, p.Namespace+"/"+p.Name)
					}
					pages, trailer := pageThrough(t, world{serve: s.ServeHTTP, namespaces: namespaces}, limit)
					var got []string
					for i, p := range pages {
						if i < len(pages)-1 && len(p) != limit || len(p) > limit {
							t.Errorf("page %d of %d has %d items, limit %d", i, len(pages), len(p), limit)
						}
						got = append(got, p...)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("lost or repeated:\n%s", diff)
					}
					wantTrailer := `{"version":"70"}`
					if namespaces != nil {
						wantTrailer = `{"version":"` + joinVersions(namespaces, []string{"71", "71", "71", "71", "71"}) + `"}`
					}
					if trailer != wantTrailer {
						t.Errorf("the last page's trailer is %s", trailer)
					}
				})
			}
		}
	}
}

func TestCursorIsBound(t *testing.T) {
	s := newPodServer(map[string]int{"a": 5, "b": 5})
	base := world{serve: s.ServeHTTP, org: "acme", cluster: "prod", credential: "key", input: `{"limit":2}`}
	base.op.In = pageFields
	request := `{"resource":"v1/pods","labelSelector":"x=y"}`
	g := base.guest(t)
	g.do("list", request)
	g.c.outcome(0)
	token := g.answer.next
	if token == "" {
		t.Fatal("no token")
	}
	base.input = fmt.Sprintf(`{"limit":3,"continue":%q}`, token)
	for _, test := range []struct {
		name    string
		change  func(*world)
		request string
		code    string
	}{
		{"the same, another limit", func(*world) {}, request, ""},
		{"org", func(w *world) { w.org = "zoo" }, request, "bad_continue"},
		{"cluster", func(w *world) { w.cluster = "test" }, request, "bad_continue"},
		{"credential", func(w *world) { w.credential = "rotated" }, request, "bad_continue"},
		{"op", func(w *world) { w.op.Token = "k8s_other_list" }, request, "bad_continue"},
		{"label selector", func(*world) {}, `{"resource":"v1/pods","labelSelector":"x=z"}`, "bad_continue"},
		{"field selector", func(*world) {}, `{"resource":"v1/pods","labelSelector":"x=y","fieldSelector":"a=b"}`, "bad_continue"},
		{"namespace", func(*world) {}, `{"resource":"v1/pods","labelSelector":"x=y","namespace":"a"}`, "bad_continue"},
		{"resource", func(*world) {}, `{"resource":"v1/nodes","labelSelector":"x=y"}`, "bad_continue"},
		{"kind", func(*world) {}, `{"kind":"App","labelSelector":"x=y"}`, "bad_continue"},
		{"another bound", func(w *world) { w.namespaces = []string{"a", "b", "c"} }, request, "bad_continue"},
		{"namespace gone from the bound", func(w *world) { w.namespaces = []string{"b"} }, request, "bad_continue"},
		{"tampered", func(w *world) { w.input = strings.Replace(w.input, token, token[:9]+string(token[9]^1)+token[10:], 1) }, request, "bad_continue"},
		{"cut", func(w *world) { w.input = strings.Replace(w.input, token, token[:len(token)-4], 1) }, request, "bad_continue"},
		{"made up", func(w *world) { w.input = `{"continue":"bm90IGEgdG9rZW4"}` }, request, "bad_continue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := base
			test.change(&w)
			items, _, code := w.guest(t).do("list", test.request)
			if code != test.code || code == "" && len(items) != 3 {
				t.Errorf("code %q, %d items", code, len(items))
			}
		})
	}
}

func TestOnlyTheFirstListIsPaged(t *testing.T) {
	s := newPodServer(map[string]int{"a": 9})
	w := world{serve: s.ServeHTTP, input: `{"limit":2}`}
	w.op.In = pageFields
	g := w.guest(t)
	first, _, _ := g.do("list", `{"resource":"v1/pods"}`)
	second, _, _ := g.do("list", `{"resource":"v1/pods"}`)
	if len(first) != 2 || len(second) != 9 {
		t.Errorf("first %d, second %d", len(first), len(second))
	}
}

func TestNamespacesOfABound(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		ns, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
		if !ok {
			t.Errorf("asked for %s", r.URL)
		}
		if ns == "gone" {
			status(w, 404, metav1.Status{Reason: "NotFound", Details: &metav1.StatusDetails{Name: ns, Kind: "namespaces"}})
			return
		}
		write(w, "application/vnd.kubernetes.protobuf", protobuf("v1", "Namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	bound := []string{"c", "gone", "a", "b"}
	for limit, want := range map[int][][]string{
		0: {{"/a", "/b", "/c"}},
		1: {{"/a"}, {"/b"}, {"/c"}, nil},
		2: {{"/a", "/b"}, {"/c"}},
		3: {{"/a", "/b", "/c"}, nil},
	} {
		var got [][]string
		token := ""
		for range 9 {
			w := world{serve: serve, namespaces: bound, input: fmt.Sprintf(`{"limit":%d,"continue":%q}`, limit, token)}
			w.op.In = pageFields
			g := w.guest(t)
			items, _, code := g.do("list", `{"resource":"v1/namespaces"}`)
			if code != "" {
				t.Fatal(code)
			}
			g.c.outcome(0)
			got = append(got, names(items))
			if token = g.answer.next; token == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d:\n%s", limit, diff)
		}
	}
	if _, _, code := (world{namespaces: bound}).guest(t).do("list", `{"resource":"v1/namespaces","labelSelector":"a=b"}`); code != "bad_input" {
		t.Errorf("a selector: %q", code)
	}
}

// TestHugeObjects lists objects that do not fit into one page of the usual
// number: in pages fewer are asked for, none is lost, and no page is larger than
// the cap; of a whole list there is no page.
func TestHugeObjects(t *testing.T) {
	const total, size = 120, 400 << 10
	object := strings.Repeat("x", size)
	asked := make(chan int, 1000)
	serve := func(w http.ResponseWriter, r *http.Request) {
		var from, limit int
		fmt.Sscan(r.URL.Query().Get("continue"), &from)
		fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		asked <- limit
		var b strings.Builder
		if limit == 0 {
			limit = total
		}
		to, next := min(total, from+limit), ""
		if to < total {
			next = fmt.Sprint(to)
		}
		fmt.Fprintf(&b, `{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"continue":%q},"items":[`, next)
		for i := from; i < to; i++ {
			if i > from {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"n":%d,"x":%q}`, i, object)
		}
		b.WriteString("]}")
		write(w, "application/json", []byte(b.String()))
	}
	check := func(items []string, code string) {
		t.Helper()
		if code != "" || len(items) != total {
			t.Fatalf("code %q, %d items", code, len(items))
		}
		for i, item := range items {
			if want := fmt.Sprintf(`{"n":%d,`, i); !strings.HasPrefix(item, want) || len(item) < size {
				t.Errorf("item %d is %.20s", i, item)
			}
		}
	}
	items, _, code := world{serve: serve}.guest(t).do("list", listApps)
	check(items, code)
	w := world{serve: serve, input: fmt.Sprintf(`{"limit":%d}`, total)}
	w.op.In = pageFields
	items, _, code = w.guest(t).do("list", listApps)
	check(items, code)
	close(asked)
	var limits []int
	for n := range asked {
		limits = append(limits, n)
	}
	if diff := cmp.Diff([]int{0, 120, 15, 16, 16, 16, 16, 16, 16, 9}, limits); diff != "" {
		t.Error(diff)
	}
}

// TestRequestsAreNotedTogether: what is kept of a call's requests, for its audit
// line, does not grow with them.
func TestRequestsAreNotedTogether(t *testing.T) {
	const requests = 1000
	var asked atomic.Int32
	g := world{serve: func(w http.ResponseWriter, _ *http.Request) {
		page := int(asked.Add(1))
		if page == requests {
			status(w, 410, metav1.Status{Reason: "Expired"})
			return
		}
		write(w, "application/vnd.kubernetes.protobuf", page1(strconv.Itoa(page)))
	}}.guest(t)
	if _, _, code := g.do("list", listPods); code != "expired" {
		t.Fatal(code)
	}
	noted := g.c.in.Stats.Calls
	if len(noted) != 2 || noted[0].Bytes == 0 || noted[1].Bytes == 0 {
		t.Fatalf("noted %+v", noted)
	}
	noted[0].Bytes, noted[1].Bytes = 0, 0
	want := []HostCall{{"list", "v1/pods", 200, requests - 1, 0}, {"list", "v1/pods", 410, 1, 0}}
	if diff := cmp.Diff(want, noted); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
