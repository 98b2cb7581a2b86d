// Package main is the guest of the nodes ops: the machines, taking them out of
// service, and how full the volumes on them are.
package main

import "github.com/hanzoai/k8s/guests/sdk"

func init() {
	sdk.Handle("k8s_nodes_list", list)
	sdk.Handle("k8s_nodes_cordon", cordon)
	sdk.Handle("k8s_nodes_volume_stats", volumeStats)
}

func main() {}
