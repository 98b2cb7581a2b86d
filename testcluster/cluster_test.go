package testcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if c, err := shared(); err == nil {
		c.Stop()
	}
	os.Exit(code)
}

// shared is the one cluster that the tests of this package look at. It is their
// own even where a world is at hand: what they test is the starting of it.
var shared = sync.OnceValues(func() (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	return StartCluster(ctx, Options{})
})

func cluster(t *testing.T) (context.Context, *Cluster) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx, c
}

// get reads a path as the administrator and decodes it.
func get[T any](t *testing.T, ctx context.Context, c *Cluster, path string) T {
	t.Helper()
	var into T
	text, err := c.must(ctx, "GET", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return into
}

func eventually(t *testing.T, ctx context.Context, check func(context.Context) error) {
	t.Helper()
	if err := until(ctx, alive, check); err != nil {
		t.Fatal(err)
	}
}

type podList struct {
	Items []struct {
		Metadata struct{ Name string }
		Status   struct{ Phase string }
	}
}

func TestVersion(t *testing.T) {
	ctx, c := cluster(t)
	if v := get[struct{ GitVersion string }](t, ctx, c, "/version"); v.GitVersion != kubernetesVersion {
		t.Errorf("the apiserver calls itself %s", v.GitVersion)
	}
}

func TestNodes(t *testing.T) {
	ctx, c := cluster(t)
	type nodeList struct {
		Items []struct {
			Metadata struct{ Labels map[string]string }
			Status   struct{ Capacity map[string]string }
		}
	}
	nodes := get[nodeList](t, ctx, c, "/api/v1/nodes").Items
	if len(nodes) != 3 {
		t.Fatalf("%d nodes", len(nodes))
	}
	gpus := 0
	for _, n := range nodes {
		if n.Metadata.Labels["topology.kubernetes.io/region"] == "" || n.Metadata.Labels["node.kubernetes.io/instance-type"] == "" {
			t.Errorf("labels: %v", n.Metadata.Labels)
		}
		if n.Status.Capacity["nvidia.com/gpu"] == "8" {
			gpus++
		}
	}
	if gpus != 1 {
		t.Errorf("%d nodes with GPUs", gpus)
	}
}

func TestPodsRunAndLog(t *testing.T) {
	ctx, c := cluster(t)
	pods := get[podList](t, ctx, c, "/api/v1/namespaces/team-a/pods?labelSelector=app%3Dweb").Items
	if len(pods) != 2 {
		t.Fatalf("%d pods of the deployment", len(pods))
	}
	for _, p := range pods {
		if p.Status.Phase != "Running" {
			t.Errorf("%s is %s", p.Metadata.Name, p.Status.Phase)
		}
	}
	name := pods[0].Metadata.Name
	log, err := c.must(ctx, "GET", "/api/v1/namespaces/team-a/pods/"+name+"/log", nil)
	if err != nil || !strings.Contains(string(log), "listening") {
		t.Fatalf("log: %q, %v", log, err)
	}
	want := []byte("one\ntwo\x00\xff\nthree without an end")
	if err := c.SetLog(ctx, "team-a", name, "web", want); err != nil {
		t.Fatal(err)
	}
	log, err = c.must(ctx, "GET", "/api/v1/namespaces/team-a/pods/"+name+"/log?container=web", nil)
	if err != nil || !bytes.Equal(log, want) {
		t.Fatalf("log: %q, %v", log, err)
	}
	log, err = c.must(ctx, "GET", "/api/v1/namespaces/team-a/pods/"+name+"/log?container=web&tailLines=2", nil)
	if err != nil || string(log) != "two\x00\xff\nthree without an end" {
		t.Fatalf("tail: %q, %v", log, err)
	}
}

func TestJobs(t *testing.T) {
	ctx, c := cluster(t)
	for image, want := range map[string]string{"x/ok": "Complete", "x/fail": "Failed"} {
		name := "job-" + strings.TrimPrefix(image, "x/")
		if err := c.Apply(ctx, fmt.Appendf(nil, `
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: team-b}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: %s}]
`, name, image)); err != nil {
			t.Fatal(err)
		}
		eventually(t, ctx, func(ctx context.Context) error {
			text, err := c.must(ctx, "GET", "/apis/batch/v1/namespaces/team-b/jobs/"+name, nil)
			if err == nil && !strings.Contains(string(text), `"type":"`+want+`","status":"True"`) {
				err = fmt.Errorf("%s is not %s: %s", name, want, text)
			}
			return err
		})
	}
}

func TestClaimsGrow(t *testing.T) {
	ctx, c := cluster(t)
	const path = "/api/v1/namespaces/team-a/persistentvolumeclaims/data"
	grow := []byte(`{"spec":{"resources":{"requests":{"storage":"5Gi"}}}}`)
	if _, err := c.must(ctx, "PATCH", path, grow); err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, func(ctx context.Context) error {
		claim := get[struct {
			Status struct{ Capacity map[string]string }
		}](t, ctx, c, path)
		if claim.Status.Capacity["storage"] != "5Gi" {
			return fmt.Errorf("capacity %v", claim.Status.Capacity)
		}
		return nil
	})
}

func TestClosedKinds(t *testing.T) {
	ctx, c := cluster(t)
	kinds := map[string]string{
		"hanzo.ai/v1": "App Datastore", "hanzo.ai/v1alpha1": "IngressRoute Middleware",
		"apps.hanzo.ai/v1alpha1": "Application", "argoproj.io/v1alpha1": "AppProject",
		"node.lux.cloud/v1": "LuxNetwork", "trainer.kubeflow.org/v1alpha1": "TrainJob",
		"serving.kserve.io/v1beta1": "InferenceService", "secrets.lux.network/v1alpha1": "KMSSecret",
	}
	count := 0
	for version, names := range kinds {
		for kind := range strings.FieldsSeq(names) {
			count++
			if err := c.Apply(ctx, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"one","namespace":"team-b"},"spec":{"anything":[1]}}`, version, kind)); err != nil {
				t.Error(err)
			}
		}
	}
	if count != 10 {
		t.Errorf("%d kinds", count)
	}
}

func TestMetrics(t *testing.T) {
	ctx, c := cluster(t)
	if err := c.StartMetrics(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitMetrics(ctx); err != nil {
		t.Fatal(err)
	}
	type metricsList struct {
		Items []struct {
			Containers []struct{ Usage map[string]string }
		}
	}
	list := get[metricsList](t, ctx, c, "/apis/metrics.k8s.io/v1beta1/namespaces/team-a/pods")
	if len(list.Items) == 0 || list.Items[0].Containers[0].Usage["memory"] != "64Mi" {
		t.Errorf("usage: %+v", list)
	}
}

func TestKubelet(t *testing.T) {
	ctx, c := cluster(t)
	const node = "test-node-1"
	const path = "/api/v1/nodes/" + node + "/proxy/stats/summary"
	k, err := c.StartKubelet(ctx, node, func() []byte { return []byte(`{"node":{"nodeName":"me"}}`) })
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, func(ctx context.Context) error {
		text, err := c.must(ctx, "GET", path, nil)
		if err == nil && string(text) != `{"node":{"nodeName":"me"}}` {
			err = fmt.Errorf("summary: %s", text)
		}
		return err
	})
	if k.Requests() == 0 {
		t.Error("the kubelet was not asked")
	}
	if err := k.Silence(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, func(ctx context.Context) error {
		status, _, err := c.Do(ctx, "GET", path, nil)
		if err == nil && status < 500 {
			err = fmt.Errorf("a silent kubelet answers %d", status)
		}
		return err
	})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCompact(t *testing.T) {
	ctx, c := cluster(t)
	const path = "/api/v1/namespaces/default/events"
	for _, name := range []string{"a", "b"} {
		if err := c.create(ctx, path, fmt.Appendf(nil, `{"metadata":{"name":%q},"involvedObject":{"namespace":"default"}}`, name)); err != nil {
			t.Fatal(err)
		}
	}
	type list struct{ Metadata struct{ Continue string } }
	next := path + "?limit=1&continue=" + get[list](t, ctx, c, path+"?limit=1").Metadata.Continue
	get[list](t, ctx, c, next)
	if err := c.create(ctx, path, []byte(`{"metadata":{"name":"c"},"involvedObject":{"namespace":"default"}}`)); err != nil {
		t.Fatal(err)
	}
	if err := c.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if status, text, err := c.Do(ctx, "GET", next, nil); status != 410 {
		t.Errorf("an old token: %d %s, %v", status, text, err)
	}
}

func TestServiceAccount(t *testing.T) {
	ctx, c := cluster(t)
	scoped, err := c.ServiceAccount(ctx, "reader", []Rule{{Resources: []string{"pods"}, Verbs: []string{"list"}}}, "team-a")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := c.ServiceAccount(ctx, "lister", []Rule{{Resources: []string{"nodes"}, Verbs: []string{"list"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct {
		who  []byte
		path string
		want int
	}{
		{scoped, "/api/v1/namespaces/team-a/pods", 200},
		{scoped, "/api/v1/namespaces/team-b/pods", 403},
		{scoped, "/api/v1/pods", 403},
		{scoped, "/api/v1/namespaces/team-a/secrets", 403},
		{whole, "/api/v1/nodes", 200},
		{whole, "/api/v1/pods", 403},
	} {
		status, err := askWithToken(ctx, c, check.who, check.path)
		if err != nil || status != check.want {
			t.Errorf("%s: %d, %v; want %d", check.path, status, err, check.want)
		}
	}
}
