package testcluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
)

// nodeRange is where the nodes' addresses come from. They have to look like
// addresses of real machines, because the apiserver refuses to proxy to
// loopback; nothing is ever routed there.
var nodeRange = netip.MustParsePrefix("10.64.0.0/16")

// nodeAddress is the InternalIP of a cluster's i-th node.
func nodeAddress(i int) string {
	return netip.AddrFrom4([4]byte{10, 64, byte(i / 250), byte(i%250 + 1)}).String()
}

// startEgress opens the way out that the apiserver takes to everything inside
// the cluster, and answers the configuration that tells it so. A node's address
// leads to the same port of loopback, where the kubelets of this world listen.
func (b *boot) startEgress() ([]byte, error) {
	socket := filepath.Join(b.dir, "egress.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	b.cluster.onStop(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go tunnel(conn)
		}
	}()
	return fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %s
`, socket), nil
}

// tunnel serves one CONNECT.
func tunnel(from net.Conn) {
	defer from.Close()
	reader := bufio.NewReader(from)
	request, err := http.ReadRequest(reader)
	if err != nil || request.Method != http.MethodConnect {
		return
	}
	to, err := net.Dial("tcp", behind(request.Host))
	if err != nil {
		fmt.Fprintf(from, "HTTP/1.1 502 Bad Gateway\r\n\r\n%s", err)
		return
	}
	defer to.Close()
	if _, err := io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	pass := func(dst net.Conn, src io.Reader) {
		_, _ = io.Copy(dst, src)
		done <- struct{}{}
	}
	go pass(to, reader)
	go pass(from, to)
	// Either side's end is the end: a watch or a log that its reader left must
	// be seen to be left by the kubelet too.
	<-done
}

// behind answers where an address of the cluster really is.
func behind(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); err == nil && nodeRange.Contains(ip) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
