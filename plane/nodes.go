package plane

// NodesIn lists nodes. It is refused for a bounded registration.
type NodesIn struct {
	Cluster  string `json:"cluster" k8s:"format=label"`
	Limit    int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue string `json:"continue,omitempty" k8s:"max=16384"`
}

// Nodes is one page of nodes.
type Nodes struct {
	Nodes    []Node `json:"nodes,omitempty"`
	Continue string `json:"continue,omitempty"`
}

// Node is one node.
type Node struct {
	Name         string `json:"name,omitempty"`
	Ready        bool   `json:"ready"`                  // its Ready condition is True
	Schedulable  bool   `json:"schedulable"`            // not cordoned
	Region       string `json:"region,omitempty"`       // topology.kubernetes.io/region
	InstanceKind string `json:"instanceKind,omitempty"` // node.kubernetes.io/instance-type
	Cpu          string `json:"cpu,omitempty"`          // capacity, a quantity such as "8"
	Memory       string `json:"memory,omitempty"`       // capacity, a quantity such as "32Gi"
	NvidiaGpu    int    `json:"nvidiaGpu"`              // nvidia.com/gpu, allocatable
	AmdGpu       int    `json:"amdGpu"`                 // amd.com/gpu, allocatable
	InternalIp   string `json:"internalIp,omitempty"`   // the first InternalIP address
}

// CordonIn cordons a node, uncordons it, or cordons and drains it. It is safe
// to repeat, and refused for a bounded registration.
type CordonIn struct {
	Cluster     string `json:"cluster" k8s:"format=label"`
	Node        string `json:"node" k8s:"format=name"`
	Schedulable bool   `json:"schedulable,omitempty"` // what the node is to be: false cordons, true uncordons
	Drain       bool   `json:"drain,omitempty"`       // after cordoning, evict the pods that can be evicted

	// TimeoutSeconds is how long a drain waits for the evicted pods to be gone;
	// 0 is 60.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty" k8s:"min=0,max=600"`

	// Force and DeleteEmptyDirData let a drain take bare pods and pods with
	// emptyDir data. Without them a node that has such pods is a 409 that lists
	// them, before anything is evicted.
	Force              bool `json:"force,omitempty"`
	DeleteEmptyDirData bool `json:"deleteEmptyDirData,omitempty"`

	DryRun bool `json:"dryRun,omitempty"` // change nothing; answer with the plan
}

// Cordoned is what became of a cordon.
type Cordoned struct {
	Evicted   int         `json:"evicted"`             // pods evicted and gone
	Remaining []Remaining `json:"remaining,omitempty"` // pods a drain left, and why
	Plan      []Remaining `json:"plan,omitempty"`      // dryRun only: what a drain would do with each pod
}

// Remaining is one pod of a drain and the reason it is in the list.
type Remaining struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Reason    string `json:"reason,omitempty"`  // stable, such as blocked_by_pdb, or what the plan is
	Message   string `json:"message,omitempty"` // what the cluster said, if anything
}

// VolumeStatsIn reads how full the claims of a whole cluster are, from its
// kubelets.
type VolumeStatsIn struct {
	Cluster string `json:"cluster" k8s:"format=label"`
}

// VolumeStats is the usage of every measured claim, sorted by namespace and
// name. A claim without a row is unmeasured, which is not empty.
type VolumeStats struct {
	Volumes    []VolumeUsage `json:"volumes,omitempty"`
	NodesRead  int           `json:"nodesRead"`        // kubelets that answered
	NodesTotal int           `json:"nodesTotal"`       // nodes there are
	Failed     []NodeFailure `json:"failed,omitempty"` // kubelets that did not, and why
}

// VolumeUsage is one claim's usage: the largest reading when two kubelets
// report it.
type VolumeUsage struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UsedBytes int    `json:"usedBytes"`
}

// NodeFailure is one node whose kubelet did not answer.
type NodeFailure struct {
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`
}
