// Package main is the guest of the clusters ops: the registry of clusters that
// every other op reaches through.
package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

func init() {
	sdk.Handle("k8s_clusters_list", list)
	sdk.Handle("k8s_clusters_get", get)
	sdk.Handle("k8s_clusters_register", register)
	sdk.Handle("k8s_clusters_deregister", deregister)
	sdk.Handle("k8s_clusters_status", status)
}

func main() {}

// list answers the record of every cluster that the caller's organisation has
// registered, by name. Nobody else's are ever part of it, and no record carries
// a credential. Nothing is asked of the clusters themselves: nodes and GPUs are
// as they were counted when the cluster was registered.
//
// Response: {"clusters": [{"name": "prod", "org": "acme", "provider": "byo",
// "endpoint": "https://k8s.acme.example:6443", "nodes": 3, "nvidiaGpu": 0, "amdGpu": 0,
// "registered": "2026-01-02T15:04:05Z", "default": true}]}
//
//k8s:op k8s_clusters_list GET /v1/k8s/clusters out=plane.Clusters items=clusters
func list(c *sdk.Call) error {
	return c.Clusters(func(r lens.Value) error {
		return c.Emit(func(w *sdk.Writer) { record(r, w) })
	})
}

// get answers the record of one cluster. A name that the caller's organisation
// has not registered is a 404, the same whether somebody else has it or nobody.
//
// Example: {"cluster": "prod"}
//
// Response: {"name": "prod", "org": "acme", "provider": "byo", "endpoint": "https://k8s.acme.example:6443",
// "nodes": 3, "nvidiaGpu": 0, "amdGpu": 0, "namespaces": ["web", "jobs"],
// "registered": "2026-01-02T15:04:05Z", "default": true, "credentialExpires": "2027-01-02T15:04:05Z"}
//
//k8s:op k8s_clusters_get GET /v1/k8s/clusters/{cluster} in=plane.ClusterIn out=plane.Cluster
func get(c *sdk.Call) error {
	return answer(c)(c.Cluster(c.Str("cluster")))
}

// register registers a cluster under a name of the caller's organisation, or
// rotates the credential of one that is registered already. The kubeconfig is
// checked first: no plugins, no files, no proxy, no impersonation, TLS only, an
// address that may be dialled. Then the cluster must answer, within 15 seconds,
// with its nodes, or for a bounded registration with a read in its namespaces.
// Only then is the credential sealed in the KMS.
//
// namespaces is the bound: with it every later op is confined to those
// namespaces, and cluster-wide ones are refused. The kubeconfig is in no
// answer, log or error, and the code that answers ops never sees it.
//
// Example: {"name": "prod", "kubeconfig": "apiVersion: v1\nkind: Config\n…", "namespaces": ["web", "jobs"], "default": true}
//
// Response: {"name": "prod", "org": "acme", "provider": "byo", "endpoint": "https://k8s.acme.example:6443",
// "nodes": 0, "nvidiaGpu": 0, "amdGpu": 0, "namespaces": ["web", "jobs"],
// "registered": "2026-01-02T15:04:05Z", "default": true}
//
//k8s:op k8s_clusters_register POST /v1/k8s/clusters in=plane.RegisterIn out=plane.Cluster
//k8s:grant list v1/nodes cluster
//k8s:status 201
//k8s:limit millis=20000
func register(c *sdk.Call) error { return answer(c)(c.Register()) }

// deregister forgets a cluster: every version of its credential is destroyed in
// the KMS, and what still runs on it is stopped. The cluster itself is not
// touched. It is safe to repeat: removed is false when there was nothing.
//
// Example: {"cluster": "prod"}
//
// Response: {"removed": true}
//
//k8s:op k8s_clusters_deregister DELETE /v1/k8s/clusters/{cluster} in=plane.DeregisterIn out=plane.Deleted
func deregister(c *sdk.Call) error {
	removed, err := c.Deregister(c.Str("cluster"))
	if err != nil {
		return err
	}
	return c.Answer(func(w *sdk.Writer) { w.Bool("removed", removed) })
}

// status says whether a cluster answers, by asking for its version and nothing
// else. A cluster that does not is a 200 with connected false and the reason,
// such as "connect_timeout: …"; a name that is not registered is a 404.
//
// Example: {"cluster": "prod"}
//
// Response: {"connected": true, "version": "v1.36.3"}
//
//k8s:op k8s_clusters_status GET /v1/k8s/clusters/{cluster}/status in=plane.StatusIn out=plane.Status
//k8s:grant get url:/version
func status(c *sdk.Call) error {
	version, err := c.Version()
	return c.Answer(func(w *sdk.Writer) {
		w.Bool("connected", err == nil)
		w.Str("version", version.Get("gitVersion").Str())
		if f, ok := err.(*sdk.Failure); ok {
			w.Str("reason", f.Code+": "+f.Message)
		} else if err != nil {
			w.Str("reason", err.Error())
		}
	})
}

func answer(c *sdk.Call) func(lens.Value, error) error {
	return func(r lens.Value, err error) error {
		if err != nil {
			return err
		}
		return c.Answer(func(w *sdk.Writer) { record(r, w) })
	}
}

func record(r lens.Value, w *sdk.Writer) {
	for _, name := range [...]string{"name", "org", "provider", "endpoint"} {
		w.Str(name, r.Get(name).Str())
	}
	for _, name := range [...]string{"nodes", "nvidiaGpu", "amdGpu"} {
		n, _ := r.Get(name).Int()
		w.Int(name, n)
	}
	w.Strs("namespaces", r.Get("namespaces").Strs())
	w.Str("registered", r.Get("registered").Str())
	w.Bool("default", r.Get("default").Bool())
	w.Str("credentialExpires", r.Get("credentialExpires").Str())
}
