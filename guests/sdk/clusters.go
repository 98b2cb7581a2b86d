package sdk

import "github.com/hanzoai/k8s/guests/sdk/lens"

// Clusters reads the records of the caller's clusters. It and the other three
// are for the service's own module: no other is given them.
func (c *Call) Clusters(do func(lens.Value) error) error {
	c.request.reset()
	_, err := c.eachJSON(c.open(hostClustersList(c.request.bytes())), do)
	return err
}

// Cluster is the record of one cluster.
func (c *Call) Cluster(name string) (lens.Value, error) {
	c.request.reset()
	c.request.Str("cluster", name)
	return c.value(hostClustersGet(c.request.bytes()))
}

// Register registers a cluster as the input says and returns its record. The
// kubeconfig is a handle that the host gave for it; its value is not to be had.
func (c *Call) Register() (lens.Value, error) {
	w := c.request
	w.reset()
	w.Str("name", c.Str("name"))
	w.Str("kubeconfig", c.Str("kubeconfig"))
	w.Str("provider", c.Str("provider"))
	w.Strs("namespaces", c.Strings("namespaces"))
	w.Bool("default", c.Bool("default"))
	return c.value(hostClustersRegister(w.bytes()))
}

// Deregister forgets a cluster and says whether there was one.
func (c *Call) Deregister(name string) (removed bool, err error) {
	c.request.reset()
	c.request.Str("cluster", name)
	v, err := c.value(hostClustersDeregister(c.request.bytes()))
	return v.Get("removed").Bool(), err
}
