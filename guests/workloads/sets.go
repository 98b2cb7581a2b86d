package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// listDeployments answers the deployments of a namespace, or of all that the
// registration may address: how many pods each wants, how many are ready, and
// how many are of its current template.
//
// A deployment without a number wants one. images are those of the template,
// init containers first. A template's environment is never part of the answer.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"workloads": [{"namespace": "web", "name": "shop", "kind": "Deployment", "replicas": 3,
// "ready": 2, "updated": 3, "images": ["ghcr.io/acme/shop:1.4"]}]}
//
//k8s:op k8s_workloads_list_deployments GET /v1/k8s/workloads/deployments in=plane.DeploymentsIn out=plane.Workloads items=workloads
//k8s:grant list apps/v1/deployments
func listDeployments(c *sdk.Call) error {
	return list(c, "apps/v1/deployments", deploymentShape, deployment)
}

// getDeployment answers one deployment, as the list does: how many pods it wants,
// how many are ready, and how many are of its current template. One that is not
// there is a 404.
//
// Example: {"cluster": "prod", "namespace": "web", "name": "shop"}
//
// Response: {"namespace": "web", "name": "shop", "kind": "Deployment", "replicas": 3,
// "ready": 2, "updated": 3, "images": ["ghcr.io/acme/shop:1.4"]}
//
//k8s:op k8s_workloads_get_deployment GET /v1/k8s/workloads/deployments/{namespace}/{name} in=plane.DeploymentIn out=plane.Workload
//k8s:grant get apps/v1/deployments
func getDeployment(c *sdk.Call) error {
	n := c.Named("apps/v1/deployments")
	n.Reads = deploymentShape
	return c.Show(n, deployment)
}

// listReplicasets answers replica sets, with the deployment that owns each.
// Every pod of a replica set is of its template, so updated is all that it has.
// The sets of earlier rollouts are there too, wanting none.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"workloads": [{"namespace": "web", "name": "shop-7d4b9c", "kind": "ReplicaSet", "replicas": 3,
// "ready": 2, "updated": 3, "images": ["ghcr.io/acme/shop:1.4"], "owner": "Deployment/shop"}]}
//
//k8s:op k8s_workloads_list_replicasets GET /v1/k8s/workloads/replicasets in=plane.ReplicasetsIn out=plane.Workloads items=workloads
//k8s:grant list apps/v1/replicasets
func listReplicasets(c *sdk.Call) error {
	return list(c, "apps/v1/replicasets", replicaSetShape, replicaSet)
}

// listStatefulsets answers stateful sets: how many pods each wants, how many
// are ready, and how many are of its current template.
//
// Example: {"cluster": "prod", "namespace": "data"}
//
// Response: {"workloads": [{"namespace": "data", "name": "postgres", "kind": "StatefulSet", "replicas": 2,
// "ready": 2, "updated": 1, "images": ["postgres:17"]}]}
//
//k8s:op k8s_workloads_list_statefulsets GET /v1/k8s/workloads/statefulsets in=plane.StatefulsetsIn out=plane.Workloads items=workloads
//k8s:grant list apps/v1/statefulsets
func listStatefulsets(c *sdk.Call) error {
	return list(c, "apps/v1/statefulsets", statefulSetShape, statefulSet)
}

// The fields of the spec and status of the three kinds. Replicas and template
// have the same numbers in all of them.
const (
	specReplicas = 1
	specTemplate = 3

	deploymentUpdated  = 3
	deploymentReady    = 7
	replicaSetReplicas = 1
	replicaSetReady    = 4
	statefulSetReady   = 3
	statefulSetUpdated = 5
)

// What workload reads of each of the three.
var (
	deploymentShape  = workloadShape(deploymentReady, deploymentUpdated)
	replicaSetShape  = workloadShape(replicaSetReady, replicaSetReplicas)
	statefulSetShape = workloadShape(statefulSetReady, statefulSetUpdated)
)

func workloadShape(ready, updated int) *lens.Shape {
	images := lens.Fields{lens.ContainerImage: nil}
	return lens.NewShape(lens.Fields{
		lens.Metadata: {
			lens.MetaName: nil, lens.MetaNamespace: nil,
			lens.MetaOwnerReferences: {lens.OwnerKind: nil, lens.OwnerName: nil, lens.OwnerController: nil},
		},
		lens.Spec: {
			specReplicas: nil,
			specTemplate: {lens.TemplateSpec: {lens.PodInitContainers: images, lens.PodContainers: images}},
		},
		lens.Status: {ready: nil, updated: nil},
	})
}

func list(c *sdk.Call, resource string, reads *lens.Shape, project func(lens.Message, *sdk.Writer)) error {
	q := c.Selected(resource)
	q.Reads = reads
	return c.List(q, project)
}

func deployment(o lens.Message, w *sdk.Writer) {
	workload("Deployment", o, deploymentReady, deploymentUpdated, w)
}

func replicaSet(o lens.Message, w *sdk.Writer) {
	workload("ReplicaSet", o, replicaSetReady, replicaSetReplicas, w)
}

func statefulSet(o lens.Message, w *sdk.Writer) {
	workload("StatefulSet", o, statefulSetReady, statefulSetUpdated, w)
}

func workload(kind string, o lens.Message, ready, updated int, w *sdk.Writer) {
	meta, spec, status := o.Meta(), o.Sub(lens.Spec), o.Sub(lens.Status)
	replicas := int64(1)
	if spec.Has(specReplicas) {
		replicas = spec.Int32(specReplicas)
	}
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Str("kind", kind)
	w.Int("replicas", replicas)
	w.Int("ready", status.Int32(ready))
	w.Int("updated", status.Int32(updated))
	w.Images("images", spec.Sub(specTemplate).Sub(lens.TemplateSpec))
	w.Str("owner", meta.Controller())
}
