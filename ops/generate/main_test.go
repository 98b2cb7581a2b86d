package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunWritesEveryProjection(t *testing.T) {
	root := t.TempDir()
	page := "# x\n<!-- ops: made by make generate -->\n<!-- end of ops -->\n<!-- environment: made by make generate -->\n<!-- end of environment -->\n"
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(root); err != nil {
		t.Fatal(err)
	}
	for name, holds := range map[string]string{
		"README.md": "| `PORT` | `8000` |", "rbac.yaml": "kind: ClusterRole", "openapi.json": `"openapi": "3.1.0"`, "k8s.plugin.json": `"k8s_pods_list"`,
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.Contains(string(text), holds) {
			t.Errorf("%s: %v %.100s", name, err, text)
		}
	}
	if err := run(t.TempDir()); err == nil {
		t.Error("a folder without a README was taken")
	}
}
