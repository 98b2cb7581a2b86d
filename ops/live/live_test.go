package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/testcluster"
)

// TestStartSaysWhereToLook starts what is no service: the error names the log.
func TestStartSaysWhereToLook(t *testing.T) {
	script := filepath.Join(t.TempDir(), "k8s")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho broken >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), script, &testcluster.Vault{})
	if err == nil {
		s.Stop()
		t.Fatal("it started")
	}
	_, file, ok := strings.Cut(err.Error(), "see ")
	if !ok {
		t.Fatal(err)
	}
	if text, readErr := os.ReadFile(file); readErr != nil || string(text) != "broken\n" {
		t.Errorf("%v: %s %v", err, text, readErr)
	}
}
