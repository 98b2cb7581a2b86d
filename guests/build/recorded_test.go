package build

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const recordedPods = `# three documents, in three shapes
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: web, labels: {app: shop}}
spec: {nodeName: node-1}
---
{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a", "namespace": "web"}}, {"metadata": {"name": "c", "namespace": "db"}, "spec": {"nodeName": "node-1"}}]}
---
apiVersion: v1
kind: List
items:
- {apiVersion: hanzo.ai/v1, kind: App, metadata: {name: shop, namespace: web}, spec: {any: [1, {thing: true}]}}
- {apiVersion: metrics.k8s.io/v1beta1, kind: PodMetrics, metadata: {name: a, namespace: web}}
---
`

func recording(t *testing.T, text string) *Recorded {
	t.Helper()
	r, err := Record([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// page is what a JSON list answers.
type page struct {
	Kind     string
	Metadata struct{ Continue string }
	Reason   string
	Items    []struct {
		Metadata struct{ Name, Namespace string }
	}
}

func (p page) names() (names []string) {
	for _, item := range p.Items {
		names = append(names, item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	return names
}

func read(t *testing.T, r http.Handler, method, target string) (int, page) {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	var p page
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%s: %v: %q", target, err, w.Body)
	}
	return w.Code, p
}

func TestRecordedIsRead(t *testing.T) {
	r := recording(t, recordedPods)
	for _, tt := range []struct {
		target string
		kind   string
		want   []string
	}{
		{"/api/v1/pods", "PodList", []string{"db/c", "web/a", "web/b"}},
		{"/api/v1/namespaces/web/pods", "PodList", []string{"web/a", "web/b"}},
		{"/api/v1/namespaces/none/pods", "PodList", nil},
		{"/api/v1/pods?labelSelector=app%3Dshop", "PodList", []string{"web/b"}},
		{"/api/v1/pods?labelSelector=app%21%3Dshop", "PodList", []string{"db/c", "web/a"}},
		{"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1", "PodList", []string{"db/c", "web/b"}},
		{"/api/v1/pods?fieldSelector=metadata.namespace%3Dweb,spec.nodeName%21%3Dnode-1", "PodList", []string{"web/a"}},
		{"/api/v1/nodes", "NodeList", nil},
		{"/apis/hanzo.ai/v1/namespaces/web/apps", "AppList", []string{"web/shop"}},
		{"/apis/metrics.k8s.io/v1beta1/pods", "PodMetricsList", []string{"web/a"}},
	} {
		if code, p := read(t, r, http.MethodGet, tt.target); code != http.StatusOK || p.Kind != tt.kind || !cmp.Equal(p.names(), tt.want) {
			t.Errorf("%s: %d %s %v, want %v", tt.target, code, p.Kind, p.names(), tt.want)
		}
	}
	var all []string
	next, pages := "", 0
	for ; pages == 0 || next != ""; pages++ {
		_, p := read(t, r, http.MethodGet, "/api/v1/pods?limit=2&continue="+next)
		all, next = append(all, p.names()...), p.Metadata.Continue
	}
	if want := []string{"db/c", "web/a", "web/b"}; pages != 2 || !cmp.Equal(all, want) {
		t.Errorf("in pages of two: %v in %d", all, pages)
	}
	for _, tt := range []struct {
		method, target string
		code           int
		reason         string
	}{
		{http.MethodGet, "/api/v1/namespaces/web/pods/c", 404, "NotFound"},
		{http.MethodGet, "/api/v1/namespaces/web/pods/a/log", 404, "NotFound"},
		{http.MethodGet, "/apis/hanzo.ai/v1/datastores", 404, "NotFound"},
		{http.MethodGet, "/api/v1", 404, "NotFound"},
		{http.MethodGet, "/", 404, "NotFound"},
		{http.MethodGet, "/api/v1/pods?labelSelector=%3D", 400, "BadRequest"},
		{http.MethodGet, "/api/v1/pods?fieldSelector=a", 400, "BadRequest"},
		{http.MethodDelete, "/api/v1/namespaces/web/pods/a", 405, "MethodNotAllowed"},
	} {
		if code, p := read(t, r, tt.method, tt.target); code != tt.code || p.Kind != "Status" || p.Reason != tt.reason {
			t.Errorf("%s %s: %d %+v, want %d %s", tt.method, tt.target, code, p, tt.code, tt.reason)
		}
	}
}

func TestRecordRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no objects",
		"kind: List\napiVersion: v1":     "metadata.name",
		"kind: Pod\nmetadata: {name: a}": "apiVersion",
		"apiVersion: v1\nkind: Pod":      "metadata.name",
		"- a":                            "no object",
		"{":                              "yaml",
		"apiVersion: v1\nkind: PodList\nitems: [1]":                                         "items[0] is no object",
		"apiVersion: v1\nkind: PodList\nitems: []":                                          "no objects",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: 1":                           "Pod.spec is no object",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: {}}":            "Pod.spec.containers is no list",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: 1}]}":  "Pod.spec.containers[0].image: 1 is no text",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1.5}": "Deployment.spec.replicas: 1.5 is no whole number",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, creationTimestamp: today}":          "Pod.metadata.creationTimestamp: today is no time",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {b: true}}":                 "Pod.metadata.labels.b: true is no text",
	} {
		if _, err := Record([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestRecordedTellsWhatIsLeftOut: a field that the table lacks would be missing
// from what a guest sees, and whoever wrote it must hear that.
func TestRecordedTellsWhatIsLeftOut(t *testing.T) {
	r := recording(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a, namespace: b}
spec:
  madeUp: 1
  volumeClaimTemplates: [{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {}}]
  template: {spec: {volumes: [{name: v, emptyDir: {}, tape: {}}]}}
`)
	want := []string{"StatefulSet.spec.madeUp", "StatefulSet.spec.template.spec.volumes[0].tape"}
	if diff := cmp.Diff(want, r.Left); diff != "" {
		t.Error(diff)
	}
}

// TestRecordedIsServed: whoever has not the kubeconfig reads nothing.
func TestRecordedIsServed(t *testing.T) {
	kubeconfig, stop, err := recording(t, recordedPods).Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	server := regexp.MustCompile(`https://[0-9.:]+`).FindString(string(kubeconfig))
	token := regexp.MustCompile(`token: (\w+)`).FindStringSubmatch(string(kubeconfig))[1]
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for header, want := range map[string]int{"Bearer " + token: 200, "Bearer x": 401, "": 401} {
		q, err := http.NewRequest(http.MethodGet, server+"/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", header)
		resp, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || (want != 200) != !strings.Contains(string(text), "PodList") {
			t.Errorf("%q: %d %s %v, want %d", header, resp.StatusCode, text, err, want)
		}
	}
}
