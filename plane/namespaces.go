package plane

// NamespacesIn lists the namespaces the registration may address.
type NamespacesIn struct {
	Cluster  string `json:"cluster" k8s:"format=label"`
	Limit    int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue string `json:"continue,omitempty" k8s:"max=16384"`
}

// Namespaces is one page of namespaces.
type Namespaces struct {
	Namespaces []Namespace `json:"namespaces,omitempty"`
	Continue   string      `json:"continue,omitempty"`
}

// Namespace is one namespace.
type Namespace struct {
	Name   string `json:"name,omitempty"`
	Phase  string `json:"phase,omitempty"` // Active or Terminating
	Labels Map    `json:"labels,omitempty"`
}

// NamespaceIn names the namespace wanted.
type NamespaceIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Namespace string `json:"namespace" k8s:"format=label"`
}

// EnsureNamespaceIn makes a namespace unless it is there. Labels are those of
// one made here; one that exists is left as it is.
type EnsureNamespaceIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Labels    Map    `json:"labels,omitempty" k8s:"format=labels,max=64"`
}

// Ensured answers an ensure: the object's name, and whether this call made it.
type Ensured struct {
	Name    string `json:"name,omitempty"`
	Created bool   `json:"created"`
}

// DeleteNamespaceIn deletes a namespace and all that is in it. It is refused
// for a bounded registration.
type DeleteNamespaceIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Namespace string `json:"namespace" k8s:"format=label"`
}
