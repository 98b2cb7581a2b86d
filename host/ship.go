package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// Shipment is a module that is brought into a running host.
type Shipment struct {
	Wasm      []byte
	Signature []byte // base64, of Wasm: see Sign
	Source    string // where it came from, for Modules; "" is its own name
}

// Status is what there is to say of a module, one that serves or one that was
// refused.
type Status struct {
	Name    string   `json:"name,omitempty"`
	Version string   `json:"version,omitempty"`
	Digest  string   `json:"digest"`
	Signer  string   `json:"signer,omitempty"`
	Source  string   `json:"source,omitempty"`
	Shipped bool     `json:"shipped"`
	State   State    `json:"state"`
	Error   string   `json:"error,omitempty"`
	Ops     []string `json:"ops,omitempty"`
}

// Ship takes a module into the running host, in place of the shipped module of
// its name if there is one: signature, manifest, grants, then compilation, a
// canary call of every op, and the swap, which no call notices. Calls under way
// finish on the module they began with. A module that fails any step changes
// nothing; Modules then says why. To ship what already serves does nothing.
func (h *Host) Ship(ctx context.Context, s Shipment) (*Module, error) {
	h.shipping.Lock()
	defer h.shipping.Unlock()
	m, err := h.ship(ctx, s)
	status := Status{Digest: Digest(s.Wasm), Source: s.Source, Shipped: true}
	if m != nil {
		status.Name, status.Version, status.Signer = m.Manifest.Name, m.Manifest.Version, m.Signer
	}
	if err != nil {
		h.refuse(status, err)
		return nil, err
	}
	h.forget(status.key())
	return m, nil
}

// key is what a refusal is remembered by.
func (s *Status) key() string {
	if s.Source != "" {
		return s.Source
	}
	return s.Name
}

// refuse remembers and tells of what could not be shipped, and why.
func (h *Host) refuse(s Status, why error) {
	s.State, s.Error = Refused, why.Error()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused[s.key()] = s
	h.config.Metrics.Refused()
	h.config.Metrics.Standing(len(h.refused))
	h.config.Log.Error("a shipped module is refused", "source", s.Source, "module", s.Name, "digest", s.Digest, "error", why)
}

// ship gives the module as far as it is known, even with an error.
func (h *Host) ship(ctx context.Context, s Shipment) (*Module, error) {
	t := &h.config.Trust
	signer, err := t.admit(s.Wasm, s.Signature)
	if err != nil {
		return nil, err
	}
	m, err := readModule(s.Wasm)
	if err != nil {
		return nil, err
	}
	m.Shipped, m.Signer, m.source = true, signer, s.Source
	if now := h.serving(m.Manifest.Name); now != nil && now.Digest == m.Digest && now.Shipped {
		now.mu.Lock()
		now.source = s.Source
		now.mu.Unlock()
		return now, nil
	}
	if err := h.permit(m); err != nil {
		return m, err
	}
	h.prepare(m)
	// What can be told before compiling is told before compiling.
	h.mu.Lock()
	old := h.before(m)
	err = h.clash(m, old)
	h.mu.Unlock()
	if err != nil {
		return m, err
	}
	if err := h.build(ctx, m, s.Wasm); err != nil {
		return m, err
	}
	// Remembered before it serves: whatever is cut short, no older one can follow.
	err = h.releases.set(m.Manifest.Name, release{m.Manifest.Version, m.Digest}, t.Downgrade)
	h.mu.Lock()
	old = h.before(m)
	if err == nil {
		err = h.place(m, old)
	}
	h.mu.Unlock()
	if err != nil {
		m.retire(Removed)
		return m, err
	}
	h.changed()
	if old != nil {
		if p := m.widens(old); p != "" {
			h.config.Log.Warn("a shipped module is granted more than the one it replaces", "module", m.Manifest.Name, "version", m.Manifest.Version, "first", p)
		}
	}
	h.config.Log.Info("a shipped module serves", "module", m.Manifest.Name, "version", m.Manifest.Version, "digest", m.Digest, "signer", signer)
	if old != nil {
		h.retire(old, Replaced)
	}
	return m, nil
}

// widens names the first privilege of m that old does not have, "" if there is none.
func (m *Module) widens(old *Module) string {
	had := []manifest.Grant{}
	for _, op := range old.Manifest.Ops {
		had = append(had, op.Grants...)
	}
	for _, op := range m.Manifest.Ops {
		if p := exceeds(op.Grants, had); p != "" {
			return p
		}
	}
	return ""
}

// before is the shipped module that m takes the place of, nil if there is none.
// The name of a built-in one it cannot take: then there is a clash.
func (h *Host) before(m *Module) *Module {
	if old := h.serving(m.Manifest.Name); old != nil && old.Shipped {
		return old
	}
	return nil
}

func (h *Host) serving(name string) *Module { return h.table.Load().modules[name] }

// permit checks what a shipped module may not do however it is signed.
func (h *Host) permit(m *Module) error {
	for _, f := range m.Manifest.Imports {
		if slices.Contains(manifest.RegistryFunctions, f) {
			return fmt.Errorf("imports %s: a shipped module may not reach the registry", f)
		}
	}
	ceiling := h.config.Trust.Grants
	if ceiling == nil {
		ceiling = h.builtinGrants()
	}
	for _, op := range m.Manifest.Ops {
		if p := exceeds(op.Grants, ceiling); p != "" {
			return fmt.Errorf("%s asks for %q, which is outside the operator's ceiling", op.Token, p)
		}
	}
	if h.config.Trust.Downgrade {
		return nil
	}
	return h.releases.check(m.Manifest.Name, release{m.Manifest.Version, m.Digest})
}

// builtinGrants are what the built-in ops hold.
func (h *Host) builtinGrants() []manifest.Grant {
	all := []manifest.Grant{}
	for _, op := range h.Ops() {
		if !op.Module.Shipped {
			all = append(all, op.Grants...)
		}
	}
	return all
}

// ErrUnknownModule is a module that is not there to be removed.
var ErrUnknownModule = errors.New("no such shipped module")

// Remove takes a shipped module out. Calls under way finish.
func (h *Host) Remove(name string) error {
	h.shipping.Lock()
	defer h.shipping.Unlock()
	h.mu.Lock()
	m := h.serving(name)
	if m == nil || !m.Shipped {
		h.mu.Unlock()
		return fmt.Errorf("%w: %q", ErrUnknownModule, name)
	}
	h.displace(m)
	h.mu.Unlock()
	h.changed()
	h.retire(m, Removed)
	h.config.Log.Info("a shipped module was removed", "module", name, "digest", m.Digest)
	return nil
}

// retire ends a module and remembers it until its last call has ended.
func (h *Host) retire(m *Module, s State) {
	m.retire(s)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retired = slices.DeleteFunc(append(h.retired, m), func(m *Module) bool {
		select {
		case <-m.instances.gone:
			return true
		default:
			return false
		}
	})
}

// Modules tells of every module that serves or loads, and of every shipped one
// that was refused and neither withdrawn nor mended since, by name and source.
func (h *Host) Modules() []Status {
	var all []Status
	for _, m := range h.table.Load().modules {
		s := Status{
			Name: m.Manifest.Name, Version: m.Manifest.Version, Digest: m.Digest, Signer: m.Signer,
			Source: m.from(), Shipped: m.Shipped, State: m.State(),
		}
		if err := m.Err(); err != nil {
			s.Error = err.Error()
		}
		for _, op := range m.Ops {
			s.Ops = append(s.Ops, op.Token)
		}
		all = append(all, s)
	}
	h.mu.Lock()
	for _, s := range h.refused {
		all = append(all, s)
	}
	h.mu.Unlock()
	slices.SortFunc(all, func(a, b Status) int {
		return strings.Compare(a.Name+"\x00"+a.Source+"\x00"+a.Digest, b.Name+"\x00"+b.Source+"\x00"+b.Digest)
	})
	return all
}

// forget drops what is remembered of a refused shipment.
func (h *Host) forget(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.refused, key)
	h.config.Metrics.Standing(len(h.refused))
}
