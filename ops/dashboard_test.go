package ops

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"
)

// TestDashboardAndAlertsAskForWhatThereIs: every metric and label that the
// dashboard's and the alerts' queries name is one that /metrics has.
func TestDashboardAndAlertsAskForWhatThereIs(t *testing.T) {
	known := families(t)
	n := 0
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
	}
	if n < 20 {
		t.Fatalf("examined %d metrics of queries, want 20 at least", n)
	}
	t.Logf("examined %d metrics of queries", n)
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
