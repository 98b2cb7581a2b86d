// Package main is the guest of the jobs ops: work that ends.
package main

import "github.com/hanzoai/k8s/guests/sdk"

func init() {
	sdk.Handle("k8s_jobs_create", create)
	sdk.Handle("k8s_jobs_list", list)
	sdk.Handle("k8s_jobs_get", get)
}

func main() {}

const resource = "batch/v1/jobs"
