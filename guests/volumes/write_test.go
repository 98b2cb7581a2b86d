package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var absent = sdk.Failure{Code: "not_found", Status: 404, Reason: "NotFound", Message: "there is no such claim"}

func encoded(t *testing.T, c *corev1.PersistentVolumeClaim) []byte {
	t.Helper()
	b, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func isRefused(t *testing.T, r sdktest.Result, status int, code string) {
	t.Helper()
	if r.Refusal == nil || r.Refusal.Status != status || r.Refusal.Code != code {
		t.Errorf("got %+v, want %d %s", r.Refusal, status, code)
	}
}

var ensureIn = plane.EnsureClaimIn{Cluster: "prod", Namespace: "data", Name: "postgres", Gi: 10, StorageClass: "fast", AccessMode: "ReadWriteMany"}

func TestEnsureClaimMakesIt(t *testing.T) {
	h := sdktest.New(t, "k8s_volumes_ensure_claim", ensureIn).Fails("get", absent).Items("create", encoded(t, claimOf("Pending", "10Gi", "")))
	if diff := cmp.Diff(plane.Ensured{Name: "postgres", Created: true}, sdktest.Rest[plane.Ensured](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got, want corev1.PersistentVolumeClaim
	if err := json.Unmarshal(h.Requests[1].Object, &got); err != nil {
		t.Fatal(err)
	}
	class := "fast"
	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	want.Name, want.Labels = "postgres", map[string]string{"managed-by": "hanzo-cloud"}
	want.Spec = corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteMany"}}
	want.Spec.Resources.Requests = storageOf("10Gi")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the object made (-want +got):\n%s", diff)
	}
}

func TestEnsureClaimThatIsThere(t *testing.T) {
	class, deleted := "fast", metav1.Unix(1, 0)
	there := claimOf("Pending", "5Gi", "")
	there.Spec.StorageClassName, there.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{"ReadWriteOnce", "ReadWriteMany"}
	ensured := plane.Ensured{Name: "postgres"}

	r := sdktest.New(t, "k8s_volumes_ensure_claim", ensureIn).Items("get", encoded(t, there)).Run()
	if diff := cmp.Diff(ensured, sdktest.Rest[plane.Ensured](t, r)); diff != "" {
		t.Errorf("of another size (-want +got):\n%s", diff)
	}

	other := ensureIn
	other.StorageClass, other.AccessMode = "slow", "ReadOnlyMany"
	r = sdktest.New(t, "k8s_volumes_ensure_claim", other).Items("get", encoded(t, there)).Run()
	isRefused(t, r, 409, "differs")
	if got := string(r.Refusal.Members["fields"]); got != `["storageClass","accessMode"]` {
		t.Errorf("the fields that differ are %s", got)
	}

	there.DeletionTimestamp = &deleted
	isRefused(t, sdktest.New(t, "k8s_volumes_ensure_claim", ensureIn).Items("get", encoded(t, there)).Run(), 409, "terminating")
}

func TestEnsureClaimRace(t *testing.T) {
	there := claimOf("Pending", "10Gi", "")
	gets := 0
	h := sdktest.New(t, "k8s_volumes_ensure_claim", plane.EnsureClaimIn{Namespace: "data", Name: "postgres", Gi: 10})
	h.On("get", func(sdktest.Request) sdktest.Reply {
		if gets++; gets == 1 {
			return sdktest.Reply{Failure: &absent}
		}
		return sdktest.Reply{Items: [][]byte{encoded(t, there)}}
	})
	h.Fails("create", sdk.Failure{Code: "already_exists", Status: 409, Reason: "AlreadyExists"})
	if diff := cmp.Diff(plane.Ensured{Name: "postgres"}, sdktest.Rest[plane.Ensured](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func expand(t *testing.T, gi int, there *corev1.PersistentVolumeClaim) *sdktest.Host {
	t.Helper()
	return sdktest.New(t, "k8s_volumes_expand_claim", plane.ExpandClaimIn{Cluster: "prod", Namespace: "data", Name: "postgres", Gi: gi}).
		Items("get", encoded(t, there))
}

func TestExpandClaim(t *testing.T) {
	h := expand(t, 20, claimOf("Bound", "10Gi", "10Gi")).Items("expand", encoded(t, claimOf("Bound", "20Gi", "10Gi")))
	if diff := cmp.Diff(plane.Expanded{Gi: 20}, sdktest.Rest[plane.Expanded](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := sdktest.Request{Function: "expand", Namespace: "data", Name: "postgres", Storage: "20Gi", Version: "7"}
	if diff := cmp.Diff(want, h.Requests[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExpandClaimComparesQuantities(t *testing.T) {
	// 2048Mi is 2Gi, and "9Gi" is more than "10Gi" as text only.
	h := expand(t, 2, claimOf("Bound", "2048Mi", "2Gi"))
	if diff := cmp.Diff(plane.Expanded{Gi: 2}, sdktest.Rest[plane.Expanded](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	isRefused(t, expand(t, 9, claimOf("Bound", "10Gi", "10Gi")).Run(), 409, "shrink_refused")
	// Below what it asks for although above what it has.
	isRefused(t, expand(t, 15, claimOf("Bound", "20Gi", "10Gi")).Run(), 409, "shrink_refused")
	isRefused(t, expand(t, 5, claimOf("Bound", "20Gi", "10Gi")).Run(), 409, "shrink_refused")
}

func TestExpandClaimRefuses(t *testing.T) {
	isRefused(t, expand(t, 20, claimOf("Pending", "10Gi", "")).Run(), 409, "not_bound")
	isRefused(t, expand(t, 20, claimOf("Lost", "10Gi", "")).Run(), 409, "not_bound")
	deleted := metav1.Unix(1, 0)
	going := claimOf("Bound", "10Gi", "10Gi")
	going.DeletionTimestamp = &deleted
	isRefused(t, expand(t, 20, going).Run(), 409, "terminating")
	conflict := sdk.Failure{Code: "conflict", Status: 409, Reason: "Conflict"}
	isRefused(t, expand(t, 20, claimOf("Bound", "10Gi", "10Gi")).Fails("expand", conflict).Run(), 409, "conflict")
}

// Both 403s may have the same words: they have been reworded before.
func TestExpandTellsAnUnsupportedClassFromAMissingPrivilege(t *testing.T) {
	forbidden := sdk.Failure{Code: "forbidden", Status: 403, Reason: "Forbidden", Message: "no"}
	answers := func(sameSizeToo bool) func(sdktest.Request) sdktest.Reply {
		return func(r sdktest.Request) sdktest.Reply {
			if r.Storage == "20Gi" || sameSizeToo {
				return sdktest.Reply{Failure: &forbidden}
			}
			if r.Storage != "10Gi" {
				t.Errorf("asked for %s", r.Storage)
			}
			return sdktest.Reply{Items: [][]byte{encoded(t, claimOf("Bound", "10Gi", "10Gi"))}}
		}
	}
	isRefused(t, expand(t, 20, claimOf("Bound", "10Gi", "10Gi")).On("expand", answers(false)).Run(), 409, "expansion_not_supported")
	isRefused(t, expand(t, 20, claimOf("Bound", "10Gi", "10Gi")).On("expand", answers(true)).Run(), 403, "forbidden")
}
