package plane

// PodMetricsIn reads pod usage from the cluster's metrics API.
type PodMetricsIn struct {
	Cluster       string `json:"cluster" k8s:"format=label"`
	Namespace     string `json:"namespace,omitempty" k8s:"format=label"`
	LabelSelector string `json:"labelSelector,omitempty" k8s:"format=selector,max=4096"`
	Limit         int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue      string `json:"continue,omitempty" k8s:"max=16384"`
}

// PodMetrics is the usage of every measured pod. A cluster without a metrics
// API answers Available false, never zeroes.
type PodMetrics struct {
	Pods      []PodUsage `json:"pods,omitempty"`
	Available bool       `json:"available"`
	Reason    string     `json:"reason,omitempty"` // why not, when not
	Continue  string     `json:"continue,omitempty"`
}

// PodUsage is one pod's usage, summed over its containers.
type PodUsage struct {
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	CpuMilli    int    `json:"cpuMilli"` // thousandths of a core
	MemoryBytes int    `json:"memoryBytes"`
	At          int    `json:"at"` // when it was measured, unix seconds
}
