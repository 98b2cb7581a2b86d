package ops

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/registry"
)

// Metrics is what the service counts. No label holds a name that a caller
// chooses: ops and modules are those that are loaded, codes those of the table.
// A nil Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry

	calls     *prometheus.CounterVec   // op, transport, code
	seconds   *prometheus.HistogramVec // op
	upstream  *prometheus.HistogramVec // method, status
	kms       *prometheus.HistogramVec // operation, outcome
	breaker   *prometheus.GaugeVec     // state
	bytes     *prometheus.CounterVec   // direction
	fuel      *prometheus.HistogramVec // op
	instances *prometheus.GaugeVec     // module, state
	made      *prometheus.HistogramVec // module
	restored  *prometheus.HistogramVec // module
	verified  *prometheus.CounterVec   // module, equal
	discarded *prometheus.CounterVec   // module, why
	modules   *prometheus.GaugeVec     // module, state
	refusals  prometheus.Counter
	refused   prometheus.Gauge

	mu       sync.Mutex
	breakers map[string]string // the state of each that is not closed
}

// NewMetrics is an empty set of metrics, with those of the process and of Go.
func NewMetrics() *Metrics {
	r := prometheus.NewRegistry()
	// The collectors package, which the two are to be had from, links database/sql.
	//lint:ignore SA1019 see above
	r.MustRegister(prometheus.NewGoCollector(), prometheus.NewProcessCollector(prometheus.ProcessCollectorOpts{}))
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(h)
		return h
	}
	refusals := prometheus.NewCounter(prometheus.CounterOpts{Name: "k8s_guest_refusals_total", Help: "Shipped modules refused."})
	refused := prometheus.NewGauge(prometheus.GaugeOpts{Name: "k8s_guests_refused", Help: "Shipped modules that stand refused: neither withdrawn nor mended since."})
	r.MustRegister(refusals, refused)
	short := prometheus.ExponentialBuckets(10e-6, 4, 8)
	return &Metrics{
		registry: r,
		calls:    counter("k8s_calls_total", "Calls that ended, by op, transport and refusal code; an empty code is a success.", "op", "transport", "code"),
		seconds: histogram("k8s_call_seconds", "How long calls took, in all.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}, "op"),
		upstream: histogram("k8s_upstream_seconds", "How long clusters took to answer, up to the header, by method and HTTP status; 0 is no answer.",
			prometheus.ExponentialBuckets(.001, 3, 10), "method", "status"),
		kms: histogram("k8s_kms_seconds", "How long calls of the key store took, by operation and outcome.",
			prometheus.ExponentialBuckets(.0005, 3, 10), "operation", "outcome"),
		breaker:   gauge("k8s_breakers", "Clusters whose breaker is open or half open.", "state"),
		breakers:  make(map[string]string),
		bytes:     counter("k8s_bytes_total", "Bytes read from clusters (in, decompressed) and emitted by guests (out).", "direction"),
		fuel:      histogram("k8s_call_fuel", "Units of fuel that calls used.", prometheus.ExponentialBuckets(1e4, 8, 8), "op"),
		instances: gauge("k8s_guest_instances", "Instances of guest modules: live, idle, and callers waiting for one.", "module", "state"),
		made:      histogram("k8s_guest_made_seconds", "How long making an instance took.", short, "module"),
		restored:  histogram("k8s_guest_restored_seconds", "How long restoring an instance after a call took.", short, "module"),
		verified:  counter("k8s_guest_verified_total", "Restored instances compared with their snapshot, by whether they were equal.", "module", "equal"),
		discarded: counter("k8s_guest_discarded_total", "Instances thrown away, by reason.", "module", "why"),
		modules:   gauge("k8s_modules", "Modules served, by state: 1 for the state a module is in. One that is removed has none.", "module", "state"),
		refusals:  refusals,
		refused:   refused,
	}
}

// Register adds a collector of another part of the service.
func (m *Metrics) Register(c prometheus.Collector) error { return m.registry.Register(c) }

// Handler serves the metrics to Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// called counts one call. The host counts what a guest cost, in Called.
func (m *Metrics) called(l *auditLine, code string, took time.Duration) {
	if m == nil {
		return
	}
	m.calls.WithLabelValues(l.op, l.transport, codeLabel(code)).Inc()
	m.seconds.WithLabelValues(l.op).Observe(took.Seconds())
	m.bytes.WithLabelValues("in").Add(float64(l.stats.BytesIn))
	m.bytes.WithLabelValues("out").Add(float64(l.stats.BytesOut))
	if l.stats.Fuel > 0 {
		m.fuel.WithLabelValues(l.op).Observe(float64(l.stats.Fuel))
	}
}

// faultCodes are the codes of calls that failed through the code of their op.
var faultCodes = []string{"guest_fault", "fuel_exhausted"}

// serves begins to count an op's faults at 0, since the first increase is only
// seen of a series that is there before it.
func (m *Metrics) serves(op string) {
	if m == nil {
		return
	}
	for _, t := range []transport{restTransport{}, zapTransport{}} {
		for _, code := range faultCodes {
			m.calls.WithLabelValues(op, t.name(), code)
		}
	}
}

// codeLabel is a refusal's code as a label: a guest may say any code, and a
// label may not.
func codeLabel(code string) string {
	switch {
	case code == "" || code == "canceled":
		return code
	case strings.HasPrefix(code, "limit_"):
		return "limit"
	}
	for _, c := range Codes {
		if c.Code == code {
			return code
		}
	}
	return "other"
}

// statusLabel is an HTTP status as a label: a cluster may send any number.
func statusLabel(status int) string {
	if status >= 100 && status < 600 && http.StatusText(status) != "" {
		return strconv.Itoa(status)
	}
	return "0"
}

// Pool is part of host.Observer.
func (m *Metrics) Pool(module string, live, idle, waiting int) {
	m.instances.WithLabelValues(module, "live").Add(float64(live))
	m.instances.WithLabelValues(module, "idle").Add(float64(idle))
	m.instances.WithLabelValues(module, "waiting").Add(float64(waiting))
}

// Made is part of host.Observer.
func (m *Metrics) Made(module string, took time.Duration) {
	m.made.WithLabelValues(module).Observe(took.Seconds())
}

// Restored is part of host.Observer.
func (m *Metrics) Restored(module string, _ int, took time.Duration) {
	m.restored.WithLabelValues(module).Observe(took.Seconds())
}

// Verified is part of host.Observer.
func (m *Metrics) Verified(module string, equal bool) {
	label := "yes"
	if !equal {
		label = "no"
	}
	m.verified.WithLabelValues(module, label).Inc()
}

// Discarded is part of host.Observer.
func (m *Metrics) Discarded(module string, why host.Discard) {
	m.discarded.WithLabelValues(module, string(why)).Inc()
}

// Called is part of host.Observer; the edge counts calls itself, with those that
// never came to the host.
func (m *Metrics) Called(string, string, *host.Stats) {}

// Serving is part of host.Observer.
func (m *Metrics) Serving(module string, state host.State) {
	if state == host.Removed {
		m.modules.DeletePartialMatch(prometheus.Labels{"module": module})
		return
	}
	for _, s := range []host.State{host.Loading, host.Ready, host.Failed} {
		value := 0.0
		if s == state {
			value = 1
		}
		m.modules.WithLabelValues(module, string(s)).Set(value)
	}
}

// Refused is part of host.Observer.
func (m *Metrics) Refused() { m.refusals.Inc() }

// Standing is part of host.Observer.
func (m *Metrics) Standing(refused int) { m.refused.Set(float64(refused)) }

// KMS is part of registry.Observer. A write that another was quicker than, or a
// caller who left, is no failure of the store: callers can bring them about.
func (m *Metrics) KMS(operation string, took time.Duration, err error) {
	outcome := "ok"
	switch {
	case errors.Is(err, registry.ErrVersion):
		outcome = "conflict"
	case errors.Is(err, context.Canceled):
		outcome = "canceled"
	case err != nil:
		outcome = "error"
	}
	m.kms.WithLabelValues(operation, outcome).Observe(took.Seconds())
}

// Upstream is part of registry.Observer. Neither the org nor the cluster is a
// label: callers choose them.
func (m *Metrics) Upstream(_, _, method string, status int, took time.Duration) {
	m.upstream.WithLabelValues(method, statusLabel(status)).Observe(took.Seconds())
}

// Breaker is part of registry.Observer.
func (m *Metrics) Breaker(org, cluster, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := org + "/" + cluster
	if before, ok := m.breakers[name]; ok {
		m.breaker.WithLabelValues(before).Dec()
		delete(m.breakers, name)
	}
	if state != "closed" {
		m.breakers[name] = state
		m.breaker.WithLabelValues(state).Inc()
	}
}
