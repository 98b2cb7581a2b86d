package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/host/rewrite"
)

// goGuest compiles testdata/lens as an op's guest is compiled, once.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "lens")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "lens.wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags", "-s -w", "-o", out, "./testdata/lens")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, b)
	}
	return os.ReadFile(out)
})

func lensGuest(t testing.TB) []byte {
	t.Helper()
	wasm, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	g := guestModule{name: "lens", limits: manifest.Limits{Fuel: 1 << 50}}
	text, err := json.Marshal(g.manifest())
	if err != nil {
		t.Fatal(err)
	}
	return rewrite.AppendSection(wasm, manifest.Section, text)
}

// benchItems is how many objects one run of a benchmarked guest reads.
const benchItems = 1000

// bare runs the guest's handle without our host, in forms of the module that
// differ in nothing but the fuel. Each form is timed in turns, so that a busy
// machine spoils all alike.
func bare(b *testing.B, forms map[string][]byte, in string) map[string]time.Duration {
	ctx := context.Background()
	type runner struct {
		handle api.Function
		fuel   api.MutableGlobal
		best   []time.Duration
	}
	runners := map[string]*runner{}
	rt := wazero.NewRuntime(ctx)
	b.Cleanup(func() { rt.Close(ctx) })
	none := func(context.Context, api.Module, []uint64) {}
	if err := provideWASI(ctx, rt); err != nil {
		b.Fatal(err)
	}
	k8s := rt.NewHostModuleBuilder("k8s")
	i32 := api.ValueTypeI32
	k8s.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, s []uint64) {
		m.Memory().Write(uint32(s[0]), []byte(in))
		s[0] = uint64(len(in))
	}), []api.ValueType{i32, i32}, []api.ValueType{i32}).Export("input")
	given := 0
	pod := benchPod(b)
	next := func(_ context.Context, m api.Module, s []uint64) {
		switch {
		case given == benchItems:
			s[0] = uint64(uint32(0xffffffff))
			return
		case int(uint32(s[2])) >= len(pod):
			m.Memory().Write(uint32(s[1]), pod)
			given++
		}
		s[0] = uint64(len(pod))
	}
	k8s.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(next), []api.ValueType{i32, i32, i32}, []api.ValueType{i32}).Export("next")
	k8s.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, s []uint64) { s[0], given = 1, 0 }), []api.ValueType{i32, i32}, []api.ValueType{i32}).Export("list")
	for _, f := range functions {
		switch f.name {
		case "input", "emit", "next", "list":
			continue
		}
		k8s.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(none), slices.Repeat([]api.ValueType{i32}, f.params), []api.ValueType{i32}).Export(f.name)
	}
	k8s.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(none), []api.ValueType{i32, i32, i32}, []api.ValueType{i32}).Export("emit")
	if _, err := k8s.Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	r := starting(ctx, nil)
	for name, wasm := range forms {
		mod, err := rt.InstantiateWithConfig(r, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
		if err != nil {
			b.Fatal(err)
		}
		x := &runner{handle: mod.ExportedFunction("handle")}
		if g := mod.ExportedGlobal(rewrite.Fuel); g != nil {
			x.fuel = g.(api.MutableGlobal)
		}
		runners[name] = x
	}
	for range 40 {
		for _, x := range runners {
			if x.fuel != nil {
				x.fuel.Set(1 << 60)
			}
			began := time.Now()
			if _, err := x.handle.Call(r); err != nil {
				b.Fatal(err)
			}
			x.best = append(x.best, time.Since(began))
		}
	}
	out := map[string]time.Duration{}
	for name, x := range runners {
		slices.Sort(x.best)
		out[name] = x.best[len(x.best)/4]
	}
	return out
}

// benchPod is a pod of a usual size as the API server sends it.
func benchPod(b *testing.B) []byte {
	b.Helper()
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "web-7d9c5b8f6d-x2x9z", "team-12", "0b9d8c7e-1111-2222-3333-444455556666"
	pod.Labels = map[string]string{"app": "web", "pod-template-hash": "7d9c5b8f6d", "tier": "front"}
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat(`{"a":"b"},`, 120)}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d9c5b8f6d", Controller: new(bool)}}
	*pod.OwnerReferences[0].Controller = true
	for range 3 {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:x":{}},`, 40))})
	}
	for _, n := range []string{"app", "proxy"} {
		c := corev1.Container{Name: n, Image: "registry.example.com/team/" + n + ":v1.2.3"}
		for range 12 {
			c.Env = append(c.Env, corev1.EnvVar{Name: "SOME_SETTING", Value: "some value of it"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: n, Ready: true, RestartCount: 1, Image: c.Image, ImageID: c.Image + "@sha256:0123456789abcdef"})
	}
	pod.Spec.NodeName = "node-17"
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-0"}}}}
	pod.Status.Phase = corev1.PodRunning
	for _, c := range []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	raw, err := pod.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// BenchmarkFuel gives what the fuel costs, as a ratio to the same module without
// it: for the pods op over 2,000 pods, and for a loop over bytes, the worst case.
func BenchmarkFuel(b *testing.B) {
	pods, err := os.ReadFile("../guests/bin/pods.wasm")
	if err != nil {
		b.Fatalf("build the guests first: %v", err)
	}
	for name, c := range map[string]struct {
		wasm []byte
		in   string
	}{
		"pods":  {pods, `{"op":"k8s_pods_list","in":{"cluster":"prod"}}`},
		"bytes": {lensGuest(b), `{"op":"x","in":{"turns":1000}}`},
	} {
		b.Run(name, func(b *testing.B) {
			o := rewrite.Options{Fuel: 1 << 60, MaxPages: 1024, MaxTable: maxTable}
			forms := map[string][]byte{"none": c.wasm}
			add := func(name string, o rewrite.Options) {
				m, err := rewrite.Rewrite(c.wasm, o)
				if err != nil {
					b.Fatal(err)
				}
				forms[name] = m.Binary
			}
			add("trap", o)
			for b.Loop() {
				took := bare(b, forms, c.in)
				for name, d := range took {
					b.ReportMetric(float64(d)/float64(took["none"]), name+"/none")
				}
				b.ReportMetric(float64(took["none"].Nanoseconds())/1000/benchItems, "us/object")
			}
		})
	}
}

// goProgram loads the Go guest and takes an instance of it.
func goInstance(b *testing.B) (*sandbox, *instance) {
	b.Helper()
	s := newSandbox(b, func(c *Config) { c.Verify = 1 << 30 })
	m, err := s.Load(context.Background(), lensGuest(b))
	if err != nil {
		b.Fatal(err)
	}
	i, err := m.instances.get(context.Background(), false)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.instances.put(i, false, Trapped) })
	return s, i
}

// BenchmarkRestore gives what cleaning an instance of a Go guest costs after a
// call, as it is done, by plain copy, and by copying the dirty blocks only, which
// is the floor.
func BenchmarkRestore(b *testing.B) {
	_, i := goInstance(b)
	snap := imageOf(i.program.snapshot)
	dirty := func() {
		view := i.view()
		for n := range 20 {
			view[(n*97%len(view)/blockSize)*blockSize+n] ^= 1
		}
	}
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			dirty()
			i.restore()
		}
		b.ReportMetric(float64(len(snap))/(1<<20), "MiB")
	})
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			dirty()
			copy(i.view(), snap)
		}
	})
}

// BenchmarkInstantiate gives what a further instance of a Go guest costs.
func BenchmarkInstantiate(b *testing.B) {
	_, i := goInstance(b)
	b.Run("from the snapshot", func(b *testing.B) {
		for b.Loop() {
			n, err := i.program.make(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			n.close()
		}
	})
	b.Run("from nothing", func(b *testing.B) {
		for b.Loop() {
			n, err := i.program.start(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			n.close()
		}
	})
}

// BenchmarkEmptyCall gives the median of a call that does nothing, which is what
// the sandbox adds, where an instance is ready. The restore after it is not in
// these times, but it is in ns/op.
func BenchmarkEmptyCall(b *testing.B) {
	s, _ := goInstance(b)
	pool := s.serving("lens").instances
	rested := func() bool {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		return len(pool.idle) > 0 && pool.clean == 0 && !pool.making
	}
	var took []time.Duration
	for b.Loop() {
		for !rested() {
			runtime.Gosched()
		}
		c := &Call{Token: "k8s_lens_run", Input: []byte(good), Answer: deaf{}}
		began := time.Now()
		if err := s.Call(context.Background(), c); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-us")
	b.ReportMetric(float64(took[len(took)*95/100].Nanoseconds())/1000, "p95-us")
}

// BenchmarkLoad gives the time from a module's file to its first answer, from
// nothing and with a warm cache.
func BenchmarkLoad(b *testing.B) {
	wasm := lensGuest(b)
	load := func(b *testing.B, dir string) {
		s := newSandbox(b, func(c *Config) { c.CacheDir = dir })
		if _, err := s.Load(context.Background(), wasm); err != nil {
			b.Fatal(err)
		}
		if _, code := s.ask("k8s_lens_run", good); code != "" {
			b.Fatal(code)
		}
	}
	b.Run("from nothing", func(b *testing.B) {
		for b.Loop() {
			load(b, "")
		}
	})
	b.Run("warm cache", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "cache")
		load(b, dir)
		for b.Loop() {
			load(b, dir)
		}
	})
}
