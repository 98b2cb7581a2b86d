package guests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/guests"
	"github.com/hanzoai/k8s/guests/build"
)

// TestBuiltin looks at the modules as they are embedded.
func TestBuiltin(t *testing.T) {
	modules, err := guests.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	ops := 0
	for _, m := range modules {
		got, err := build.Inspect(m.WASM)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if got.Name != m.Name {
			t.Errorf("the module %s calls itself %s", m.Name, got.Name)
		}
		ops += len(got.Ops)
	}
	if ops != 36 {
		t.Errorf("%d ops in %d modules, want 36", ops, len(modules))
	}
}

// TestAModuleAnswers lists pods through the compiled module.
func TestAModuleAnswers(t *testing.T) {
	s := newStage(t, "pods", "k8s_pods_list", ordinaryPod(t))
	s.list(t, 3)
	s.list(t, 0)
	s.list(t, 100)
}

// TestGuestsLinkNoReflection holds every guest to what package sdk says of
// itself.
func TestGuestsLinkNoReflection(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("no guests: %v", err)
	}
	args := []string{"list", "-deps"}
	for _, m := range mains {
		args = append(args, "./"+filepath.Dir(m))
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, p := range []string{"fmt", "reflect", "encoding/json", "time", "github.com/hanzoai/k8s/plane", "github.com/hanzoai/k8s/host", "github.com/hanzoai/k8s/registry"} {
		if slices.Contains(deps, p) {
			t.Errorf("a guest links %s", p)
		}
	}
}
