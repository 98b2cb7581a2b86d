package testcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// Options say how to start a cluster.
type Options struct {
	Name  string    // its name, and the first part of its nodes' names; "test" if empty
	Nodes int       // how many nodes; 3 if zero
	Log   io.Writer // where progress is told; standard error if nil

	// Bare is etcd and kube-apiserver alone, with the custom kinds: no nodes, no
	// seed, and nothing that changes an object once it is written.
	Bare bool
}

// Cluster is a running Kubernetes cluster: real etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, and KWOK in the place of kubelets.
type Cluster struct {
	Name   string
	Server string // the apiserver's address, https://127.0.0.1:…
	CA     []byte // the certificate that signed it, PEM

	authority keyPair
	admin     keyPair
	etcd      string // the address of its store
	kubelet   int    // the port KWOK answers on for every node
	dir       string // certificates, configuration, logs
	client    *http.Client
	options   Options

	processes []*process

	mu    sync.Mutex
	stops []func()
	owned bool
}

// boot is what is only known while a cluster starts.
type boot struct {
	cluster  *Cluster
	ca       *authority
	dir      string
	etcd     string
	port     int
	kubelet  int
	progress io.Writer
}

// StartCluster starts a cluster, seeds it and waits until it is ready. It ends
// with Stop, or with this process, however that ends.
func StartCluster(ctx context.Context, options Options) (*Cluster, error) {
	if options.Name == "" {
		options.Name = "test"
	}
	if options.Nodes == 0 {
		options.Nodes = 3
	}
	if options.Log == nil {
		options.Log = os.Stderr
	}
	for _, p := range []part{etcdPart, kubernetesPart, kwokPart} {
		if _, err := p.binary(ctx, options.Log); err != nil {
			return nil, err
		}
	}
	// A start takes seconds. One that takes a minute has met with an accident,
	// such as somebody else taking a port in between, that a second will not.
	for attempt := 1; ; attempt++ {
		c := &Cluster{Name: options.Name, options: options, owned: true}
		limited, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("not ready within a minute"))
		err := c.start(limited)
		cancel()
		if err == nil {
			return c, nil
		}
		for _, p := range c.processes {
			err = fmt.Errorf("%w\n%s: %s", err, p.name, tail(p.log, 1000))
		}
		c.Stop()
		if attempt == 2 || ctx.Err() != nil {
			return nil, fmt.Errorf("starting cluster %s: %w", options.Name, err)
		}
		fmt.Fprintf(options.Log, "cluster %s did not come up, trying once more: %v\n", options.Name, err)
	}
}

func (c *Cluster) start(ctx context.Context) error {
	b := &boot{cluster: c, progress: c.progress()}
	if err := b.prepare(); err != nil {
		return err
	}
	if err := b.startEtcd(ctx); err != nil {
		return err
	}
	apiserver, err := b.startAPIServer(ctx)
	if err != nil {
		return err
	}
	if err := apiserver.until(ctx, func(ctx context.Context) error {
		_, err := c.must(ctx, http.MethodGet, "/readyz", nil)
		return err
	}); err != nil {
		return err
	}
	if c.options.Bare {
		return c.applyFolder(ctx, "crds")
	}
	if err := b.startControllers(ctx); err != nil {
		return err
	}
	// KWOK reads a kind of its own, which has to be there before it.
	if err := c.applyFolder(ctx, "crds"); err != nil {
		return err
	}
	if err := b.addNodes(ctx, c.options.Nodes); err != nil {
		return err
	}
	if err := b.startKWOK(ctx); err != nil {
		return err
	}
	if err := c.applyFolder(ctx, "seed"); err != nil {
		return err
	}
	return c.WaitReady(ctx)
}

// prepare makes the cluster's folder, its authority and its administrator.
func (b *boot) prepare() error {
	c := b.cluster
	dir, err := newStateFolder(c.Name)
	if err != nil {
		return err
	}
	b.dir, c.dir = dir, dir
	if b.ca, err = newAuthority(c.Name + "-ca"); err != nil {
		return err
	}
	if b.port, err = freePort(); err != nil {
		return err
	}
	if b.kubelet, err = freePort(); err != nil {
		return err
	}
	c.Server = fmt.Sprintf("https://127.0.0.1:%d", b.port)
	c.CA, c.authority, c.kubelet = b.ca.Cert, b.ca.keyPair, b.kubelet
	if c.admin, err = b.ca.client(subject{name: "admin", group: "system:masters"}); err != nil {
		return err
	}
	if c.client, err = newClient(c.CA, c.admin); err != nil {
		return err
	}
	return os.WriteFile(c.AdminPath(), c.Admin(), 0o600)
}

// start launches one of the cluster's processes.
func (b *boot) start(name, binary string, args ...string) (*process, error) {
	p, err := launch(b.dir, name, nil, binary, args...)
	if err == nil {
		b.cluster.onStop(p.stop)
		b.cluster.processes = append(b.cluster.processes, p)
	}
	return p, err
}

// died says which of the cluster's processes has ended, if one has.
func (c *Cluster) died() error {
	for _, p := range c.processes {
		if err := p.died(); err != nil {
			return err
		}
	}
	return nil
}

// Admin answers a kubeconfig that may do everything, by a client certificate.
// It names no file.
func (c *Cluster) Admin() []byte { return certKubeconfig(c.Server, c.CA, c.admin) }

// AdminPath is a file that holds Admin, for kubectl and the like.
func (c *Cluster) AdminPath() string { return c.dir + "/admin.kubeconfig" }

// Dir is where the cluster keeps the logs of its processes while it runs.
func (c *Cluster) Dir() string { return c.dir }

// WaitReady waits until every node is ready and can be asked for logs, the
// seeded workload runs and the seeded claim is bound.
func (c *Cluster) WaitReady(ctx context.Context) error {
	return until(ctx, c.died, func(ctx context.Context) error {
		return errors.Join(c.nodesReady(ctx), c.seedReady(ctx), c.kubeletsReady(ctx))
	})
}

func (c *Cluster) nodesReady(ctx context.Context) error {
	text, err := c.must(ctx, http.MethodGet, "/api/v1/nodes", nil)
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Taints []struct{ Key string } }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("there are no nodes")
	}
	for _, node := range list.Items {
		ready := false
		for _, condition := range node.Status.Conditions {
			ready = ready || condition.Type == "Ready" && condition.Status == "True"
		}
		for _, taint := range node.Spec.Taints {
			ready = ready && taint.Key != "node.kubernetes.io/not-ready"
		}
		if !ready {
			return fmt.Errorf("node %s is not ready", node.Metadata.Name)
		}
	}
	return nil
}

// kubeletsReady tells whether KWOK listens. It lets pods run before it does.
func (c *Cluster) kubeletsReady(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", c.kubelet))
	if err != nil {
		return err
	}
	return conn.Close()
}

func (c *Cluster) seedReady(ctx context.Context) error {
	text, err := c.must(ctx, http.MethodGet, "/apis/apps/v1/namespaces/team-a/deployments/web", nil)
	if err != nil {
		return err
	}
	var web struct {
		Spec   struct{ Replicas int }
		Status struct{ ReadyReplicas int }
	}
	if err := json.Unmarshal(text, &web); err != nil {
		return err
	}
	if web.Status.ReadyReplicas < web.Spec.Replicas {
		return fmt.Errorf("deployment web: %d of %d ready", web.Status.ReadyReplicas, web.Spec.Replicas)
	}
	text, err = c.must(ctx, http.MethodGet, "/api/v1/namespaces/team-a/persistentvolumeclaims/data", nil)
	if err != nil {
		return err
	}
	var claim struct{ Status struct{ Phase string } }
	if err := json.Unmarshal(text, &claim); err != nil {
		return err
	}
	if claim.Status.Phase != "Bound" {
		return fmt.Errorf("claim data is %s", claim.Status.Phase)
	}
	return nil
}

func (c *Cluster) onStop(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops = append(c.stops, f)
}

// Stop ends what this process started of the cluster, all of it where this
// process started the cluster.
func (c *Cluster) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	stops := c.stops
	c.stops = nil
	c.mu.Unlock()
	for _, stop := range slices.Backward(stops) {
		stop()
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	if c.owned && c.dir != "" {
		dropStateFolder(c.dir)
	}
}
