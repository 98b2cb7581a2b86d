package plane

// Cluster is the record of one registered cluster. It never carries the
// credential.
type Cluster struct {
	Name     string `json:"name,omitempty"`     // DNS-1123 label, unique within the org
	Org      string `json:"org,omitempty"`      // the tenant that registered it, which is the caller's own
	Provider string `json:"provider,omitempty"` // "byo" unless the registration said otherwise
	Endpoint string `json:"endpoint,omitempty"` // the apiserver's https URL

	// Nodes, NvidiaGpu and AmdGpu are the inventory taken when the cluster was
	// registered: nodes, and allocatable GPUs across them. All are 0 on a
	// bounded registration, which may not list nodes.
	Nodes     int `json:"nodes"`
	NvidiaGpu int `json:"nvidiaGpu"`
	AmdGpu    int `json:"amdGpu"`

	Namespaces []string `json:"namespaces,omitempty"` // the bound; empty is the whole cluster
	Registered string   `json:"registered,omitempty"` // RFC 3339, UTC
	Default    bool     `json:"default"`              // the org's default cluster

	// CredentialExpires is when the credential stops working, RFC 3339. It is
	// empty when the credential does not say.
	CredentialExpires string `json:"credentialExpires,omitempty"`
}

// Clusters is every cluster the caller's org has registered, by name.
type Clusters struct {
	Clusters []Cluster `json:"clusters,omitempty"`
}

// ClusterIn names the cluster whose record is wanted.
type ClusterIn struct {
	Cluster string `json:"cluster" k8s:"format=label"`
}

// RegisterIn registers a cluster, or rotates the credential of one already
// registered under the same name.
type RegisterIn struct {
	Name string `json:"name" k8s:"format=label"` // DNS-1123 label

	// Kubeconfig is the credential, as kubeconfig YAML or JSON. It is secret:
	// it goes to the KMS and to no log, error, record or answer.
	Kubeconfig string `json:"kubeconfig" k8s:"secret,max=1048576"`

	Provider   string   `json:"provider,omitempty" k8s:"format=label"`           // empty is "byo"
	Namespaces []string `json:"namespaces,omitempty" k8s:"format=label,max=100"` // the bound; empty is the whole cluster
	Default    bool     `json:"default,omitempty"`                               // make it the org's default cluster
}

// DeregisterIn names the cluster to forget, with every version of its
// credential. Deregistering one that is not registered is no error.
type DeregisterIn struct {
	Cluster string `json:"cluster" k8s:"format=label"`
}

// Deleted answers every deletion. All of them are idempotent.
type Deleted struct {
	Removed bool `json:"removed"` // false when there was nothing to remove
}

// StatusIn names the cluster to probe.
type StatusIn struct {
	Cluster string `json:"cluster" k8s:"format=label"`
}

// Status says whether a cluster answers. A cluster that does not answer is a
// Status and not an error.
type Status struct {
	Connected bool   `json:"connected"`
	Version   string `json:"version,omitempty"` // gitVersion, such as v1.36.3, when connected
	Reason    string `json:"reason,omitempty"`  // why not, when not
}
