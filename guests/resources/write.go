package main

import "github.com/hanzoai/k8s/guests/sdk"

// apply makes a custom resource what the call says, by server-side apply: it is
// made if it is not there, and fields that this service applied before and that
// are left out now are removed. Fields of others stay.
//
// A field that somebody else owns is a 409, conflict, that names the field and
// its owner; nothing is forced. What the kind's schema does not allow is a 422
// with the cluster's own causes. The resource carries managed-by: hanzo-cloud
// beside the labels given. spec must be a JSON object; status is not to be set.
// One that is being deleted is a 409, terminating.
//
// Example: {"cluster": "prod", "kind": "App", "namespace": "web", "name": "shop", "spec": {"replicas": 3}}
//
// Response: {"kind": "App", "namespace": "web", "name": "shop", "labels": {"managed-by": "hanzo-cloud"},
// "spec": {"replicas": 3}, "version": "82044"}
//
//k8s:op k8s_resources_apply PUT /v1/k8s/resources in=plane.ApplyIn out=plane.Resource
//k8s:grant get,create,patch kinds
func apply(c *sdk.Call) error {
	spec := c.Raw("spec")
	if !spec.Null() && !spec.Object() {
		return sdk.BadInput("spec", "must be a JSON object")
	}
	n := named(c)
	there, err := c.GetJSON(n)
	if f, ok := err.(*sdk.Failure); ok && f.Code == "not_found" {
		err = nil
	}
	if err != nil {
		return err
	}
	if there.Get("metadata", "deletionTimestamp").Exists() {
		return sdk.Conflict("terminating", n.Name+" is being deleted")
	}
	return show(c)(c.Apply(n, func(w *sdk.Writer) {
		w.Str("apiVersion", apiVersions[n.Kind])
		w.Str("kind", n.Kind)
		w.Object("metadata")
		w.Str("name", n.Name)
		w.Str("namespace", n.Namespace)
		w.Map("labels", sdk.Labels(c.Map("labels")))
		w.End()
		w.Raw("spec", spec)
	}))
}

// remove deletes a custom resource. What its controller made is left to the
// controller. It is safe to repeat: removed is false when there was nothing.
//
// Example: {"cluster": "prod", "kind": "App", "namespace": "web", "name": "shop"}
//
// Response: {"removed": true}
//
//k8s:op k8s_resources_delete DELETE /v1/k8s/resources/{kind}/{namespace}/{name} in=plane.DeleteResourceIn out=plane.Deleted
//k8s:grant delete kinds
func remove(c *sdk.Call) error { return c.Remove(named(c)) }
