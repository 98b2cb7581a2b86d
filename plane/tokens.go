package plane

// The tokens: an operation's one identity, on the call plane, in the
// declaration, in metrics and in manifests. A constant's name is the token's in
// CamelCase, less "k8s_".
const (
	ClustersList       = "k8s_clusters_list"       // no In; Clusters
	ClustersGet        = "k8s_clusters_get"        // ClusterIn; Cluster
	ClustersRegister   = "k8s_clusters_register"   // RegisterIn; Cluster
	ClustersDeregister = "k8s_clusters_deregister" // DeregisterIn; Deleted
	ClustersStatus     = "k8s_clusters_status"     // StatusIn; Status

	NodesList        = "k8s_nodes_list"         // NodesIn; Nodes
	NodesCordon      = "k8s_nodes_cordon"       // CordonIn; Cordoned
	NodesVolumeStats = "k8s_nodes_volume_stats" // VolumeStatsIn; VolumeStats

	NamespacesList   = "k8s_namespaces_list"   // NamespacesIn; Namespaces
	NamespacesGet    = "k8s_namespaces_get"    // NamespaceIn; Namespace
	NamespacesEnsure = "k8s_namespaces_ensure" // EnsureNamespaceIn; Ensured
	NamespacesDelete = "k8s_namespaces_delete" // DeleteNamespaceIn; Deleted

	PodsList = "k8s_pods_list" // PodsIn; Pods
	PodsLogs = "k8s_pods_logs" // LogsIn; Logs

	VolumesListClaims     = "k8s_volumes_list_claims"     // ClaimsIn; Claims
	VolumesListPersistent = "k8s_volumes_list_persistent" // VolumesIn; Volumes
	VolumesEnsureClaim    = "k8s_volumes_ensure_claim"    // EnsureClaimIn; Ensured
	VolumesExpandClaim    = "k8s_volumes_expand_claim"    // ExpandClaimIn; Expanded

	WorkloadsListDeployments  = "k8s_workloads_list_deployments"  // DeploymentsIn; Workloads
	WorkloadsGetDeployment    = "k8s_workloads_get_deployment"    // DeploymentIn; Workload
	WorkloadsListReplicasets  = "k8s_workloads_list_replicasets"  // ReplicasetsIn; Workloads
	WorkloadsListStatefulsets = "k8s_workloads_list_statefulsets" // StatefulsetsIn; Workloads
	WorkloadsListServices     = "k8s_workloads_list_services"     // ServicesIn; Services
	WorkloadsListIngresses    = "k8s_workloads_list_ingresses"    // IngressesIn; Ingresses
	WorkloadsListEvents       = "k8s_workloads_list_events"       // EventsIn; Events
	WorkloadsListConfigmaps   = "k8s_workloads_list_configmaps"   // ConfigMapsIn; ConfigMaps

	JobsCreate = "k8s_jobs_create" // CreateJobIn; Job
	JobsList   = "k8s_jobs_list"   // JobsIn; Jobs
	JobsGet    = "k8s_jobs_get"    // JobIn; Job

	ResourcesList   = "k8s_resources_list"   // ResourcesIn; Resources
	ResourcesGet    = "k8s_resources_get"    // ResourceIn; Resource
	ResourcesWatch  = "k8s_resources_watch"  // WatchIn; Changes
	ResourcesApply  = "k8s_resources_apply"  // ApplyIn; Resource
	ResourcesDelete = "k8s_resources_delete" // DeleteResourceIn; Deleted

	AccessCan = "k8s_access_can" // CanIn; Access

	MetricsPods = "k8s_metrics_pods" // PodMetricsIn; PodMetrics
)

// Op is one row of [Table].
type Op struct {
	Token string
	In    any // a zero value of the input type; nil when the op takes none
	Out   any // a zero value of the output type
}

// Table lists every operation with its types, in the order of the tokens. It is
// for tests and generators: at run time a module's manifest says what its
// operations are. It is a function so that a program that does not call it does
// not link it.
func Table() []Op {
	return []Op{
		{ClustersList, nil, Clusters{}},
		{ClustersGet, ClusterIn{}, Cluster{}},
		{ClustersRegister, RegisterIn{}, Cluster{}},
		{ClustersDeregister, DeregisterIn{}, Deleted{}},
		{ClustersStatus, StatusIn{}, Status{}},
		{NodesList, NodesIn{}, Nodes{}},
		{NodesCordon, CordonIn{}, Cordoned{}},
		{NodesVolumeStats, VolumeStatsIn{}, VolumeStats{}},
		{NamespacesList, NamespacesIn{}, Namespaces{}},
		{NamespacesGet, NamespaceIn{}, Namespace{}},
		{NamespacesEnsure, EnsureNamespaceIn{}, Ensured{}},
		{NamespacesDelete, DeleteNamespaceIn{}, Deleted{}},
		{PodsList, PodsIn{}, Pods{}},
		{PodsLogs, LogsIn{}, Logs{}},
		{VolumesListClaims, ClaimsIn{}, Claims{}},
		{VolumesListPersistent, VolumesIn{}, Volumes{}},
		{VolumesEnsureClaim, EnsureClaimIn{}, Ensured{}},
		{VolumesExpandClaim, ExpandClaimIn{}, Expanded{}},
		{WorkloadsListDeployments, DeploymentsIn{}, Workloads{}},
		{WorkloadsGetDeployment, DeploymentIn{}, Workload{}},
		{WorkloadsListReplicasets, ReplicasetsIn{}, Workloads{}},
		{WorkloadsListStatefulsets, StatefulsetsIn{}, Workloads{}},
		{WorkloadsListServices, ServicesIn{}, Services{}},
		{WorkloadsListIngresses, IngressesIn{}, Ingresses{}},
		{WorkloadsListEvents, EventsIn{}, Events{}},
		{WorkloadsListConfigmaps, ConfigMapsIn{}, ConfigMaps{}},
		{JobsCreate, CreateJobIn{}, Job{}},
		{JobsList, JobsIn{}, Jobs{}},
		{JobsGet, JobIn{}, Job{}},
		{ResourcesList, ResourcesIn{}, Resources{}},
		{ResourcesGet, ResourceIn{}, Resource{}},
		{ResourcesWatch, WatchIn{}, Changes{}},
		{ResourcesApply, ApplyIn{}, Resource{}},
		{ResourcesDelete, DeleteResourceIn{}, Deleted{}},
		{AccessCan, CanIn{}, Access{}},
		{MetricsPods, PodMetricsIn{}, PodMetrics{}},
	}
}
