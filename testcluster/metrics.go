package testcluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const podMetrics = "/apis/metrics.k8s.io/v1beta1/pods"

// StartMetrics runs metrics-server beside the cluster and registers it with the
// aggregator. It returns when the API answers; readings come after two scrapes,
// for which there is WaitMetrics. A cluster that has it keeps the one it has.
func (c *Cluster) StartMetrics(ctx context.Context) error {
	status, _, err := c.Do(ctx, "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io", nil)
	if err != nil {
		return err
	}
	if status == 200 {
		return nil
	}
	binary, err := metricsPart.binary(ctx, c.progress())
	if err != nil {
		return err
	}
	ca, err := loadAuthority(c.authority)
	if err != nil {
		return err
	}
	serving, err := ca.server(subject{name: "metrics-server", hosts: []string{"metrics-server.kube-system.svc"}})
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"metrics.crt": serving.Cert, "metrics.key": serving.Key, "metrics-ca.crt": c.CA, "metrics.kubeconfig": c.Admin(),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	kubeconfig := filepath.Join(c.dir, "metrics.kubeconfig")
	p, err := launch(c.dir, "metrics-server", nil, binary,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file="+filepath.Join(c.dir, "metrics.crt"),
		"--tls-private-key-file="+filepath.Join(c.dir, "metrics.key"),
		"--kubelet-certificate-authority="+filepath.Join(c.dir, "metrics-ca.crt"),
		"--kubelet-preferred-address-types=InternalDNS",
		"--kubelet-use-node-status-port",
		"--kubelet-request-timeout=5s",
		"--metric-resolution=10s",
	)
	if err != nil {
		return err
	}
	c.onStop(p.stop)
	// A Service may not lead to loopback by address, but it may by name.
	manifest := fmt.Appendf(nil, `apiVersion: v1
kind: Service
metadata:
  name: metrics-server
  namespace: kube-system
spec:
  type: ExternalName
  externalName: localhost
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.metrics.k8s.io
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: %s
  service:
    name: metrics-server
    namespace: kube-system
    port: %d
`, base64.StdEncoding.EncodeToString(c.CA), port)
	if err := c.Apply(ctx, manifest); err != nil {
		return err
	}
	return p.until(ctx, func(ctx context.Context) error {
		_, err := c.must(ctx, "GET", podMetrics, nil)
		return err
	})
}

// WaitMetrics waits until metrics.k8s.io has a reading of some pod.
func (c *Cluster) WaitMetrics(ctx context.Context) error {
	return until(ctx, alive, func(ctx context.Context) error {
		text, err := c.must(ctx, "GET", podMetrics, nil)
		if err != nil {
			return err
		}
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("no pod has been measured yet")
		}
		return nil
	})
}

func (c *Cluster) progress() io.Writer {
	if c.options.Log != nil {
		return c.options.Log
	}
	return os.Stderr
}
