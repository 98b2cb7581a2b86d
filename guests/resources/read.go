package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// list answers the custom resources of one kind, with spec and status as they
// stand, numbers of any size and unknown fields included. version is the
// list's: a watch goes on from it.
//
// A kind that is not in the table is a 400, kind_not_allowed; one that this
// cluster does not have is a 404, kind_not_available. Annotations and
// managedFields are never part of the answer.
//
// Example: {"cluster": "prod", "kind": "App", "namespace": "web"}
//
// Response: {"resources": [{"kind": "App", "namespace": "web", "name": "shop", "labels": {"team": "shop"},
// "spec": {"replicas": 2}, "status": {"ready": true}, "version": "81923"}], "version": "82001"}
//
//k8s:op k8s_resources_list GET /v1/k8s/resources in=plane.ResourcesIn out=plane.Resources items=resources
//k8s:grant list kinds
func list(c *sdk.Call) error {
	kind := c.Str("kind")
	s, err := c.EachJSON(selected(c), func(r lens.Value) error {
		return c.Emit(func(w *sdk.Writer) { resource(kind, r, w) })
	})
	if err != nil {
		return err
	}
	return c.Answer(func(w *sdk.Writer) { w.Str("version", s.Trailer().Get("version").Str()) })
}

// get answers one custom resource, as the list does: its labels, its spec and its
// status as they stand. One that is not there is a 404, not_found; a kind that
// the cluster does not have is a 404, kind_not_available.
//
// Example: {"cluster": "prod", "kind": "App", "namespace": "web", "name": "shop"}
//
// Response: {"kind": "App", "namespace": "web", "name": "shop", "spec": {"replicas": 2}, "version": "81923"}
//
//k8s:op k8s_resources_get GET /v1/k8s/resources/{kind}/{namespace}/{name} in=plane.ResourceIn out=plane.Resource
//k8s:grant get kinds
func get(c *sdk.Call) error { return show(c)(c.GetJSON(named(c))) }

// show answers with one resource.
func show(c *sdk.Call) func(lens.Value, error) error {
	return func(r lens.Value, err error) error {
		if err != nil {
			return err
		}
		return c.Answer(func(w *sdk.Writer) { resource(c.Str("kind"), r, w) })
	}
}

// watch answers what has changed, and the version to go on from.
//
// Without a version it answers at once with everything there is, as ADDED. With
// one it answers the changes since then, waiting up to waitSeconds, at most 55,
// for the first; no changes is an answer too. Call it again with the version it
// answered: nothing is skipped, and nothing comes twice.
//
// expired means that the cluster has forgotten that version: what changed
// cannot be told any more, so call it without one. Types are ADDED, MODIFIED
// and DELETED; of a deleted resource the last state is answered.
//
// Example: {"cluster": "prod", "kind": "App", "namespace": "web", "version": "82001", "waitSeconds": 30}
//
// Response: {"changes": [{"type": "MODIFIED", "resource": {"kind": "App", "namespace": "web", "name": "shop",
// "spec": {"replicas": 3}, "version": "82044"}}], "version": "82044", "expired": false}
//
//k8s:op k8s_resources_watch GET /v1/k8s/resources/watch in=plane.WatchIn out=plane.Changes items=changes
//k8s:grant list,watch kinds
//k8s:limit millis=90000 hostMillis=70000
//k8s:long
func watch(c *sdk.Call) error {
	q := selected(c)
	q.Version, q.WaitSeconds = c.Str("version"), c.Int("waitSeconds")
	var s *sdk.Stream
	var err error
	if q.Version == "" {
		q.WaitSeconds = 0
		s, err = c.EachJSON(q, func(r lens.Value) error { return change(c, "ADDED", r) })
	} else {
		s, err = c.Watch(q, func(e lens.Value) error { return change(c, e.Get("type").Str(), e.Get("object")) })
	}
	if err != nil {
		return err
	}
	return c.Answer(func(w *sdk.Writer) {
		w.Str("version", s.Trailer().Get("version").Str())
		w.Bool("expired", s.Trailer().Get("expired").Bool())
	})
}

func change(c *sdk.Call, kind string, r lens.Value) error {
	return c.Emit(func(w *sdk.Writer) {
		w.Str("type", kind)
		w.Object("resource")
		resource(c.Str("kind"), r, w)
		w.End()
	})
}
