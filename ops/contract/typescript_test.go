package contract

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedTypeScriptClient: the types that openapi-typescript makes of the
// document suit a program, which then runs against the live service.
func TestGeneratedTypeScriptClient(t *testing.T) {
	for tool, pkg := range map[string]string{"node": "nodejs", "npm": "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("this needs Debian's %s: apt-get install %s", pkg, pkg)
		}
	}
	s := theService(t)
	spec, err := filepath.Abs(document)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("typescript")); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	bin := func(tool string) string { return filepath.Join(dir, "node_modules", ".bin", tool) }
	run("npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
	run(bin("openapi-typescript"), spec, "-o", "schema.ts")
	run(bin("tsc"), "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--skipLibCheck", "--types", "node", "caller.ts")
	out := run("node", "caller.js", s.URL)
	if !strings.Contains(out, "Running") || !strings.Contains(out, "404 cluster_not_found") {
		t.Errorf("the client printed %s", out)
	}
}
