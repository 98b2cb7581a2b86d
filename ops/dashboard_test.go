package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// TestDashboardAndAlertsAskForWhatThereIs: every metric, label and label value
// that the dashboard's and the alerts' queries name is one that /metrics has. An
// alert for a value that is never counted would stay silent for ever.
func TestDashboardAndAlertsAskForWhatThereIs(t *testing.T) {
	known, counted := families(t), values(t)
	n, matched := 0, 0
	for _, query := range queries(t) {
		names := regexp.MustCompile(`\b(k8s|process|go)_\w+`).FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric", query)
		}
		var labels []string
		for _, name := range names {
			n++
			family, ok := known[name]
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if base, cut := strings.CutSuffix(name, suffix); cut && !ok {
					family, ok = known[base]
				}
			}
			if !ok {
				t.Errorf("%s: there is no metric %s", query, name)
			}
			labels = append(labels, family...)
		}
		for _, found := range regexp.MustCompile(`by \(([^)]*)\)|(\w+)(?:=|!=|=~|!~)"`).FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(found[1]+found[2], ",") {
				if label = strings.TrimSpace(label); label != "le" && !slices.Contains(labels, label) {
					t.Errorf("%s: its metrics have no label %q, but %v", query, label, labels)
				}
			}
		}
		for _, selector := range regexp.MustCompile(`(\w+)\{([^}]*)\}`).FindAllStringSubmatch(query, -1) {
			family := strings.TrimSuffix(strings.TrimSuffix(selector[1], "_bucket"), "_count")
			for _, matcher := range regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)"([^"]*)"`).FindAllStringSubmatch(selector[2], -1) {
				for value := range strings.SplitSeq(matcher[2], "|") {
					matched++
					if !counted[family][matcher[1]+"="+value] {
						t.Errorf("%s: no %s ever has %s=%q", query, family, matcher[1], value)
					}
				}
			}
		}
	}
	if n < 20 || matched < 5 {
		t.Fatalf("examined %d metrics of queries and %d label values, want 20 and 5 at least", n, matched)
	}
	t.Logf("examined %d metrics of queries and %d label values", n, matched)
}

// values are the label values, as label=value, of each metric once everything
// that is counted has happened.
func values(t *testing.T) map[string]map[string]bool {
	t.Helper()
	m := NewMetrics()
	for _, c := range append([]Code{{}}, Codes...) {
		m.called(&auditLine{op: "o", transport: "http"}, c.Code, 0)
	}
	m.Verified("m", true)
	m.Verified("m", false)
	for _, err := range []error{nil, registry.ErrVersion, registry.ErrUnavailable} {
		m.KMS("put", 0, err)
	}
	m.Breaker("acme", "a", "open")
	m.Breaker("acme", "b", "half_open")
	m.Serving("m", host.Ready)
	m.Pool("m", 1, 1, 1)
	gathered, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]bool{}
	for _, family := range gathered {
		of := map[string]bool{}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				of[label.GetName()+"="+label.GetValue()] = true
			}
		}
		all[family.GetName()] = of
	}
	return all
}

// TestFirstFaultIsSeen: what K8sGuestFaults takes the increase of is there, at 0,
// before an op's first call, in every series that a fault can count in.
func TestFirstFaultIsSeen(t *testing.T) {
	var rule string
	for _, query := range queries(t) {
		if strings.Contains(query, "guest_fault") && strings.Contains(query, "by (op)") {
			rule = query
		}
	}
	if !strings.Contains(rule, "increase(k8s_calls_total{") || !strings.HasSuffix(rule, "> 0") {
		t.Fatalf("the rule about faults is %q", rule)
	}
	codes := strings.Split(regexp.MustCompile(`code=~"([^"]*)"`).FindStringSubmatch(rule)[1], "|")
	e := newEdge(t, &fake{ops: []*manifest.Op{widgets}})
	n := 0
	for _, transport := range []string{"rest", "zip"} {
		for _, code := range codes {
			n++
			line := fmt.Sprintf("k8s_calls_total{code=%q,op=%q,transport=%q} ", code, widgets.Token, transport)
			if text := scraped(t, e.metrics); !strings.Contains(text, line+"0\n") {
				t.Errorf("before a call there is no %s0", line)
			}
			e.metrics.called(&auditLine{op: widgets.Token, transport: transport}, code, 0)
			if text := scraped(t, e.metrics); !strings.Contains(text, line+"1\n") {
				t.Errorf("after one there is no %s1", line)
			}
		}
	}
	if n < 4 {
		t.Fatalf("examined %d series", n)
	}
}

// TestModuleMetrics: the state of what serves and the refusals are told apart.
func TestModuleMetrics(t *testing.T) {
	m := NewMetrics()
	m.Serving("widgets", host.Loading)
	m.Serving("widgets", host.Ready)
	m.Refused()
	m.Standing(1)
	m.Pool("widgets", 2, 1, 0)
	m.Pool("widgets", -1, 0, 0)
	text := scraped(t, m)
	for _, line := range []string{
		`k8s_modules{module="widgets",state="ready"} 1`, `k8s_modules{module="widgets",state="loading"} 0`,
		`k8s_modules{module="widgets",state="failed"} 0`, `k8s_guest_refusals_total 1`, `k8s_guests_refused 1`,
		`k8s_guest_instances{module="widgets",state="live"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	m.Serving("widgets", host.Removed)
	if text := scraped(t, m); strings.Contains(text, "k8s_modules{") {
		t.Errorf("a module that was removed is still told of: %s", text)
	}
}

func scraped(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// TestStoreConflictIsNoFailure: a caller that registers a name twice, or leaves,
// must not be able to raise the alarm about the key store.
func TestStoreConflictIsNoFailure(t *testing.T) {
	m := NewMetrics()
	m.KMS("put", 0, fmt.Errorf("wrapped: %w", registry.ErrVersion))
	if m.kms.DeleteLabelValues("put", "error") || !m.kms.DeleteLabelValues("put", "conflict") {
		t.Error("a conflict counts as a failure of the key store")
	}
	m.KMS("get", 0, fmt.Errorf("wrapped: %w", context.Canceled))
	if m.kms.DeleteLabelValues("get", "error") || !m.kms.DeleteLabelValues("get", "canceled") {
		t.Error("a caller who leaves counts as a failure of the key store")
	}
}

// families are the metrics that /metrics can have, with their labels.
func families(t *testing.T) map[string][]string {
	t.Helper()
	description := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	ch := make(chan *prometheus.Desc, 1024)
	NewMetrics().registry.Describe(ch)
	close(ch)
	known := map[string][]string{}
	for d := range ch {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("a description that cannot be read: %s", d)
		}
		known[m[1]] = strings.Split(m[2], ",")
	}
	return known
}

func queries(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	read := func(file string, out any) {
		text, err := os.ReadFile("../deploy/" + file)
		if err == nil {
			text, err = yaml.YAMLToJSON(text)
		}
		if err == nil {
			err = json.Unmarshal(text, out)
		}
		if err != nil {
			t.Fatal(file, err)
		}
	}
	read("grafana-dashboard.json", &dashboard)
	read("alerts.yaml", &alerts)
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			all = append(all, q.Expr)
		}
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			all = append(all, r.Expr)
		}
	}
	return all
}
