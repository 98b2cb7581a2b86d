package host

import (
	"context"
	"sync"

	"github.com/hanzoai/k8s/host/manifest"
)

// Module is a module loaded into a Host.
type Module struct {
	Manifest *manifest.Manifest
	Ops      []*Op
	Digest   string // of its file, "sha256:<hex>"
	Size     int    // of its file, in bytes
	Shipped  bool   // into the running host, rather than built in
	Signer   string // the key that vouches for a shipped one, "sha256:<hex>" of its SPKI

	ready     chan struct{} // closed when built or failed
	instances *instances    // set when built

	mu     sync.Mutex
	source string // of a shipped one
	state  State
	err    error
	calls  int // under way
	over   bool
}

// State is how far the module has come.
func (m *Module) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

func (m *Module) from() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.source
}

// Err is why the module failed.
func (m *Module) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *Module) setState(s State, err error) {
	m.mu.Lock()
	m.state, m.err = s, err
	m.mu.Unlock()
}

// Wait waits until the module serves. The error is why it does not, or ctx's.
func (m *Module) Wait(ctx context.Context) error {
	select {
	case <-m.ready:
		return m.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retain keeps the module's instances while a call uses them; false if it serves
// no more.
func (m *Module) retain() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	m.calls++
	return true
}

func (m *Module) release() {
	m.mu.Lock()
	m.calls--
	last := m.over && m.calls == 0
	m.mu.Unlock()
	if last && m.instances != nil {
		m.instances.close()
	}
}

// retire lets no further call begin; the last one under way closes the instances.
func (m *Module) retire(s State) {
	m.mu.Lock()
	if m.over {
		m.mu.Unlock()
		return
	}
	m.over = true
	idle := m.calls == 0
	m.mu.Unlock()
	m.setState(s, nil)
	if idle && m.instances != nil {
		m.instances.close()
	}
}
