package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var projection = difftest.Projection[corev1.Pod, plane.Pod]{Token: "k8s_pods_list", Reference: difftest.Pod}

var (
	always = corev1.ContainerRestartPolicyAlways
	yes    = true
	now    = metav1.Unix(1767366245, 0)
	runs   = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
)

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func exited(reason string, code, signal int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Signal: signal}}
}

func is(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status}
}

func TestPodStatus(t *testing.T) {
	type want struct {
		phase, reason string
		restarts      int
	}
	for _, tt := range []struct {
		name string
		pod  corev1.Pod
		want want
	}{
		{"running", corev1.Pod{Status: corev1.PodStatus{Phase: "Running",
			ContainerStatuses: []corev1.ContainerStatus{{State: runs, Ready: true, RestartCount: 2}}}}, want{"Running", "", 2}},
		{"evicted", corev1.Pod{Status: corev1.PodStatus{Phase: "Failed", Reason: "Evicted"}}, want{"Failed", "Evicted", 0}},
		{"scheduling gated", corev1.Pod{Status: corev1.PodStatus{Phase: "Pending",
			Conditions: []corev1.PodCondition{{Type: "PodScheduled", Status: "False", Reason: "SchedulingGated"}}}},
			want{"Pending", "SchedulingGated", 0}},
		{"a started sidecar is no longer initialisation, and counts with the containers", corev1.Pod{
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "proxy", RestartPolicy: &always}, {Name: "migrate"}},
				Containers: []corev1.Container{{Name: "app"}}},
			Status: corev1.PodStatus{Phase: "Running",
				Conditions: []corev1.PodCondition{is("Initialized", "True"), is("Ready", "True")},
				InitContainerStatuses: []corev1.ContainerStatus{
					{Name: "proxy", RestartCount: 2, Started: &yes, Ready: true, State: runs},
					{Name: "migrate", RestartCount: 3, State: exited("Completed", 0, 0)}},
				ContainerStatuses:          []corev1.ContainerStatus{{Name: "app", RestartCount: 5, Ready: true, State: runs}},
				EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", RestartCount: 9, State: runs}}}},
			want{"Running", "", 7}},
		{"until it is initialised the init containers count", corev1.Pod{
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "a"}, {Name: "b"}}},
			Status: corev1.PodStatus{Phase: "Pending", InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "a", RestartCount: 3, State: exited("Completed", 0, 0)}, {Name: "b", RestartCount: 1, State: runs}}}},
			want{"Pending", "Init:1/2", 4}},
		{"init crash loop", corev1.Pod{Status: corev1.PodStatus{Phase: "Pending",
			InitContainerStatuses: []corev1.ContainerStatus{{State: waits("CrashLoopBackOff")}}}}, want{"Pending", "Init:CrashLoopBackOff", 0}},
		{"init killed", corev1.Pod{Status: corev1.PodStatus{Phase: "Pending",
			InitContainerStatuses: []corev1.ContainerStatus{{State: exited("", 137, 9)}}}}, want{"Pending", "Init:Signal:9", 0}},
		{"init exited", corev1.Pod{Status: corev1.PodStatus{Phase: "Pending",
			InitContainerStatuses: []corev1.ContainerStatus{{State: exited("", 2, 0)}}}}, want{"Pending", "Init:ExitCode:2", 0}},
		{"one is done, one runs and is ready, the pod is not", corev1.Pod{Status: corev1.PodStatus{Phase: "Running",
			Conditions: []corev1.PodCondition{is("Ready", "False")},
			ContainerStatuses: []corev1.ContainerStatus{
				{State: exited("Completed", 0, 0)}, {State: runs, Ready: true}}}}, want{"Running", "NotReady", 0}},
		{"one is done, one runs, the pod is ready", corev1.Pod{Status: corev1.PodStatus{Phase: "Running",
			Conditions: []corev1.PodCondition{is("Ready", "True")},
			ContainerStatuses: []corev1.ContainerStatus{
				{State: exited("Completed", 0, 0)}, {State: runs, Ready: true}}}}, want{"Running", "", 0}},
		{"one is done, one failed", corev1.Pod{Status: corev1.PodStatus{Phase: "Running",
			ContainerStatuses: []corev1.ContainerStatus{
				{State: exited("Completed", 0, 0)}, {State: exited("OOMKilled", 137, 0)}}}}, want{"Running", "OOMKilled", 0}},
		{"killed without a reason", corev1.Pod{Status: corev1.PodStatus{Phase: "Running",
			ContainerStatuses: []corev1.ContainerStatus{{State: exited("", 137, 9)}}}}, want{"Running", "Signal:9", 0}},
		{"exited without a reason", corev1.Pod{Status: corev1.PodStatus{Phase: "Running",
			ContainerStatuses: []corev1.ContainerStatus{{State: exited("", 3, 0)}}}}, want{"Running", "ExitCode:3", 0}},
		{"the first container that says something is heard", corev1.Pod{Status: corev1.PodStatus{Phase: "Running",
			ContainerStatuses: []corev1.ContainerStatus{{State: runs}, {State: waits("ImagePullBackOff")}, {State: waits("CrashLoopBackOff")}}}},
			want{"Running", "ImagePullBackOff", 0}},
		{"terminating", corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: corev1.PodStatus{Phase: "Running"}},
			want{"Running", "Terminating", 0}},
		{"a finished pod that is deleted stays finished", corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now},
			Status: corev1.PodStatus{Phase: "Succeeded"}}, want{"Succeeded", "", 0}},
		{"its node is lost", corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now},
			Status: corev1.PodStatus{Phase: "Running", Reason: "NodeLost"}}, want{"Running", "Unknown", 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := difftest.Same(t, projection, &tt.pod)
			if got := (want{row.Phase, row.Reason, row.Restarts}); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestPodRow(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "web", Name: "shop", Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "SENTINEL"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Config", Name: "not-it"}, {Kind: "ReplicaSet", Name: "shop-1", Controller: &yes}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "SENTINEL"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shop-data"}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			},
			InitContainers: []corev1.Container{{Name: "migrate", Image: "migrate:1", Env: []corev1.EnvVar{{Name: "T", Value: "SENTINEL"}}}},
			Containers:     []corev1.Container{{Name: "app", Image: "app:1", Env: []corev1.EnvVar{{Name: "T", Value: "SENTINEL"}}}},
		},
		Status: corev1.PodStatus{Phase: "Pending"},
	}
	want := plane.Pod{Namespace: "web", Name: "shop", Phase: "Pending", Node: "node-1", Controller: "ReplicaSet/shop-1",
		Claims: []string{"shop-data", "shop-scratch"}, Images: []string{"migrate:1", "app:1"}}
	if diff := cmp.Diff(want, difftest.Same(t, projection, pod), difftest.Options); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPodsQuery(t *testing.T) {
	h := sdktest.New(t, "k8s_pods_list", plane.PodsIn{Cluster: "prod", Namespace: "web", LabelSelector: "app=shop", NodeName: "node-1"}).Items("list")
	if got := sdktest.Items[plane.Pod](t, h.Run()); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	want := []sdktest.Request{{Function: "list", Resource: "v1/pods", Namespace: "web", LabelSelector: "app=shop", FieldSelector: "spec.nodeName=node-1"}}
	if diff := cmp.Diff(want, h.Requests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod's own words, so that random ones take every way through its STATUS.
var podWords = []string{"Running", "Completed", "Error", "NodeLost", "PodInitializing", "CrashLoopBackOff", "SchedulingGated", "ReplicaSet"}

func FuzzPod(f *testing.F) {
	difftest.Fuzz(f, projection, podWords, fillPod)
}

func fillPod(p *corev1.Pod, c randfill.Continue) {
	c.FillNoCustom(p)
	pick := func(words ...string) string { return words[c.Intn(len(words))] }
	p.Status.Phase = corev1.PodPhase(pick("Pending", "Running", "Succeeded", "Failed", "Unknown"))
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].Type = corev1.PodConditionType(pick("PodScheduled", "Ready", "Initialized"))
		p.Status.Conditions[i].Status = corev1.ConditionStatus(pick("True", "False"))
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range all {
			all[i].Name = pick("a", "b")
			switch c.Intn(4) {
			case 0:
				all[i].State = exited(pick("", "Completed", "Error"), int32(c.Intn(2)), int32(c.Intn(2)))
			case 1:
				all[i].State = runs
			case 2:
				all[i].State = waits(pick("", "PodInitializing", "ImagePullBackOff"))
			}
		}
	}
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Name = pick("a", "b")
		if p.Spec.InitContainers[i].RestartPolicy != nil {
			p.Spec.InitContainers[i].RestartPolicy = &always
		}
	}
}
