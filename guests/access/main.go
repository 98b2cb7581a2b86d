// Package main is the guest of the access op.
package main

import "github.com/hanzoai/k8s/guests/sdk"

func init() { sdk.Handle("k8s_access_can", can) }

func main() {}

// can asks the cluster whether the registered credential may do something, in
// RBAC's own words. The cluster decides; nothing is done. An empty namespace
// asks about all of them.
//
// allowed and denied can both be false: nobody allowed it, and nobody refused
// it either. evaluationError is what went wrong while the cluster decided, and
// stands beside the verdict, not instead of it. A review that could not be made
// is an error and never a no.
//
// Example: {"cluster": "prod", "verb": "list", "resource": "pods", "namespace": "web"}
//
// Response: {"allowed": true, "reason": "RBAC: allowed by RoleBinding \"k8s/web\"", "denied": false}
//
//k8s:op k8s_access_can POST /v1/k8s/access/can in=plane.CanIn out=plane.Access
//k8s:grant create authorization.k8s.io/v1/selfsubjectaccessreviews cluster
func can(c *sdk.Call) error {
	status, err := c.Can(c.Str("verb"), c.Str("group"), c.Str("resource"), c.Str("namespace"))
	if err != nil {
		return err
	}
	return c.Answer(func(w *sdk.Writer) {
		w.Bool("allowed", status.Get("allowed").Bool())
		w.Str("reason", status.Get("reason").Str())
		w.Bool("denied", status.Get("denied").Bool())
		w.Str("evaluationError", status.Get("evaluationError").Str())
	})
}
