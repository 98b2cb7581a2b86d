package ops_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/ops/builtin"
	"github.com/hanzoai/k8s/testcluster"
)

// opsByToken is every op of the built-in modules.
func opsByToken(t *testing.T) map[string]*manifest.Op {
	t.Helper()
	list, err := builtin.Ops()
	if err != nil {
		t.Fatal(err)
	}
	byToken := make(map[string]*manifest.Op, len(list))
	for _, op := range list {
		byToken[op.Token] = op
	}
	return byToken
}

// fields is an input, or an answer.
type fields = map[string]any

// reply is what came of one call over REST.
type reply struct {
	status int
	code   string // of a refusal
	body   []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// object is the answer as JSON has it.
func (r reply) object() fields {
	var out fields
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.UseNumber()
	d.Decode(&out)
	return out
}

// ask calls an op over REST, as a user of org.
func (s *stack) ask(org string, op *manifest.Op, in any) reply {
	target, body := request(op.Method, op.Path, in)
	status, text := s.call(org, op.Method, target, body)
	var doc struct{ Code string }
	json.Unmarshal(text, &doc)
	return reply{status, doc.Code, text}
}

// register registers a cluster of acme's, which goes with the test.
func (s *stack) register(t *testing.T, name string, kubeconfig []byte, bound ...string) {
	t.Helper()
	in := fields{"name": name, "kubeconfig": string(kubeconfig)}
	if len(bound) > 0 {
		in["namespaces"] = bound
	}
	if status, text := s.call("acme", http.MethodPost, "/v1/k8s/clusters", in); status != http.StatusCreated {
		t.Fatalf("registering %s: %d %s", name, status, text)
	}
	t.Cleanup(func() { s.call("acme", http.MethodDelete, "/v1/k8s/clusters/"+name, nil) })
}

// alpha is the cluster that acme has registered as prod.
func (s *stack) alpha() *testcluster.Cluster { return s.world.Clusters[0] }

// must is one request to the cluster itself, as its administrator.
func must(t *testing.T, c *testcluster.Cluster, method, path, body string) []byte {
	t.Helper()
	// Not the test's own context, which is over when a test cleans up.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	status, text, err := c.Do(ctx, method, path, []byte(body))
	if err != nil || status >= 300 {
		t.Fatalf("%s %s: %d %s, %v", method, path, status, text, err)
	}
	return text
}

// until waits for what takes a cluster a moment.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come to be", what)
		}
	}
}

// namespace is a namespace of the test's own on alpha.
func (s *stack) namespace(t *testing.T) string {
	t.Helper()
	name, err := s.alpha().Namespace(t.Context(), "ops")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.alpha().DropNamespace(context.Background(), name) })
	return name
}

// populated is a namespace with n of everything that an op lists. The first of
// each is as people make them; the others are odd.
func (s *stack) populated(t *testing.T, n int) string {
	t.Helper()
	c, ns := s.alpha(), s.namespace(t)
	var manifest bytes.Buffer
	for i := range n {
		fmt.Fprintf(&manifest, objects, ns, i)
		if i > 0 {
			fmt.Fprintf(&manifest, oddObjects, ns, i)
		}
	}
	if err := c.Apply(t.Context(), manifest.Bytes()); err != nil {
		t.Fatal(err)
	}
	if i := 1; n > i {
		must(t, c, http.MethodPatch, fmt.Sprintf("/api/v1/namespaces/%s/services/web-%d/status", ns, i),
			`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"},{"hostname":"lb.example"}]}}}`)
		must(t, c, http.MethodPatch, fmt.Sprintf("/apis/networking.k8s.io/v1/namespaces/%s/ingresses/web-%d/status", ns, i),
			`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.8"},{"hostname":"in.example"}]}}}`)
		must(t, c, http.MethodPatch, fmt.Sprintf("/apis/hanzo.ai/v1/namespaces/%s/apps/web-%d/status", ns, i), `{"status":{"ready":true}}`)
	}
	until(t, "what was made in "+ns, func() bool {
		var deployments struct {
			Items []struct{ Status struct{ ReadyReplicas int } }
		}
		json.Unmarshal(must(t, c, http.MethodGet, "/apis/apps/v1/namespaces/"+ns+"/deployments", ""), &deployments)
		for _, d := range deployments.Items {
			if d.Status.ReadyReplicas == 0 {
				return false
			}
		}
		var claims struct {
			Items []struct{ Status struct{ Phase string } }
		}
		json.Unmarshal(must(t, c, http.MethodGet, "/api/v1/namespaces/"+ns+"/persistentvolumeclaims", ""), &claims)
		for _, c := range claims.Items {
			if c.Status.Phase != "Bound" {
				return false
			}
		}
		var jobs struct {
			Items []struct {
				Status struct {
					Conditions []struct{ Type string }
				}
			}
		}
		json.Unmarshal(must(t, c, http.MethodGet, "/apis/batch/v1/namespaces/"+ns+"/jobs", ""), &jobs)
		for _, j := range jobs.Items {
			ended := false
			for _, condition := range j.Status.Conditions {
				ended = ended || condition.Type == "Complete" || condition.Type == "Failed"
			}
			if !ended {
				return false
			}
		}
		return len(deployments.Items) == n && len(claims.Items) == n && len(jobs.Items) == n
	})
	return ns
}

// node is a node of the test's own, on which the scheduler puts nothing.
func (s *stack) node(t *testing.T) string {
	t.Helper()
	c, name := s.alpha(), "own-"+strings.ToLower(rand.Text()[:8])
	must(t, c, http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"taints":[{"key":"own","effect":"NoSchedule"}]}}`, name))
	t.Cleanup(func() { must(t, c, http.MethodDelete, "/api/v1/nodes/"+name, "") })
	until(t, "node "+name, func() bool {
		var node struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		json.Unmarshal(must(t, c, http.MethodGet, "/api/v1/nodes/"+name, ""), &node)
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" {
				return condition.Status == "True"
			}
		}
		return false
	})
	return name
}

// controller is an owner reference that makes a pod a managed one, though
// nothing will ever replace it.
func (s *stack) controller(t *testing.T, namespace string) string {
	t.Helper()
	text := must(t, s.alpha(), http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps", `{"metadata":{"name":"controller"}}`)
	var made struct{ Metadata struct{ UID string } }
	json.Unmarshal(text, &made)
	return fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"controller","uid":%q,"controller":true}]`, made.Metadata.UID)
}

// pin makes a pod on a node and waits until it runs. meta and spec are further
// members of its metadata and its spec.
func (s *stack) pin(t *testing.T, namespace, name, node, meta, spec string) {
	t.Helper()
	comma := func(members string) string {
		if members == "" {
			return ""
		}
		return "," + members
	}
	c, path := s.alpha(), "/api/v1/namespaces/"+namespace+"/pods"
	must(t, c, http.MethodPost, path, fmt.Sprintf(`{"metadata":{"name":%q%s},"spec":{"nodeName":%q,"containers":[{"name":"c","image":"registry.example/c"}]%s}}`,
		name, comma(meta), node, comma(spec)))
	until(t, "pod "+name, func() bool {
		var pod struct{ Status struct{ Phase string } }
		json.Unmarshal(must(t, c, http.MethodGet, path+"/"+name, ""), &pod)
		return pod.Status.Phase != "Pending"
	})
}

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: web-%[2]d, labels: {app: web, n: "%[2]d"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web-%[2]d}}
  template:
    metadata: {labels: {app: web-%[2]d}}
    spec:
      terminationGracePeriodSeconds: 0
      initContainers: [{name: init, image: registry.example/init:1}]
      containers: [{name: web, image: registry.example/web:%[2]d, env: [{name: PASSWORD, value: SENTINEL}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data-%[2]d}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {namespace: %[1]s, name: db-%[2]d}
spec:
  replicas: 0
  serviceName: web-%[2]d
  selector: {matchLabels: {app: db-%[2]d}}
  template:
    metadata: {labels: {app: db-%[2]d}}
    spec: {containers: [{name: db, image: "registry.example/db:1"}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: %[1]s, name: plain-%[2]d}
spec: {selector: {app: web-%[2]d}, ports: [{name: http, port: 80, targetPort: 8080}, {name: tls, port: 443}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: %[1]s, name: plain-%[2]d}
spec:
  tls: [{hosts: [a.example, b.example], secretName: tls}]
  rules:
  - host: a.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: plain-%[2]d, port: {number: 80}}}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: %[1]s, name: settings-%[2]d}
data: {mode: "fast", text: "ünï <b>\n\"line\"\u2028"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: %[1]s, name: data-%[2]d}
spec:
  storageClassName: expandable
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1536Mi}}
---
apiVersion: v1
kind: Event
metadata: {namespace: %[1]s, name: event-%[2]d}
involvedObject: {kind: Pod, namespace: %[1]s, name: web-%[2]d}
type: Warning
reason: BackOff
message: "Back-off <restarting>"
count: 7
firstTimestamp: "2026-01-02T15:04:05Z"
lastTimestamp: "2026-01-02T15:0%[2]d:06Z"
source: {component: test}
---
apiVersion: batch/v1
kind: Job
metadata: {namespace: %[1]s, name: once-%[2]d}
spec:
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: job, image: "registry.example/task"}]}
---
apiVersion: hanzo.ai/v1
kind: App
metadata: {namespace: %[1]s, name: plain-%[2]d, labels: {tier: front}, annotations: {note: SENTINEL}}
spec: {replicas: 2, big: 9007199254740993, unknown: {deep: [1, "a", null, true]}}
---
`

const oddObjects = `
apiVersion: v1
kind: Service
metadata: {namespace: %[1]s, name: web-%[2]d, annotations: {kubernetes.io/elb.id: lb-7}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: %[1]s, name: headless-%[2]d}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: %[1]s, name: away-%[2]d}
spec: {type: ExternalName, externalName: db.example}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: %[1]s, name: web-%[2]d}
spec: {defaultBackend: {resource: {apiGroup: example.com, kind: Bucket, name: static}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: %[1]s, name: hostless-%[2]d}
spec:
  rules:
  - host: only.example
  - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: plain-0, port: {name: http}}}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: %[1]s, name: binary-%[2]d}
data: {a: b}
binaryData: {key.bin: AAECAwQ=, empty: ""}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: %[1]s, name: empty-%[2]d}
---
apiVersion: v1
kind: Event
metadata: {namespace: %[1]s, name: series-%[2]d}
involvedObject: {kind: Node, namespace: %[1]s, name: n1}
type: Normal
reason: Series
action: Watched
eventTime: "2026-01-02T15:04:05.123456Z"
series: {count: 9, lastObservedTime: "2026-01-02T15:0%[2]d:07.654321Z"}
reportingComponent: test.example/one
reportingInstance: one
---
apiVersion: v1
kind: Event
metadata: {namespace: %[1]s, name: timeless-%[2]d}
involvedObject: {kind: Pod, namespace: %[1]s}
---
apiVersion: hanzo.ai/v1
kind: App
metadata: {namespace: %[1]s, name: web-%[2]d}
spec: {replicas: 0}
---
apiVersion: hanzo.ai/v1
kind: App
metadata: {namespace: %[1]s, name: void-%[2]d}
---
`
