// Package guests is the built-in guest modules, one per group of ops, as
// `k8s guest build` made them. A host loads them as it loads any other.
package guests

import (
	"embed"
	"errors"
	"path"
	"strings"
)

//go:embed all:bin
var bin embed.FS

// Module is one built guest.
type Module struct {
	Name string // of its group, such as pods
	WASM []byte
}

// ErrNotBuilt is what Builtin says when the guests have not been built.
var ErrNotBuilt = errors.New("the guests are not built: run `make guests`")

// Builtin is the built-in modules, by name.
func Builtin() ([]Module, error) {
	entries, err := bin.ReadDir("bin")
	if err != nil {
		return nil, err
	}
	var modules []Module
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".wasm")
		if !ok {
			continue
		}
		wasm, err := bin.ReadFile(path.Join("bin", e.Name()))
		if err != nil {
			return nil, err
		}
		modules = append(modules, Module{name, wasm})
	}
	if len(modules) == 0 {
		return nil, ErrNotBuilt
	}
	return modules, nil
}
