package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// listClaims answers persistent volume claims: what each asks for, what it has,
// and where an expansion of it stands. Sizes are in GiB, rounded up.
//
// capacityGi is 0 until a claim is bound. resize is left out when nothing is
// under way: "resizing" while the volume or its file system grows,
// "pending_on_node" until a pod that uses it is started again or its node gets
// to it, "infeasible" when the driver has given up. It is over when capacityGi
// has reached requestGi.
//
// Example: {"cluster": "prod", "namespace": "data"}
//
// Response: {"claims": [{"namespace": "data", "name": "postgres", "phase": "Bound", "volume": "pvc-0b1e",
// "requestGi": 20, "storageClass": "fast", "capacityGi": 10, "resize": "pending_on_node"}]}
//
//k8s:op k8s_volumes_list_claims GET /v1/k8s/volumes/claims in=plane.ClaimsIn out=plane.Claims items=claims
//k8s:grant list v1/persistentvolumeclaims
func listClaims(c *sdk.Call) error { return c.List(c.Selected(claims), claim) }

// listPersistent answers the cluster's persistent volumes and the claim each is
// bound to. handle is the CSI driver's name for the disk. A bounded
// registration may not: volumes belong to no namespace.
//
// Example: {"cluster": "prod"}
//
// Response: {"volumes": [{"name": "pvc-0b1e", "phase": "Bound", "handle": "vol-0a9f",
// "claimNamespace": "data", "claimName": "postgres", "capacityGi": 10}]}
//
//k8s:op k8s_volumes_list_persistent GET /v1/k8s/volumes/persistent in=plane.VolumesIn out=plane.Volumes items=volumes
//k8s:grant list v1/persistentvolumes cluster
func listPersistent(c *sdk.Call) error {
	return c.List(sdk.Query{Resource: "v1/persistentvolumes"}, volume)
}

// The fields of corev1.PersistentVolumeClaim's spec and status.
const (
	claimAccessModes  = 1
	claimResources    = 2
	claimVolume       = 3
	claimStorageClass = 5
	resourcesRequests = 2
	claimPhase        = 1
	claimCapacity     = 3
	claimConditions   = 4
	claimResizeStatus = 7
	conditionType     = 1
	conditionStatus   = 2
	storage           = "storage"
)

func claim(m lens.Message, w *sdk.Writer) {
	meta, spec, status := m.Meta(), m.Sub(lens.Spec), m.Sub(lens.Status)
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Str("phase", status.Str(claimPhase))
	w.Str("volume", spec.Str(claimVolume))
	w.Int("requestGi", requested(spec).Gi())
	w.Str("storageClass", spec.Str(claimStorageClass))
	w.Int("capacityGi", status.Quantity(claimCapacity, storage).Gi())
	w.Str("resize", resize(spec, status))
}

// requested is the storage that a claim asks for.
func requested(spec lens.Message) lens.Quantity {
	return spec.Sub(claimResources).Quantity(resourcesRequests, storage)
}

// resize is where an expansion stands. What the controllers say of it comes
// first; then a bound claim with less than it asks for is still growing.
func resize(spec, status lens.Message) string {
	switch said, _ := status.Key(claimResizeStatus, storage); said {
	case "ControllerResizeInProgress", "NodeResizeInProgress":
		return "resizing"
	case "NodeResizePending":
		return "pending_on_node"
	case "ControllerResizeInfeasible", "NodeResizeInfeasible", "ControllerResizeFailed", "NodeResizeFailed":
		return "infeasible"
	}
	resizing := false
	for c := status.Each(claimConditions); c.Next(); {
		if c.Str(conditionStatus) != "True" {
			continue
		}
		switch c.Str(conditionType) {
		case "FileSystemResizePending":
			return "pending_on_node"
		case "Resizing":
			resizing = true
		}
	}
	growing := status.Str(claimPhase) == "Bound" && status.Quantity(claimCapacity, storage).Cmp(requested(spec)) < 0
	if resizing || growing {
		return "resizing"
	}
	return ""
}

// The fields of corev1.PersistentVolume's spec and status.
const (
	volumeCapacity  = 1
	volumeSource    = 2
	volumeClaimRef  = 4
	volumePhase     = 1
	sourceCSI       = 22
	csiVolumeHandle = 2
	refNamespace    = 2
	refName         = 3
)

func volume(m lens.Message, w *sdk.Writer) {
	spec := m.Sub(lens.Spec)
	claim := spec.Sub(volumeClaimRef)
	w.Str("name", m.Meta().Name())
	w.Str("phase", m.Sub(lens.Status).Str(volumePhase))
	w.Str("handle", spec.Sub(volumeSource).Sub(sourceCSI).Str(csiVolumeHandle))
	w.Str("claimNamespace", claim.Str(refNamespace))
	w.Str("claimName", claim.Str(refName))
	w.Int("capacityGi", spec.Quantity(volumeCapacity, storage).Gi())
}
