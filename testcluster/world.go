// Package testcluster brings up real Kubernetes clusters, and a real Vault, for
// tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
// metrics-server are the programs themselves, built from their Go modules and
// cached; KWOK plays the kubelets. Nothing is installed and nothing is
// downloaded but Go modules.
//
// A world is two clusters, alpha and beta, and one Vault. Tests attach to the
// one that K8S_TESTWORLD names, which `testcluster run -- go test ./...` starts
// once for all packages; without it each test binary starts its own.
package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// StateVariable names the environment variable that holds the path of a running
// world's state.
const StateVariable = "K8S_TESTWORLD"

// World is two clusters, alpha and beta, and one Vault. Cluster alpha serves
// metrics.k8s.io; beta does not until StartMetrics.
type World struct {
	Clusters [2]*Cluster
	Vault    *Vault

	dir string // of a world this process owns
}

// WorldOptions say how to start a world.
type WorldOptions struct {
	Nodes int       // of each cluster; 3 if zero
	Log   io.Writer // where progress is told; standard error if nil
}

// Open attaches to the world that K8S_TESTWORLD names. Without one it starts a
// world that ends with Close or with this process.
func Open(ctx context.Context) (*World, error) {
	if path := os.Getenv(StateVariable); path != "" {
		return attach(path)
	}
	return StartWorld(ctx, WorldOptions{})
}

// StartWorld starts a world of the caller's own.
func StartWorld(ctx context.Context, options WorldOptions) (*World, error) {
	if options.Log == nil {
		options.Log = os.Stderr
	}
	// Built beforehand, because the clusters that start side by side would
	// otherwise race to tell who is building.
	if err := Build(ctx, options.Log); err != nil {
		return nil, err
	}
	dir, err := newStateFolder("world")
	if err != nil {
		return nil, err
	}
	w := &World{dir: dir}
	var wait sync.WaitGroup
	var errs [3]error
	for i, name := range []string{"alpha", "beta"} {
		wait.Go(func() {
			w.Clusters[i], errs[i] = StartCluster(ctx, Options{Name: name, Nodes: options.Nodes, Log: options.Log})
			if i == 0 && errs[i] == nil {
				errs[i] = w.Clusters[i].StartMetrics(ctx)
			}
		})
	}
	wait.Go(func() { w.Vault, errs[2] = StartVault(ctx, options.Log) })
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			w.Close()
			return nil, err
		}
	}
	if err := w.save(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Alpha is the first cluster.
func (w *World) Alpha() *Cluster { return w.Clusters[0] }

// Beta is the second.
func (w *World) Beta() *Cluster { return w.Clusters[1] }

// Close ends the world if this process started it, and lets go of it otherwise.
func (w *World) Close() {
	var wait sync.WaitGroup
	for _, c := range w.Clusters {
		wait.Go(c.Stop)
	}
	wait.Go(w.Vault.Stop)
	wait.Wait()
	if w.dir != "" {
		dropStateFolder(w.dir)
	}
}

// StatePath is the file another process attaches by, of a world that this
// process started.
func (w *World) StatePath() string { return filepath.Join(w.dir, "world.json") }

// worldState is a world as it is told to other processes. It holds the
// clusters' keys, so the file is its owner's alone.
type worldState struct {
	Clusters []clusterState `json:"clusters"`
	Vault    *Vault         `json:"vault"`
}

type clusterState struct {
	Name      string  `json:"name"`
	Server    string  `json:"server"`
	Authority keyPair `json:"authority"`
	Admin     keyPair `json:"admin"`
	Etcd      string  `json:"etcd"`
	Kubelet   int     `json:"kubelet"`
	Dir       string  `json:"dir"`
}

func (w *World) save() error {
	state := worldState{Vault: w.Vault}
	for _, c := range w.Clusters {
		state.Clusters = append(state.Clusters, clusterState{
			Name: c.Name, Server: c.Server, Authority: c.authority, Admin: c.admin, Etcd: c.etcd, Kubelet: c.kubelet, Dir: c.dir,
		})
	}
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(w.StatePath(), text, 0o600)
}

func attach(path string) (*World, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the world that %s names is gone: %w", StateVariable, err)
	}
	var state worldState
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	w := &World{Vault: state.Vault}
	if len(state.Clusters) != len(w.Clusters) || w.Vault == nil {
		return nil, fmt.Errorf("%s describes no world", path)
	}
	for i, s := range state.Clusters {
		c := &Cluster{
			Name: s.Name, Server: s.Server, CA: s.Authority.Cert,
			authority: s.Authority, admin: s.Admin, etcd: s.Etcd, kubelet: s.Kubelet, dir: s.Dir,
		}
		if c.client, err = newClient(c.CA, c.admin); err != nil {
			return nil, err
		}
		w.Clusters[i] = c
	}
	return w, nil
}
