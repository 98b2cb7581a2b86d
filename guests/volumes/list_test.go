package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/randfill"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/plane"
)

var claimRows = difftest.Projection[corev1.PersistentVolumeClaim, plane.Claim]{Token: "k8s_volumes_list_claims", Reference: difftest.Claim}

var volumeRows = difftest.Projection[corev1.PersistentVolume, plane.Volume]{Token: "k8s_volumes_list_persistent", Reference: difftest.Volume}

func storageOf(size string) corev1.ResourceList {
	if size == "" {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func claimOf(phase, request, capacity string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.ResourceVersion = "7"
	c.Status.Phase = corev1.PersistentVolumeClaimPhase(phase)
	c.Spec.Resources.Requests, c.Status.Capacity = storageOf(request), storageOf(capacity)
	return c
}

func TestSizesRoundUpToGi(t *testing.T) {
	for size, want := range map[string]int{
		"1Gi": 1, "1073741824": 1, "1073741825": 2, "1": 1, "1G": 1, "10G": 10, "11G": 11, "1536Mi": 2, "1m": 1, "0": 0, "2Ti": 2048, "7Ei": 7 << 30,
	} {
		if got := difftest.Same(t, claimRows, claimOf("Pending", size, "")).RequestGi; got != want {
			t.Errorf("%s is %d Gi, want %d", size, got, want)
		}
	}
}

func TestResize(t *testing.T) {
	says := func(c *corev1.PersistentVolumeClaim, status corev1.ClaimResourceStatus) *corev1.PersistentVolumeClaim {
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
		return c
	}
	has := func(c *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, status corev1.ConditionStatus) *corev1.PersistentVolumeClaim {
		c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: kind, Status: status})
		return c
	}
	for _, tt := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		{"done", claimOf("Bound", "20Gi", "20Gi"), ""},
		{"more than asked for", claimOf("Bound", "20Gi", "21Gi"), ""},
		{"the same size, written another way", claimOf("Bound", "2Gi", "2048Mi"), ""},
		{"pending claims do not grow", claimOf("Pending", "20Gi", ""), ""},
		{"capacity is behind", claimOf("Bound", "20Gi", "10Gi"), "resizing"},
		{"Resizing", has(claimOf("Bound", "20Gi", "10Gi"), "Resizing", "True"), "resizing"},
		{"FileSystemResizePending", has(claimOf("Bound", "20Gi", "10Gi"), "FileSystemResizePending", "True"), "pending_on_node"},
		{"a condition that is not true", has(claimOf("Bound", "20Gi", "20Gi"), "Resizing", "False"), ""},
		{"NodeResizePending", says(claimOf("Bound", "20Gi", "10Gi"), "NodeResizePending"), "pending_on_node"},
		{"ControllerResizeInfeasible", says(claimOf("Bound", "20Gi", "10Gi"), "ControllerResizeInfeasible"), "infeasible"},
		{"NodeResizeInfeasible beats a condition", has(says(claimOf("Bound", "20Gi", "10Gi"), "NodeResizeInfeasible"), "FileSystemResizePending", "True"), "infeasible"},
		{"NodeResizeInProgress", says(claimOf("Bound", "20Gi", "10Gi"), "NodeResizeInProgress"), "resizing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := difftest.Same(t, claimRows, tt.claim).Resize; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPersistentVolumes(t *testing.T) {
	v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		Capacity: storageOf("10Gi"), ClaimRef: &corev1.ObjectReference{Namespace: "data", Name: "postgres"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: "vol-1"}},
	}, Status: corev1.PersistentVolumeStatus{Phase: "Bound"}}
	want := plane.Volume{Phase: "Bound", Handle: "vol-1", ClaimNamespace: "data", ClaimName: "postgres", CapacityGi: 10}
	if diff := cmp.Diff(want, difftest.Same(t, volumeRows, v)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	static := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}}}}
	if diff := cmp.Diff(plane.Volume{}, difftest.Same(t, volumeRows, static)); diff != "" {
		t.Errorf("a volume of no driver and no claim (-want +got):\n%s", diff)
	}
}

func FuzzClaim(f *testing.F) {
	difftest.Fuzz(f, claimRows, nil, func(p *corev1.PersistentVolumeClaim, c randfill.Continue) {
		c.FillNoCustom(p)
		size := func() corev1.ResourceList { return storageOf(difftest.Quantities[c.Intn(len(difftest.Quantities))]) }
		p.Spec.Resources.Requests, p.Status.Capacity = size(), size()
		p.Status.Phase = []corev1.PersistentVolumeClaimPhase{"Bound", "Pending"}[c.Intn(2)]
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].Type = []corev1.PersistentVolumeClaimConditionType{"Resizing", "FileSystemResizePending"}[c.Intn(2)]
			p.Status.Conditions[i].Status = []corev1.ConditionStatus{"True", "False"}[c.Intn(2)]
		}
		if c.Intn(3) == 0 {
			all := []corev1.ClaimResourceStatus{"NodeResizePending", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeFailed", "Other"}
			p.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: all[c.Intn(len(all))]}
		}
	})
}

func FuzzPersistentVolume(f *testing.F) {
	difftest.Fuzz(f, volumeRows, nil, func(p *corev1.PersistentVolume, c randfill.Continue) {
		c.FillNoCustom(p)
		p.Spec.Capacity = storageOf(difftest.Quantities[c.Intn(len(difftest.Quantities))])
	})
}
