// Command generate writes what is made from the guests' manifests and the table
// of settings into a checkout: k8s.plugin.json, openapi.json, rbac.yaml and the
// README's tables.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/ops/builtin"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	list, err := builtin.Ops()
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	files, err := ops.Projections(list, readme)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d files from %d ops and %d settings\n", len(files), len(list), len(ops.Settings))
	return nil
}
