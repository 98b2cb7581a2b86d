package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// listConfigmaps answers config maps with their text. Of binary data the keys
// and the sizes are answered, not the bytes. Secrets have no op.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"configMaps": [{"namespace": "web", "name": "shop", "data": {"currency": "EUR"},
// "binaryKeys": [{"name": "logo.png", "bytes": 5120}]}]}
//
//k8s:op k8s_workloads_list_configmaps GET /v1/k8s/workloads/configmaps in=plane.ConfigMapsIn out=plane.ConfigMaps items=configMaps
//k8s:grant list v1/configmaps
func listConfigmaps(c *sdk.Call) error { return c.List(c.Selected("v1/configmaps"), configMap) }

// The fields of corev1.ConfigMap.
const (
	configMapData       = 2
	configMapBinaryData = 3
)

func configMap(m lens.Message, w *sdk.Writer) {
	meta := m.Meta()
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Map("data", m.Map(configMapData))
	w.List("binaryKeys")
	for _, e := range w.Sorted(m.Map(configMapBinaryData)) {
		w.Object("")
		w.Str("name", e.Key)
		w.Int("bytes", int64(len(e.Value)))
		w.End()
	}
	w.End()
}
