package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// echo notes a request and answers it.
func echo(t *testing.T, want *string, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*want = fmt.Sprintf("%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), b)
		answer(w, r)
	}
}

func proto(kind string, m interface{ Marshal() ([]byte, error) }) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		write(w, "application/vnd.kubernetes.protobuf", protobuf("v1", kind, m))
	}
}

func refusing(code int, st metav1.Status) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { status(w, code, st) }
}

func TestWhatIsSent(t *testing.T) {
	app := answer(200, "application/json", `{"kind":"App","apiVersion":"hanzo.ai/v1","metadata":{"name":"p"}}`)
	review := answer(201, "application/json", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{},"status":{"allowed":false,"evaluationError":"webhook timeout"}}`)
	for _, test := range []struct {
		function, request string
		answer            http.HandlerFunc
		sent              string
		items             []string // nil: not compared
	}{
		{"get", getPod, proto("Pod", &corev1.Pod{}), "GET /api/v1/namespaces/a/pods/p  ", nil},
		{"get", getApp, app, "GET /apis/hanzo.ai/v1/namespaces/a/apps/p  ", []string{`{"kind":"App","apiVersion":"hanzo.ai/v1","metadata":{"name":"p"}}`}},
		{"get", `{"resource":"v1/namespaces","name":"a"}`, proto("Namespace", &corev1.Namespace{}), "GET /api/v1/namespaces/a  ", nil},
		{"get", `{"resource":"v1/pods","namespace":"a","name":"exec"}`, proto("Pod", &corev1.Pod{}), "GET /api/v1/namespaces/a/pods/exec  ", nil},
		{"version", ``, answer(200, "application/json", `{"gitVersion":"v1.36.3"}`), "GET /version  ", []string{`{"gitVersion":"v1.36.3"}`}},
		{"can", `{"verb":"list","group":"apps","resource":"deployments/scale","namespace":"a"}`, review,
			`POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews application/json {"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"list","group":"apps","resource":"deployments","subresource":"scale","namespace":"a"}}}`,
			[]string{`{"allowed":false,"evaluationError":"webhook timeout"}`}},
		{"create", `{"resource":"v1/pods","namespace":"a","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"}}}`, proto("Pod", &corev1.Pod{}),
			`POST /api/v1/namespaces/a/pods?fieldManager=hanzo-cloud&fieldValidation=Strict application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"}}`, nil},
		{"create", `{"resource":"v1/namespaces","object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}}`, proto("Namespace", &corev1.Namespace{}),
			`POST /api/v1/namespaces?fieldManager=hanzo-cloud&fieldValidation=Strict application/json {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`, nil},
		{"apply", `{"kind":"App","namespace":"a","name":"p","object":{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"},"spec":{"n":9007199254740993}}}`, app,
			`PATCH /apis/hanzo.ai/v1/namespaces/a/apps/p?fieldManager=hanzo-cloud&fieldValidation=Strict application/apply-patch+yaml {"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"},"spec":{"n":9007199254740993}}`, nil},
		{"delete", getApp, answer(200, "application/json", `{}`),
			`DELETE /apis/hanzo.ai/v1/namespaces/a/apps/p application/json {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}`, []string{`{"removed":true}`}},
		{"delete", `{"kind":"App","namespace":"a","name":"p","uid":"0b7c5f1e-2f6d"}`, answer(200, "application/json", `{}`),
			`DELETE /apis/hanzo.ai/v1/namespaces/a/apps/p application/json {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background","preconditions":{"uid":"0b7c5f1e-2f6d"}}`, []string{`{"removed":true}`}},
		{"evict", `{"namespace":"a","pod":"p","uid":"0b7c5f1e"}`, answer(201, "application/json", `{}`),
			`POST /api/v1/namespaces/a/pods/p/eviction application/json {"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"a","name":"p"},"deleteOptions":{"preconditions":{"uid":"0b7c5f1e"}}}`, []string{`{"status":201}`}},
		{"cordon", `{"node":"n1.example.com","schedulable":false}`, proto("Node", &corev1.Node{}),
			`PATCH /api/v1/nodes/n1.example.com?fieldManager=hanzo-cloud application/merge-patch+json {"spec":{"unschedulable":true}}`, nil},
		{"cordon", `{"node":"n1","schedulable":true}`, proto("Node", &corev1.Node{}),
			`PATCH /api/v1/nodes/n1?fieldManager=hanzo-cloud application/merge-patch+json {"spec":{"unschedulable":null}}`, nil},
		{"expand", `{"namespace":"a","name":"c","storage":"20Gi","version":"77"}`, proto("PersistentVolumeClaim", &corev1.PersistentVolumeClaim{}),
			`PATCH /api/v1/namespaces/a/persistentvolumeclaims/c?fieldManager=hanzo-cloud application/merge-patch+json {"metadata":{"resourceVersion":"77"},"spec":{"resources":{"requests":{"storage":"20Gi"}}}}`, nil},
		{"logs", `{"namespace":"a","pod":"run","container":"c","tailLines":7}`, answer(200, "text/plain", "hello"),
			"GET /api/v1/namespaces/a/pods/run/log?container=c&tailLines=7  ", []string{"hello"}},
	} {
		t.Run(test.function, func(t *testing.T) {
			var sent string
			request := test.request
			if request == "" {
				request = "{}"
			}
			items, _, code := world{serve: echo(t, &sent, test.answer)}.guest(t).do(test.function, request)
			if code != "" || len(items) != 1 || sent != test.sent {
				t.Errorf("code %q, %d items\nsent %s\nwant %s", code, len(items), sent, test.sent)
			}
			if test.items != nil {
				if diff := cmp.Diff(test.items, items); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestRefusedBeforeTheDial is everything that no cluster may ever see.
func TestRefusedBeforeTheDial(t *testing.T) {
	bound := []string{"a", "b"}
	pod := func(metadata, more string) string {
		return `{"resource":"v1/pods","namespace":"a","object":{"apiVersion":"v1","kind":"Pod","metadata":` + metadata + more + `}}`
	}
	apply := func(name, object string) string {
		return `{"kind":"App","namespace":"a","name":"` + name + `","object":` + object + `}`
	}
	for _, test := range []struct {
		name, function, request string
		bound                   []string
		code                    string
	}{
		{"grant before bound", "get", `{"resource":"v1/services","namespace":"zoo","name":"p"}`, bound, "not_granted"},
		{"grant before kind", "list", `{"kind":"Nope"}`, nil, "kind_not_allowed"},
		{"verb not granted", "delete", `{"resource":"v1/nodes","name":"n"}`, nil, "not_granted"},
		{"another version", "get", `{"resource":"v2/pods","namespace":"a","name":"p"}`, nil, "not_granted"},
		{"another group", "get", `{"resource":"x/v1/pods","namespace":"a","name":"p"}`, nil, "not_granted"},
		{"secrets, though a manifest grants them", "list", `{"resource":"v1/secrets"}`, nil, "not_granted"},
		{"a secret", "get", `{"resource":"v1/secrets","namespace":"a","name":"s"}`, nil, "not_granted"},
		{"a subresource", "get", `{"resource":"v1/pods/log","namespace":"a","name":"s"}`, nil, "not_granted"},
		{"a subresource of a group", "get", `{"resource":"apps/v1/deployments/scale","namespace":"a","name":"s"}`, nil, "bad_input"},
		{"a path", "get", `{"resource":"../pods","namespace":"a","name":"s"}`, nil, "bad_input"},
		{"both", "get", `{"resource":"v1/pods","kind":"App","namespace":"a","name":"s"}`, nil, "bad_input"},
		{"neither", "get", `{"namespace":"a","name":"s"}`, nil, "bad_input"},

		{"kind Secret", "list", `{"kind":"Secret"}`, nil, "kind_not_allowed"},
		{"kind in lower case", "list", `{"kind":"app"}`, nil, "kind_not_allowed"},
		{"kind in the plural", "list", `{"kind":"apps"}`, nil, "kind_not_allowed"},
		{"kind with a group", "list", `{"kind":"App.hanzo.ai"}`, nil, "kind_not_allowed"},
		{"kind with a space", "list", `{"kind":"App "}`, nil, "kind_not_allowed"},

		{"C5 namespace ..", "get", `{"resource":"v1/pods","namespace":"..","name":"p"}`, nil, "bad_input"},
		{"C5 namespace .", "list", `{"resource":"v1/pods","namespace":"."}`, nil, "bad_input"},
		{"C5 name ../../kube-system/pods/x", "get", `{"resource":"v1/pods","namespace":"a","name":"../../kube-system/pods/x"}`, nil, "bad_input"},
		{"C5 name a?watch=true", "get", `{"resource":"v1/pods","namespace":"a","name":"a?watch=true"}`, nil, "bad_input"},
		{"C5 name a%2fb", "get", `{"resource":"v1/pods","namespace":"a","name":"a%2fb"}`, nil, "bad_input"},
		{"C5 no name", "get", `{"resource":"v1/pods","namespace":"a","name":""}`, nil, "bad_input"},
		{"C5 no namespace", "get", `{"resource":"v1/pods","name":"p"}`, nil, "bad_input"},
		{"C5 node https:node1:10250", "cordon", `{"node":"https:node1:10250","schedulable":true}`, nil, "bad_input"},
		{"C5 node n/proxy/run", "cordon", `{"node":"n/proxy/run","schedulable":true}`, nil, "bad_input"},
		{"C5 pod of a log", "logs", `{"namespace":"a","pod":"p/exec"}`, nil, "bad_input"},
		{"C5 container", "logs", `{"namespace":"a","pod":"p","container":"c&follow=true"}`, nil, "bad_input"},
		{"upper case", "get", `{"resource":"v1/pods","namespace":"A","name":"p"}`, nil, "bad_input"},
		{"64 letters", "list", `{"resource":"v1/pods","namespace":"` + strings.Repeat("a", 64) + `"}`, nil, "bad_input"},
		{"a node in a namespace", "get", `{"resource":"v1/nodes","namespace":"a","name":"n"}`, nil, "bad_input"},

		{"get outside", "get", `{"resource":"v1/pods","namespace":"zoo","name":"p"}`, bound, "outside_bound"},
		{"list outside", "list", `{"resource":"v1/pods","namespace":"zoo"}`, bound, "outside_bound"},
		{"list of a kind outside", "list", `{"kind":"App","namespace":"zoo"}`, bound, "outside_bound"},
		{"watch outside", "watch", `{"kind":"App","namespace":"zoo","version":"5"}`, bound, "outside_bound"},
		{"log outside", "logs", `{"namespace":"zoo","pod":"p"}`, bound, "outside_bound"},
		{"evict outside", "evict", `{"namespace":"zoo","pod":"p"}`, bound, "outside_bound"},
		{"expand outside", "expand", `{"namespace":"zoo","name":"c","storage":"1Gi","version":"1"}`, bound, "outside_bound"},
		{"create outside", "create", `{"resource":"v1/pods","namespace":"zoo","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}}`, bound, "outside_bound"},
		{"apply outside", "apply", `{"kind":"App","namespace":"zoo","name":"p","object":{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"}}}`, bound, "outside_bound"},
		{"delete outside", "delete", `{"kind":"App","namespace":"zoo","name":"p"}`, bound, "outside_bound"},
		{"nodes of a bounded one", "list", `{"resource":"v1/nodes"}`, bound, "outside_bound"},
		{"a node of a bounded one", "get", `{"resource":"v1/nodes","name":"n"}`, bound, "outside_bound"},
		{"cordon of a bounded one", "cordon", `{"node":"n","schedulable":true}`, bound, "outside_bound"},
		{"stats of a bounded one", "stats", `{}`, bound, "outside_bound"},
		{"namespace outside", "get", `{"resource":"v1/namespaces","name":"zoo"}`, bound, "outside_bound"},
		{"namespace made outside", "create", `{"resource":"v1/namespaces","object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"zoo"}}}`, bound, "outside_bound"},
		{"namespace deleted in the bound", "delete", `{"resource":"v1/namespaces","name":"a"}`, bound, "outside_bound"},
		{"review outside", "can", `{"verb":"get","resource":"pods","namespace":"zoo"}`, bound, "outside_bound"},
		{"review of all of a bounded one", "can", `{"verb":"get","resource":"pods"}`, bound, "outside_bound"},

		{"another name in the object", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"q"}}`), nil, "bad_input"},
		{"another kind in the object", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"Datastore","metadata":{"name":"p"}}`), nil, "bad_input"},
		{"another group in the object", "apply", apply("p", `{"apiVersion":"v1","kind":"App","metadata":{"name":"p"}}`), nil, "bad_input"},
		{"another namespace in the object", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p","namespace":"b"}}`), nil, "bad_input"},
		{"E21 status", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"},"status":{}}`), nil, "bad_input"},
		{"E21 managedFields", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p","managedFields":[]}}`), nil, "bad_input"},
		{"E21 resourceVersion", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p","resourceVersion":"4"}}`), nil, "bad_input"},
		{"twice a name", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p","name":"q"}}`), nil, "bad_input"},
		{"twice metadata", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"},"metadata":{"name":"p"}}`), nil, "bad_input"},
		{"E21 1.5 MB", "apply", apply("p", `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"},"spec":"`+strings.Repeat("x", 1536<<10)+`"}`), nil, "too_large"},
		{"generateName", "create", pod(`{"name":"p","generateName":"p-"}`, ""), nil, "bad_input"},
		{"no object", "create", `{"resource":"v1/pods","namespace":"a"}`, nil, "bad_input"},
		{"an array", "create", `{"resource":"v1/pods","namespace":"a","object":[]}`, nil, "bad_input"},
		{"a namespace for a Namespace", "create", `{"resource":"v1/namespaces","namespace":"a","object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}}`, nil, "bad_input"},

		{"a uid with a quote", "evict", `{"namespace":"a","pod":"p","uid":"a\"b"}`, nil, "bad_input"},
		{"a uid with a quote, to delete", "delete", `{"kind":"App","namespace":"a","name":"p","uid":"\"}"}`, nil, "bad_input"},
		{"no schedulable", "cordon", `{"node":"n"}`, nil, "bad_input"},
		{"storage with a quote", "expand", `{"namespace":"a","name":"c","storage":"1Gi\"","version":"1"}`, nil, "bad_input"},
		{"negative storage", "expand", `{"namespace":"a","name":"c","storage":"-1Gi","version":"1"}`, nil, "bad_input"},
		{"no version", "expand", `{"namespace":"a","name":"c","storage":"1Gi"}`, nil, "bad_input"},
		{"negative lines", "logs", `{"namespace":"a","pod":"p","tailLines":-1}`, nil, "bad_input"},

		{"no JSON", "get", `{`, nil, "bad_input"},
		{"more than one object", "get", getPod + `{}`, nil, "bad_input"},
		{"an unknown member", "get", `{"resource":"v1/pods","namespace":"a","name":"p","path":"/"}`, nil, "bad_input"},
		{"a member twice", "get", `{"resource":"v1/pods","namespace":"a","name":"p","name":"q"}`, nil, "bad_input"},
		{"a number for a name", "get", `{"resource":"v1/pods","namespace":"a","name":7}`, nil, "bad_input"},
		{"clusters from another module", "clusters_list", `{}`, nil, "not_granted"},
		{"registering from another module", "clusters_register", `{"name":"x"}`, nil, "not_granted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			items, _, code := world{namespaces: test.bound}.guest(t).do(test.function, test.request)
			if code != test.code || len(items) != 0 {
				t.Errorf("code %q, want %q", code, test.code)
			}
		})
	}
}

func TestRowsOfWrites(t *testing.T) {
	evict := `{"namespace":"a","pod":"p","uid":"0b7c"}`
	expand := `{"namespace":"a","name":"c","storage":"20Gi","version":"77"}`
	apply := `{"kind":"App","namespace":"a","name":"p","object":{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"}}}`
	create := `{"resource":"v1/pods","namespace":"a","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}}`
	absent := refusing(404, metav1.Status{Reason: "NotFound", Details: &metav1.StatusDetails{Name: "p", Kind: "pods"}})
	for _, test := range []struct {
		name, function, request string
		answer                  http.HandlerFunc
		want, code              string
		status                  int
	}{
		{"D1 a disruption budget", "evict", evict, refusing(429, metav1.Status{Reason: "TooManyRequests", Message: "Cannot evict pod as it would violate the pod's disruption budget.",
			Details: &metav1.StatusDetails{RetryAfterSeconds: 10, Causes: []metav1.StatusCause{{Type: "DisruptionBudget", Message: "needs 2 healthy pods"}}}}), "", "blocked_by_pdb", 409},
		{"D2 throttling", "evict", evict, refusing(429, metav1.Status{Reason: "TooManyRequests", Message: "too many requests", Details: &metav1.StatusDetails{RetryAfterSeconds: 1}}), "", "throttled", 503},
		{"D2 throttling without a word", "evict", evict, retryLater(429, "1"), "", "throttled", 503},
		{"D2 several budgets", "evict", evict, refusing(500, metav1.Status{Reason: "InternalError", Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}), "", "multiple_pdbs", 409},
		{"D2 the pod is gone", "evict", evict, absent, `{"status":404}`, "", 0},
		{"D2 200 for 201", "evict", evict, answer(200, "application/json", `{}`), `{"status":201}`, "", 0},
		{"another pod of that name", "evict", evict, refusing(409, metav1.Status{Reason: "Conflict", Message: "the UID in the precondition does not match"}), "", "conflict", 409},
		{"delete what is not there", "delete", getApp, absent, `{"removed":false}`, "", 0},
		{"delete of a kind that is not there", "delete", getApp, answer(404, "text/plain", "404 page not found"), "", "kind_not_available", 404},
		{"E20 create in a namespace that is not there", "create", create, refusing(404, metav1.Status{Reason: "NotFound", Details: &metav1.StatusDetails{Name: "a", Kind: "namespaces"}}), "", "not_found", 404},
		{"it exists", "create", create, refusing(409, metav1.Status{Reason: "AlreadyExists"}), "", "already_exists", 409},
		{"E21 422", "apply", apply, refusing(422, metav1.Status{Reason: "Invalid", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Message: "field is immutable", Field: "spec.x"}}}}), "", "invalid", 422},
		{"E3 admission or RBAC, which the guest tells apart", "expand", expand, refusing(403, metav1.Status{Reason: "Forbidden", Message: "no"}), "", "forbidden", 403},
		{"the claim has changed", "expand", expand, refusing(409, metav1.Status{Reason: "Conflict"}), "", "conflict", 409},
		{"E23 the review itself fails", "can", `{"verb":"get","resource":"pods"}`, refusing(500, metav1.Status{Reason: "InternalError"}), "", "bad_upstream", 502},
		{"E23 a review without a verdict", "can", `{"verb":"get","resource":"pods"}`, answer(201, "application/json", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1"}`), "", "bad_upstream", 502},
		{"a version that is none", "version", `{}`, answer(200, "application/json", `{"a":1}`), "", "bad_upstream", 502},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := 0
			g := world{serve: func(w http.ResponseWriter, r *http.Request) { n++; test.answer(w, r) }}.guest(t)
			items, _, code := g.do(test.function, test.request)
			if code != test.code || strings.Join(items, "") != test.want {
				t.Errorf("code %q, want %q; items %q", code, test.code, items)
			}
			if code != "" && g.failure().Status != test.status {
				t.Errorf("status %d, want %d", g.failure().Status, test.status)
			}
			if n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestApplyConflictNamesFieldsAndOwners(t *testing.T) {
	g := world{serve: refusing(409, metav1.Status{Reason: "Conflict", Message: "Apply failed with 2 conflicts", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
		{Type: "FieldManagerConflict", Message: `conflict with "kubectl-client-side-apply" using hanzo.ai/v1`, Field: ".spec.image"},
		{Type: "FieldManagerConflict", Message: `conflict with "a \"b\"" with subresource "scale" using apps/v1`, Field: ".spec.replicas"},
	}}})}.guest(t)
	_, _, code := g.do("apply", `{"kind":"App","namespace":"a","name":"p","object":{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"p"}}}`)
	if code != "conflict" {
		t.Fatal(code)
	}
	want := []Conflict{{".spec.image", "kubectl-client-side-apply"}, {".spec.replicas", `a "b"`}}
	if diff := cmp.Diff(want, g.c.outcome(1).Details["conflicts"]); diff != "" {
		t.Error(diff)
	}
	text, _ := g.read(0)
	var f struct{ Conflicts []Conflict }
	json.Unmarshal([]byte(text), &f)
	if diff := cmp.Diff(want, f.Conflicts); diff != "" {
		t.Error(diff)
	}
}

func TestProtobufStatus(t *testing.T) {
	g := world{serve: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		w.WriteHeader(404)
		w.Write(protobuf("v1", "Status", &metav1.Status{Code: 404, Reason: "NotFound", Message: `pods "p" not found`, Details: &metav1.StatusDetails{Name: "p", Kind: "pods"}}))
	}}.guest(t)
	if _, _, code := g.do("get", getPod); code != "not_found" {
		t.Error(code)
	}
	want := failure{Code: "not_found", Status: 404, Reason: "NotFound", Message: `pods "p" not found`}
	if diff := cmp.Diff(want, g.failure()); diff != "" {
		t.Error(diff)
	}
}
