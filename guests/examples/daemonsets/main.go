// Package main is a shipped guest: daemon sets, which the built-in ops do not
// list.
//
//k8s:version v1.0.0
package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

func init() { sdk.Handle("k8s_daemonsets_list", list) }

func main() {}

// DaemonSetsIn lists daemon sets.
type DaemonSetsIn struct {
	Cluster       string `json:"cluster" k8s:"format=label"`
	Namespace     string `json:"namespace,omitempty" k8s:"format=label"`
	LabelSelector string `json:"labelSelector,omitempty" k8s:"format=selector,max=4096"`
	Limit         int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue      string `json:"continue,omitempty" k8s:"max=16384"`
}

// DaemonSets is one page of daemon sets.
type DaemonSets struct {
	DaemonSets []DaemonSet `json:"daemonSets,omitempty"`
	Continue   string      `json:"continue,omitempty"`
}

// DaemonSet is one daemon set.
type DaemonSet struct {
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	Wanted    int      `json:"wanted"`  // nodes that should run it
	Ready     int      `json:"ready"`   // nodes where it is ready
	Updated   int      `json:"updated"` // nodes that run the current template
	Images    []string `json:"images,omitempty"`
}

// list answers the daemon sets of a namespace, or of all that the registration
// may address: on how many nodes each should run, is ready, and is up to date.
//
// Example: {"cluster": "prod", "namespace": "kube-system"}
//
// Response: {"daemonSets": [{"namespace": "kube-system", "name": "cilium", "wanted": 3, "ready": 3,
// "updated": 2, "images": ["quay.io/cilium/cilium:v1.18.0"]}]}
//
//k8s:op k8s_daemonsets_list GET /v1/k8s/daemonsets in=DaemonSetsIn out=DaemonSets items=daemonSets
//k8s:grant list apps/v1/daemonsets
func list(c *sdk.Call) error { return c.List(c.Selected("apps/v1/daemonsets"), daemonSet) }

// The fields of appsv1.DaemonSetSpec and DaemonSetStatus.
const (
	specTemplate  = 2
	statusWanted  = 3
	statusReady   = 4
	statusUpdated = 6
)

func daemonSet(d lens.Message, w *sdk.Writer) {
	meta, status := d.Meta(), d.Sub(lens.Status)
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Int("wanted", status.Int32(statusWanted))
	w.Int("ready", status.Int32(statusReady))
	w.Int("updated", status.Int32(statusUpdated))
	w.Images("images", d.Sub(lens.Spec).Sub(specTemplate).Sub(lens.TemplateSpec))
}
