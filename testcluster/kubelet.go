package testcluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Kubelet is a kubelet of which only /stats/summary is there. It runs in the
// test's own process, behind the real apiserver's node proxy.
type Kubelet struct {
	// Node is the node it plays the kubelet of.
	Node string

	cluster *Cluster
	server  *http.Server
	asked   atomic.Int64
}

// StartKubelet puts a kubelet under one of the cluster's nodes, in KWOK's place:
// what summary returns is what the node's stats summary says. A summary of nil
// is answered with 500, and one that does not return keeps the reader waiting.
// Logs and usage of that node go silent until the kubelet is closed.
func (c *Cluster) StartKubelet(ctx context.Context, node string, summary func() []byte) (*Kubelet, error) {
	k := &Kubelet{Node: node, cluster: c}
	return k, k.start(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.asked.Add(1)
		if r.URL.Path != "/stats/summary" {
			http.NotFound(w, r)
			return
		}
		text := summary()
		if text == nil {
			http.Error(w, "no summary", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
}

// StartKubeletHandler is StartKubelet for a test that wants every answer of the
// kubelet in its own hands: a stall, a cut, a lie.
func (c *Cluster) StartKubeletHandler(ctx context.Context, node string, handler http.Handler) (*Kubelet, error) {
	k := &Kubelet{Node: node, cluster: c}
	return k, k.start(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
}

func (k *Kubelet) start(ctx context.Context, handler http.Handler) error {
	ca, err := loadAuthority(k.cluster.authority)
	if err != nil {
		return err
	}
	serving, err := ca.server(subject{name: k.Node})
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(serving.Cert, serving.Key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	k.server = &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}},
		ReadHeaderTimeout: 10 * time.Second,
		// A reader that goes away mid-handshake is what tests do on purpose.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = k.server.ServeTLS(listener, "", "") }()
	if err := k.cluster.setKubeletPort(ctx, k.Node, listener.Addr().(*net.TCPAddr).Port); err != nil {
		_ = k.server.Close()
		return err
	}
	return nil
}

// Requests counts what the kubelet has been asked.
func (k *Kubelet) Requests() int { return int(k.asked.Load()) }

// Close stops the kubelet and gives the node back to KWOK.
func (k *Kubelet) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = k.server.Close()
	return k.cluster.setKubeletPort(ctx, k.Node, k.cluster.kubelet)
}

// Silence leaves the node with an address nobody answers at, and its kubelet
// gone, until Close.
func (k *Kubelet) Silence(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	_ = k.server.Close()
	return k.cluster.setKubeletPort(ctx, k.Node, port)
}

func (c *Cluster) setKubeletPort(ctx context.Context, node string, port int) error {
	_, err := c.must(ctx, http.MethodPatch, "/api/v1/nodes/"+node+"/status",
		fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, port))
	return err
}
