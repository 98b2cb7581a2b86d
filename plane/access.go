package plane

// CanIn asks whether the registered credential may do something, in RBAC's own
// words.
type CanIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Verb      string `json:"verb" k8s:"max=63"`                 // such as get
	Group     string `json:"group,omitempty" k8s:"format=name"` // empty is the core group
	Resource  string `json:"resource" k8s:"max=253"`            // plural, such as pods or pods/log
	Namespace string `json:"namespace,omitempty" k8s:"format=label"`
}

// Access is the cluster's own verdict.
type Access struct {
	Allowed         bool   `json:"allowed"`
	Reason          string `json:"reason,omitempty"`
	Denied          bool   `json:"denied"`                    // refused outright, not only unallowed
	EvaluationError string `json:"evaluationError,omitempty"` // what went wrong while the cluster decided
}
