package host

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

func TestLimitsOf(t *testing.T) {
	with := func(l manifest.Limits, f func(*manifest.Limits)) manifest.Limits { f(&l); return l }
	long := with(Defaults, func(l *manifest.Limits) { l.Millis, l.HostMillis = LongMillis, LongMillis })
	for name, c := range map[string]struct {
		op      manifest.Op
		ceiling manifest.Limits
		want    manifest.Limits
	}{
		"defaults":           {want: Defaults},
		"a long op":          {op: manifest.Op{Long: true}, want: long},
		"asked for":          {op: manifest.Op{Limits: manifest.Limits{Fuel: 7, Items: 8}}, want: with(Defaults, func(l *manifest.Limits) { l.Fuel, l.Items = 7, 8 })},
		"under the ceiling":  {op: manifest.Op{Limits: manifest.Limits{Millis: 500}}, ceiling: manifest.Limits{Millis: 1000}, want: with(Defaults, func(l *manifest.Limits) { l.Millis = 500 })},
		"over the ceiling":   {op: manifest.Op{Limits: manifest.Limits{BytesIn: 1 << 40}}, ceiling: manifest.Limits{BytesIn: 99}, want: with(Defaults, func(l *manifest.Limits) { l.BytesIn = 99 })},
		"default, capped":    {ceiling: manifest.Limits{HostCalls: 3}, want: with(Defaults, func(l *manifest.Limits) { l.HostCalls = 3 })},
		"a long op's, asked": {op: manifest.Op{Long: true, Limits: manifest.Limits{Millis: 60_000}}, want: with(long, func(l *manifest.Limits) { l.Millis = 60_000 })},
	} {
		if diff := cmp.Diff(c.want, limitsOf(&c.op, c.ceiling)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMeter(t *testing.T) {
	limits := manifest.Limits{HostCalls: 3, BytesIn: 10, BytesOut: 10, Items: 2, FuelPerItem: 5}
	for name, c := range map[string]struct {
		use  func(m *meter) *registry.Refusal
		fits int // how often it may be done
		code string
	}{
		"host calls": {(*meter).hostCall, 3, "limit_host_calls"},
		"bytes in":   {func(m *meter) *registry.Refusal { return m.bytesIn(5) }, 2, "limit_bytes_in"},
		"bytes out":  {func(m *meter) *registry.Refusal { return m.bytesOut(10) }, 1, "limit_bytes_out"},
		"items":      {(*meter).item, 2, "limit_items"},
	} {
		m := &meter{limits: limits}
		for n := range c.fits {
			if r := c.use(m); r != nil {
				t.Errorf("%s: %v at the %d. time", name, r, n+1)
			}
		}
		if r := c.use(m); r == nil || r.Code != c.code || r.Status < 500 {
			t.Errorf("%s: %v, want %s", name, r, c.code)
		}
	}
	m := &meter{limits: limits}
	var fuel int64
	m.addFuel = func(n int64) { fuel += n }
	for range 2 {
		m.item()
	}
	for range 3 + 2*2 {
		if r := m.hostCall(); r != nil {
			t.Errorf("two more host calls for each item: %v", r)
		}
	}
	if r := m.hostCall(); r == nil {
		t.Error("and no more")
	}
	if fuel != 10 {
		t.Errorf("%d units for two items, want 10", fuel)
	}
	var wg sync.WaitGroup
	shared := &meter{limits: manifest.Limits{BytesIn: 1 << 40}}
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				shared.bytesIn(3)
			}
		})
	}
	wg.Wait()
	if n := shared.used.bytesIn.Load(); n != 12_000 {
		t.Errorf("%d bytes counted, want 12000", n)
	}
}

// TestFunctionsAreTheABI compares the functions there are with those that a
// manifest may name.
func TestFunctionsAreTheABI(t *testing.T) {
	var have []string
	for _, f := range functions {
		have = append(have, f.name)
	}
	slices.Sort(have)
	want := slices.Sorted(slices.Values(manifest.Functions))
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("functions of the ABI (-manifest +host):\n%s", diff)
	}
}
