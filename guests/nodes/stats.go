package main

import (
	"slices"
	"strings"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// volumeStats answers how full the cluster's claims are, as the kubelets of its
// nodes measure them. Every kubelet is asked, also of a node that is not ready.
//
// A claim that two kubelets report has the larger reading. A claim without a row
// is unmeasured, which is not empty: nothing mounts it, its driver does not
// measure, or its kubelet is in failed. A kubelet that does not answer costs its
// readings and never the call: nodesRead of nodesTotal answered. A bounded
// registration may not.
//
// Example: {"cluster": "prod"}
//
// Response: {"volumes": [{"namespace": "data", "name": "postgres", "usedBytes": 7516192768}],
// "nodesRead": 2, "nodesTotal": 3, "failed": [{"node": "node-3", "reason": "kubelet_unreachable"}]}
//
//k8s:op k8s_nodes_volume_stats GET /v1/k8s/nodes/volume-stats in=plane.VolumeStatsIn out=plane.VolumeStats items=volumes
//k8s:grant list v1/nodes cluster
//k8s:grant get v1/nodes/proxy cluster
//k8s:limit fuelPerItem=50000000 memoryPages=2048
func volumeStats(c *sdk.Call) error {
	used := map[claim]int64{}
	var failed []failure
	total := int64(0)
	err := c.Stats(func(reading lens.Value) error {
		total++
		if summary := reading.Get("summary"); summary.Exists() {
			measure(summary, used)
			return nil
		}
		failed = append(failed, failure{strings.Clone(reading.Get("node").Str()), strings.Clone(reading.Get("failed").Str())})
		return nil
	})
	if err != nil {
		return err
	}
	claims := make([]claim, 0, len(used))
	for c := range used {
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(a, b claim) int {
		if c := strings.Compare(a.namespace, b.namespace); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	for _, v := range claims {
		err := c.Emit(func(w *sdk.Writer) {
			w.Str("namespace", v.namespace)
			w.Str("name", v.name)
			w.Int("usedBytes", used[v])
		})
		if err != nil {
			return err
		}
	}
	return c.Answer(func(w *sdk.Writer) {
		w.Int("nodesRead", total-int64(len(failed)))
		w.Int("nodesTotal", total)
		w.List("failed")
		for _, f := range failed {
			w.Object("")
			w.Str("node", f.node)
			w.Str("reason", f.reason)
			w.End()
		}
		w.End()
	})
}

type claim struct{ namespace, name string }

type failure struct{ node, reason string }

// measure takes the readings of one kubelet's summary: of each volume of each
// pod that is a claim and has been measured.
func measure(summary lens.Value, used map[claim]int64) {
	for pod := range summary.Get("pods").Elems() {
		for volume := range pod.Get("volume").Elems() {
			ref := volume.Get("pvcRef")
			bytes, measured := volume.Get("usedBytes").Int()
			if !ref.Object() || !measured {
				continue
			}
			key := claim{ref.Get("namespace").Str(), ref.Get("name").Str()}
			if before, ok := used[key]; !ok || bytes > before {
				// A map keeps the key of the last write, and this one is a view.
				used[claim{strings.Clone(key.namespace), strings.Clone(key.name)}] = bytes
			}
		}
	}
}
