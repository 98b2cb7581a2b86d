package testcluster

import (
	"context"
	"fmt"
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
