package main

import (
	"strconv"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// ensureClaim makes a persistent volume claim unless it is there. One made here
// asks for gi GiB in the class and access mode given, or the cluster's default
// class and ReadWriteOnce, and carries managed-by: hanzo-cloud.
//
// A claim that exists is left as it is, whatever its size, and created is
// false; expanding has its own op. One of another class or access mode than
// asked for is a 409, differs, that names the fields; one that is being deleted
// is a 409, terminating. A claim may be Pending until a pod uses it.
//
// Example: {"cluster": "prod", "namespace": "data", "name": "postgres", "gi": 10, "storageClass": "fast"}
//
// Response: {"name": "postgres", "created": true}
//
//k8s:op k8s_volumes_ensure_claim POST /v1/k8s/volumes/claims in=plane.EnsureClaimIn out=plane.Ensured
//k8s:grant get,create v1/persistentvolumeclaims
func ensureClaim(c *sdk.Call) error {
	class, mode := c.Str("storageClass"), c.Str("accessMode")
	return c.Ensure(c.Named(claims), func(w *sdk.Writer) {
		w.Str("apiVersion", "v1")
		w.Str("kind", "PersistentVolumeClaim")
		w.Object("metadata")
		w.Str("name", c.Str("name"))
		w.Map("labels", sdk.Labels(nil))
		w.End()
		w.Object("spec")
		w.List("accessModes")
		if mode == "" {
			w.Elem("ReadWriteOnce")
		} else {
			w.Elem(mode)
		}
		w.End()
		w.Str("storageClassName", class)
		w.Object("resources")
		w.Object("requests")
		w.Str(storage, gibibytes(c.Int("gi")))
		w.End()
		w.End()
		w.End()
	}, func(there lens.Message) error { return fits(there, class, mode) })
}

func gibibytes(gi int64) string { return strconv.FormatInt(gi, 10) + "Gi" }

// fits refuses a claim of another class or access mode than asked for. What was
// not asked for may be anything.
func fits(there lens.Message, class, mode string) error {
	spec := there.Sub(lens.Spec)
	var fields []string
	if class != "" && spec.Str(claimStorageClass) != class {
		fields = append(fields, "storageClass")
	}
	if mode != "" && !hasMode(spec, mode) {
		fields = append(fields, "accessMode")
	}
	if len(fields) == 0 {
		return nil
	}
	return &sdk.Refusal{
		Status: 409, Code: "differs",
		Message: "the claim exists and differs from what is asked for",
		Details: func(w *sdk.Writer) {
			w.List("fields")
			for _, f := range fields {
				w.Elem(f)
			}
			w.End()
		},
	}
}

func hasMode(spec lens.Message, mode string) bool {
	for m := spec.Strs(claimAccessModes); m.Next(); {
		if m.Text == mode {
			return true
		}
	}
	return false
}
