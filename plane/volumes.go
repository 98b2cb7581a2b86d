package plane

// ClaimsIn lists persistent volume claims.
type ClaimsIn struct {
	Cluster       string `json:"cluster"`
	Namespace     string `json:"namespace,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	Limit         int    `json:"limit,omitempty"`
	Continue      string `json:"continue,omitempty"`
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
	Resize       string `json:"resize,omitempty"`       // where an expansion under way stands, such as FileSystemResizePending
}

// VolumesIn lists persistent volumes. It is refused for a bounded registration.
type VolumesIn struct {
	Cluster  string `json:"cluster"`
	Limit    int    `json:"limit,omitempty"`
	Continue string `json:"continue,omitempty"`
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
	Cluster      string `json:"cluster"`
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	Gi           int    `json:"gi"`                     // the size to ask for, in GiB
	StorageClass string `json:"storageClass,omitempty"` // empty is the cluster's default
	AccessMode   string `json:"accessMode,omitempty"`   // empty is ReadWriteOnce
}

// ExpandClaimIn grows a claim's storage request. A shrink is refused.
type ExpandClaimIn struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Gi        int    `json:"gi"` // the size to ask for, in GiB
}

// Expanded is what the claim asks for now.
type Expanded struct {
	Gi int `json:"gi"` // rounded up
}
