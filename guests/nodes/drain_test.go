package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var managed = true

// managedPod is a pod that something would start again.
func managedPod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, UID: types.UID("uid-" + name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: &managed}}}}
	for _, c := range changes {
		c(p)
	}
	return p
}

func bare(p *corev1.Pod)        { p.OwnerReferences = nil }
func terminating(p *corev1.Pod) { t := metav1.Unix(1, 0); p.DeletionTimestamp = &t }
func finished(p *corev1.Pod)    { p.Status.Phase = corev1.PodSucceeded }
func mirror(p *corev1.Pod) {
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	bare(p)
}
func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}
func daemon(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
func owned(p *corev1.Pod)  { p.OwnerReferences[0].Controller = nil }
func custom(p *corev1.Pod) {
	p.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Game", Controller: &managed}
}

// world is a node with pods, whose evictions go as its functions say.
type world struct {
	t       *testing.T
	host    *sdktest.Host
	pods    map[string]*corev1.Pod
	order   []string
	evict   map[string]func() *sdk.Failure // by name; accepted without
	leaves  map[string]int64               // when an accepted pod is gone, after its eviction; 2 s without
	due     map[string]int64
	evicted []string
	tried   map[string][]int64
	cordons []bool
}

func newWorld(t *testing.T, in plane.CordonIn, pods ...*corev1.Pod) *world {
	in.Cluster, in.Node = "prod", "node-1"
	w := &world{t: t, pods: map[string]*corev1.Pod{}, evict: map[string]func() *sdk.Failure{}, leaves: map[string]int64{},
		due: map[string]int64{}, tried: map[string][]int64{}}
	for _, p := range pods {
		w.pods[p.Name] = p
		w.order = append(w.order, p.Name)
	}
	w.host = sdktest.New(t, "k8s_nodes_cordon", in)
	w.host.Slept = func(h *sdktest.Host) {
		for name, at := range w.due {
			if h.Now >= at {
				delete(w.pods, name)
			}
		}
	}
	w.host.On("list", w.list).On("evict", w.doEvict).On("cordon", func(r sdktest.Request) sdktest.Reply {
		w.cordons = append(w.cordons, r.Schedulable)
		return sdktest.Reply{Items: [][]byte{{}}}
	})
	return w
}

func (w *world) list(r sdktest.Request) sdktest.Reply {
	if r.Resource != "v1/pods" || r.FieldSelector != "spec.nodeName=node-1" || r.Namespace != "" {
		w.t.Errorf("listed %+v", r)
	}
	var reply sdktest.Reply
	for _, name := range w.order {
		if p := w.pods[name]; p != nil {
			b, err := p.Marshal()
			if err != nil {
				w.t.Fatal(err)
			}
			reply.Items = append(reply.Items, b)
		}
	}
	return reply
}

func (w *world) doEvict(r sdktest.Request) sdktest.Reply {
	w.tried[r.Pod] = append(w.tried[r.Pod], w.host.Now)
	p := w.pods[r.Pod]
	if p == nil {
		return sdktest.Reply{Items: [][]byte{[]byte(`{"status":404}`)}}
	}
	if string(p.UID) != r.UID {
		return sdktest.Reply{Failure: &sdk.Failure{Code: "conflict", Status: 409, Reason: "Conflict"}}
	}
	if f := w.evict[r.Pod]; f != nil {
		if failure := f(); failure != nil {
			return sdktest.Reply{Failure: failure}
		}
	}
	w.evicted = append(w.evicted, r.Pod)
	terminating(p)
	after, ok := w.leaves[r.Pod]
	if !ok {
		after = 2000
	}
	w.due[r.Pod] = w.host.Now + after
	return sdktest.Reply{Items: [][]byte{[]byte(`{"status":201}`)}}
}

func (w *world) run() plane.Cordoned {
	w.t.Helper()
	return sdktest.Rest[plane.Cordoned](w.t, w.host.Run())
}

var drain = plane.CordonIn{Drain: true}

var budget = sdk.Failure{Code: "blocked_by_pdb", Status: 409, Reason: "TooManyRequests", Message: "would violate the budget",
	Causes: []sdk.Cause{{Reason: "DisruptionBudget"}}}

func always(f sdk.Failure) func() *sdk.Failure { return func() *sdk.Failure { return &f } }

func (w *world) check(got, want plane.Cordoned) {
	w.t.Helper()
	if diff := cmp.Diff(want, got, difftest.Options); diff != "" {
		w.t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCordonAndUncordon(t *testing.T) {
	for _, schedulable := range []bool{false, true} {
		w := newWorld(t, plane.CordonIn{Schedulable: schedulable}, managedPod("a"))
		w.check(w.run(), plane.Cordoned{})
		if diff := cmp.Diff([]bool{schedulable}, w.cordons); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	r := newWorld(t, plane.CordonIn{Schedulable: true, Drain: true}).host.Run()
	if r.Refusal == nil || r.Refusal.Status != 400 {
		t.Errorf("drained and schedulable: got %+v, want a 400", r.Refusal)
	}
	r = newWorld(t, drain).host.Fails("cordon", sdk.Failure{Code: "not_found", Status: 404}).Run()
	if r.Refusal == nil || r.Refusal.Status != 404 {
		t.Errorf("no such node: got %+v, want a 404", r.Refusal)
	}
}

func TestDrainEvictsWhatItMay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pod     *corev1.Pod
		in      plane.CordonIn
		evicted bool
		blocked string
	}{
		{"a managed pod", managedPod("p"), drain, true, ""},
		{"the pod of a custom controller", managedPod("p", custom), drain, true, ""},
		{"a DaemonSet's", managedPod("p", daemon), drain, false, ""},
		{"a DaemonSet's with emptyDir", managedPod("p", daemon, emptyDir), drain, false, ""},
		{"a mirror pod", managedPod("p", mirror), drain, false, ""},
		{"a finished pod", managedPod("p", finished), drain, false, ""},
		{"a finished bare pod with emptyDir needs no consent", managedPod("p", finished, bare, emptyDir), drain, false, ""},
		{"a bare pod", managedPod("p", bare), drain, false, "needs_force"},
		{"a pod whose owner is no controller", managedPod("p", owned), drain, false, "needs_force"},
		{"a bare pod by force", managedPod("p", bare), plane.CordonIn{Drain: true, Force: true}, true, ""},
		{"emptyDir", managedPod("p", emptyDir), drain, false, "needs_delete_emptydir_data"},
		{"emptyDir with consent", managedPod("p", emptyDir), plane.CordonIn{Drain: true, DeleteEmptyDirData: true}, true, ""},
		{"force is no consent to lose data", managedPod("p", bare, emptyDir), plane.CordonIn{Drain: true, Force: true}, false, "needs_delete_emptydir_data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.in, managedPod("other"), tt.pod)
			if tt.blocked != "" {
				r := w.host.Run()
				if r.Refusal == nil || r.Refusal.Status != 409 || r.Refusal.Code != "drain_blocked" {
					t.Fatalf("got %+v, want a 409", r.Refusal)
				}
				pods := sdktest.Decode[plane.Cordoned](t, []byte(`{"remaining":`+string(r.Refusal.Members["pods"])+`}`)).Remaining
				if diff := cmp.Diff([]plane.Remaining{{Namespace: "web", Name: "p", Reason: tt.blocked}}, pods); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if len(w.evicted) > 0 || len(w.cordons) > 0 {
					t.Errorf("evicted %v and cordoned %v before refusing", w.evicted, w.cordons)
				}
				return
			}
			got := w.run()
			want := []string{"other"}
			if tt.evicted {
				want = append(want, "p")
			}
			if diff := cmp.Diff(want, w.evicted); diff != "" {
				t.Errorf("evicted (-want +got):\n%s", diff)
			}
			w.check(got, plane.Cordoned{Evicted: len(want)})
			if diff := cmp.Diff([]bool{false}, w.cordons); diff != "" {
				t.Errorf("cordoned (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDrainPlan(t *testing.T) {
	in := plane.CordonIn{Drain: true, DryRun: true}
	w := newWorld(t, in, managedPod("a"), managedPod("b", bare), managedPod("c", emptyDir), managedPod("d", daemon), managedPod("e", mirror),
		managedPod("f", finished), managedPod("g", terminating))
	w.check(w.run(), plane.Cordoned{Plan: []plane.Remaining{
		{Namespace: "web", Name: "a", Reason: "evict"}, {Namespace: "web", Name: "b", Reason: "needs_force"},
		{Namespace: "web", Name: "c", Reason: "needs_delete_emptydir_data"}, {Namespace: "web", Name: "d", Reason: "skip_daemonset"},
		{Namespace: "web", Name: "e", Reason: "skip_mirror"}, {Namespace: "web", Name: "f", Reason: "skip_finished"},
		{Namespace: "web", Name: "g", Reason: "wait_terminating"}}})
	if len(w.evicted)+len(w.cordons) > 0 {
		t.Errorf("a dry run evicted %v and cordoned %v", w.evicted, w.cordons)
	}
}

func TestDrainBlockedByABudget(t *testing.T) {
	w := newWorld(t, plane.CordonIn{Drain: true, TimeoutSeconds: 12}, managedPod("held"), managedPod("free"))
	w.evict["held"] = always(budget)
	w.check(w.run(), plane.Cordoned{Evicted: 1, Remaining: []plane.Remaining{
		{Namespace: "web", Name: "held", Reason: "blocked_by_pdb", Message: "would violate the budget"}}})
	if diff := cmp.Diff([]int64{0, 5000, 10000}, w.tried["held"]); diff != "" {
		t.Errorf("asked at (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{0}, w.tried["free"]); diff != "" {
		t.Errorf("the other was held up (-want +got):\n%s", diff)
	}
	if w.host.Now != 12000 {
		t.Errorf("waited until %d ms, want 12000", w.host.Now)
	}
}

func TestDrainBudgetThatGivesWay(t *testing.T) {
	w := newWorld(t, drain, managedPod("held"), managedPod("free"))
	w.evict["held"] = func() *sdk.Failure {
		if w.pods["free"] != nil {
			return &budget
		}
		return nil
	}
	w.check(w.run(), plane.Cordoned{Evicted: 2})
}

func TestDrainFailures(t *testing.T) {
	for _, tt := range []struct {
		name    string
		failure sdk.Failure
		reason  string
		tries   int // in 12 s
	}{
		{"throttled", sdk.Failure{Code: "throttled", Status: 503, Reason: "TooManyRequests"}, "throttled", 3},
		{"throttled for longer", sdk.Failure{Code: "throttled", Status: 503, RetryAfter: 9}, "throttled", 2},
		{"several budgets", sdk.Failure{Code: "multiple_pdbs", Status: 409, Reason: "InternalError"}, "multiple_pdbs", 1},
		{"another internal error", sdk.Failure{Code: "bad_upstream", Status: 502, Reason: "InternalError"}, "eviction_failed", 1},
		{"a namespace that is being deleted", sdk.Failure{Code: "forbidden", Status: 403, Causes: []sdk.Cause{{Reason: "NamespaceTerminating"}}}, "namespace_terminating", 3},
		{"the cluster is away", sdk.Failure{Code: "cluster_unreachable", Status: 502}, "cluster_unreachable", 3},
		{"a webhook forbids this one", sdk.Failure{Code: "forbidden", Status: 403}, "forbidden", 1},
		{"invalid", sdk.Failure{Code: "invalid", Status: 422}, "invalid", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, plane.CordonIn{Drain: true, TimeoutSeconds: 12}, managedPod("p"), managedPod("other"))
			w.evict["p"] = always(tt.failure)
			w.check(w.run(), plane.Cordoned{Evicted: 1, Remaining: []plane.Remaining{{Namespace: "web", Name: "p", Reason: tt.reason}}})
			if got := len(w.tried["p"]); got != tt.tries {
				t.Errorf("asked %d times, want %d: at %v", got, tt.tries, w.tried["p"])
			}
		})
	}
}

func TestDrainWithoutTheRightToEvict(t *testing.T) {
	w := newWorld(t, drain, managedPod("a"), managedPod("b"))
	denied := sdk.Failure{Code: "forbidden", Status: 403, Reason: "Forbidden", Message: "cannot create pods/eviction"}
	w.evict["a"], w.evict["b"] = always(denied), always(denied)
	if r := w.host.Run(); r.Refusal == nil || r.Refusal.Status != 403 || r.Refusal.Code != "forbidden" {
		t.Errorf("got %+v, want the cluster's 403", r.Refusal)
	}
}

func TestDrainPodsThatGoByThemselves(t *testing.T) {
	t.Run("gone before it is asked for", func(t *testing.T) {
		w := newWorld(t, drain, managedPod("a"))
		w.host.On("evict", func(sdktest.Request) sdktest.Reply { return sdktest.Reply{Items: [][]byte{[]byte(`{"status":404}`)}} })
		w.check(w.run(), plane.Cordoned{})
	})
	t.Run("replaced by another of its name", func(t *testing.T) {
		w := newWorld(t, drain, managedPod("a"))
		w.host.On("evict", func(r sdktest.Request) sdktest.Reply {
			w.pods["a"].UID = "another"
			return w.doEvict(r)
		})
		w.check(w.run(), plane.Cordoned{})
	})
	t.Run("evicted, and another of its name is there", func(t *testing.T) {
		w := newWorld(t, drain, managedPod("a"))
		w.leaves["a"] = 1 << 60
		w.host.Slept = func(*sdktest.Host) { w.pods["a"].UID = "another" }
		w.check(w.run(), plane.Cordoned{Evicted: 1})
	})
	t.Run("already terminating is waited for and not asked for", func(t *testing.T) {
		w := newWorld(t, drain, managedPod("a", terminating, bare))
		w.due["a"] = 7000
		w.check(w.run(), plane.Cordoned{})
		if len(w.tried["a"]) > 0 {
			t.Errorf("it was asked for at %v", w.tried["a"])
		}
	})
	t.Run("terminating behind a full budget", func(t *testing.T) {
		w := newWorld(t, drain, managedPod("a"))
		w.evict["a"] = func() *sdk.Failure { terminating(w.pods["a"]); w.due["a"] = 8000; return &budget }
		w.check(w.run(), plane.Cordoned{})
		if len(w.tried["a"]) != 1 {
			t.Errorf("asked at %v", w.tried["a"])
		}
	})
}

func TestDrainNodeThatNeverLetsGo(t *testing.T) {
	w := newWorld(t, plane.CordonIn{Drain: true, TimeoutSeconds: 5}, managedPod("a"), managedPod("old", terminating))
	w.leaves["a"] = 1 << 60
	w.check(w.run(), plane.Cordoned{Remaining: []plane.Remaining{
		{Namespace: "web", Name: "a", Reason: "still_terminating"}, {Namespace: "web", Name: "old", Reason: "still_terminating"}}})
}

func TestDrainAgainGoesOn(t *testing.T) {
	w := newWorld(t, plane.CordonIn{Drain: true, TimeoutSeconds: 1}, managedPod("a"))
	w.leaves["a"] = 3000
	w.check(w.run(), plane.Cordoned{Remaining: []plane.Remaining{{Namespace: "web", Name: "a", Reason: "still_terminating"}}})
	again := newWorld(t, drain, w.pods["a"])
	again.due["a"] = 2000
	again.check(again.run(), plane.Cordoned{})
}

func TestDrainIsCalledOff(t *testing.T) {
	w := newWorld(t, drain, managedPod("a"), managedPod("b"))
	w.evict["b"] = always(budget)
	w.host.EndAt(3000)
	r := w.host.Run()
	if r.Refusal == nil || r.Refusal.Code != "deadline" {
		t.Errorf("got %+v, want the end of the call", r.Refusal)
	}
	if w.host.Now != 3000 {
		t.Errorf("went on until %d", w.host.Now)
	}
}

func TestDrainSurvivesALookThatFails(t *testing.T) {
	w := newWorld(t, drain, managedPod("a"))
	lists := 0
	w.host.On("list", func(r sdktest.Request) sdktest.Reply {
		if lists++; lists == 3 {
			return sdktest.Reply{Failure: &sdk.Failure{Code: "cluster_unreachable", Status: 502}}
		}
		return w.list(r)
	})
	w.check(w.run(), plane.Cordoned{Evicted: 1})
}

func TestDrainOfManyPods(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 300 {
		pods = append(pods, managedPod("p"+strings.Repeat("x", i)))
	}
	w := newWorld(t, drain, pods...)
	w.check(w.run(), plane.Cordoned{Evicted: 300})
}
