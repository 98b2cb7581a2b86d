package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// list answers the pods of a namespace, of a node, or of all that the
// registration may address: where each runs, what it is doing, what controls
// it, which claims it uses and which images.
//
// phase is the pod's own. reason is what kubectl prints as STATUS, such as
// CrashLoopBackOff, Init:0/2 or Terminating, and is left out where that says no
// more than the phase. restarts counts as kubectl does: the containers and the
// sidecars once initialisation is over, the init containers until then; never
// ephemeral containers. claims has the generated claims of generic ephemeral
// volumes too. A container's environment and its secrets are never part of the
// answer.
//
// Example: {"cluster": "prod", "namespace": "web", "labelSelector": "app=shop"}
//
// Response: {"pods": [{"namespace": "web", "name": "shop-7d4b9c-x2x7p", "phase": "Running",
// "reason": "CrashLoopBackOff", "node": "node-1", "controller": "ReplicaSet/shop-7d4b9c",
// "claims": ["shop-data"], "images": ["ghcr.io/acme/migrate:1.4", "ghcr.io/acme/shop:1.4"], "restarts": 7}]}
//
//k8s:op k8s_pods_list GET /v1/k8s/pods in=plane.PodsIn out=plane.Pods items=pods
//k8s:grant list v1/pods
func list(c *sdk.Call) error {
	q := c.Selected("v1/pods")
	q.Reads = podShape
	if node := c.Str("nodeName"); node != "" {
		q.FieldSelector = "spec.nodeName=" + node
	}
	return c.List(q, pod)
}

// The fields of a volume that name a claim.
const (
	volumeName      = 1
	volumeSource    = 2
	sourceClaim     = 10
	sourceEphemeral = 29
	claimName       = 1
)

// podShape is what pod reads.
var podShape = lens.NewShape(lens.Fields{
	lens.Metadata: {
		lens.MetaName: nil, lens.MetaNamespace: nil, lens.MetaDeletionTimestamp: nil,
		lens.MetaOwnerReferences: {lens.OwnerKind: nil, lens.OwnerName: nil, lens.OwnerController: nil},
	},
	lens.Spec: {
		lens.PodNodeName:       nil,
		lens.PodVolumes:        {volumeName: nil, volumeSource: {sourceClaim: {claimName: nil}, sourceEphemeral: nil}},
		lens.PodInitContainers: {lens.ContainerName: nil, lens.ContainerImage: nil, lens.ContainerRestartPolicy: nil},
		lens.PodContainers:     {lens.ContainerImage: nil},
	},
	lens.Status: {
		statusPhase: nil, statusReason: nil,
		statusConditions:     {conditionType: nil, conditionStatus: nil, conditionReason: nil},
		statusInitContainers: containerStatus,
		statusContainers:     containerStatus,
	},
})

var containerStatus = lens.Fields{
	containerName: nil, containerReady: nil, containerRestarts: nil, containerStarted: nil,
	containerState: {
		stateWaiting: {waitingReason: nil}, stateRunning: nil,
		stateTerminated: {terminatedExitCode: nil, terminatedSignal: nil, terminatedReason: nil},
	},
}

func pod(p lens.Message, w *sdk.Writer) {
	meta, spec, status := p.Meta(), p.Sub(lens.Spec), p.Sub(lens.Status)
	phase := status.Str(statusPhase)
	reason, restarts := printed(meta, spec, status)
	if reason == phase {
		reason = ""
	}
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Str("phase", phase)
	w.Str("reason", reason)
	w.Str("node", spec.Str(lens.PodNodeName))
	w.Str("controller", meta.Controller())
	w.List("claims")
	for v := spec.Each(lens.PodVolumes); v.Next(); {
		switch source := v.Sub(volumeSource); {
		case source.Has(sourceClaim):
			w.Elem(source.Sub(sourceClaim).Str(claimName))
		case source.Has(sourceEphemeral):
			w.Elem(meta.Name() + "-" + v.Str(volumeName))
		}
	}
	w.End()
	w.Images("images", spec)
	w.Int("restarts", restarts)
}
