// Package main is the guest of the namespaces ops.
package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

func init() {
	sdk.Handle("k8s_namespaces_list", list)
	sdk.Handle("k8s_namespaces_get", get)
	sdk.Handle("k8s_namespaces_ensure", ensure)
	sdk.Handle("k8s_namespaces_delete", remove)
}

func main() {}

const resource = "v1/namespaces"

// list answers the namespaces that the registration may address. For a bounded
// one that is its bound, read one by one; those in it that do not exist are
// left out.
//
// Example: {"cluster": "prod"}
//
// Response: {"namespaces": [{"name": "web", "phase": "Active", "labels": {"kubernetes.io/metadata.name": "web"}}]}
//
//k8s:op k8s_namespaces_list GET /v1/k8s/namespaces in=plane.NamespacesIn out=plane.Namespaces items=namespaces
//k8s:grant list,get v1/namespaces cluster
func list(c *sdk.Call) error { return c.List(sdk.Query{Resource: resource}, namespace) }

// get answers one namespace. phase is Terminating while it is being deleted.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"name": "web", "phase": "Active", "labels": {"kubernetes.io/metadata.name": "web"}}
//
//k8s:op k8s_namespaces_get GET /v1/k8s/namespaces/{namespace} in=plane.NamespaceIn out=plane.Namespace
//k8s:grant get v1/namespaces cluster
func get(c *sdk.Call) error { return c.Show(named(c), namespace) }

// ensure makes a namespace unless it is there. One made here carries the labels
// asked for and managed-by: hanzo-cloud; one that exists is left as it is, and
// created is false. One that is being deleted is a 409, terminating: it will be
// gone, and can be made then.
//
// Example: {"cluster": "prod", "namespace": "web", "labels": {"team": "shop"}}
//
// Response: {"name": "web", "created": true}
//
//k8s:op k8s_namespaces_ensure POST /v1/k8s/namespaces in=plane.EnsureNamespaceIn out=plane.Ensured
//k8s:grant get,create v1/namespaces cluster
func ensure(c *sdk.Call) error {
	return c.Ensure(named(c), func(w *sdk.Writer) {
		w.Str("apiVersion", "v1")
		w.Str("kind", "Namespace")
		w.Object("metadata")
		w.Str("name", c.Str("namespace"))
		w.Map("labels", sdk.Labels(c.Map("labels")))
		w.End()
	}, nil)
}

// remove deletes a namespace and everything in it, which takes the cluster a
// while: the answer means that the deletion has begun. It is safe to repeat:
// removed is false when there is no such namespace. A bounded registration may
// not.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"removed": true}
//
//k8s:op k8s_namespaces_delete DELETE /v1/k8s/namespaces/{namespace} in=plane.DeleteNamespaceIn out=plane.Deleted
//k8s:grant delete v1/namespaces cluster
func remove(c *sdk.Call) error { return c.Remove(named(c)) }

// named is the namespace that the input names. It is cluster-scoped itself.
func named(c *sdk.Call) sdk.Name {
	return sdk.Name{Resource: resource, Name: c.Str("namespace")}
}

const statusPhase = 1

func namespace(n lens.Message, w *sdk.Writer) {
	meta := n.Meta()
	w.Str("name", meta.Name())
	w.Str("phase", n.Sub(lens.Status).Str(statusPhase))
	w.Map("labels", meta.Map(lens.MetaLabels))
}
