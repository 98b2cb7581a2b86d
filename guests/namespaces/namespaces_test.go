package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var rows = difftest.Projection[corev1.Namespace, plane.Namespace]{Token: "k8s_namespaces_list", Reference: difftest.Namespace}

func FuzzNamespace(f *testing.F) { difftest.Fuzz(f, rows, nil, nil) }

func web(deleted bool) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"b": "2", "a": "1"},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "SENTINEL"}}}
	if n.Status.Phase = corev1.NamespaceActive; deleted {
		at := metav1.Unix(1, 0)
		n.DeletionTimestamp, n.Status.Phase = &at, corev1.NamespaceTerminating
	}
	return n
}

func encoded(t *testing.T, n *corev1.Namespace) []byte {
	t.Helper()
	b, err := n.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNamespace(t *testing.T) {
	want := plane.Namespace{Name: "web", Phase: "Active", Labels: plane.Map{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}}
	if diff := cmp.Diff(want, difftest.Same(t, rows, web(false))); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	h := sdktest.New(t, "k8s_namespaces_get", plane.NamespaceIn{Cluster: "prod", Namespace: "web"}).Items("get", encoded(t, web(false)))
	if diff := cmp.Diff(want, sdktest.Rest[plane.Namespace](t, h.Run())); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	// A namespace is in none, and is asked for by its name.
	if diff := cmp.Diff([]sdktest.Request{{Function: "get", Resource: "v1/namespaces", Name: "web"}}, h.Requests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnsureNamespace(t *testing.T) {
	in := plane.EnsureNamespaceIn{Cluster: "prod", Namespace: "web", Labels: plane.Map{{Key: "team", Value: "shop"}, {Key: "managed-by", Value: "me"}}}
	absent := sdk.Failure{Code: "not_found", Status: 404, Reason: "NotFound"}

	h := sdktest.New(t, "k8s_namespaces_ensure", in).Fails("get", absent).Items("create", encoded(t, web(false)))
	if diff := cmp.Diff(plane.Ensured{Name: "web", Created: true}, sdktest.Rest[plane.Ensured](t, h.Run())); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	const object = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web","labels":{"managed-by":"hanzo-cloud","team":"shop"}}}`
	if got := string(h.Requests[1].Object); got != object {
		t.Errorf("made %s, want %s", got, object)
	}

	r := sdktest.New(t, "k8s_namespaces_ensure", in).Items("get", encoded(t, web(false))).Run()
	if diff := cmp.Diff(plane.Ensured{Name: "web"}, sdktest.Rest[plane.Ensured](t, r)); diff != "" {
		t.Errorf("there already (-want +got):\n%s", diff)
	}

	r = sdktest.New(t, "k8s_namespaces_ensure", in).Items("get", encoded(t, web(true))).Run()
	if r.Refusal == nil || r.Refusal.Status != 409 || r.Refusal.Code != "terminating" {
		t.Errorf("being deleted: got %+v, want a 409", r.Refusal)
	}

	r = sdktest.New(t, "k8s_namespaces_ensure", in).Fails("get", sdk.Failure{Code: "forbidden", Status: 403, Reason: "Forbidden"}).Run()
	if r.Refusal == nil || r.Refusal.Status != 403 {
		t.Errorf("forbidden: got %+v, want a 403 and nothing made", r.Refusal)
	}
}

func TestDeleteNamespace(t *testing.T) {
	for _, removed := range []string{"true", "false"} {
		h := sdktest.New(t, "k8s_namespaces_delete", plane.DeleteNamespaceIn{Cluster: "prod", Namespace: "web"}).
			Items("delete", []byte(`{"removed":`+removed+`}`))
		if got := sdktest.Rest[plane.Deleted](t, h.Run()); got.Removed != (removed == "true") {
			t.Errorf("got %+v, want %s", got, removed)
		}
	}
}
