package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestLoad is the load run, shorter and smaller.
func TestLoad(t *testing.T) {
	o := defaults()
	o.tenants, o.callers, o.replicas, o.duration = 6, 48, 2, 10*time.Second
	var out bytes.Buffer
	err := run(t.Context(), o, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"replica: kill -9", "credential: rotated", "registration: come and gone", "cluster: "} {
		if !strings.Contains(out.String(), what) {
			t.Errorf("the run was without %q", what)
		}
	}
}
