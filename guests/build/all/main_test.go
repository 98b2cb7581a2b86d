package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/plane"
)

// TestAllGuestsHaveAllOps: the modules that make guests says it has built hold
// every op there is.
func TestAllGuestsHaveAllOps(t *testing.T) {
	var out bytes.Buffer
	if err := all("../../..", &out); err != nil {
		t.Fatal(err)
	}
	ops := 0
	for line := range strings.Lines(out.String()) {
		_, after, ok := strings.Cut(line, " bytes, ")
		n := 0
		for _, c := range after {
			if c < '0' || c > '9' {
				break
			}
			n = 10*n + int(c-'0')
		}
		if !ok || n == 0 {
			t.Errorf("a guest with no op: %s", line)
		}
		ops += n
	}
	if want := len(plane.Table()); ops != want {
		t.Errorf("%d ops built, want %d:\n%s", ops, want, &out)
	}
}

func TestAllOfNothingIsAnError(t *testing.T) {
	var out bytes.Buffer
	if err := all(t.TempDir(), &out); err == nil {
		t.Errorf("no guests, and no error: %s", &out)
	}
}
