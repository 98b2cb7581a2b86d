package ops_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/plane"
)

// typed is what a typed client-go program would answer of an op: the rows of a
// list, or the one object.
type typed struct {
	token string
	in    fields
	rows  func() ([]any, error)
}

// rowsOf projects the items that a typed client has read.
func rowsOf[T, Row any](items []T, err error, project func(*T) Row) ([]any, error) {
	rows := make([]any, 0, len(items))
	for i := range items {
		rows = append(rows, any(project(&items[i])))
	}
	return rows, err
}

// decoded is a row that has been through JSON, as an answer has.
func decoded(t *testing.T, row any) any {
	t.Helper()
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func decode(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// typedClient is client-go's, for the types of k8s.io/api, in JSON.
func typedClient(t *testing.T, s *stack) *rest.RESTClient {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(s.alpha().Admin())
	if err != nil {
		t.Fatal(err)
	}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	config.QPS = -1
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// programs is a typed program for every op that lists or gets what the cluster
// has.
func programs(t *testing.T, s *stack, ns string) []typed {
	t.Helper()
	client, ctx := typedClient(t, s), t.Context()
	read := func(path string, into runtime.Object) error { return client.Get().AbsPath(path).Do(ctx).Into(into) }
	raw := func(path string, into any) error {
		text, err := client.Get().AbsPath(path).DoRaw(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	prod, in := fields{"cluster": "prod"}, fields{"cluster": "prod", "namespace": ns}
	named := func(name string) fields { return fields{"cluster": "prod", "namespace": ns, "name": name} }
	app := func(more fields) fields { more["kind"] = "App"; return more }
	return []typed{
		{plane.NodesList, prod, func() ([]any, error) {
			var list corev1.NodeList
			err := read("/api/v1/nodes", &list)
			return rowsOf(list.Items, err, difftest.Node)
		}},
		{plane.NamespacesList, prod, func() ([]any, error) {
			var list corev1.NamespaceList
			err := read("/api/v1/namespaces", &list)
			return rowsOf(list.Items, err, difftest.Namespace)
		}},
		{plane.NamespacesGet, in, func() ([]any, error) {
			var one corev1.Namespace
			err := read("/api/v1/namespaces/"+ns, &one)
			return []any{difftest.Namespace(&one)}, err
		}},
		{plane.PodsList, prod, func() ([]any, error) {
			var list corev1.PodList
			err := read("/api/v1/pods", &list)
			return rowsOf(list.Items, err, difftest.Pod)
		}},
		{plane.VolumesListClaims, prod, func() ([]any, error) {
			var list corev1.PersistentVolumeClaimList
			err := read("/api/v1/persistentvolumeclaims", &list)
			return rowsOf(list.Items, err, difftest.Claim)
		}},
		{plane.VolumesListPersistent, prod, func() ([]any, error) {
			var list corev1.PersistentVolumeList
			err := read("/api/v1/persistentvolumes", &list)
			return rowsOf(list.Items, err, difftest.Volume)
		}},
		{plane.WorkloadsListDeployments, prod, func() ([]any, error) {
			var list appsv1.DeploymentList
			err := read("/apis/apps/v1/deployments", &list)
			return rowsOf(list.Items, err, difftest.Deployment)
		}},
		{plane.WorkloadsGetDeployment, named("web-0"), func() ([]any, error) {
			var one appsv1.Deployment
			err := read("/apis/apps/v1/namespaces/"+ns+"/deployments/web-0", &one)
			return []any{difftest.Deployment(&one)}, err
		}},
		{plane.WorkloadsListReplicasets, prod, func() ([]any, error) {
			var list appsv1.ReplicaSetList
			err := read("/apis/apps/v1/replicasets", &list)
			return rowsOf(list.Items, err, difftest.ReplicaSet)
		}},
		{plane.WorkloadsListStatefulsets, prod, func() ([]any, error) {
			var list appsv1.StatefulSetList
			err := read("/apis/apps/v1/statefulsets", &list)
			return rowsOf(list.Items, err, difftest.StatefulSet)
		}},
		{plane.WorkloadsListServices, prod, func() ([]any, error) {
			var list corev1.ServiceList
			err := read("/api/v1/services", &list)
			return rowsOf(list.Items, err, difftest.Service)
		}},
		{plane.WorkloadsListIngresses, prod, func() ([]any, error) {
			var list networkingv1.IngressList
			err := read("/apis/networking.k8s.io/v1/ingresses", &list)
			return rowsOf(list.Items, err, difftest.Ingress)
		}},
		{plane.WorkloadsListEvents, in, func() ([]any, error) {
			var list corev1.EventList
			err := read("/api/v1/namespaces/"+ns+"/events", &list)
			slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return difftest.Event(&a).LastSeen - difftest.Event(&b).LastSeen })
			return rowsOf(list.Items, err, difftest.Event)
		}},
		{plane.WorkloadsListConfigmaps, prod, func() ([]any, error) {
			var list corev1.ConfigMapList
			err := read("/api/v1/configmaps", &list)
			return rowsOf(list.Items, err, difftest.ConfigMap)
		}},
		{plane.JobsList, prod, func() ([]any, error) {
			var list batchv1.JobList
			err := read("/apis/batch/v1/jobs", &list)
			return rowsOf(list.Items, err, difftest.Job)
		}},
		{plane.JobsGet, named("once-0"), func() ([]any, error) {
			var one batchv1.Job
			err := read("/apis/batch/v1/namespaces/"+ns+"/jobs/once-0", &one)
			return []any{difftest.Job(&one)}, err
		}},
		{plane.ResourcesList, app(fields{"cluster": "prod"}), func() ([]any, error) {
			var list struct{ Items []custom }
			err := raw("/apis/hanzo.ai/v1/apps", &list)
			return rowsOf(list.Items, err, (*custom).resource)
		}},
		{plane.ResourcesGet, app(named("web-1")), func() ([]any, error) {
			var one custom
			err := raw("/apis/hanzo.ai/v1/namespaces/"+ns+"/apps/web-1", &one)
			return []any{one.resource()}, err
		}},
		{plane.ResourcesWatch, app(fields{"cluster": "prod", "namespace": ns}), func() ([]any, error) {
			var list struct{ Items []custom }
			err := raw("/apis/hanzo.ai/v1/namespaces/"+ns+"/apps", &list)
			return rowsOf(list.Items, err, func(c *custom) plane.Change { return plane.Change{Type: "ADDED", Resource: c.resource()} })
		}},
		{plane.MetricsPods, fields{"cluster": "prod", "namespace": "team-a"}, func() ([]any, error) {
			var list struct{ Items []measured }
			err := raw("/apis/metrics.k8s.io/v1beta1/namespaces/team-a/pods", &list)
			return rowsOf(list.Items, err, (*measured).usage)
		}},
	}
}

// custom is an object of one of the closed kinds.
type custom struct {
	Kind         string
	Metadata     metav1.ObjectMeta
	Spec, Status json.RawMessage
}

func (c *custom) resource() plane.Resource {
	return plane.Resource{Kind: "App", Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Labels: plane.MapOf(c.Metadata.Labels),
		Spec: plane.Raw(c.Spec), Status: plane.Raw(c.Status), Version: c.Metadata.ResourceVersion}
}

// measured is a PodMetrics of metrics.k8s.io.
type measured struct {
	Metadata   metav1.ObjectMeta
	Timestamp  metav1.Time
	Containers []struct{ Usage corev1.ResourceList }
}

func (m *measured) usage() plane.PodUsage {
	var cpu, memory resource.Quantity
	for _, c := range m.Containers {
		cpu.Add(*c.Usage.Cpu())
		memory.Add(*c.Usage.Memory())
	}
	return plane.PodUsage{Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, CpuMilli: int(cpu.MilliValue()),
		MemoryBytes: int(memory.Value()), At: int(m.Timestamp.Unix())}
}

// TestAnswersAreThoseOfATypedProgram holds what every op that lists or gets
// answers over REST against what a program on client-go's typed client makes of
// the same objects. In nothing that is answered is there the environment of a
// container, an annotation or a managed field.
func TestAnswersAreThoseOfATypedProgram(t *testing.T) {
	s := theStack(t)
	ns := s.populated(t, 3)
	if err := s.alpha().WaitMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := opsByToken(t)
	examined, rows := 0, 0
	compared := map[string]bool{}
	for _, p := range programs(t, s, ns) {
		compared[p.token] = true
		t.Run(p.token, func(t *testing.T) {
			op := list[p.token]
			// A cluster that lives may have changed between the two.
			var diff string
			for range 10 {
				objects, err := p.rows()
				if err != nil {
					t.Fatal(err)
				}
				var want []any
				for _, o := range objects {
					want = append(want, decoded(t, o))
				}
				r := s.ask("acme", op, p.in)
				if r.status != http.StatusOK {
					t.Fatal(r)
				}
				for _, marker := range []string{"SENTINEL", "managedFields", "last-applied", "annotations"} {
					if strings.Contains(string(r.body), marker) {
						t.Errorf("the answer has %s", marker)
					}
				}
				got := []any{decode(t, r.body)}
				if op.Items != "" {
					got, _ = got[0].(fields)[op.Items].([]any)
				}
				if len(want) == 0 {
					t.Fatal("there is nothing to compare")
				}
				if diff = cmp.Diff(want, got); diff == "" {
					rows += len(want)
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
			t.Errorf("(-typed +answer)\n%s", diff)
		})
		examined++
	}
	// What else reads answers no object, or is compared where it is tested.
	reads := map[string]string{
		plane.ClustersList: "a record of the registry", plane.ClustersGet: "a record of the registry", plane.ClustersStatus: "a version",
		plane.NodesVolumeStats: "a reading of kubelets", plane.PodsLogs: "text",
	}
	for token, op := range list {
		if op.Method == http.MethodGet && !compared[token] && reads[token] == "" {
			t.Errorf("%s reads and was not compared", token)
		}
	}
	if examined == 0 || rows < examined {
		t.Errorf("compared %d rows of %d ops", rows, examined)
	}
	t.Logf("compared %d rows of %d ops", rows, examined)
}
