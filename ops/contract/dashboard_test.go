package contract

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// later are the metrics that a service without trouble does not have yet. The
// test in package ops holds them against what is registered.
var later = map[string]bool{
	"k8s_breakers":              true,
	"k8s_guest_discarded_total": true,
	"k8s_guest_verified_total":  true, // one restore in many is verified
}

// TestQueriesFindLiveMetrics: what the dashboard and the alerts ask for is on
// the /metrics of a running service that has been called.
func TestQueriesFindLiveMetrics(t *testing.T) {
	s := theService(t)
	for _, cluster := range []string{"contract", "nobodys"} {
		r, err := http.NewRequest(http.MethodGet, s.URL+"/v1/k8s/pods?namespace=team-a&cluster="+cluster, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"X-Org-Id": {"acme"}, "X-User-Id": {"u1"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	resp, err := http.Get(s.OpsURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("/metrics answers %d, %v", resp.StatusCode, err)
	}
	series := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name := regexp.MustCompile(`^\w+`).FindString(line); name != "" {
			series[name] = true
		}
	}
	live, absent := 0, 0
	for _, file := range []string{"grafana-dashboard.json", "alerts.yaml"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, expr := range regexp.MustCompile(`(?m)^\s*"?expr"?:.*$`).FindAllString(string(text), -1) {
			for _, name := range regexp.MustCompile(`\b(?:k8s|process|go)_\w+`).FindAllString(expr, -1) {
				switch {
				case series[name]:
					live++
				case later[name]:
					absent++
				default:
					t.Errorf("%s asks for %s, which /metrics does not have", file, name)
				}
			}
		}
	}
	if live < 15 {
		t.Fatalf("examined %d live metrics, want 15 at least", live)
	}
	t.Logf("examined %d live metrics of queries; %d more come with trouble", live, absent)
}
