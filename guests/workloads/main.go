// Package main is the guest of the workloads ops: what keeps pods running, how
// they are reached, and what has happened to them.
package main

import "github.com/hanzoai/k8s/guests/sdk"

func init() {
	sdk.Handle("k8s_workloads_list_deployments", listDeployments)
	sdk.Handle("k8s_workloads_get_deployment", getDeployment)
	sdk.Handle("k8s_workloads_list_replicasets", listReplicasets)
	sdk.Handle("k8s_workloads_list_statefulsets", listStatefulsets)
	sdk.Handle("k8s_workloads_list_services", listServices)
	sdk.Handle("k8s_workloads_list_ingresses", listIngresses)
	sdk.Handle("k8s_workloads_list_events", listEvents)
	sdk.Handle("k8s_workloads_list_configmaps", listConfigmaps)
}

func main() {}
