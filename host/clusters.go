package host

import (
	"encoding/json"
	"strings"

	"github.com/hanzoai/k8s/registry"
)

// registrar refuses the registry's functions to ops that are not its own.
func (c *call) registrar() *registry.Refusal {
	if !strings.HasPrefix(c.op.Token, "k8s_clusters_") {
		return c.notGranted("use", "the registry")
	}
	return nil
}

func one(v any) (stream, *registry.Refusal) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, guestFault("the record cannot be written")
	}
	return &values{items: [][]byte{b}}, nil
}

func (c *call) clustersList(*noRequest) (stream, *registry.Refusal) {
	if r := c.registrar(); r != nil {
		return nil, r
	}
	records, err := c.registry.List(c.ctx)
	if err != nil {
		return nil, c.registryRefusal(err)
	}
	v := &values{}
	for _, record := range records {
		b, err := json.Marshal(record)
		if err != nil {
			return nil, guestFault("the record cannot be written")
		}
		v.items = append(v.items, b)
	}
	return v, nil
}

type clusterRequest struct {
	Cluster string
}

func (in *clusterRequest) members() []member {
	return []member{{"cluster", &in.Cluster}}
}

func (c *call) clustersGet(in *clusterRequest) (stream, *registry.Refusal) {
	if r := c.registrar(); r != nil {
		return nil, r
	}
	record, err := c.registry.Get(c.ctx, in.Cluster)
	if err != nil {
		return nil, c.registryRefusal(err)
	}
	return one(record)
}

type registerRequest struct {
	Name       string
	Kubeconfig string // the handle that stands for it
	Provider   string
	Namespaces []string
	Default    *bool
}

func (in *registerRequest) members() []member {
	return []member{{"name", &in.Name}, {"kubeconfig", &in.Kubeconfig}, {"provider", &in.Provider}, {"namespaces", &in.Namespaces}, {"default", &in.Default}}
}

// clustersRegister exchanges the handle for the kubeconfig, once.
func (c *call) clustersRegister(in *registerRequest) (stream, *registry.Refusal) {
	if r := c.registrar(); r != nil {
		return nil, r
	}
	kubeconfig, ok := c.in.Secrets[in.Kubeconfig]
	if !ok || c.spent[in.Kubeconfig] {
		return nil, badField("kubeconfig", "is not a handle of this call, or has been used")
	}
	if c.spent == nil {
		c.spent = make(map[string]bool)
	}
	c.spent[in.Kubeconfig] = true
	record, err := c.registry.Register(c.ctx, registry.Registration{
		Name: in.Name, Kubeconfig: kubeconfig, Provider: in.Provider, Namespaces: in.Namespaces, Default: in.Default != nil && *in.Default,
	})
	if err != nil {
		return nil, c.registryRefusal(err)
	}
	return one(record)
}

func (c *call) clustersDeregister(in *clusterRequest) (stream, *registry.Refusal) {
	if r := c.registrar(); r != nil {
		return nil, r
	}
	removed, err := c.registry.Deregister(c.ctx, in.Cluster)
	if err != nil {
		return nil, c.registryRefusal(err)
	}
	return one(struct {
		Removed bool `json:"removed"`
	}{removed})
}

func (c *call) registryRefusal(err error) *registry.Refusal {
	if r := c.over(); r != nil {
		return r
	}
	return refusal(err)
}
