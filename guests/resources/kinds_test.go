package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/ops"
)

func TestKindsAreTheClosedTable(t *testing.T) {
	want := map[string]string{}
	for _, k := range ops.Kinds {
		want[k.Kind] = k.Group + "/" + k.Version
	}
	if len(want) == 0 {
		t.Fatal("the table is empty")
	}
	if diff := cmp.Diff(want, apiVersions); diff != "" {
		t.Errorf("the guest's kinds are not the table's (-table +guest):\n%s", diff)
	}
}
