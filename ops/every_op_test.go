package ops_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/hanzoai/k8s/plane"
)

// row is what an op answers when all is not well. Where one of the cases does
// not apply to an op, its why says so.
type row struct {
	absent  answers // what is named is not there
	foreign answers // it is outside the bound of a bounded registration
	bad     answers // the input means nothing, beyond what its schema says
}

// answers is an input and what comes of it.
type answers struct {
	why    string // there is no such case
	in     fields
	status int
	code   string            // of a refusal
	shows  func(fields) bool // of an answer
}

func noCase(why string) answers { return answers{why: why} }

func refuses(status int, code string, in fields) answers {
	return answers{in: in, status: status, code: code}
}

func says(in fields, shows func(fields) bool) answers {
	return answers{in: in, status: 200, shows: shows}
}

// empty is true of an answer whose list is empty.
func empty(list string) func(fields) bool {
	return func(out fields) bool { return out[list] == nil }
}

// rows is the cases of every op but its success. fenced is a registration of
// prod's cluster that is bound to one namespace, which is inside.
func rows(inside string) map[string]row {
	const outside = "kube-system"
	prod := func(more fields) fields { out := fields{"cluster": "prod"}; maps.Copy(out, more); return out }
	fenced := func(more fields) fields {
		out := fields{"cluster": "fenced", "namespace": outside}
		maps.Copy(out, more)
		return out
	}
	whole := func(more fields) answers { // needs the whole cluster
		out := fields{"cluster": "fenced"}
		maps.Copy(out, more)
		return refuses(403, "outside_bound", out)
	}
	noCluster := func(more fields) answers {
		out := fields{"cluster": "nowhere"}
		maps.Copy(out, more)
		return refuses(404, "cluster_not_found", out)
	}
	// list is a list in a namespace: one that is not there has nothing in it.
	list := func(items string, more fields) row {
		with := func(in, last fields) fields { maps.Copy(in, more); maps.Copy(in, last); return in }
		return row{
			absent:  says(with(prod(nil), fields{"namespace": "nowhere"}), empty(items)),
			foreign: refuses(403, "outside_bound", with(fenced(nil), nil)),
			bad:     refuses(400, "bad_input", with(prod(nil), fields{"labelSelector": "a in (b"})),
		}
	}
	// one is an op on one object of a namespace.
	one := func(in, bad fields) row {
		return row{
			absent:  refuses(404, "not_found", prod(in)),
			foreign: refuses(403, "outside_bound", fenced(minus(in, "namespace"))),
			bad:     refuses(400, "bad_input", prod(bad)),
		}
	}
	gone := func(out fields) bool { return out["removed"] == false }
	pod := fields{"namespace": inside, "pod": "nobody"}
	object := fields{"namespace": inside, "name": "nothing"}
	claim := fields{"namespace": "nowhere", "name": "data", "gi": 1}
	job := fields{"namespace": "nowhere", "name": "once", "image": "i"}
	app := fields{"kind": "App", "namespace": inside, "name": "nothing"}
	return map[string]row{
		plane.ClustersList: {noCase("those there are are listed"), noCase("it reaches no cluster"), refuses(400, "bad_input", fields{"org": "zoo"})},
		plane.ClustersGet: {noCluster(nil), says(fields{"cluster": "fenced"}, func(out fields) bool { return fmt.Sprint(out["namespaces"]) == "["+inside+"]" }),
			refuses(400, "bad_input", fields{"cluster": "Prod"})},
		plane.ClustersRegister: {noCase("it is what makes a cluster be there"), noCase("it is what sets the bound"),
			refuses(400, "kubeconfig_refused", fields{"name": "hollow", "kubeconfig": "{}"})},
		plane.ClustersDeregister: {says(fields{"cluster": "nowhere"}, gone), noCase("it reaches no cluster"), refuses(400, "bad_input", fields{"cluster": "-"})},
		plane.ClustersStatus: {noCluster(nil), says(fields{"cluster": "fenced"}, func(out fields) bool { return out["connected"] == true }),
			refuses(400, "bad_input", fields{"cluster": "prod", "deep": "true"})},
		plane.NodesList: {noCluster(nil), whole(nil), refuses(400, "bad_continue", prod(fields{"continue": "x"}))},
		plane.NodesCordon: {refuses(404, "not_found", prod(fields{"node": "nowhere"})), whole(fields{"node": "n"}),
			refuses(400, "bad_input", prod(fields{"node": "nowhere", "drain": true, "schedulable": true}))},
		plane.NodesVolumeStats: {noCluster(nil), whole(nil), refuses(400, "bad_input", prod(fields{"node": "n"}))},
		plane.NamespacesList: {noCluster(nil), says(fields{"cluster": "fenced"}, func(out fields) bool {
			all, _ := out["namespaces"].([]any)
			return len(all) == 1 && all[0].(fields)["name"] == inside
		}), refuses(400, "bad_continue", prod(fields{"continue": "x"}))},
		plane.NamespacesGet: {refuses(404, "not_found", prod(fields{"namespace": "nowhere"})), refuses(403, "outside_bound", fenced(nil)),
			refuses(400, "bad_input", prod(fields{"namespace": ".."}))},
		plane.NamespacesEnsure: {noCase("it makes what is not there"), refuses(403, "outside_bound", fenced(nil)),
			refuses(400, "bad_input", prod(fields{"namespace": "new", "labels": fields{"a b": "c"}}))},
		plane.NamespacesDelete: {says(prod(fields{"namespace": "nowhere"}), gone), whole(fields{"namespace": inside}),
			refuses(400, "bad_input", prod(fields{"namespace": "a.b"}))},
		plane.PodsList: list("pods", nil),
		plane.PodsLogs: one(pod, fields{"namespace": inside, "pod": "nobody", "tailLines": -1}),

		plane.VolumesListClaims:     list("claims", nil),
		plane.VolumesListPersistent: {noCluster(nil), whole(nil), refuses(400, "bad_continue", prod(fields{"continue": "x"}))},
		plane.VolumesEnsureClaim:    one(claim, fields{"namespace": inside, "name": "data", "gi": 0}),
		plane.VolumesExpandClaim:    one(fields{"namespace": inside, "name": "nothing", "gi": 2}, fields{"namespace": inside, "name": "nothing", "gi": "2Gi"}),

		plane.WorkloadsListDeployments:  list("workloads", nil),
		plane.WorkloadsGetDeployment:    one(object, fields{"namespace": inside, "name": "a_b"}),
		plane.WorkloadsListReplicasets:  list("workloads", nil),
		plane.WorkloadsListStatefulsets: list("workloads", nil),
		plane.WorkloadsListServices:     list("services", nil),
		plane.WorkloadsListIngresses:    list("ingresses", nil),
		plane.WorkloadsListEvents:       list("events", nil),
		plane.WorkloadsListConfigmaps:   list("configMaps", nil),

		plane.JobsCreate: one(job, fields{"namespace": inside, "name": "once", "image": "i", "mounts": []fields{{"claim": "data", "path": "relative"}}}),
		plane.JobsList:   list("jobs", nil),
		plane.JobsGet:    one(object, fields{"namespace": inside, "name": "once?watch=true"}),

		plane.ResourcesList: list("resources", fields{"kind": "App"}),
		plane.ResourcesGet:  one(app, fields{"kind": "Secret", "namespace": inside, "name": "nothing"}),
		plane.ResourcesWatch: {says(prod(fields{"kind": "App", "namespace": "nowhere"}), empty("changes")), refuses(403, "outside_bound", fenced(fields{"kind": "App"})),
			refuses(400, "bad_input", prod(fields{"kind": "App", "version": "yesterday"}))},
		plane.ResourcesApply: one(fields{"kind": "App", "namespace": "nowhere", "name": "shop", "spec": fields{}},
			fields{"kind": "App", "namespace": inside, "name": "shop", "spec": []int{1}}),
		plane.ResourcesDelete: {says(prod(app), gone), refuses(403, "outside_bound", fenced(minus(app, "namespace"))),
			refuses(400, "bad_input", prod(fields{"kind": "app", "namespace": inside, "name": "nothing"}))},

		plane.AccessCan: {noCase("a review is of a right, and what it is on need not be there"),
			refuses(403, "outside_bound", fenced(fields{"verb": "get", "resource": "pods"})), refuses(400, "bad_input", prod(fields{"verb": "get"}))},
		plane.MetricsPods: list("pods", nil),
	}
}

// minus is an input without one of its fields.
func minus(in fields, name string) fields {
	out := maps.Clone(in)
	delete(out, name)
	return out
}

// TestEveryOp calls every op over REST on the real cluster four times: with
// success, for what is not there, for what is outside of a bound, and with an
// input that means nothing.
func TestEveryOp(t *testing.T) {
	s := theStack(t)
	inside := s.namespace(t)
	s.register(t, "fenced", s.alpha().Admin(), inside)
	list, table := opsByToken(t), rows(inside)
	made := fmt.Sprintf("every-%d", time.Now().UnixNano()%1e9)
	t.Cleanup(func() { s.alpha().DropNamespace(context.Background(), made) })
	counts := map[string]int{}
	check := func(t *testing.T, token, name string, a answers) {
		if a.why != "" {
			counts["without "+name]++
			t.Logf("%s has no %s case: %s", token, name, a.why)
			return
		}
		counts[name]++
		r := s.ask("acme", list[token], a.in)
		if r.status != a.status || r.code != a.code || a.shows != nil && !a.shows(r.object()) {
			t.Errorf("%s of %v: %s, want %d %s", name, a.in, r, a.status, a.code)
		}
	}
	for _, e := range examples(s, made) {
		t.Run(e.token, func(t *testing.T) {
			if out, err := e.rest(s, list[e.token]); err != nil || out.Status != 0 {
				t.Errorf("success: %+v, %v", out, err)
			}
			counts["success"]++
			r, ok := table[e.token]
			delete(table, e.token)
			if !ok {
				t.Fatal("it has no row")
			}
			check(t, e.token, "not-found", r.absent)
			check(t, e.token, "foreign-namespace", r.foreign)
			check(t, e.token, "bad-input", r.bad)
		})
	}
	for token := range table {
		t.Errorf("%s was not called", token)
	}
	if n := len(plane.Table()); counts["success"] != n || counts["bad-input"] != n ||
		counts["not-found"]+counts["without not-found"] != n || counts["foreign-namespace"]+counts["without foreign-namespace"] != n {
		t.Errorf("of %d ops: %v", n, counts)
	}
	t.Logf("examined %d ops: %v", len(plane.Table()), counts)
}
