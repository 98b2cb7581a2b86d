package guests_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/guests"
)

// ordinaryPod is a pod of some 4.6 KB, as one in a real cluster is.
func ordinaryPod(t testing.TB) []byte {
	yes, always := true, corev1.ContainerRestartPolicyAlways
	now := metav1.NewTime(time.Unix(1767366245, 0))
	var env []corev1.EnvVar
	for i := range 20 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: strings.Repeat("v", 20)})
	}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz"}}}
	c := corev1.Container{Name: "app", Image: "ghcr.io/acme/shop:1.4", Env: env, LivenessProbe: probe, ReadinessProbe: probe,
		Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}}
	sidecar := c
	sidecar.Name, sidecar.RestartPolicy, sidecar.Env = "proxy", &always, nil
	status := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Ready: true, Started: &yes, RestartCount: 1, Image: c.Image, ImageID: strings.Repeat("a", 71),
			ContainerID: strings.Repeat("b", 77), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop-7d4b9c-x2x7p", UID: "0b1e7a52-8f0e-4d0c-9a70-3b7b9a0a5b11", ResourceVersion: "123456",
			CreationTimestamp: now, Labels: map[string]string{"app": "shop", "pod-template-hash": "7d4b9c"}, Annotations: map[string]string{"prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-7d4b9c", UID: "0b1e", Controller: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:a":{}}`, 80))},
				{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:b":{}}`, 80))}}},
		Spec: corev1.PodSpec{NodeName: "node-1", InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{c}, ServiceAccountName: "shop",
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shop-data"}}},
				{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}}},
		Status: corev1.PodStatus{Phase: "Running", PodIP: "10.0.0.7", HostIP: "10.1.0.4", StartTime: &now, QOSClass: "Burstable",
			Conditions: []corev1.PodCondition{{Type: "Initialized", Status: "True", LastTransitionTime: now}, {Type: "Ready", Status: "True", LastTransitionTime: now},
				{Type: "ContainersReady", Status: "True", LastTransitionTime: now}, {Type: "PodScheduled", Status: "True", LastTransitionTime: now}},
			InitContainerStatuses: []corev1.ContainerStatus{status("proxy")}, ContainerStatuses: []corev1.ContainerStatus{status("app")}},
	}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// stage is a module of the built-in guests with just enough of a host around it
// to list items of one object.
type stage struct {
	handle      api.Function
	left, items int
	bytes       int
}

func newStage(t testing.TB, module, token string, object []byte) *stage {
	t.Helper()
	ctx := context.Background()
	modules, err := guests.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	rt := wazero.NewRuntime(ctx)
	t.Cleanup(func() { rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	s := &stage{}
	i32 := api.ValueTypeI32
	b := rt.NewHostModuleBuilder("k8s")
	export := func(name string, params int, run func(mem api.Memory, a []uint64) int32) {
		types := []api.ValueType{i32, i32, i32}[:params]
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, a []uint64) {
			a[0] = api.EncodeI32(run(m.Memory(), a))
		}), types, []api.ValueType{i32}).Export(name)
	}
	input := []byte(`{"op":"` + token + `","in":{"cluster":"prod"}}`)
	export("input", 2, func(mem api.Memory, a []uint64) int32 { mem.Write(uint32(a[0]), input); return int32(len(input)) })
	export("next", 3, func(mem api.Memory, a []uint64) int32 {
		if s.left == 0 {
			return -1
		}
		s.left--
		mem.Write(uint32(a[1]), object)
		return int32(len(object))
	})
	export("emit", 3, func(_ api.Memory, a []uint64) int32 { s.items++; s.bytes += int(a[2]); return 0 })
	one := func(api.Memory, []uint64) int32 { return 1 }
	export("list", 2, one)
	export("close", 1, func(api.Memory, []uint64) int32 { return 0 })
	for _, name := range []string{"fail", "get", "logs"} {
		export(name, 2, func(api.Memory, []uint64) int32 { return -2 })
	}
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if m.Name != module {
			continue
		}
		mod, err := rt.InstantiateWithConfig(ctx, m.WASM, wazero.NewModuleConfig().WithStartFunctions("_initialize").WithSysNanotime())
		if err != nil {
			t.Fatal(err)
		}
		s.handle = mod.ExportedFunction("handle")
	}
	if s.handle == nil {
		t.Fatalf("there is no module %s", module)
	}
	return s
}

func (s *stage) list(t testing.TB, n int) {
	t.Helper()
	s.left, s.items, s.bytes = n, 0, 0
	ret, err := s.handle.Call(context.Background())
	if err != nil || api.DecodeI32(ret[0]) != 0 || s.items != n {
		t.Fatalf("answered %v, %v, with %d items of %d", ret, err, s.items, n)
	}
}

// BenchmarkPod is one pod of a list of 5,000: two host calls, a copy, the lens
// and the projection.
func BenchmarkPod(b *testing.B) {
	const pods = 5000
	raw := ordinaryPod(b)
	s := newStage(b, "pods", "k8s_pods_list", raw)
	s.list(b, pods)
	b.ReportMetric(float64(len(raw)), "B/object")
	before := processorTime(b)
	for b.Loop() {
		s.list(b, pods)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pods, "ns/pod")
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/pods, "cpu-ns/pod")
}

// processorTime is what the process has used of the processors, in nanoseconds:
// unlike the time of day it says something on a machine with other work to do.
func processorTime(t testing.TB) int64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkEmpty is a call that lists nothing.
func BenchmarkEmpty(b *testing.B) {
	s := newStage(b, "pods", "k8s_pods_list", nil)
	for b.Loop() {
		s.list(b, 0)
	}
}
