// Package main is the guest of the volumes ops: claims, and the volumes that
// they are bound to. None of its ops deletes a claim.
package main

import "github.com/hanzoai/k8s/guests/sdk"

func init() {
	sdk.Handle("k8s_volumes_list_claims", listClaims)
	sdk.Handle("k8s_volumes_list_persistent", listPersistent)
	sdk.Handle("k8s_volumes_ensure_claim", ensureClaim)
	sdk.Handle("k8s_volumes_expand_claim", expandClaim)
}

func main() {}

const claims = "v1/persistentvolumeclaims"
