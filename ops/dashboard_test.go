package ops

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/hanzoai/k8s/host"
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
	m.Loaded("m", "", host.Ready)
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

// TestStoreConflictIsNoFailure: a caller that registers a name twice must not be
// able to raise the alarm about the key store.
func TestStoreConflictIsNoFailure(t *testing.T) {
	m := NewMetrics()
	m.KMS("put", 0, fmt.Errorf("wrapped: %w", registry.ErrVersion))
	if m.kms.DeleteLabelValues("put", "error") || !m.kms.DeleteLabelValues("put", "conflict") {
		t.Error("a conflict counts as a failure of the key store")
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
