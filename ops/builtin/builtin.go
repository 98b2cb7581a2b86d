// Package builtin is the ops of the built-in guest modules, read from their
// manifests without loading a module.
package builtin

import (
	"fmt"

	"github.com/hanzoai/k8s/guests"
	"github.com/hanzoai/k8s/guests/build"
	"github.com/hanzoai/k8s/host/manifest"
)

// Ops is every op of the built-in modules. Its error is of a module that cannot
// be read, or guests.ErrNotBuilt.
func Ops() ([]*manifest.Op, error) {
	modules, err := guests.Builtin()
	if err != nil {
		return nil, err
	}
	var list []*manifest.Op
	for _, module := range modules {
		m, err := build.Inspect(module.WASM)
		if err != nil {
			return nil, fmt.Errorf("the module %s: %w", module.Name, err)
		}
		list = append(list, Of(m)...)
	}
	return list, nil
}

// Of is the ops of one manifest.
func Of(m *manifest.Manifest) []*manifest.Op {
	list := make([]*manifest.Op, len(m.Ops))
	for i := range m.Ops {
		list[i] = &m.Ops[i]
	}
	return list
}
