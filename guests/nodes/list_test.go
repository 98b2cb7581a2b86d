package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var rows = difftest.Projection[corev1.Node, plane.Node]{Token: "k8s_nodes_list", Reference: difftest.Node, Equal: sameSize}

// sameSize compares capacities by their value: of damaged bytes the typed object
// has them in canonical form, and the guest as they stand.
var sameSize = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Cpu" || p.Last().String() == ".Memory" },
	cmp.Comparer(func(a, b string) bool {
		x, err1 := resource.ParseQuantity(a)
		y, err2 := resource.ParseQuantity(b)
		return a == b || err1 == nil && err2 == nil && x.Cmp(y) == 0
	}))

func TestNodes(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{
			"topology.kubernetes.io/region": "fra1", "failure-domain.beta.kubernetes.io/region": "old", "beta.kubernetes.io/instance-type": "g-8"}},
		Spec: corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			Capacity:    list("cpu", "8", "memory", "32Gi", "nvidia.com/gpu", "2"),
			Allocatable: list("cpu", "7500m", "memory", "30Gi", "nvidia.com/gpu", "1", "amd.com/gpu", "4"),
			Conditions:  []corev1.NodeCondition{{Type: "MemoryPressure", Status: "True"}, {Type: "Ready", Status: "True"}},
			Addresses:   []corev1.NodeAddress{{Type: "Hostname", Address: "node-1"}, {Type: "InternalIP", Address: "10.1.0.4"}, {Type: "InternalIP", Address: "fd00::4"}},
		},
	}
	want := plane.Node{Name: "node-1", Ready: true, Region: "fra1", InstanceKind: "g-8", Cpu: "8", Memory: "32Gi", NvidiaGpu: 1, AmdGpu: 4, InternalIp: "10.1.0.4"}
	if diff := cmp.Diff(want, difftest.Same(t, rows, node)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lost := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "Unknown"}}}}
	if difftest.Same(t, rows, lost).Ready {
		t.Error("a node whose condition is Unknown is ready")
	}
}

func FuzzNode(f *testing.F) {
	difftest.Fuzz(f, rows, nil, func(n *corev1.Node, c randfill.Continue) {
		c.FillNoCustom(n)
		whole := []string{"0", "1", "8", "64", "2k", "100m", "16Gi"}
		for _, l := range []*corev1.ResourceList{&n.Status.Capacity, &n.Status.Allocatable} {
			*l = corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "amd.com/gpu"}[:c.Intn(5)] {
				(*l)[name] = resource.MustParse(whole[c.Intn(len(whole))])
			}
		}
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].Type = []corev1.NodeConditionType{"Ready", "DiskPressure"}[c.Intn(2)]
			n.Status.Conditions[i].Status = []corev1.ConditionStatus{"True", "False", "Unknown"}[c.Intn(3)]
		}
		for i := range n.Status.Addresses {
			n.Status.Addresses[i].Type = []corev1.NodeAddressType{"InternalIP", "Hostname"}[c.Intn(2)]
		}
	})
}

func TestVolumeStats(t *testing.T) {
	reading := func(node, summary string) []byte {
		return []byte(`{"node":"` + node + `","summary":` + summary + `}`)
	}
	h := sdktest.New(t, "k8s_nodes_volume_stats", plane.VolumeStatsIn{Cluster: "prod"}).Items("stats",
		reading("n1", `{"node":{},"pods":[{"volume":[
			{"name":"d","pvcRef":{"name":"pg","namespace":"data"},"usedBytes":100},
			{"name":"e","pvcRef":{"name":"empty","namespace":"data"},"usedBytes":0},
			{"name":"u","pvcRef":{"name":"unmeasured","namespace":"data"}},
			{"name":"token","usedBytes":7}]},{"podRef":{}}]}`),
		[]byte(`{"node":"n2","failed":"kubelet_unreachable"}`),
		reading("n3", `{"pods":[{"volume":[
			{"pvcRef":{"name":"pg","namespace":"data"},"usedBytes":300},
			{"pvcRef":{"name":"a","namespace":"web"},"usedBytes":9007199254740993}]}]}`),
		reading("n4", `{"pods":[{"volume":[{"pvcRef":{"name":"pg","namespace":"data"},"usedBytes":200}]}]}`),
		reading("n5", `{"pods":null}`))
	r := h.Run()
	want := []plane.VolumeUsage{
		{Namespace: "data", Name: "empty"}, {Namespace: "data", Name: "pg", UsedBytes: 300}, {Namespace: "web", Name: "a", UsedBytes: 9007199254740993}}
	if diff := cmp.Diff(want, sdktest.Items[plane.VolumeUsage](t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rest := plane.VolumeStats{NodesRead: 4, NodesTotal: 5, Failed: []plane.NodeFailure{{Node: "n2", Reason: "kubelet_unreachable"}}}
	if diff := cmp.Diff(rest, sdktest.Rest[plane.VolumeStats](t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVolumeStatsForbidden(t *testing.T) {
	r := sdktest.New(t, "k8s_nodes_volume_stats", plane.VolumeStatsIn{}).Fails("stats", sdk.Failure{Code: "forbidden", Status: 403}).Run()
	if r.Refusal == nil || r.Refusal.Status != 403 {
		t.Errorf("got %+v, want the cluster's 403", r.Refusal)
	}
}

// FuzzSummary holds the readings against encoding/json.
func FuzzSummary(f *testing.F) {
	f.Add(`{"pods":[{"volume":[{"pvcRef":{"name":"pg","namespace":"data"},"usedBytes":1}]}]}`)
	f.Add(`{"pods":[{"volume":[{"pvcRef":{"name":"\u00e9\n","namespace":"a","name":"b"},"usedBytes":1.5}],"volume":[]}]}`)
	f.Fuzz(func(t *testing.T, summary string) {
		r := sdktest.New(t, "k8s_nodes_volume_stats", plane.VolumeStatsIn{}).Items("stats", []byte(`{"node":"n","summary":`+summary+`}`)).Run()
		if !json.Valid([]byte(summary)) {
			if r.Refusal == nil && json.Valid([]byte(`{"node":"n","summary":`+summary+`}`)) == false {
				t.Errorf("answered %s of %q", r.Items, summary)
			}
			return
		}
		if r.Refusal != nil {
			t.Errorf("refused %q: %+v", summary, r.Refusal)
		}
	})
}
