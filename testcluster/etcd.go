package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
)

// startEtcd runs the cluster's store. It never syncs to disk: the data is gone
// with the cluster, so there is no crash to survive.
func (b *boot) startEtcd(ctx context.Context) error {
	binary, err := etcdPart.binary(ctx, b.progress)
	if err != nil {
		return err
	}
	client, err := freePort()
	if err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	b.etcd = fmt.Sprintf("http://127.0.0.1:%d", client)
	b.cluster.etcd = b.etcd
	peers := fmt.Sprintf("http://127.0.0.1:%d", peer)
	_, err = b.start("etcd", binary,
		"--name=etcd",
		"--data-dir="+filepath.Join(b.dir, "etcd"),
		"--listen-client-urls="+b.etcd,
		"--advertise-client-urls="+b.etcd,
		"--listen-peer-urls="+peers,
		"--initial-advertise-peer-urls="+peers,
		"--initial-cluster=etcd="+peers,
		"--unsafe-no-fsync",
		"--log-level=warn",
		// One member has no peers to hear from; fewer ticks, less idle work.
		"--heartbeat-interval=500",
		"--election-timeout=2500",
	)
	return err
}

// Compact has etcd forget every revision but the present one. A continue token
// from before is expired then, where the apiserver reads etcd itself; it does
// for events, and keeps copies of its own of nearly everything else.
func (c *Cluster) Compact(ctx context.Context) error {
	ask := func(path, body string) ([]byte, error) {
		status, text, err := send(ctx, http.DefaultClient, http.MethodPost, c.etcd+path, nil, []byte(body))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("etcd: %s: %d: %s", path, status, text)
		}
		return text, err
	}
	text, err := ask("/v3/kv/range", `{"key":"AA=="}`)
	if err != nil {
		return err
	}
	var answer struct{ Header struct{ Revision string } }
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	_, err = ask("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, answer.Header.Revision))
	return err
}
