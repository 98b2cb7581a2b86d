// Package main is the guest of the resources ops: custom resources of the
// closed table of kinds, and of no other.
package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

func init() {
	sdk.Handle("k8s_resources_list", list)
	sdk.Handle("k8s_resources_get", get)
	sdk.Handle("k8s_resources_watch", watch)
	sdk.Handle("k8s_resources_apply", apply)
	sdk.Handle("k8s_resources_delete", remove)
}

func main() {}

// selected is the resources that the input asks for.
func selected(c *sdk.Call) sdk.Query {
	return sdk.Query{Kind: c.Str("kind"), Namespace: c.Str("namespace"), LabelSelector: c.Str("labelSelector")}
}

// named is the resource that the input names.
func named(c *sdk.Call) sdk.Name {
	return sdk.Name{Kind: c.Str("kind"), Namespace: c.Str("namespace"), Name: c.Str("name")}
}

// resource writes one resource. Of its metadata only the names and labels are
// answered: annotations hold copies of what was applied, and managedFields is
// the cluster's own bookkeeping.
func resource(kind string, r lens.Value, w *sdk.Writer) {
	of := r.Members("metadata", "spec", "status")
	meta, spec, status := of[0], of[1], of[2]
	w.Str("kind", kind)
	w.Str("namespace", meta.Get("namespace").Str())
	w.Str("name", meta.Get("name").Str())
	w.Map("labels", meta.Get("labels").Map())
	w.Raw("spec", spec)
	w.Raw("status", status)
	w.Str("version", meta.Get("resourceVersion").Str())
}
