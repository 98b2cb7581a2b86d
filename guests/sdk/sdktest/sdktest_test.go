package sdktest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

type row struct {
	Name string `json:"name"`
}

func init() {
	sdk.Handle("k8s_rows_list", func(c *sdk.Call) error {
		return c.List(c.Selected("v1/pods"), func(m lens.Message, w *sdk.Writer) { w.Str("name", m.Str(1)) })
	})
}

// named is a message whose field 1 is a text.
func named(s string) []byte { return append([]byte{1<<3 | 2, byte(len(s))}, s...) }

func TestHostAnswersAndRemembers(t *testing.T) {
	h := New(t, "k8s_rows_list", map[string]string{"cluster": "prod", "namespace": "web"})
	rows := Items[row](t, h.Items("list", named("a"), named("b")).Run())
	if diff := cmp.Diff([]row{{"a"}, {"b"}}, rows); diff != "" {
		t.Error(diff)
	}
	if len(h.Requests) != 1 || h.Requests[0].Function != "list" || h.Requests[0].Namespace != "web" {
		t.Errorf("the requests were %+v", h.Requests)
	}
}

func TestHostFails(t *testing.T) {
	h := New(t, "k8s_rows_list", map[string]string{"cluster": "prod"})
	got := h.Fails("list", sdk.Failure{Code: "not_found", Status: 404}).Run()
	if len(got.Items) != 0 || got.Refusal == nil || got.Refusal.Code != "not_found" {
		t.Errorf("a failed list gives %+v", got)
	}
}
