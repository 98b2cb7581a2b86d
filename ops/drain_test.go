package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hanzoai/k8s/plane"
)

// drained is a node of the test's own, to be drained, and a namespace for the
// pods on it.
type drained struct {
	t               *testing.T
	s               *stack
	node, namespace string
	owner           string // makes a pod a managed one
}

func toDrain(t *testing.T) *drained {
	t.Helper()
	t.Parallel()
	s := theStack(t)
	d := &drained{t: t, s: s, node: s.node(t), namespace: s.namespace(t)}
	d.owner = s.controller(t, d.namespace)
	return d
}

// pod puts a pod on the node.
func (d *drained) pod(name, meta, spec string) {
	d.t.Helper()
	d.s.pin(d.t, d.namespace, name, d.node, meta, spec)
}

// guarded puts a managed pod on the node that a budget does not let go.
func (d *drained) guarded(name string) {
	d.t.Helper()
	d.pod(name, d.owner+fmt.Sprintf(`,"labels":{"guarded":%q}`, name), "")
	must(d.t, d.s.alpha(), http.MethodPost, d.budgets(""), fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"minAvailable":1,"selector":{"matchLabels":{"guarded":%[1]q}}}}`, name))
	until(d.t, "the budget of "+name, func() bool {
		var budget struct{ Status struct{ CurrentHealthy int } }
		json.Unmarshal(must(d.t, d.s.alpha(), http.MethodGet, d.budgets(name), ""), &budget)
		return budget.Status.CurrentHealthy == 1
	})
}

// release takes a guarded pod's budget away.
func (d *drained) release(name string) {
	d.t.Helper()
	must(d.t, d.s.alpha(), http.MethodDelete, d.budgets(name), "")
}

func (d *drained) budgets(name string) string {
	return strings.TrimSuffix("/apis/policy/v1/namespaces/"+d.namespace+"/poddisruptionbudgets/"+name, "/")
}

// drain calls the op with more of an input.
func (d *drained) drain(more fields) (plane.Cordoned, reply) {
	d.t.Helper()
	in := fields{"cluster": "prod", "node": d.node}
	for name, value := range more {
		in[name] = value
	}
	r := d.s.ask("acme", opsByToken(d.t)[plane.NodesCordon], in)
	var out plane.Cordoned
	if r.status == http.StatusOK {
		if err := json.Unmarshal(r.body, &out); err != nil {
			d.t.Fatal(err)
		}
	}
	return out, r
}

// check holds an answer against what it should be. What the cluster said is
// only asked for where a budget is in the way.
func (d *drained) check(what string, got plane.Cordoned, r reply, want plane.Cordoned) {
	d.t.Helper()
	if r.status != http.StatusOK {
		d.t.Fatalf("%s: %s", what, r)
	}
	for i, left := range got.Remaining {
		if left.Reason == "blocked_by_pdb" && !strings.Contains(left.Message, "disruption budget") {
			d.t.Errorf("%s: %s was blocked in these words: %q", what, left.Name, left.Message)
		}
		got.Remaining[i].Message = ""
	}
	sorted := cmpopts.SortSlices(func(a, b plane.Remaining) bool { return a.Name < b.Name })
	if diff := cmp.Diff(want, got, sorted, cmpopts.EquateEmpty()); diff != "" {
		d.t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// left is a list of pods and reasons, given by turns.
func (d *drained) left(pairs ...string) (all []plane.Remaining) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, plane.Remaining{Namespace: d.namespace, Name: pairs[i], Reason: pairs[i+1]})
	}
	return all
}

// pods is the names of the pods on the node that are not leaving.
func (d *drained) pods() (names []string) {
	d.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
		}
	}
	json.Unmarshal(must(d.t, d.s.alpha(), http.MethodGet, "/api/v1/pods?fieldSelector=spec.nodeName%3D"+d.node, ""), &list)
	for _, p := range list.Items {
		if p.Metadata.DeletionTimestamp == "" {
			names = append(names, p.Metadata.Name)
		}
	}
	slices.Sort(names)
	return names
}

// has fails the test unless exactly these pods are on the node, and the node is
// or is not cordoned.
func (d *drained) has(what string, cordoned bool, want ...string) {
	d.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, d.pods(), cmpopts.EquateEmpty()); diff != "" {
		d.t.Errorf("%s: pods on the node (-want +got)\n%s", what, diff)
	}
	var node struct{ Spec struct{ Unschedulable bool } }
	json.Unmarshal(must(d.t, d.s.alpha(), http.MethodGet, "/api/v1/nodes/"+d.node, ""), &node)
	if node.Spec.Unschedulable != cordoned {
		d.t.Errorf("%s: the node is cordoned: %v", what, node.Spec.Unschedulable)
	}
}

// daemon runs a DaemonSet on the node alone and says what its pod is called.
func (d *drained) daemon() (pod string) {
	d.t.Helper()
	must(d.t, d.s.alpha(), http.MethodPatch, "/api/v1/nodes/"+d.node, fmt.Sprintf(`{"metadata":{"labels":{"own":%q}}}`, d.node))
	must(d.t, d.s.alpha(), http.MethodPost, "/apis/apps/v1/namespaces/"+d.namespace+"/daemonsets", fmt.Sprintf(`{"metadata":{"name":"daemon"},"spec":{
		"selector":{"matchLabels":{"app":"daemon"}},"template":{"metadata":{"labels":{"app":"daemon"}},"spec":{"nodeSelector":{"own":%q},
		"tolerations":[{"operator":"Exists"}],"containers":[{"name":"c","image":"registry.example/c"}],"volumes":[{"name":"tmp","emptyDir":{}}]}}}}`, d.node))
	until(d.t, "the daemon's pod", func() bool {
		i := slices.IndexFunc(d.pods(), func(name string) bool { return strings.HasPrefix(name, "daemon-") })
		if i >= 0 {
			pod = d.pods()[i]
		}
		return i >= 0
	})
	return pod
}

// stuck puts a managed pod on the node that will not go once it is to, and
// answers how to let it.
func (d *drained) stuck(name string) (let func()) {
	d.t.Helper()
	policy, c := d.namespace+"-stuck", d.s.alpha()
	pod := "/api/v1/namespaces/" + d.namespace + "/pods/" + name
	const path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	must(d.t, c, http.MethodPost, path+"ies", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"failurePolicy":"Fail",
		"matchConstraints":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}},"objectSelector":{"matchLabels":{"stuck":"yes"}},
		"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE","DELETE"]}]},
		"validations":[{"expression":"request.operation == 'CREATE' ? object.metadata.name != 'probe' : !has(oldObject.metadata.deletionTimestamp)"}]}}`, policy, d.namespace))
	must(d.t, c, http.MethodPost, path+"ybindings", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%[1]q,"validationActions":["Deny"]}}`, policy))
	let = func() {
		c.Do(context.Background(), http.MethodDelete, path+"ybindings/"+policy, nil)
		c.Do(context.Background(), http.MethodDelete, path+"ies/"+policy, nil)
		until(d.t, "the end of "+name, func() bool { // which its kubelet has given up on
			status, _, err := c.Do(context.Background(), http.MethodDelete, pod, []byte(`{"gracePeriodSeconds":0}`))
			return err == nil && (status == http.StatusOK || status == http.StatusNotFound)
		})
	}
	d.t.Cleanup(let)
	// A policy takes a moment to be in force.
	until(d.t, "the policy", func() bool {
		status, _, err := c.Do(d.t.Context(), http.MethodPost, "/api/v1/namespaces/"+d.namespace+"/pods?dryRun=All",
			[]byte(`{"metadata":{"name":"probe","labels":{"stuck":"yes"}},"spec":{"containers":[{"name":"c","image":"c"}]}}`))
		return err == nil && status >= 400
	})
	d.pod(name, d.owner+`,"labels":{"stuck":"yes"}`, "")
	return let
}

func TestDrain(t *testing.T) {
	d := toDrain(t)
	d.pod("one", d.owner, "")
	d.pod("two", d.owner, "")
	d.guarded("guarded")
	d.pod("mirror", `"annotations":{"kubernetes.io/config.mirror":"x"}`, "")
	d.pod("finished", "", `"restartPolicy":"Never"`)
	must(t, d.s.alpha(), http.MethodPatch, "/api/v1/namespaces/"+d.namespace+"/pods/finished/status", `{"status":{"phase":"Succeeded"}}`)
	daemon := d.daemon()
	let := d.stuck("stuck")
	stays := []string{daemon, "mirror", "finished"}
	all := append(slices.Clone(stays), "one", "two", "guarded", "stuck")

	got, r := d.drain(fields{"drain": true, "dryRun": true})
	d.check("the plan", got, r, plane.Cordoned{Plan: d.left("one", "evict", "two", "evict", "guarded", "evict", "stuck", "evict",
		"mirror", "skip_mirror", "finished", "skip_finished", daemon, "skip_daemonset")})
	d.has("after the plan", false, all...)

	began := time.Now()
	got, r = d.drain(fields{"drain": true, "timeoutSeconds": 7})
	took := time.Since(began)
	d.check("the drain", got, r, plane.Cordoned{Evicted: 2, Remaining: d.left("guarded", "blocked_by_pdb", "stuck", "still_terminating")})
	d.has("after the drain", true, append(stays, "guarded")...)
	if took < 6*time.Second || took > 12*time.Second {
		t.Errorf("a drain of 7 s took %v", took)
	}

	got, r = d.drain(fields{"drain": true, "timeoutSeconds": 2})
	d.check("the drain again", got, r, plane.Cordoned{Remaining: d.left("guarded", "blocked_by_pdb", "stuck", "still_terminating")})
	d.has("after it", true, append(stays, "guarded")...)

	// The budget gives way while a drain waits for it, and the stuck pod goes.
	let()
	time.AfterFunc(2*time.Second, func() { d.release("guarded") })
	got, r = d.drain(fields{"drain": true, "timeoutSeconds": 40})
	d.check("the drain whose budget gives way", got, r, plane.Cordoned{Evicted: 1})
	d.has("at the end", true, stays...)

	got, r = d.drain(fields{"drain": true})
	d.check("one drain more", got, r, plane.Cordoned{})
	got, r = d.drain(fields{"schedulable": true})
	d.check("the uncordon", got, r, plane.Cordoned{})
	d.has("after the uncordon", false, stays...)
}

func TestDrainNeedsConsentFirst(t *testing.T) {
	d := toDrain(t)
	d.pod("managed", d.owner, "")
	d.pod("bare", "", "")
	d.pod("scratch", d.owner, `"volumes":[{"name":"tmp","emptyDir":{}}]`)
	all := []string{"managed", "bare", "scratch"}
	blocked := func(what string, more fields, want []plane.Remaining) {
		t.Helper()
		more["drain"] = true
		_, r := d.drain(more)
		var doc struct{ Pods []plane.Remaining }
		json.Unmarshal(r.body, &doc)
		if r.status != http.StatusConflict || r.code != "drain_blocked" {
			t.Fatalf("%s: %s", what, r)
		}
		if diff := cmp.Diff(want, doc.Pods, cmpopts.SortSlices(func(a, b plane.Remaining) bool { return a.Name < b.Name })); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
		d.has(what, false, all...)
	}
	blocked("neither", fields{}, d.left("bare", "needs_force", "scratch", "needs_delete_emptydir_data"))
	blocked("force alone", fields{"force": true}, d.left("scratch", "needs_delete_emptydir_data"))
	blocked("emptyDir alone", fields{"deleteEmptyDirData": true}, d.left("bare", "needs_force"))
	got, r := d.drain(fields{"drain": true, "dryRun": true})
	d.check("the plan", got, r, plane.Cordoned{Plan: d.left("managed", "evict", "bare", "needs_force", "scratch", "needs_delete_emptydir_data")})
	d.has("the plan", false, all...)
	got, r = d.drain(fields{"drain": true, "force": true, "deleteEmptyDirData": true, "timeoutSeconds": 30})
	d.check("both", got, r, plane.Cordoned{Evicted: 3})
	d.has("both", true)
}

// TestDrainEndsWithItsCaller lets the caller go away while a budget blocks the
// drain. What was evicted stays so, and nothing is asked of the cluster any
// more: the pod is still there long after its budget is gone.
func TestDrainEndsWithItsCaller(t *testing.T) {
	d := toDrain(t)
	d.pod("one", d.owner, "")
	d.guarded("guarded")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.s.url+"/v1/k8s/nodes/"+d.node+"/cordon", strings.NewReader(`{"cluster":"prod","drain":true,"timeoutSeconds":120}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Org-Id", "acme")
	r.Header.Set("X-User-Id", "u1")
	r.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
		t.Fatalf("the drain was over in no time: %d", resp.StatusCode)
	}
	d.release("guarded")
	time.Sleep(7 * time.Second) // a drain asks again every 5
	d.has("without its caller", true, "guarded")
	got, answer := d.drain(fields{"drain": true, "timeoutSeconds": 30})
	d.check("the next drain", got, answer, plane.Cordoned{Evicted: 1})
	d.has("at the end", true)
}
