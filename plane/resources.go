package plane

// ResourcesIn lists custom resources of one of the closed kinds.
type ResourcesIn struct {
	Cluster       string `json:"cluster" k8s:"format=label"`
	Kind          string `json:"kind" k8s:"format=kind"` // one of the closed kinds, such as App
	Namespace     string `json:"namespace,omitempty" k8s:"format=label"`
	LabelSelector string `json:"labelSelector,omitempty" k8s:"format=selector,max=4096"`
	Limit         int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue      string `json:"continue,omitempty" k8s:"max=16384"`
}

// Resources is one page of resources.
type Resources struct {
	Resources []Resource `json:"resources,omitempty"`
	Version   string     `json:"version,omitempty"` // the list's own, from which to watch
	Continue  string     `json:"continue,omitempty"`
}

// Resource is one custom resource.
type Resource struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Labels    Map    `json:"labels,omitempty"`
	Spec      Raw    `json:"spec,omitempty"`
	Status    Raw    `json:"status,omitempty"`
	Version   string `json:"version,omitempty"` // resourceVersion, opaque
}

// ResourceIn names the resource wanted.
type ResourceIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Kind      string `json:"kind" k8s:"format=kind"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Name      string `json:"name" k8s:"format=name"`
}

// WatchIn waits for changes of one kind after Version.
type WatchIn struct {
	Cluster     string `json:"cluster" k8s:"format=label"`
	Kind        string `json:"kind" k8s:"format=kind"`
	Namespace   string `json:"namespace,omitempty" k8s:"format=label"`
	Version     string `json:"version,omitempty" k8s:"max=4096"`         // of a list or of the last Changes
	WaitSeconds int    `json:"waitSeconds,omitempty" k8s:"min=0,max=55"` // how long to wait for a first change; 55 at most
}

// Changes is what happened since the version asked for.
type Changes struct {
	Changes []Change `json:"changes,omitempty"`
	Version string   `json:"version,omitempty"` // from which to go on
	Expired bool     `json:"expired"`           // the version asked for is gone: list again
}

// Change is one change.
type Change struct {
	Type     string   `json:"type,omitempty"` // ADDED, MODIFIED or DELETED
	Resource Resource `json:"resource"`
}

// ApplyIn makes a resource what it says, by server-side apply. A field owned by
// somebody else is a 409 that names it and its owner; nothing is forced.
type ApplyIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Kind      string `json:"kind" k8s:"format=kind"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Name      string `json:"name" k8s:"format=name"`
	Labels    Map    `json:"labels,omitempty" k8s:"format=labels,max=64"`
	Spec      Raw    `json:"spec,omitempty" k8s:"max=1572864"` // a JSON object
}

// DeleteResourceIn names the resource to delete.
type DeleteResourceIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Kind      string `json:"kind" k8s:"format=kind"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Name      string `json:"name" k8s:"format=name"`
}
