// Package main is the guest of the pods ops: what runs, where, why not, and
// what it printed.
package main

import "github.com/hanzoai/k8s/guests/sdk"

func init() {
	sdk.Handle("k8s_pods_list", list)
	sdk.Handle("k8s_pods_logs", logs)
}

func main() {}
