package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/ops/builtin"
	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
)

// outcome is what came of one call, whichever way it was made.
type outcome struct {
	Status int    // of a refusal
	Code   string // of a refusal
	Out    any
}

// example is one call of one op, that can be made over either transport.
type example struct {
	token string
	write bool // the first call changes something; those that follow find it done
	rest  func(*stack, *manifest.Op) (outcome, error)
	peer  func(context.Context) (outcome, error)
}

func call[In, Out any](token string, in In) example {
	return example{
		token: token,
		rest: func(s *stack, op *manifest.Op) (outcome, error) {
			target, body := request(op.Method, op.Path, in)
			status, text := s.call("acme", op.Method, target, body)
			if status >= 300 {
				var doc struct{ Code string }
				json.Unmarshal(text, &doc)
				return outcome{Status: status, Code: doc.Code}, nil
			}
			var out Out
			if err := json.Unmarshal(text, &out); err != nil {
				return outcome{}, fmt.Errorf("%d %s: %w", status, text, err)
			}
			return outcome{Out: out}, nil
		},
		peer: func(ctx context.Context) (outcome, error) {
			out, err := zip.Ask[In, Out](ctx, ops.Name, token, &in)
			var refused *zip.Error
			switch {
			case errors.As(err, &refused) && refused.Err == nil:
				return outcome{Status: refused.Status, Code: refused.Code}, nil
			case err != nil:
				return outcome{}, err
			}
			return outcome{Out: *out}, nil
		},
	}
}

func (e example) writes() example { e.write = true; return e }

// none is the input of an op that takes none.
type none struct{}

// examples is a call of every op, on what the test world has.
func examples(s *stack, namespace string) []example {
	const c = "prod"
	node := s.world.Clusters[0].Name + "-node-1"
	kubeconfig := string(s.world.Clusters[0].Admin())
	in := plane.DeploymentsIn{Cluster: c, Namespace: "team-a"}
	return []example{
		call[none, plane.Clusters](plane.ClustersList, none{}),
		call[plane.ClusterIn, plane.Cluster](plane.ClustersGet, plane.ClusterIn{Cluster: c}),
		call[plane.StatusIn, plane.Status](plane.ClustersStatus, plane.StatusIn{Cluster: c}),
		call[plane.NodesIn, plane.Nodes](plane.NodesList, plane.NodesIn{Cluster: c}),
		call[plane.CordonIn, plane.Cordoned](plane.NodesCordon, plane.CordonIn{Cluster: c, Node: node, Schedulable: true}).writes(),
		call[plane.VolumeStatsIn, plane.VolumeStats](plane.NodesVolumeStats, plane.VolumeStatsIn{Cluster: c}),
		call[plane.NamespacesIn, plane.Namespaces](plane.NamespacesList, plane.NamespacesIn{Cluster: c}),
		call[plane.NamespaceIn, plane.Namespace](plane.NamespacesGet, plane.NamespaceIn{Cluster: c, Namespace: "team-a"}),
		call[plane.EnsureNamespaceIn, plane.Ensured](plane.NamespacesEnsure, plane.EnsureNamespaceIn{Cluster: c, Namespace: namespace, Labels: plane.Map{{Key: "team", Value: "ops"}}}).writes(),
		call[plane.PodsIn, plane.Pods](plane.PodsList, plane.PodsIn{Cluster: c, Namespace: "team-a", LabelSelector: "app=web"}),
		call[plane.LogsIn, plane.Logs](plane.PodsLogs, plane.LogsIn{Cluster: c, Namespace: "team-a", Pod: s.pod(), TailLines: 2}),
		call[plane.ClaimsIn, plane.Claims](plane.VolumesListClaims, plane.ClaimsIn{Cluster: c, Namespace: "team-a"}),
		call[plane.VolumesIn, plane.Volumes](plane.VolumesListPersistent, plane.VolumesIn{Cluster: c}),
		call[plane.EnsureClaimIn, plane.Ensured](plane.VolumesEnsureClaim, plane.EnsureClaimIn{Cluster: c, Namespace: namespace, Name: "data", Gi: 1, StorageClass: "expandable"}).writes(),
		call[plane.ExpandClaimIn, plane.Expanded](plane.VolumesExpandClaim, plane.ExpandClaimIn{Cluster: c, Namespace: "team-a", Name: "data", Gi: 3}).writes(),
		call[plane.DeploymentsIn, plane.Workloads](plane.WorkloadsListDeployments, in),
		call[plane.DeploymentIn, plane.Workload](plane.WorkloadsGetDeployment, plane.DeploymentIn{Cluster: c, Namespace: "team-a", Name: "web"}),
		call[plane.ReplicasetsIn, plane.Workloads](plane.WorkloadsListReplicasets, plane.ReplicasetsIn(in)),
		call[plane.StatefulsetsIn, plane.Workloads](plane.WorkloadsListStatefulsets, plane.StatefulsetsIn(in)),
		call[plane.ServicesIn, plane.Services](plane.WorkloadsListServices, plane.ServicesIn(in)),
		call[plane.IngressesIn, plane.Ingresses](plane.WorkloadsListIngresses, plane.IngressesIn(in)),
		call[plane.EventsIn, plane.Events](plane.WorkloadsListEvents, plane.EventsIn(in)),
		call[plane.ConfigMapsIn, plane.ConfigMaps](plane.WorkloadsListConfigmaps, plane.ConfigMapsIn(in)),
		call[plane.CreateJobIn, plane.Job](plane.JobsCreate, plane.CreateJobIn{Cluster: c, Namespace: namespace, Name: "once", Image: "registry.example/task:1",
			Args: []string{"a", ""}, Env: plane.Map{{Key: "MODE", Value: "fast"}}, Labels: plane.Map{{Key: "app", Value: "once"}}}).writes(),
		call[plane.JobsIn, plane.Jobs](plane.JobsList, plane.JobsIn{Cluster: c, Namespace: namespace}),
		call[plane.JobIn, plane.Job](plane.JobsGet, plane.JobIn{Cluster: c, Namespace: namespace, Name: "once"}),
		call[plane.ApplyIn, plane.Resource](plane.ResourcesApply, plane.ApplyIn{Cluster: c, Kind: "App", Namespace: namespace, Name: "shop",
			Labels: plane.Map{{Key: "tier", Value: "front"}}, Spec: plane.Raw(`{"image":"x","replicas":2,"big":9007199254740993}`)}).writes(),
		call[plane.ResourcesIn, plane.Resources](plane.ResourcesList, plane.ResourcesIn{Cluster: c, Kind: "App", Namespace: namespace}),
		call[plane.ResourceIn, plane.Resource](plane.ResourcesGet, plane.ResourceIn{Cluster: c, Kind: "App", Namespace: namespace, Name: "shop"}),
		call[plane.WatchIn, plane.Changes](plane.ResourcesWatch, plane.WatchIn{Cluster: c, Kind: "App", Namespace: namespace, WaitSeconds: 1}),
		call[plane.DeleteResourceIn, plane.Deleted](plane.ResourcesDelete, plane.DeleteResourceIn{Cluster: c, Kind: "App", Namespace: namespace, Name: "shop"}).writes(),
		call[plane.CanIn, plane.Access](plane.AccessCan, plane.CanIn{Cluster: c, Verb: "get", Resource: "pods", Namespace: "team-a"}),
		call[plane.PodMetricsIn, plane.PodMetrics](plane.MetricsPods, plane.PodMetricsIn{Cluster: c, Namespace: "team-a"}),
		call[plane.DeleteNamespaceIn, plane.Deleted](plane.NamespacesDelete, plane.DeleteNamespaceIn{Cluster: c, Namespace: namespace}).writes(),
		call[plane.RegisterIn, plane.Cluster](plane.ClustersRegister, plane.RegisterIn{Name: "twice", Kubeconfig: kubeconfig}).writes(),
		call[plane.DeregisterIn, plane.Deleted](plane.ClustersDeregister, plane.DeregisterIn{Cluster: "twice"}).writes(),
	}
}

// pod is the name of one pod of deployment web in team-a.
func (s *stack) pod() string {
	_, text := s.call("acme", "GET", "/v1/k8s/pods?cluster=prod&namespace=team-a&labelSelector=app%3Dweb&limit=1", nil)
	var pods plane.Pods
	json.Unmarshal(text, &pods)
	if len(pods.Pods) == 0 {
		return "none"
	}
	return pods.Pods[0].Name
}

// TestEveryOpOverBothTransports calls every op on the real cluster over REST and
// over the socket, and holds the two answers against each other. An op that
// changes something is called once before, and must succeed: then both calls
// find the same state.
func TestEveryOpOverBothTransports(t *testing.T) {
	s := theStack(t)
	list, err := builtin.Ops()
	if err != nil {
		t.Fatal(err)
	}
	byToken := make(map[string]*manifest.Op)
	for _, op := range list {
		byToken[op.Token] = op
	}
	ctx := zip.WithCaller(t.Context(), zip.Caller{Org: "acme", User: "u1"})
	equal := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(plane.Cluster{}, "Registered")}
	n := 0
	for _, e := range examples(s, fmt.Sprintf("ops-%d", time.Now().UnixNano()%1e9)) {
		t.Run(e.token, func(t *testing.T) {
			op := byToken[e.token]
			delete(byToken, e.token)
			n++
			if e.write {
				if first, err := e.rest(s, op); err != nil || first.Status != 0 {
					t.Fatalf("over REST: %+v, %v", first, err)
				}
			}
			// What lives on meanwhile, such as usage and events, may differ between
			// two calls; it does not every time.
			var diff string
			for range 5 {
				rest, err := e.rest(s, op)
				if err != nil {
					t.Fatal(err)
				}
				peer, err := e.peer(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if !e.write && rest.Status != 0 {
					t.Fatalf("over REST: %+v", rest)
				}
				if diff = cmp.Diff(rest, peer, equal); diff == "" {
					return
				}
			}
			t.Errorf("(-rest +socket)\n%s", diff)
		})
	}
	for token := range byToken {
		t.Errorf("%s was not called", token)
	}
	t.Logf("examined %d ops over two transports", n)
}
