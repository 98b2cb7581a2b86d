package host

import (
	"context"

	"github.com/hanzoai/k8s/host/manifest"
)

// Host serves the ops of the modules loaded into it.
type Host struct{ config Config }

// Module is a loaded module.
type Module struct {
	Manifest *manifest.Manifest
	Digest   string // "sha256:<hex>" of its file
	Shipped  bool   // into the running host, rather than built in
	Size     int    // of its file, in bytes
}

// New makes a Host without modules. ctx bounds its background work.
func New(ctx context.Context, c Config) (*Host, error) { return &Host{config: c}, nil }

// Load takes a built-in module and returns once it serves.
func (h *Host) Load(ctx context.Context, wasm []byte) (*Module, error) { return nil, nil }

// Ops are the ops served, by token.
func (h *Host) Ops() []*Op { return nil }

// Lookup finds an op by its token.
func (h *Host) Lookup(token string) (*Op, bool) { return nil, false }

// Call runs one op. Its error is a *registry.Refusal.
func (h *Host) Call(ctx context.Context, in *Call) error { return nil }
