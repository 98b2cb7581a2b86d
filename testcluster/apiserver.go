package testcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// startAPIServer writes the cluster's certificates and runs kube-apiserver over
// the store that is already there.
func (b *boot) startAPIServer(ctx context.Context) (*process, error) {
	binary, err := kubernetesPart.binary(ctx, b.progress)
	if err != nil {
		return nil, err
	}
	serving, err := b.ca.server(subject{name: "kube-apiserver", hosts: []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1",
	}})
	if err != nil {
		return nil, err
	}
	kubelet, err := b.ca.client(subject{name: "kube-apiserver", group: "system:masters"})
	if err != nil {
		return nil, err
	}
	frontProxy, err := newAuthority("front-proxy")
	if err != nil {
		return nil, err
	}
	aggregator, err := frontProxy.client(subject{name: "front-proxy-client"})
	if err != nil {
		return nil, err
	}
	tokens, err := newSigningKey()
	if err != nil {
		return nil, err
	}
	egress, err := b.startEgress()
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{
		"ca.crt": b.ca.Cert, "apiserver.crt": serving.Cert, "apiserver.key": serving.Key,
		"kubelet-client.crt": kubelet.Cert, "kubelet-client.key": kubelet.Key,
		"front-proxy-ca.crt": frontProxy.Cert, "front-proxy.crt": aggregator.Cert, "front-proxy.key": aggregator.Key,
		"tokens.pub": tokens.Cert, "tokens.key": tokens.Key,
		"egress.yaml": egress,
	} {
		if err := os.WriteFile(b.path(name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return b.start("kube-apiserver", binary, "kube-apiserver",
		"--etcd-servers="+b.etcd,
		"--bind-address=127.0.0.1",
		"--secure-port="+fmt.Sprint(b.port),
		// Nothing may be advertised on loopback, and nobody dials it: the
		// endpoints of the kubernetes Service are left empty.
		"--advertise-address=10.96.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--cert-dir="+b.dir,
		"--tls-cert-file="+b.path("apiserver.crt"),
		"--tls-private-key-file="+b.path("apiserver.key"),
		"--client-ca-file="+b.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer="+b.cluster.Server,
		"--service-account-jwks-uri="+b.cluster.Server+"/openid/v1/jwks",
		"--api-audiences="+b.cluster.Server+",https://kubernetes.default.svc",
		"--service-account-key-file="+b.path("tokens.pub"),
		"--service-account-signing-key-file="+b.path("tokens.key"),
		"--kubelet-client-certificate="+b.path("kubelet-client.crt"),
		"--kubelet-client-key="+b.path("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file="+b.path("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file="+b.path("front-proxy.crt"),
		"--proxy-client-key-file="+b.path("front-proxy.key"),
		"--egress-selector-config-file="+b.path("egress.yaml"),
		"--allow-privileged=true",
		"--profiling=false",
	)
}

func (b *boot) path(name string) string { return filepath.Join(b.dir, name) }
