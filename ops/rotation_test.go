package ops_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// Where the objects of these tests are.
const (
	labApps = "/apis/hanzo.ai/v1/apps"
	teamA   = "/apis/hanzo.ai/v1/namespaces/team-a/apps"
)

// apps is a page of a list of Apps, continued where next is not "".
func apps(next string, names ...string) misbehave.Behaviour {
	items := make([]string, len(names))
	for i, name := range names {
		items[i] = app(name, "1")
	}
	return misbehave.JSON(fmt.Sprintf(`{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"7","continue":%q},"items":[%s]}`,
		next, strings.Join(items, ",")))
}

func app(name, spec string) string {
	return fmt.Sprintf(`{"kind":"App","apiVersion":"hanzo.ai/v1","metadata":{"namespace":"team-a","name":%q,"resourceVersion":"8"},"spec":%s}`, name, spec)
}

// firstThen answers the first page of a list with one behaviour and those after it
// with another.
func firstThen(first, then misbehave.Behaviour) misbehave.Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") == "" {
			first(w, r)
			return
		}
		then(w, r)
	}
}

// reading answers a GET with one behaviour and what else comes with another.
func reading(get, other misbehave.Behaviour) misbehave.Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			get(w, r)
			return
		}
		other(w, r)
	}
}

// protobuf answers with an object as the API server's own kinds are.
func protobuf(status int, kind string, object interface{ Marshal() ([]byte, error) }) misbehave.Behaviour {
	raw, err := object.Marshal()
	if err != nil {
		panic(err)
	}
	text, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		panic(err)
	}
	return misbehave.Body(status, "application/vnd.kubernetes.protobuf", "k8s\x00"+string(text))
}

// TestRotationDuringACall: a credential that is rotated while a call runs costs a
// read nothing, and a write an answer that says to come again; only one whose
// registration is gone is told so. Nothing is asked with the old credential once
// the rotation has been answered.
func TestRotationDuringACall(t *testing.T) {
	s := alone(t, registry.NewMemory())
	created := protobuf(http.StatusCreated, "Namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	list := "/v1/k8s/resources?cluster=lab&kind=App"
	for _, test := range []struct {
		name         string
		prefix       string // of what is rotated under, once it is asked for
		old, renewed misbehave.Behaviour
		method       string
		target       string
		body         any
		bound        []string
		status       int
		want         string         // a part of the answer
		asked        map[string]int // requests under prefix, by method and credential
	}{
		{
			name: "a list", prefix: labApps, old: misbehave.Stall(), renewed: apps("", "a"),
			target: list, status: 200, want: `"name":"a"`,
			asked: map[string]int{"GET old": 1, "GET new": 1},
		},
		{
			name: "a list of which a page has come", prefix: labApps, old: firstThen(apps("more", "a", "b"), misbehave.Stall()), renewed: apps("", "c"),
			target: list, status: 200, want: `{"resources":[{"kind":"App","namespace":"team-a","name":"c","spec":1,"version":"8"}],"version":"7"}`,
			asked: map[string]int{"GET old": 2, "GET new": 1},
		},
		{
			name: "an answer that is being read", prefix: labApps, old: misbehave.StallAfter(20, `{"kind":"AppList","apiVersion":"hanzo.ai/v1"}`), renewed: apps("", "a"),
			target: list, status: 200, want: `"name":"a"`,
			asked: map[string]int{"GET old": 1, "GET new": 1},
		},
		{
			name: "a guest that makes something of it", prefix: "/version", old: misbehave.Stall(), renewed: misbehave.Healthy(),
			target: "/v1/k8s/clusters/lab/status", status: 200, want: `"connected":true`,
			asked: map[string]int{"GET old": 1, "GET new": 1},
		},
		{
			name: "a review, which is a POST that changes nothing", prefix: "/apis/authorization.k8s.io", old: misbehave.Stall(), renewed: misbehave.Healthy(),
			method: http.MethodPost, target: "/v1/k8s/access/can", body: fields{"cluster": "lab", "verb": "get", "group": "", "resource": "pods"},
			status: 200, want: `"allowed":true`,
			asked: map[string]int{"POST old": 1, "POST new": 1},
		},
		{
			name: "a bound that the new registration narrows", prefix: teamA, old: misbehave.Stall(), renewed: apps("", "a"), bound: []string{"team-b"},
			target: list + "&namespace=team-a", status: 403, want: `"code":"outside_bound"`,
			asked: map[string]int{"GET old": 1},
		},
		{
			name: "a write that has been sent", prefix: teamA, old: reading(misbehave.JSON(app("a", "1")), misbehave.Stall()), renewed: misbehave.JSON(app("a", "1")),
			method: http.MethodPut, target: "/v1/k8s/resources", body: fields{"cluster": "lab", "kind": "App", "namespace": "team-a", "name": "a", "spec": fields{"x": 1}},
			status: 503, want: `"code":"rotated"`,
			asked: map[string]int{"GET old": 1, "PATCH old": 1},
		},
		{
			name: "a write that has not been sent", prefix: "/api/v1/namespaces",
			old: misbehave.Stall(), renewed: reading(misbehave.Healthy(), created),
			method: http.MethodPost, target: "/v1/k8s/namespaces", body: fields{"cluster": "lab", "namespace": "web"},
			status: 200, want: `"created":true`,
			asked: map[string]int{"GET old": 1, "GET new": 1, "POST new": 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			lab := misbehave.New()
			t.Cleanup(lab.Close)
			org := anOrg()
			s.enrol(t, org, "lab", lab.Kubeconfig("old"))
			lab.On(test.prefix, test.old)
			if test.method == "" {
				test.method = http.MethodGet
			}
			end := s.background(org, test.method, test.target, test.body)
			until(t, "the request that is cut off", func() bool {
				return lab.Live(test.prefix) > 0 && len(lab.Requests()) > test.asked["GET old"]+test.asked["POST old"]+test.asked["PATCH old"]
			})
			lab.On(test.prefix, test.renewed)
			renewal := fields{"name": "lab", "kubeconfig": string(lab.Kubeconfig("new"))}
			if test.bound != nil {
				renewal["namespaces"] = test.bound
			}
			if status, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", renewal); status != http.StatusCreated {
				t.Fatalf("rotating: %d %s", status, text)
			}
			got := <-end
			if got.status != test.status || !strings.Contains(string(got.body), test.want) {
				t.Errorf("got %s, want %d with %s", got, test.status, test.want)
			}
			asked := map[string]int{}
			for _, r := range lab.Requests() {
				if strings.HasPrefix(r.Path, test.prefix) && r.Path != "/api/v1/namespaces/team-b/pods" {
					asked[r.Method+" "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]++
				}
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("requests (-want +got)\n%s", diff)
			}
		})
	}
}

// asked says whether the server has been asked for what is under prefix with a
// credential.
func asked(lab *misbehave.Server, prefix, token string) func() bool {
	return func() bool {
		return slices.ContainsFunc(lab.Requests(), func(r misbehave.Recorded) bool {
			return strings.HasPrefix(r.Path, prefix) && r.Header.Get("Authorization") == "Bearer "+token
		})
	}
}

// TestRotatedOften: a call is made anew once, and is then told to come again.
func TestRotatedOften(t *testing.T) {
	s := alone(t, registry.NewMemory())
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	lab.On(labApps, misbehave.Stall())
	org := anOrg()
	s.enrol(t, org, "lab", lab.Kubeconfig("first"))
	answer := make(chan *http.Response, 1)
	go func() {
		r, _ := http.NewRequest(http.MethodGet, s.url+"/v1/k8s/resources?cluster=lab&kind=App", nil)
		r.Header.Set("X-Org-Id", org)
		r.Header.Set("X-User-Id", "u1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
		}
		answer <- resp
	}()
	until(t, "the call", asked(lab, labApps, "first"))
	s.enrol(t, org, "lab", lab.Kubeconfig("second"))
	until(t, "the call made anew", asked(lab, labApps, "second"))
	s.enrol(t, org, "lab", lab.Kubeconfig("third"))
	resp := <-answer
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || codeOf(text) != "rotated" || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %s, Retry-After %q", resp.StatusCode, text, resp.Header.Get("Retry-After"))
	}
	if strings.Contains(string(text), "second") {
		t.Errorf("the answer holds the credential: %s", text)
	}
}

// TestRotationUnderAStreamedAnswer: what has left cannot be taken back, so the
// answer is cut, and nobody takes it for a whole one.
func TestRotationUnderAStreamedAnswer(t *testing.T) {
	s := alone(t, registry.NewMemory())
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	big := make([]string, 6000)
	for i := range big {
		big[i] = app(fmt.Sprintf("a%04d", i), `{"x":"`+strings.Repeat("x", 1<<10)+`"}`)
	}
	first := misbehave.JSON(`{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"7","continue":"more"},"items":[` + strings.Join(big, ",") + `]}`)
	lab.On(labApps, firstThen(first, misbehave.Stall()))
	org := anOrg()
	s.enrol(t, org, "lab", lab.Kubeconfig("old"))
	r, _ := http.NewRequest(http.MethodGet, s.url+"/v1/k8s/resources?cluster=lab&kind=App", nil)
	r.Header.Set("X-Org-Id", org)
	r.Header.Set("X-User-Id", "u1")
	resp, err := http.DefaultClient.Do(r) // its head comes when more than is held back has
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s", resp.Status, text)
	}
	s.enrol(t, org, "lab", lab.Kubeconfig("new"))
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		t.Errorf("%d bytes pass for a whole answer", len(text))
	}
	for _, r := range lab.Requests() {
		if r.Path == labApps && r.Header.Get("Authorization") != "Bearer old" {
			t.Error("the call was made anew")
		}
	}
}

// TestWatchGoesOnAfterARotation: it sees what changes after, and lasts as long
// as it was asked to.
func TestWatchGoesOnAfterARotation(t *testing.T) {
	s := alone(t, registry.NewMemory())
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	for name, test := range map[string]struct {
		renewed misbehave.Behaviour
		want    string
		took    time.Duration
	}{
		"a change":  {misbehave.WatchOpen(misbehave.Event("MODIFIED", app("a", "1"))), `"name":"a"`, time.Second},
		"no change": {misbehave.WatchOpen(), `"version":"7"`, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			org := anOrg()
			lab.On(labApps, misbehave.WatchOpen())
			s.enrol(t, org, "lab", lab.Kubeconfig("old"))
			began := time.Now()
			end := s.background(org, http.MethodGet, "/v1/k8s/resources/watch?cluster=lab&kind=App&waitSeconds=3&version=7", nil)
			time.Sleep(time.Second)
			until(t, "the watch", func() bool { return lab.Live(labApps) > 0 })
			lab.On(labApps, test.renewed)
			s.enrol(t, org, "lab", lab.Kubeconfig("new"))
			got := <-end
			if got.status != http.StatusOK || !strings.Contains(string(got.body), test.want) {
				t.Errorf("%s", got)
			}
			if took := got.at.Sub(began); took < test.took || took > test.took+1500*time.Millisecond {
				t.Errorf("it took %s, want %s", took, test.took)
			}
		})
	}
}

// TestCallOfAClusterThatGoes: without a registration there is nothing to go on
// with.
func TestCallOfAClusterThatGoes(t *testing.T) {
	s := alone(t, registry.NewMemory())
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	lab.On(labApps, misbehave.Stall())
	org := anOrg()
	s.enrol(t, org, "lab", lab.Kubeconfig("old"))
	end := s.background(org, http.MethodGet, "/v1/k8s/resources?cluster=lab&kind=App", nil)
	until(t, "the call", func() bool { return lab.Live(labApps) > 0 })
	s.dismiss(t, org, "lab")
	expectEnd(t, "a read", end, time.Now())
}

// TestRotatedIsDocumented: the code is one that a caller finds in the document.
func TestRotatedIsDocumented(t *testing.T) {
	for _, c := range ops.Codes {
		if c.Code == "rotated" && c.Status == http.StatusServiceUnavailable {
			return
		}
	}
	t.Error("rotated is not in the table of codes")
}
