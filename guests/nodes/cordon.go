package main

import "github.com/hanzoai/k8s/guests/sdk"

// cordon takes a node out of service, or back into it. With schedulable false
// the node takes no new pods; with drain its pods are evicted as well; with
// schedulable true it takes pods again.
//
// A drain evicts and never deletes, so disruption budgets hold. It leaves the
// pods of DaemonSets, mirror pods and finished pods. Pods without a controller,
// which nothing would start again, need force; pods with emptyDir data, which is
// lost, need deleteEmptyDirData. Without them such pods are a 409, drain_blocked,
// that lists them, and nothing has been changed.
//
// It waits for timeoutSeconds, 60 when left out, until the pods are gone, each
// known by its UID. One that a budget holds back is asked for again every 5
// seconds, while the others go on. evicted counts the pods evicted by this call
// that are gone. remaining is what was left when time was up, and why:
// blocked_by_pdb, still_terminating, namespace_terminating, multiple_pdbs,
// eviction_failed, throttled, forbidden, not_tried, or the code of another
// failure, with what the cluster said as message. The node stays cordoned. It is
// safe to call again, and goes on where it stopped; when the caller goes away it
// stops asking, and what was evicted stays evicted.
//
// dryRun changes nothing, and plan says what a drain would do with each pod:
// evict, wait_terminating, skip_daemonset, skip_mirror, skip_finished,
// needs_force or needs_delete_emptydir_data. A bounded registration may not.
//
// Example: {"cluster": "prod", "node": "node-1", "drain": true, "timeoutSeconds": 120}
//
// Response: {"evicted": 7, "remaining": [{"namespace": "web", "name": "shop-7d4b9c-x2x7p",
// "reason": "blocked_by_pdb", "message": "Cannot evict pod as it would violate the pod's disruption budget."}]}
//
//k8s:op k8s_nodes_cordon POST /v1/k8s/nodes/{node}/cordon in=plane.CordonIn out=plane.Cordoned
//k8s:grant patch v1/nodes cluster
//k8s:grant list v1/pods
//k8s:grant create v1/pods/eviction
//k8s:limit millis=660000 hostCalls=200000 fuel=5000000000 memoryPages=2048
//k8s:long
func cordon(c *sdk.Call) error {
	node, schedulable := c.Str("node"), c.Bool("schedulable")
	drain, dryRun := c.Bool("drain"), c.Bool("dryRun")
	if schedulable && drain {
		return sdk.BadInput("drain", "a node that is to take pods is not drained")
	}
	d := &drainage{c: c, node: node, force: c.Bool("force"), emptyDir: c.Bool("deleteEmptyDirData")}
	if drain {
		// Once before the node is touched, so that a refusal changes nothing.
		if err := d.plan(); err != nil {
			return err
		}
		if dryRun {
			return d.answer(true)
		}
		if err := d.refuse(); err != nil {
			return err
		}
	}
	if !dryRun {
		if err := c.Cordon(node, schedulable); err != nil {
			return err
		}
	}
	if drain {
		// And again now that no pod can be added.
		if err := d.plan(); err != nil {
			return err
		}
		if err := d.refuse(); err != nil {
			return err
		}
		timeout := c.Int("timeoutSeconds")
		if timeout == 0 {
			timeout = defaultTimeout
		}
		if err := d.run(c.Millis() + timeout*1000); err != nil {
			return err
		}
	}
	return d.answer(false)
}

// defaultTimeout is how long a drain waits, in seconds.
const defaultTimeout = 60
