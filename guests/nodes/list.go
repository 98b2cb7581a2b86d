package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// list answers the cluster's nodes: whether each is ready and takes pods, where
// and what it is, and how much it has. cpu and memory are its capacity; the GPU
// counts are what pods may have of them. A bounded registration may not: nodes
// belong to no namespace.
//
// Example: {"cluster": "prod"}
//
// Response: {"nodes": [{"name": "node-1", "ready": true, "schedulable": true, "region": "fra1",
// "instanceKind": "g-8vcpu-32gb", "cpu": "8", "memory": "32Gi", "nvidiaGpu": 1, "amdGpu": 0,
// "internalIp": "10.1.0.4"}]}
//
//k8s:op k8s_nodes_list GET /v1/k8s/nodes in=plane.NodesIn out=plane.Nodes items=nodes
//k8s:grant list v1/nodes cluster
func list(c *sdk.Call) error { return c.List(sdk.Query{Resource: "v1/nodes"}, node) }

// The fields of corev1.NodeSpec and NodeStatus.
const (
	nodeUnschedulable = 4

	nodeCapacity    = 1
	nodeAllocatable = 2
	nodeConditions  = 4
	nodeAddresses   = 5

	conditionType   = 1
	conditionStatus = 2
	addressType     = 1
	addressValue    = 2
)

func node(n lens.Message, w *sdk.Writer) {
	meta, status := n.Meta(), n.Sub(lens.Status)
	w.Str("name", meta.Name())
	w.Bool("ready", ready(status))
	w.Bool("schedulable", !n.Sub(lens.Spec).Bool(nodeUnschedulable))
	w.Str("region", label(meta, "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"))
	w.Str("instanceKind", label(meta, "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"))
	w.Str("cpu", status.QuantityText(nodeCapacity, "cpu"))
	w.Str("memory", status.QuantityText(nodeCapacity, "memory"))
	w.Int("nvidiaGpu", status.Quantity(nodeAllocatable, "nvidia.com/gpu").Value())
	w.Int("amdGpu", status.Quantity(nodeAllocatable, "amd.com/gpu").Value())
	for a := status.Each(nodeAddresses); a.Next(); {
		if a.Str(addressType) == "InternalIP" {
			w.Str("internalIp", a.Str(addressValue))
			break
		}
	}
}

func ready(status lens.Message) bool {
	for c := status.Each(nodeConditions); c.Next(); {
		if c.Str(conditionType) == "Ready" {
			return c.Str(conditionStatus) == "True"
		}
	}
	return false
}

// label is the first of several labels that is there: the name of today, then
// the one that older clusters have.
func label(meta lens.Meta, keys ...string) string {
	for _, key := range keys {
		if v, _ := meta.Key(lens.MetaLabels, key); v != "" {
			return v
		}
	}
	return ""
}
