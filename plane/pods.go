package plane

// PodsIn lists pods.
type PodsIn struct {
	Cluster       string `json:"cluster" k8s:"format=label"`
	Namespace     string `json:"namespace,omitempty" k8s:"format=label"`
	LabelSelector string `json:"labelSelector,omitempty" k8s:"format=selector,max=4096"`
	NodeName      string `json:"nodeName,omitempty" k8s:"format=name"` // only pods bound to this node
	Limit         int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue      string `json:"continue,omitempty" k8s:"max=16384"`
}

// Pods is one page of pods.
type Pods struct {
	Pods     []Pod  `json:"pods,omitempty"`
	Continue string `json:"continue,omitempty"`
}

// Pod is one pod. A container's environment is never part of it.
type Pod struct {
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name,omitempty"`
	Phase      string   `json:"phase,omitempty"`      // status.phase
	Reason     string   `json:"reason,omitempty"`     // kubectl's STATUS, where it says more than the phase
	Node       string   `json:"node,omitempty"`       // empty until it is scheduled
	Controller string   `json:"controller,omitempty"` // "Kind/name" of its controlling owner
	Claims     []string `json:"claims,omitempty"`     // the persistent volume claims it mounts
	Images     []string `json:"images,omitempty"`     // init containers first, then containers
	Restarts   int      `json:"restarts"`             // counted as kubectl does
}

// LogsIn reads the end of one container's log.
type LogsIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Pod       string `json:"pod" k8s:"format=name"`

	// Container may be left empty when the pod has one container or names a
	// default one; otherwise that is a 400 that lists them.
	Container string `json:"container,omitempty" k8s:"format=label"`

	TailLines int `json:"tailLines,omitempty" k8s:"min=0,max=1000000"` // the last so many lines; 0 is all there is, up to 1 MiB
}

// Logs is the end of a container's log.
type Logs struct {
	Log       string `json:"log,omitempty"` // valid UTF-8, at most 1 MiB
	Truncated bool   `json:"truncated"`     // older output was dropped to fit
}
