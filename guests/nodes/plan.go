package main

import (
	"strings"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// drainage is one drain of one node.
type drainage struct {
	c               *sdk.Call
	node            string
	force, emptyDir bool
	pods            []*pod
	evicted         int64
	forbidden       *sdk.Failure // the last refusal to let the credential evict
}

// pod is one pod on the node, and how far the drain is with it.
type pod struct {
	namespace, name, uid string

	todo todo

	// What is left of these is answered as remaining.
	asked   bool   // its eviction was accepted
	there   bool   // it was on the node at the last look
	leaving bool   // it is terminating
	gone    bool   // its UID is not on the node any more
	reason  string // why it is still there
	message string // in the cluster's words
	never   bool   // and asking again would not help
	retry   int64  // when to ask again, by the call's clock
}

// todo is what a drain does with a pod, in the words of the plan.
type todo string

const (
	evict         todo = "evict"
	wait          todo = "wait_terminating"
	skipDaemonSet todo = "skip_daemonset"
	skipMirror    todo = "skip_mirror"
	skipFinished  todo = "skip_finished"
	needsForce    todo = "needs_force"
	needsEmptyDir todo = "needs_delete_emptydir_data"
)

// The fields of a pod that decide.
const (
	statusPhase    = 1
	volumeSource   = 2
	sourceEmptyDir = 2
)

// plan reads the pods on the node and decides on each.
func (d *drainage) plan() error {
	d.pods = d.pods[:0]
	return d.c.Each(d.onNode(), func(p lens.Message) error {
		meta := p.Meta()
		d.pods = append(d.pods, &pod{
			namespace: strings.Clone(meta.Namespace()),
			name:      strings.Clone(meta.Name()),
			uid:       strings.Clone(meta.UID()),
			todo:      d.decide(p),
			leaving:   meta.Terminating(),
		})
		return nil
	})
}

func (d *drainage) onNode() sdk.Query {
	return sdk.Query{Resource: "v1/pods", FieldSelector: "spec.nodeName=" + d.node}
}

// decide follows kubectl's drain filters, but that finished pods are left: they
// hold nothing that a node's going away would take from anybody.
func (d *drainage) decide(p lens.Message) todo {
	meta := p.Meta()
	owner, managed := meta.Owner()
	_, mirror := meta.Annotation("kubernetes.io/config.mirror")
	phase := p.Sub(lens.Status).Str(statusPhase)
	switch {
	case mirror:
		return skipMirror
	case phase == "Succeeded" || phase == "Failed":
		return skipFinished
	case owner.Str(lens.OwnerKind) == "DaemonSet" && owner.Str(lens.OwnerAPIVersion) == "apps/v1":
		return skipDaemonSet
	case meta.Terminating():
		return wait
	case !managed && !d.force:
		return needsForce
	case !d.emptyDir && hasEmptyDir(p):
		return needsEmptyDir
	}
	return evict
}

func hasEmptyDir(p lens.Message) bool {
	for v := p.Sub(lens.Spec).Each(lens.PodVolumes); v.Next(); {
		if v.Sub(volumeSource).Has(sourceEmptyDir) {
			return true
		}
	}
	return false
}

// refuse lists the pods that need a consent which was not given.
func (d *drainage) refuse() error {
	blocked := false
	for _, p := range d.pods {
		blocked = blocked || p.todo == needsForce || p.todo == needsEmptyDir
	}
	if !blocked {
		return nil
	}
	return &sdk.Refusal{
		Status: 409, Code: "drain_blocked",
		Message: "pods on the node need force or deleteEmptyDirData; nothing was evicted",
		Details: func(w *sdk.Writer) {
			w.List("pods")
			for _, p := range d.pods {
				if p.todo == needsForce || p.todo == needsEmptyDir {
					remaining(p, string(p.todo), "", w)
				}
			}
			w.End()
		},
	}
}

// answer is what became of the drain, or what would.
func (d *drainage) answer(dryRun bool) error {
	return d.c.Answer(func(w *sdk.Writer) {
		w.Int("evicted", d.evicted)
		w.List("remaining")
		for _, p := range d.pods {
			if !dryRun && !p.gone && (p.todo == evict || p.todo == wait) {
				reason, message := p.why()
				remaining(p, reason, message, w)
			}
		}
		w.End()
		w.List("plan")
		for _, p := range d.pods {
			if dryRun {
				remaining(p, string(p.todo), "", w)
			}
		}
		w.End()
	})
}

func remaining(p *pod, reason, message string, w *sdk.Writer) {
	w.Object("")
	w.Str("namespace", p.namespace)
	w.Str("name", p.name)
	w.Str("reason", reason)
	w.Str("message", message)
	w.End()
}

// why is why the pod is still there.
func (p *pod) why() (reason, message string) {
	switch {
	case p.asked || p.leaving:
		return "still_terminating", ""
	case p.reason != "":
		return p.reason, p.message
	}
	return "not_tried", ""
}
