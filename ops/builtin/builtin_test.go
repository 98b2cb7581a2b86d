package builtin

import (
	"testing"

	"github.com/hanzoai/k8s/plane"
)

func TestOpsAreThoseOfPlane(t *testing.T) {
	list, err := Ops()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(plane.Table()); len(list) != want {
		t.Errorf("%d ops, want %d", len(list), want)
	}
	for _, op := range list {
		if op.Token == "" || op.Path == "" || len(op.Out) == 0 {
			t.Errorf("%+v", op)
		}
	}
}
