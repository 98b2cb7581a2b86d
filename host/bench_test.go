package host

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/registry"
)

// realistic is a pod of about the size that real ones have.
func realistic(i int) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%05d-6d4b75cb6d-x2x8z", i), Namespace: fmt.Sprintf("team-%02d", i%50), UID: "0b7c5f1e-2f6d-4b0a-9d4e-3f1f6a3f9b11",
			Labels:      map[string]string{"app": "web", "pod-template-hash": "6d4b75cb6d", "team": "payments", "tier": "frontend"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "checksum/config": "d1b2a59fbea7e20077af9f91b27e95e865061b270be03ff539ab3b73587882e8"},
		},
		Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%03d", i%100), ServiceAccountName: "web"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.1.0.1"},
	}
	for k := range 3 {
		c := corev1.Container{Name: fmt.Sprintf("c%d", k), Image: "registry.example.com/payments/web:v1.2.3", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}}}
		for e := range 12 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_NUMBER_%d", e), Value: "some value of a usual length for a setting"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true,
			ImageID: "sha256:d1b2a59fbea7e20077af9f91b27e95e865061b270be03ff539ab3b73587882e8", ContainerID: "containerd://d1b2a59fbea7e20077af9f91b27e95e865061b270be03ff539ab3b73587882e8"})
	}
	for _, kind := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: "True"})
	}
	return p
}

func realisticPages(total, per int) (out [][]byte, size int) {
	for from := 0; from < total; from += per {
		list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		if from+per < total {
			list.Continue = fmt.Sprint(from + per)
		}
		for i := from; i < from+per; i++ {
			list.Items = append(list.Items, realistic(i))
		}
		out = append(out, protobuf("v1", "PodList", &list))
		size += len(out[len(out)-1])
	}
	return out, size
}

// BenchmarkSplit is the splitting alone of 5,000 pods, and their way into the
// guest's memory.
func BenchmarkSplit(b *testing.B) {
	bodies, size := realisticPages(5000, pageItems)
	m := make(ram, 1<<20)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	p := newPage(&pages)
	for b.Loop() {
		for _, body := range bodies {
			p.body, p.items = body, p.items[:0]
			if r := p.split(&target{version: "v1", resource: "pods", protobuf: true}); r != nil {
				b.Fatal(r)
			}
			for _, s := range p.items {
				m.Write(0, p.body[s.start:s.end])
			}
		}
	}
}

// BenchmarkListPods is a whole list of 5,000 pods over TLS from this process, in
// pages, up to the guest's memory.
func BenchmarkListPods(b *testing.B) {
	bodies, size := realisticPages(5000, pageItems)
	serve := func(w http.ResponseWriter, r *http.Request) {
		at := 0
		fmt.Sscan(r.URL.Query().Get("continue"), &at)
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		w.Write(bodies[at/pageItems])
	}
	g := world{serve: serve}.guest(b)
	g.c.meter.limits.BytesIn, g.c.meter.limits.Items, g.c.meter.limits.HostCalls = 1<<60, 1<<60, 1<<60
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		h := g.ask("list", `{"resource":"v1/pods"}`)
		n := 0
		for {
			got, _ := g.run("next", uint32(h), 1<<20, 1<<20)
			if got < 0 {
				break
			}
			n++
		}
		g.run("close", uint32(h))
		if n != 5000 {
			b.Fatalf("%d pods", n)
		}
	}
}

// endless is a stream of one item, over and over.
type endless struct{ item []byte }

func (e *endless) next() ([]byte, bool, *registry.Refusal) { return e.item, true, nil }
func (e *endless) trailer() []byte                         { return nil }
func (e *endless) close()                                  {}

// BenchmarkNext is one item's way through next.
func BenchmarkNext(b *testing.B) {
	item := make([]byte, 4600)
	g := world{}.guest(b)
	g.c.meter.limits.Items, g.c.meter.limits.HostCalls = 1<<60, 1<<60
	h := g.c.open(&endless{item})
	var m memory = g.m
	b.ReportAllocs()
	for b.Loop() {
		g.c.meter.hostCall()
		g.c.next(m, uint32(h), 1<<20, 1<<20)
	}
}

// BenchmarkRequest is the reading of a guest's request.
func BenchmarkRequest(b *testing.B) {
	request := []byte(`{"resource":"v1/pods","namespace":"default","labelSelector":"app=web","fieldSelector":"spec.nodeName=node-1"}`)
	b.ReportAllocs()
	for b.Loop() {
		if r := parse(request, new(listRequest).members()); r != nil {
			b.Fatal(r)
		}
	}
}

// BenchmarkSplitJSON is the splitting of a JSON list.
func BenchmarkSplitJSON(b *testing.B) {
	body := []byte(`{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"5"},"items":[`)
	for i := range 500 {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"app-%d","namespace":"team","labels":{"app":"web","tier":"frontend"},"resourceVersion":"%d","uid":"0b7c5f1e-2f6d-4b0a-9d4e-3f1f6a3f9b11"},"spec":{"image":"registry.example.com/payments/web:v1.2.3","replicas":3,"env":{"A":"some value","B":"another value of the usual length"},"ports":[80,443,8080]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","message":"all is well"}]}}`, i, i)
	}
	body = append(body, `]}`...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	p := newPage(&pages)
	for b.Loop() {
		p.body, p.items = body, p.items[:0]
		if err := p.splitJSON(); err != nil || len(p.items) != 500 {
			b.Fatal(err)
		}
	}
}
