package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var deployments = difftest.Projection[appsv1.Deployment, plane.Workload]{Token: "k8s_workloads_list_deployments", Reference: difftest.Deployment}

var replicaSets = difftest.Projection[appsv1.ReplicaSet, plane.Workload]{Token: "k8s_workloads_list_replicasets", Reference: difftest.ReplicaSet}

var statefulSets = difftest.Projection[appsv1.StatefulSet, plane.Workload]{Token: "k8s_workloads_list_statefulsets", Reference: difftest.StatefulSet}

var services = difftest.Projection[corev1.Service, plane.Service]{Token: "k8s_workloads_list_services", Reference: difftest.Service}

var ingresses = difftest.Projection[networkingv1.Ingress, plane.Ingress]{Token: "k8s_workloads_list_ingresses", Reference: difftest.Ingress}

var events = difftest.Projection[corev1.Event, plane.Event]{Token: "k8s_workloads_list_events", Reference: difftest.Event}

var configMaps = difftest.Projection[corev1.ConfigMap, plane.ConfigMap]{Token: "k8s_workloads_list_configmaps", Reference: difftest.ConfigMap}

func FuzzDeployment(f *testing.F)  { difftest.Fuzz(f, deployments, nil, nil) }
func FuzzReplicaSet(f *testing.F)  { difftest.Fuzz(f, replicaSets, nil, nil) }
func FuzzStatefulSet(f *testing.F) { difftest.Fuzz(f, statefulSets, nil, nil) }
func FuzzService(f *testing.F)     { difftest.Fuzz(f, services, nil, nil) }
func FuzzIngress(f *testing.F)     { difftest.Fuzz(f, ingresses, nil, nil) }
func FuzzEvent(f *testing.F) {
	difftest.Fuzz(f, events, nil, func(e *corev1.Event, c randfill.Continue) {
		c.FillNoCustom(e)
		e.Count %= 3
		if e.Series != nil {
			e.Series.Count %= 3
		}
	})
}
func FuzzConfigMap(f *testing.F) {
	difftest.Fuzz(f, configMaps, nil, func(m *corev1.ConfigMap, c randfill.Continue) {
		c.FillNoCustom(m)
		m.BinaryData = map[string][]byte{}
		for _, k := range difftest.Keys[:c.Intn(4)] {
			m.BinaryData[k] = make([]byte, c.Intn(300))
		}
	})
}

func TestWorkloads(t *testing.T) {
	three, yes := int32(3), true
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Image: "init:1"}},
		Containers:     []corev1.Container{{Image: "app:1", Env: []corev1.EnvVar{{Name: "T", Value: "SENTINEL"}}}},
	}}
	meta := metav1.ObjectMeta{Namespace: "web", Name: "shop"}
	got := difftest.Same(t, deployments, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1, UpdatedReplicas: 2}})
	want := plane.Workload{Namespace: "web", Name: "shop", Kind: "Deployment", Replicas: 1, Ready: 1, Updated: 2, Images: []string{"init:1", "app:1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a deployment that wants no number (-want +got):\n%s", diff)
	}
	none := int32(0)
	meta.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "shop", Controller: &yes}}
	got = difftest.Same(t, replicaSets, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &none}})
	want = plane.Workload{Namespace: "web", Name: "shop", Kind: "ReplicaSet", Owner: "Deployment/shop"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a replica set of an earlier rollout (-want +got):\n%s", diff)
	}
	got = difftest.Same(t, statefulSets, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three},
		Status: appsv1.StatefulSetStatus{ReadyReplicas: 2, UpdatedReplicas: 1}})
	want = plane.Workload{Kind: "StatefulSet", Replicas: 3, Ready: 2, Updated: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a stateful set in a rollout (-want +got):\n%s", diff)
	}
}

func TestServices(t *testing.T) {
	for _, tt := range []struct {
		name    string
		service corev1.Service
		want    plane.Service
	}{
		{"ExternalName", corev1.Service{Spec: corev1.ServiceSpec{Type: "ExternalName", ExternalName: "db.example.com"}},
			plane.Service{Type: "ExternalName", ExternalName: "db.example.com"}},
		{"headless", corev1.Service{Spec: corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "None", ClusterIPs: []string{"None"}}},
			plane.Service{Type: "ClusterIP", ClusterIp: "None", ClusterIps: []string{"None"}}},
		{"dual stack without a selector", corev1.Service{Spec: corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "10.0.0.1",
			ClusterIPs: []string{"10.0.0.1", "fd00::1"}, Ports: []corev1.ServicePort{{Port: 80}, {Port: 443}}}},
			plane.Service{Type: "ClusterIP", ClusterIp: "10.0.0.1", ClusterIps: []string{"10.0.0.1", "fd00::1"}, Ports: []int{80, 443}}},
		{"a load balancer that is pending", corev1.Service{Spec: corev1.ServiceSpec{Type: "LoadBalancer"}}, plane.Service{Type: "LoadBalancer"}},
		{"a load balancer with an address and a name", corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.digitalocean.com/load-balancer-id": "4de7"}},
			Spec:       corev1.ServiceSpec{Type: "LoadBalancer"},
			Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}, {Hostname: "lb.example.com"}}}}},
			plane.Service{Type: "LoadBalancer", Ips: []string{"203.0.113.9", "lb.example.com"}, LbId: "4de7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, difftest.Same(t, services, &tt.service)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIngresses(t *testing.T) {
	backend := &networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "static"}}
	for _, tt := range []struct {
		name string
		spec networkingv1.IngressSpec
		want []string
	}{
		{"a rule with a host but no http", networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "a.example"}}}, []string{"a.example"}},
		{"a rule without a host", networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "a.example"}, {}}}, []string{"a.example", "*"}},
		{"only a default backend", networkingv1.IngressSpec{DefaultBackend: backend}, []string{"*"}},
		{"a resource backend", networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "a.example", IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Backend: *backend}}}}}}}, []string{"a.example"}},
		{"no rules at all", networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := difftest.Same(t, ingresses, &networkingv1.Ingress{Spec: tt.spec})
			if diff := cmp.Diff(tt.want, row.Hosts, difftest.Options); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventTimeAndCount(t *testing.T) {
	at := func(s int64) metav1.Time { return metav1.Unix(s, 0) }
	micro := func(s int64) metav1.MicroTime { return metav1.NewMicroTime(at(s).Time) }
	all := corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(1)}, FirstTimestamp: at(2), EventTime: micro(3),
		LastTimestamp: at(4), Count: 5, Series: &corev1.EventSeries{Count: 7, LastObservedTime: micro(5)}}
	drop := func(changes ...func(*corev1.Event)) corev1.Event {
		e := *all.DeepCopy()
		for _, c := range changes {
			c(&e)
		}
		return e
	}
	noSeries := func(e *corev1.Event) { e.Series = nil }
	noLast := func(e *corev1.Event) { e.LastTimestamp = metav1.Time{} }
	noEventTime := func(e *corev1.Event) { e.EventTime = metav1.MicroTime{} }
	noFirst := func(e *corev1.Event) { e.FirstTimestamp = metav1.Time{} }
	noCreation := func(e *corev1.Event) { e.CreationTimestamp = metav1.Time{} }
	noCount := func(e *corev1.Event) { e.Count = 0 }
	for _, tt := range []struct {
		name        string
		event       corev1.Event
		seen, count int
	}{
		{"the series' last observation, and its count", all, 5, 7},
		{"a series' count although the event has none", drop(noCount), 5, 7},
		{"then the last timestamp, and the event's count", drop(noSeries), 4, 5},
		{"then the event's time; one for no count", drop(noSeries, noLast, noCount), 3, 1},
		{"then the first timestamp", drop(noSeries, noLast, noEventTime), 2, 5},
		{"then its creation", drop(noSeries, noLast, noEventTime, noFirst), 1, 5},
		{"else never", drop(noSeries, noLast, noEventTime, noFirst, noCreation), 0, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := difftest.Same(t, events, &tt.event)
			if row.LastSeen != tt.seen || row.Count != tt.count {
				t.Errorf("got %d times, last at %d; want %d and %d", row.Count, row.LastSeen, tt.count, tt.seen)
			}
		})
	}
}

func TestEventsAreOldestFirst(t *testing.T) {
	var raw [][]byte
	for _, e := range []struct {
		name string
		at   int64
	}{{"late", 30}, {"early", 10}, {"first of two", 20}, {"second of two", 20}, {"never", 0}} {
		o := corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: e.name}}
		if e.at > 0 {
			o.LastTimestamp = metav1.Unix(e.at, 0)
		}
		b, err := o.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, b)
	}
	var got []string
	for _, e := range sdktest.Items[plane.Event](t, sdktest.New(t, events.Token, plane.EventsIn{}).Items("list", raw...).Run()) {
		got = append(got, e.Name)
	}
	if diff := cmp.Diff([]string{"never", "early", "first of two", "second of two", "late"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigMaps(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    corev1.ConfigMap
		want plane.ConfigMap
	}{
		{"neither", corev1.ConfigMap{}, plane.ConfigMap{}},
		{"only binary", corev1.ConfigMap{BinaryData: map[string][]byte{"b": make([]byte, 5), "a": nil}},
			plane.ConfigMap{BinaryKeys: []plane.BinaryKey{{Name: "a"}, {Name: "b", Bytes: 5}}}},
		{"both, and text that is not ASCII", corev1.ConfigMap{Data: map[string]string{"z": "grüße \U0001F600", "a": ""}, BinaryData: map[string][]byte{"b": {0xff}}},
			plane.ConfigMap{Data: plane.Map{{Key: "a", Value: ""}, {Key: "z", Value: "grüße \U0001F600"}}, BinaryKeys: []plane.BinaryKey{{Name: "b", Bytes: 1}}}},
		{"a MiB", corev1.ConfigMap{Data: map[string]string{"a": string(make([]byte, 1<<20))}},
			plane.ConfigMap{Data: plane.Map{{Key: "a", Value: string(make([]byte, 1<<20))}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, difftest.Same(t, configMaps, &tt.m)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGetDeployment(t *testing.T) {
	raw, err := (&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	h := sdktest.New(t, "k8s_workloads_get_deployment", plane.DeploymentIn{Cluster: "prod", Namespace: "web", Name: "shop"}).Items("get", raw)
	got := sdktest.Rest[plane.Workload](t, h.Run())
	if diff := cmp.Diff(plane.Workload{Namespace: "web", Name: "shop", Kind: "Deployment", Replicas: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []sdktest.Request{{Function: "get", Resource: "apps/v1/deployments", Namespace: "web", Name: "shop"}}
	if diff := cmp.Diff(want, h.Requests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
