package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTour walks the whole tour, whose every stop fails when an answer is not
// the one it tells of.
func TestTour(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "k8s")
	if out, err := exec.Command("go", "build", "-o", binary, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	if err := run(ctx, binary, false); err != nil {
		t.Fatal(err)
	}
}
