package testcluster

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

//go:embed kwok/*.yaml
var kwokFiles embed.FS

// startKWOK runs the kubelets of every node in one process: nodes become and
// stay ready, pods run, and logs and usage are answered on one port.
func (b *boot) startKWOK(ctx context.Context) error {
	binary, err := kwokPart.binary(ctx, b.progress)
	if err != nil {
		return err
	}
	// KWOK's own stages travel inside its module; ours come after them.
	config, err := exec.CommandContext(ctx, binary, "stages").Output()
	if err != nil {
		return fmt.Errorf("asking kwok for its stages: %w", err)
	}
	if err := fs.WalkDir(kwokFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := kwokFiles.ReadFile(path)
		config = append(append(config, "\n---\n"...), text...)
		return err
	}); err != nil {
		return err
	}
	config = bytes.ReplaceAll(config, []byte("$LOGS"), []byte(b.path("default-container.log")))
	serving, err := b.ca.server(subject{name: "kwok"})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"kwok.yaml": config, "kwok.crt": serving.Cert, "kwok.key": serving.Key,
		"default-container.log": containerLog([]byte("starting\nlistening on :8080\nready\n")),
	} {
		if err := os.WriteFile(b.path(name), text, 0o600); err != nil {
			return err
		}
	}
	_, err = b.start("kwok", binary,
		"--kubeconfig="+b.path("admin.kubeconfig"),
		"--config="+b.path("kwok.yaml"),
		"--manage-all-nodes=true",
		"--cidr=10.65.0.0/16",
		"--node-port="+fmt.Sprint(b.kubelet),
		"--server-address=127.0.0.1:"+fmt.Sprint(b.kubelet),
		"--tls-cert-file="+b.path("kwok.crt"),
		"--tls-private-key-file="+b.path("kwok.key"),
		"--node-lease-duration-seconds=40",
		"--enable-crds=Logs",
		"--v=WARN",
	)
	return err
}

// addNodes creates the cluster's nodes. The first has GPUs.
func (b *boot) addNodes(ctx context.Context, count int) error {
	instances := []struct{ kind, cpu, memory, region string }{
		{"gpu-h100x8", "96", "768Gi", "us-east-1"},
		{"standard-8", "8", "32Gi", "us-east-1"},
		{"standard-4", "4", "16Gi", "us-west-2"},
	}
	for i := range count {
		like := instances[i%len(instances)]
		capacity := map[string]string{"cpu": like.cpu, "memory": like.memory, "pods": "250", "ephemeral-storage": "500Gi"}
		if i == 0 {
			capacity["nvidia.com/gpu"] = "8"
		}
		name := fmt.Sprintf("%s-node-%d", b.cluster.Name, i)
		node, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{
				"name": name,
				"labels": map[string]string{
					"kubernetes.io/hostname":           name,
					"kubernetes.io/os":                 "linux",
					"kubernetes.io/arch":               "amd64",
					"topology.kubernetes.io/region":    like.region,
					"topology.kubernetes.io/zone":      like.region + "a",
					"node.kubernetes.io/instance-type": like.kind,
				},
				// Every node's usage is behind the same port of KWOK, so the
				// path has to say whose.
				"annotations": map[string]string{
					"metrics.k8s.io/resource-metrics-path": "/metrics/nodes/" + name + "/metrics/resource",
				},
			},
			"status": map[string]any{
				"capacity": capacity, "allocatable": capacity,
				"addresses": []map[string]string{
					{"type": "InternalIP", "address": nodeAddress(i)},
					{"type": "Hostname", "address": name},
					// Where metrics-server, which has no egress proxy, dials.
					{"type": "InternalDNS", "address": "localhost"},
				},
				"nodeInfo": map[string]string{
					"kubeletVersion": kubernetesVersion, "operatingSystem": "linux", "architecture": "amd64",
					"osImage": "Debian GNU/Linux 12 (bookworm)", "kernelVersion": "6.1.0", "containerRuntimeVersion": "containerd://2.1.0",
					"machineID": "", "systemUUID": "", "bootID": "", "kubeProxyVersion": "",
				},
			},
		})
		if err != nil {
			return err
		}
		if err := b.cluster.create(ctx, "/api/v1/nodes", node); err != nil {
			return err
		}
	}
	return nil
}

// SetLog makes text the whole log of one container, from the next read on.
// A line that does not end in a newline is written as a partial line, as a
// container runtime would.
func (c *Cluster) SetLog(ctx context.Context, namespace, pod, container string, text []byte) error {
	file, err := os.CreateTemp(c.dir, "container-*.log")
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(containerLog(text)); err != nil {
		return err
	}
	// One Logs object names every container of its pod, so what it already
	// says about the others has to stay.
	path := fmt.Sprintf("/apis/kwok.x-k8s.io/v1alpha1/namespaces/%s/logs/%s", namespace, pod)
	type log struct {
		Containers []string `json:"containers,omitempty"`
		LogsFile   string   `json:"logsFile"`
	}
	var object struct {
		Spec struct {
			Logs []log `json:"logs"`
		} `json:"spec"`
	}
	status, answer, err := c.Do(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	if status == 200 {
		if err := json.Unmarshal(answer, &object); err != nil {
			return err
		}
	}
	logs := []log{{Containers: []string{container}, LogsFile: file.Name()}}
	for _, l := range object.Spec.Logs {
		if len(l.Containers) != 1 || l.Containers[0] != container {
			logs = append(logs, l)
		}
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Logs",
		"metadata": map[string]string{"namespace": namespace, "name": pod},
		"spec":     map[string]any{"logs": logs},
	})
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, manifest); err != nil {
		return err
	}
	// KWOK hears of the object through a watch of its own; until it has, the
	// old log is still answered. A read of one line tells.
	want := firstLine(text)
	read := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log?container=%s&limitBytes=%d", namespace, pod, container, max(1, len(want)))
	return until(ctx, alive, func(ctx context.Context) error {
		status, answer, err := c.Do(ctx, "GET", read, nil)
		if err == nil && (status != 200 || !bytes.Equal(answer, want)) {
			err = fmt.Errorf("the log does not read as set yet: %d", status)
		}
		return err
	})
}

func firstLine(text []byte) []byte {
	line, _, found := bytes.Cut(text, []byte("\n"))
	if found {
		line = append(bytes.Clone(line), '\n')
	}
	return line
}

// containerLog puts text into the form container runtimes write logs in.
func containerLog(text []byte) []byte {
	var out bytes.Buffer
	stamp := time.Now().UTC()
	for line := range bytes.Lines(text) {
		tag := "F"
		if !bytes.HasSuffix(line, []byte("\n")) {
			tag = "P"
		}
		fmt.Fprintf(&out, "%s stdout %s %s\n", stamp.Format(time.RFC3339Nano), tag, bytes.TrimSuffix(line, []byte("\n")))
		stamp = stamp.Add(time.Millisecond)
	}
	return out.Bytes()
}
