package difftest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

type row struct {
	Name string `json:"name"`
}

func init() {
	sdk.Handle("k8s_rows_list", func(c *sdk.Call) error {
		return c.List(c.Selected("v1/pods"), func(m lens.Message, w *sdk.Writer) { w.Str("name", m.Meta().Name()) })
	})
}

// TestADifferenceIsSeen: a reference that says something else than the guest is
// a difference, and one that says the same is none.
func TestADifferenceIsSeen(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	right := Projection[corev1.Pod, row]{Token: "k8s_rows_list", Reference: func(p *corev1.Pod) row { return row{p.Name} }}
	if diff := cmp.Diff(row{"web"}, Same(t, right, pod)); diff != "" {
		t.Error(diff)
	}
	wrong := Projection[corev1.Pod, row]{Token: "k8s_rows_list", Reference: func(p *corev1.Pod) row { return row{p.Name + "!"} }}
	if wrong.diff(reference[corev1.Pod, row](t, wrong, raw), wrong.Row(t, raw)) == "" {
		t.Error("a guest that differs from its reference is not noticed")
	}
}
