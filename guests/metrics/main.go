// Package main is the guest of the metrics op.
package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

func init() { sdk.Handle("k8s_metrics_pods", pods) }

func main() {}

// pods answers what pods use of CPU and memory, summed over their containers,
// as the cluster's metrics API has measured them. at is when; a pod without a
// row is unmeasured, not idle. CPU is rounded up to thousandths of a core.
//
// A cluster without a metrics API, or one whose metrics server does not answer,
// is available false with the reason, and no pods: never zeroes. A cluster that
// forbids the read is an error.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"pods": [{"namespace": "web", "name": "shop-7d4b9c-x2x7p", "cpuMilli": 12,
// "memoryBytes": 67108864, "at": 1767366245}], "available": true}
//
//k8s:op k8s_metrics_pods GET /v1/k8s/metrics/pods in=plane.PodMetricsIn out=plane.PodMetrics items=pods
//k8s:grant list metrics.k8s.io/v1beta1/pods
func pods(c *sdk.Call) error {
	measured := false
	_, err := c.EachJSON(c.Selected("metrics.k8s.io/v1beta1/pods"), func(m lens.Value) error {
		measured = true
		return usage(c, m)
	})
	reason := ""
	if f, ok := err.(*sdk.Failure); ok && !measured {
		reason = unavailable(f)
	}
	if err != nil && reason == "" {
		return err
	}
	return c.Answer(func(w *sdk.Writer) {
		w.Bool("available", err == nil)
		w.Str("reason", reason)
	})
}

// unavailable is why there is no metrics API, empty for a failure that does not
// say that there is none.
func unavailable(f *sdk.Failure) string {
	switch {
	case f.Status == 404:
		return "the cluster has no metrics API"
	case f.Code == "unavailable", f.Reason == "ServiceUnavailable":
		return "the cluster's metrics API does not answer"
	}
	return ""
}

func usage(c *sdk.Call, m lens.Value) error {
	var cpu, memory lens.Quantity
	for container := range m.Get("containers").Elems() {
		u := container.Get("usage")
		for name, sum := range map[string]*lens.Quantity{"cpu": &cpu, "memory": &memory} {
			if !u.Get(name).Exists() {
				continue
			}
			q, err := lens.ParseQuantity(u.Get(name).Str())
			if err != nil {
				return unreadable(m, err)
			}
			*sum = sum.Add(q)
		}
	}
	at, err := lens.Unix(m.Get("timestamp").Str())
	if err != nil {
		return unreadable(m, err)
	}
	return c.Emit(func(w *sdk.Writer) {
		w.Str("namespace", m.Get("metadata", "namespace").Str())
		w.Str("name", m.Get("metadata", "name").Str())
		w.Int("cpuMilli", cpu.Milli())
		w.Int("memoryBytes", memory.Value())
		w.Int("at", at)
	})
}

func unreadable(m lens.Value, err error) error {
	return &sdk.Refusal{Status: 502, Code: "bad_upstream",
		Message: "the metrics of pod " + m.Get("metadata", "name").Str() + " cannot be read: " + err.Error()}
}
