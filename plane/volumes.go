package plane

// ClaimsIn lists persistent volume claims.
type ClaimsIn struct {
	Cluster       string `json:"cluster" k8s:"format=label"`
	Namespace     string `json:"namespace,omitempty" k8s:"format=label"`
	LabelSelector string `json:"labelSelector,omitempty" k8s:"format=selector,max=4096"`
	Limit         int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue      string `json:"continue,omitempty" k8s:"max=16384"`
}

// Claims is one page of claims.
type Claims struct {
	Claims   []Claim `json:"claims,omitempty"`
	Continue string  `json:"continue,omitempty"`
}

// Claim is one persistent volume claim. Sizes in Gi round up.
type Claim struct {
	Namespace    string `json:"namespace,omitempty"`
	Name         string `json:"name,omitempty"`
	Phase        string `json:"phase,omitempty"`        // Pending, Bound or Lost
	Volume       string `json:"volume,omitempty"`       // the persistent volume it is bound to
	RequestGi    int    `json:"requestGi"`              // what it asks for
	StorageClass string `json:"storageClass,omitempty"` // empty is the cluster's default or none
	CapacityGi   int    `json:"capacityGi"`             // what it has; 0 until bound
	Resize       string `json:"resize,omitempty"`       // resizing, pending_on_node or infeasible while an expansion is under way
}

// VolumesIn lists persistent volumes. It is refused for a bounded registration.
type VolumesIn struct {
	Cluster  string `json:"cluster" k8s:"format=label"`
	Limit    int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue string `json:"continue,omitempty" k8s:"max=16384"`
}

// Volumes is one page of persistent volumes.
type Volumes struct {
	Volumes  []Volume `json:"volumes,omitempty"`
	Continue string   `json:"continue,omitempty"`
}

// Volume is one persistent volume.
type Volume struct {
	Name           string `json:"name,omitempty"`
	Phase          string `json:"phase,omitempty"`  // Available, Bound, Released, Failed or Pending
	Handle         string `json:"handle,omitempty"` // the CSI driver's volume handle
	ClaimNamespace string `json:"claimNamespace,omitempty"`
	ClaimName      string `json:"claimName,omitempty"`
	CapacityGi     int    `json:"capacityGi"` // rounded up
}

// EnsureClaimIn makes a claim unless it is there. One that exists is left as
// it is, whatever its size.
type EnsureClaimIn struct {
	Cluster      string `json:"cluster" k8s:"format=label"`
	Namespace    string `json:"namespace" k8s:"format=label"`
	Name         string `json:"name" k8s:"format=name"`
	Gi           int    `json:"gi" k8s:"min=1,max=1048576"`                                                                // the size to ask for, in GiB
	StorageClass string `json:"storageClass,omitempty" k8s:"format=name"`                                                  // empty is the cluster's default
	AccessMode   string `json:"accessMode,omitempty" k8s:"enum=ReadWriteOnce|ReadOnlyMany|ReadWriteMany|ReadWriteOncePod"` // empty is ReadWriteOnce
}

// ExpandClaimIn grows a claim's storage request. A shrink is refused.
type ExpandClaimIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Name      string `json:"name" k8s:"format=name"`
	Gi        int    `json:"gi" k8s:"min=1,max=1048576"` // the size to ask for, in GiB
}

// Expanded is what the claim asks for now.
type Expanded struct {
	Gi int `json:"gi"` // rounded up
}
