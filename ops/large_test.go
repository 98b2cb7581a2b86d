package ops_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// TestLargeObjects: the largest object that etcd takes, and a page of large ones,
// are within the computing time that an op is allowed.
func TestLargeObjects(t *testing.T) {
	s := alone(t, registry.NewMemory())
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	org := anOrg()
	s.enrol(t, org, "lab", lab.Kubeconfig("token"))
	large := func(n, kib int) (items []string) {
		for i := range n {
			items = append(items, app(fmt.Sprintf("a%04d", i), `{"text":"`+strings.Repeat("x", kib<<10)+`"}`))
		}
		return items
	}
	list := func(items []string) misbehave.Behaviour {
		return misbehave.JSON(`{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"7"},"items":[` + strings.Join(items, ",") + `]}`)
	}
	for _, test := range []struct {
		name, target string
		serve        misbehave.Behaviour
		size         int
	}{
		{"one of 1.4 MiB", "/v1/k8s/resources/App/team-a/a0000?cluster=lab", misbehave.JSON(large(1, 1400)[0]), 1400 << 10},
		{"a list of one of 1.4 MiB", "/v1/k8s/resources?cluster=lab&kind=App", list(large(1, 1400)), 1400 << 10},
		{"500 of 16 KiB", "/v1/k8s/resources?cluster=lab&kind=App", list(large(500, 16)), 500 * 16 << 10},
	} {
		lab.On("/apis/hanzo.ai/v1", test.serve)
		if status, text := s.call(org, http.MethodGet, test.target, nil); status != http.StatusOK || len(text) < test.size {
			t.Errorf("%s: %d, %d bytes: %.300s", test.name, status, len(text), text)
		}
	}
}
