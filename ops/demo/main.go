// Command demo walks through what the service does, on two real clusters and a
// real Vault. It starts the service as an operator would, says what it asks and
// prints what it got, and fails if an answer is not the one it tells of.
//
//	demo -binary bin/k8s [-keep]
//
// It attaches to the world that K8S_TESTWORLD names, else it starts one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanzoai/k8s/ops/live"
	"github.com/hanzoai/k8s/testcluster"
)

func main() {
	binary := flag.String("binary", "bin/k8s", "the service")
	keep := flag.Bool("keep", false, "stay up until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *keep); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string, keep bool) error {
	fmt.Println("Bringing up two Kubernetes clusters and a Vault.")
	world, err := testcluster.Open(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	began := time.Now()
	s, err := live.Start(ctx, binary, world.Vault)
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("The service is ready after %.1f s. Its log is %s, its audit lines are %s.\n", time.Since(began).Seconds(), s.Log, s.Audit)
	t := &tour{ctx: ctx, service: s, world: world}
	if err := t.walk(keep); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	t.invite()
	<-ctx.Done()
	return nil
}

// walk is the tour, stop by stop. With keep the clusters stay registered at its
// end.
func (t *tour) walk(keep bool) error {
	stops := []func() error{t.register, t.list, t.foreign, t.bound, t.log, t.deregister}
	for _, stop := range stops {
		if err := stop(); err != nil {
			return err
		}
	}
	if !keep {
		return nil
	}
	return t.again()
}

// register gives both orgs a cluster called prod, of which each is another.
func (t *tour) register() error {
	t.say("acme registers cluster alpha as %q, and zoo registers cluster beta under the same name.", "prod")
	for i, org := range []string{"acme", "zoo"} {
		body := map[string]any{"name": "prod", "kubeconfig": string(t.world.Clusters[i].Admin()), "default": true}
		if err := t.post(org, "/v1/k8s/clusters", body, "kubeconfig", 201, `"name":"prod"`, fmt.Sprintf(`"org":%q`, org)); err != nil {
			return err
		}
	}
	t.say("Each org's credential is in Vault, under that org's own path.")
	for _, org := range []string{"acme", "zoo"} {
		if err := t.sealed(org, "prod", true); err != nil {
			return err
		}
	}
	return nil
}

// list shows nodes and pods of each, through the guests.
func (t *tour) list() error {
	t.say("Nodes and pods: the same name, two organisations, two clusters. The answers are made by WebAssembly guests that never see a credential.")
	for _, org := range []string{"acme", "zoo"} {
		if err := t.get(org, "/v1/k8s/nodes?cluster=prod", 200, `"ready":true`); err != nil {
			return err
		}
		if err := t.get(org, "/v1/k8s/pods?cluster=prod&namespace=team-a", 200, `"phase":"Running"`); err != nil {
			return err
		}
	}
	return nil
}

// foreign shows that a name of another org's is a name of nobody's.
func (t *tour) foreign() error {
	t.say("acme registers one more, %q. zoo asks for it, and for %q, which nobody has. But for the name and the request's id the two answers are the same, byte for byte.", "secret-lab", "no-such-lab")
	body := map[string]any{"name": "secret-lab", "kubeconfig": string(t.world.Clusters[0].Admin())}
	if err := t.post("acme", "/v1/k8s/clusters", body, "kubeconfig", 201); err != nil {
		return err
	}
	if err := t.get("zoo", "/v1/k8s/pods?cluster=secret-lab", 404, "cluster_not_found"); err != nil {
		return err
	}
	foreign := t.normal("secret-lab")
	if err := t.get("zoo", "/v1/k8s/pods?cluster=no-such-lab", 404, "cluster_not_found"); err != nil {
		return err
	}
	if nobody := t.normal("no-such-lab"); foreign != nobody {
		return fmt.Errorf("the answers differ:\n%s\n%s", foreign, nobody)
	}
	t.note("Equal.")
	return nil
}

// bound shows that a registration bound to a namespace reaches no other.
func (t *tour) bound() error {
	t.say("acme registers %q, the same cluster bound to namespace team-a. What it may address ends there, whatever its credential may do.", "prod-team-a")
	body := map[string]any{
		"name": "prod-team-a", "kubeconfig": string(t.world.Clusters[0].Admin()), "namespaces": []string{"team-a"},
	}
	if err := t.post("acme", "/v1/k8s/clusters", body, "kubeconfig", 201, `"namespaces":["team-a"]`); err != nil {
		return err
	}
	if err := t.get("acme", "/v1/k8s/pods?cluster=prod-team-a", 200, `"namespace":"team-a"`); err != nil {
		return err
	}
	if err := t.get("acme", "/v1/k8s/pods?cluster=prod-team-a&namespace=kube-system", 403, "outside_bound"); err != nil {
		return err
	}
	return t.get("acme", "/v1/k8s/nodes?cluster=prod-team-a", 403, "outside_bound")
}

// log reads one pod's log.
func (t *tour) log() error {
	t.say("A pod's log.")
	if err := t.quietly("acme", "/v1/k8s/pods?cluster=prod&namespace=team-a&labelSelector=app%3Dweb"); err != nil {
		return err
	}
	pod, err := t.firstPod()
	if err != nil {
		return err
	}
	return t.get("acme", "/v1/k8s/pods/team-a/"+pod+"/logs?cluster=prod&tailLines=3", 200, `"log":`)
}

// deregister ends every registration and shows that Vault has nothing left.
func (t *tour) deregister() error {
	t.say("Deregistering destroys every version of the credential. From then on the name is nobody's.")
	for _, r := range [][2]string{{"acme", "prod"}, {"acme", "secret-lab"}, {"acme", "prod-team-a"}, {"zoo", "prod"}} {
		if err := t.del(r[0], "/v1/k8s/clusters/"+r[1], 200, `"removed":true`); err != nil {
			return err
		}
		if err := t.sealed(r[0], r[1], false); err != nil {
			return err
		}
	}
	return t.get("acme", "/v1/k8s/pods?cluster=prod", 404, "cluster_not_found")
}

// again registers prod of both orgs once more, for somebody who stays.
func (t *tour) again() error {
	t.say("Registering both once more, for you to try.")
	for i, org := range []string{"acme", "zoo"} {
		body := map[string]any{"name": "prod", "kubeconfig": string(t.world.Clusters[i].Admin()), "default": true}
		if err := t.post(org, "/v1/k8s/clusters", body, "kubeconfig", 201); err != nil {
			return err
		}
	}
	return nil
}

// invite says what to try while everything is up.
func (t *tour) invite() {
	me := "-H 'X-Org-Id: acme' -H 'X-User-Id: you'"
	fmt.Printf(`
It stays up until you press Ctrl-C. Try:

  curl -sS '%[1]s/v1/k8s/clusters' %[2]s
  curl -sS '%[1]s/v1/k8s/workloads/deployments?cluster=prod' %[2]s
  curl -sS '%[1]s/v1/k8s/pods?cluster=prod&namespace=team-a' %[2]s
  curl -sS '%[1]s/v1/k8s/pods?cluster=prod' -H 'X-Org-Id: nobody' -H 'X-User-Id: you'

The operations, to read: %[1]s/v1/k8s/docs
Health and metrics:      %[3]s/readyz  %[3]s/metrics
The two clusters:        KUBECONFIG=%[4]s kubectl get pods -A
                         KUBECONFIG=%[5]s kubectl get pods -A
Vault:                   VAULT_ADDR=%[6]s VAULT_TOKEN=%[7]s
`, t.service.URL, me, t.service.OpsURL, t.world.Clusters[0].AdminPath(), t.world.Clusters[1].AdminPath(), t.world.Vault.Addr, t.world.Vault.RootToken)
}
