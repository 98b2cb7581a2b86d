package host

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestGoGuest runs a guest of the standard Go toolchain: what it keeps, a
// goroutine it leaves behind and its panic are gone with the call.
func TestGoGuest(t *testing.T) {
	s := newSandbox(t)
	m, err := s.Load(context.Background(), lensGuest(t))
	if err != nil {
		t.Fatal(err)
	}
	p := m.instances.program
	if len(p.sticky) != 0 || len(p.globals) < 8 {
		t.Errorf("sticky %v, %d globals: a Go module has 8 mutable ones and no other state", p.sticky, len(p.globals))
	}
	for _, c := range []struct{ input, code string }{
		{`{"turns":3}`, ""}, {`{"keep":1}`, ""}, {`{"keep":1}`, ""}, {`{"go":1}`, ""}, {`{"turns":1}`, ""}, {`{"panic":1}`, "guest_fault"}, {`{"turns":1}`, ""},
	} {
		got, code := s.ask("k8s_lens_run", c.input)
		if code != c.code || code == "" && got.rest != ok {
			t.Errorf("%s: answer %+v, refusal %q", c.input, got, code)
		}
	}
	if log := s.logs.String(); !strings.Contains(log, "as asked") {
		t.Errorf("the log does not hold the panic's text:\n%s", log)
	}
	marker := []byte("a tenant's own words")
	if _, code := s.ask("k8s_lens_run", `{"keep":"`+string(marker)+`"}`); code != "" {
		t.Fatal(code)
	}
	eventually(t, "restored", func() bool { return s.seen.tally().restored >= 6 })
	// Whatever instances there are: none holds the marker.
	m.instances.mu.Lock()
	defer m.instances.mu.Unlock()
	for _, i := range m.instances.idle {
		if bytes.Contains(i.view(), marker) {
			t.Error("an idle instance holds what the call before was given")
		}
		if i.sum() != p.snapshot.sum {
			t.Error("an idle instance differs from the snapshot")
		}
	}
	if n := s.seen.tally().different; n != 0 {
		t.Errorf("%d instances differed after a restore", n)
	}
}

// TestMarkerWouldBeFound shows that the marker is there until the restore, so
// that TestGoGuest can fail.
func TestMarkerWouldBeFound(t *testing.T) {
	s := newSandbox(t)
	m, err := s.Load(context.Background(), lensGuest(t))
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.instances.get(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.instances.put(i, false, Trapped)
	op, _ := s.Lookup("k8s_lens_run")
	meter := &meter{limits: op.limits}
	in := &Call{Token: op.Token, Input: []byte(`{"keep":"a tenant's own words"}`), Answer: deaf{}}
	c := newCall(context.Background(), s.Host, op, in, nil, meter)
	defer c.end()
	if _, err := i.invoke(&run{Context: c.ctx, call: c, meter: meter}, i.handle, op.limits.Fuel, make([]uint64, 1)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(i.view(), []byte("a tenant's own words")) {
		t.Error("the guest did not keep it")
	}
	if blocks, ok := i.restore(); !ok || blocks == 0 {
		t.Errorf("restore() = %d, %t", blocks, ok)
	}
	if bytes.Contains(i.view(), []byte("a tenant's own words")) {
		t.Error("it is there after the restore")
	}
}
