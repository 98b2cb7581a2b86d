package main

import (
	"strconv"
	"strings"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// expandClaim makes a claim ask for gi GiB and answers what it asks for now.
// The volume grows after that, and resize in the list of claims says how far it
// is. A claim that asks for as much already is left alone, so it is safe to
// repeat.
//
// A 409 is: shrink_refused for less than it asks for, which no volume can do;
// not_bound for a claim without a volume; terminating for one that is being
// deleted; conflict when somebody changed the claim in between;
// expansion_not_supported when the cluster allows the change but not the
// growth: a storage class without allowVolumeExpansion, or a volume that no
// class made. That last one is told from a missing privilege by asking for the
// size that is there already, which changes nothing.
//
// Example: {"cluster": "prod", "namespace": "data", "name": "postgres", "gi": 20}
//
// Response: {"gi": 20}
//
//k8s:op k8s_volumes_expand_claim POST /v1/k8s/volumes/claims/{namespace}/{name}/expand in=plane.ExpandClaimIn out=plane.Expanded
//k8s:grant get,patch v1/persistentvolumeclaims
func expandClaim(c *sdk.Call) error {
	n := c.Named(claims)
	there, err := c.Get(n)
	if err != nil {
		return err
	}
	meta, spec := there.Meta(), there.Sub(lens.Spec)
	now, want := requested(spec), lens.Gi(c.Int("gi"))
	version, phase := meta.Str(lens.MetaResourceVersion), there.Sub(lens.Status).Str(claimPhase)
	terminating := meta.Terminating()
	switch bad := there.Err(); {
	case bad != nil:
		return &sdk.Refusal{Status: 502, Code: "bad_upstream", Message: "the claim cannot be read: " + bad.Error()}
	case terminating:
		return sdk.Conflict("terminating", "the claim is being deleted")
	case phase != "Bound":
		return sdk.Conflict("not_bound", "the claim has no volume to expand; it is "+phase)
	case want.Cmp(now) < 0:
		return sdk.Conflict("shrink_refused", "the claim asks for more than that, and no volume shrinks")
	case want.Cmp(now) > 0:
		grown, err := c.Expand(n.Namespace, n.Name, gibibytes(c.Int("gi")), version)
		if err != nil {
			return refused(c, n, spec, version, err)
		}
		now = requested(grown.Sub(lens.Spec))
	}
	return c.Answer(func(w *sdk.Writer) { w.Int("gi", now.Gi()) })
}

// refused tells a cluster that will not grow this volume from one that does not
// let the credential change the claim: both say 403. Admission looks only at
// growth, so that asking for the size that is there passes in the first case and
// fails in the second.
func refused(c *sdk.Call, n sdk.Name, spec lens.Message, version string, err error) error {
	f, ok := err.(*sdk.Failure)
	if !ok || f.Status != 403 {
		return err
	}
	same := spec.Sub(claimResources).QuantityText(resourcesRequests, storage)
	if !strings.HasSuffix(same, "i") { // the host takes binary sizes and bytes
		same = strconv.FormatInt(requested(spec).Value(), 10)
	}
	if _, err := c.Expand(n.Namespace, n.Name, same, version); err != nil {
		return err
	}
	return sdk.Conflict("expansion_not_supported", "the claim's storage class does not let its volumes grow")
}
