package plane

// DeploymentsIn lists deployments. The other namespaced lists take the same
// fields.
type DeploymentsIn struct {
	Cluster       string `json:"cluster" k8s:"format=label"`
	Namespace     string `json:"namespace,omitempty" k8s:"format=label"`
	LabelSelector string `json:"labelSelector,omitempty" k8s:"format=selector,max=4096"`
	Limit         int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue      string `json:"continue,omitempty" k8s:"max=16384"`
}

// The lists that take what [DeploymentsIn] takes. They are types of their own,
// so that one of them can gain a field without the others.
type (
	ReplicasetsIn  DeploymentsIn // lists replica sets
	StatefulsetsIn DeploymentsIn // lists stateful sets
	ServicesIn     DeploymentsIn // lists services
	IngressesIn    DeploymentsIn // lists ingresses
	EventsIn       DeploymentsIn // lists events
	ConfigMapsIn   DeploymentsIn // lists config maps
)

// Workloads is one page of deployments, replica sets or stateful sets.
type Workloads struct {
	Workloads []Workload `json:"workloads,omitempty"`
	Continue  string     `json:"continue,omitempty"`
}

// Workload is one deployment, replica set or stateful set.
type Workload struct {
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	Kind      string   `json:"kind,omitempty"`   // Deployment, ReplicaSet or StatefulSet
	Replicas  int      `json:"replicas"`         // wanted
	Ready     int      `json:"ready"`            // ready
	Updated   int      `json:"updated"`          // of the current template
	Images    []string `json:"images,omitempty"` // init containers first, then containers
	Owner     string   `json:"owner,omitempty"`  // "Kind/name" of its controlling owner
}

// DeploymentIn names the deployment wanted.
type DeploymentIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Name      string `json:"name" k8s:"format=name"`
}

// Services is one page of services.
type Services struct {
	Services []Service `json:"services,omitempty"`
	Continue string    `json:"continue,omitempty"`
}

// Service is one service.
type Service struct {
	Namespace    string   `json:"namespace,omitempty"`
	Name         string   `json:"name,omitempty"`
	Type         string   `json:"type,omitempty"`         // ClusterIP, NodePort, LoadBalancer or ExternalName
	ClusterIp    string   `json:"clusterIp,omitempty"`    // "None" for a headless one
	Ips          []string `json:"ips,omitempty"`          // a load balancer's addresses and names
	LbId         string   `json:"lbId,omitempty"`         // the provider's id of the load balancer
	Ports        []int    `json:"ports,omitempty"`        // the service's own ports
	ClusterIps   []string `json:"clusterIps,omitempty"`   // all of them, of both families
	ExternalName string   `json:"externalName,omitempty"` // what an ExternalName stands for
}

// Ingresses is one page of ingresses.
type Ingresses struct {
	Ingresses []Ingress `json:"ingresses,omitempty"`
	Continue  string    `json:"continue,omitempty"`
}

// Ingress is one ingress.
type Ingress struct {
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	Hosts     []string `json:"hosts,omitempty"`     // of its rules
	TlsHosts  []string `json:"tlsHosts,omitempty"`  // of its TLS section
	Addresses []string `json:"addresses,omitempty"` // of its load balancer
}

// Events is one page of events, oldest first.
type Events struct {
	Events   []Event `json:"events,omitempty"`
	Continue string  `json:"continue,omitempty"`
}

// Event is one event.
type Event struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Type      string `json:"type,omitempty"` // Normal or Warning
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	Object    string `json:"object,omitempty"` // "Kind/name" of what it is about
	Count     int    `json:"count"`            // how often it happened
	LastSeen  int    `json:"lastSeen"`         // unix seconds
}

// ConfigMaps is one page of config maps.
type ConfigMaps struct {
	ConfigMaps []ConfigMap `json:"configMaps,omitempty"`
	Continue   string      `json:"continue,omitempty"`
}

// ConfigMap is one config map.
type ConfigMap struct {
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name,omitempty"`
	Data       Map         `json:"data,omitempty"`
	BinaryKeys []BinaryKey `json:"binaryKeys,omitempty"` // of binaryData, whose bytes are not answered
}

// BinaryKey is one key of a config map's binaryData.
type BinaryKey struct {
	Name  string `json:"name,omitempty"`
	Bytes int    `json:"bytes"` // the value's size, decoded
}
