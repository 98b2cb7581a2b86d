package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// TestAddressPolicyAtTheDial: the address connected to is what counts, whatever
// name led there, on the first connection and on every other.
func TestAddressPolicyAtTheDial(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	port := server.URL()[strings.LastIndexByte(server.URL(), ':'):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		t.Run(host, func(t *testing.T) {
			kubeconfig := []byte(strings.ReplaceAll(string(server.Kubeconfig(sentinel)), server.URL(), fmt.Sprintf("%q", "https://"+host+port)))
			wantRefusal(t, version(t.Context(), newTestClient(t, kubeconfig, Policy{})), "address_refused")
			if n := server.Conns(); n > 0 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
	t.Run("a name that resolves to another address later", func(t *testing.T) {
		open, err := net.Listen("tcp", "127.0.0.2:0")
		if err != nil {
			t.Fatal(err)
		}
		port := open.Addr().(*net.TCPAddr).Port
		canary, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer canary.Close()
		upstream := newFake(t, func(s *httptest.Server) { s.Listener.Close(); s.Listener = open })
		upstream.on("/version", answer(`{}`))
		kubeconfig := kubeconfigFor(fmt.Sprintf("https://example.com:%d", port), upstream.ca(), map[string]any{"token": sentinel})
		c := newTestClient(t, kubeconfig, Policy{Allow: prefixes("127.0.0.2/32")})
		var at atomic.Pointer[netip.Addr]
		c.dialer.Resolver = resolver(&at)
		allowed, forbidden := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")
		at.Store(&allowed)
		if err := version(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		at.Store(&forbidden)
		upstream.CloseClientConnections()
		c.short.CloseIdleConnections()
		wantRefusal(t, version(t.Context(), c), "address_refused")
		_ = canary.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
		if conn, err := canary.Accept(); err == nil {
			conn.Close()
			t.Error("the forbidden address was connected to")
		}
	})
	t.Run("as a registration", func(t *testing.T) {
		r := newRegistry(t, NewMemory(), func(c *Config) { c.Policy = Policy{} })
		kubeconfig := []byte(strings.ReplaceAll(string(server.Kubeconfig(sentinel)), "127.0.0.1", "localhost"))
		_, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: kubeconfig})
		if refusal := wantRefusal(t, err, "address_refused"); refusal.Status != http.StatusBadRequest {
			t.Errorf("status %d", refusal.Status)
		}
	})
}

// TestNamesAreNotTold: whether a name exists where the service runs is not to be
// had from what is said of it as a cluster's.
func TestNamesAreNotTold(t *testing.T) {
	kubeconfig := kubeconfigFor("https://vault.internal.example", "", map[string]any{"token": sentinel})
	say := func(at *netip.Addr) string {
		c := newTestClient(t, kubeconfig, Policy{})
		var holds atomic.Pointer[netip.Addr]
		holds.Store(at)
		c.dialer.Resolver = resolver(&holds)
		return fmt.Sprintf("%+v", wantRefusal(t, version(t.Context(), c), "address_refused"))
	}
	private := netip.MustParseAddr("10.0.0.7")
	if there, not := say(&private), say(nil); there != not {
		t.Errorf("a name that exists: %s; one that does not: %s", there, not)
	}
}

// resolver answers every name with the address at holds, and with none that
// there is no such name.
func resolver(at *atomic.Pointer[netip.Addr]) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			var size [2]byte
			if _, err := io.ReadFull(ours, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(ours, query); err != nil {
				return
			}
			end := 12 // of the question: its labels, a zero, type and class
			for query[end] != 0 {
				end += 1 + int(query[end])
			}
			end += 5
			reply := append([]byte{}, query[:end]...)
			reply[2], reply[3] = 0x81, 0x80
			clear(reply[6:12])
			if at.Load() == nil {
				reply[3] |= 3 // NXDOMAIN
			} else if reply[end-3] == 1 { // type A
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				reply = append(reply, at.Load().AsSlice()...)
			}
			_, _ = ours.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		}()
		return theirs, nil
	}}
}

// TestNoProxy is A15: the environment's proxy is never asked.
func TestNoProxy(t *testing.T) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
	}
	c := newTestClient(t, kubeconfigFor("https://cluster.example.com", "", map[string]any{"token": sentinel}), Policy{AllowPrivate: true})
	c.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no DNS here")
	}}
	// The name does not resolve, which is only noticed by somebody who dials it.
	wantRefusal(t, version(t.Context(), c), "cluster_unreachable")
	if c.short.Proxy != nil || c.long.Proxy != nil {
		t.Error("a transport has a proxy")
	}
	_ = proxy.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Millisecond))
	if conn, err := proxy.Accept(); err == nil {
		conn.Close()
		t.Error("the proxy was connected to")
	}
}

// TestFailures is B6: each way not to get an answer has its own name.
func TestFailures(t *testing.T) {
	full := fullListener(t)
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	closing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closing.Close()
	go func() {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	at := func(address string) func(*testing.T) []byte {
		return func(*testing.T) []byte {
			return kubeconfigFor("https://"+address, "", map[string]any{"token": sentinel})
		}
	}
	with := func(opts ...misbehave.Option) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			server := misbehave.New(opts...)
			t.Cleanup(server.Close)
			return server.Kubeconfig(sentinel)
		}
	}
	for _, c := range []struct {
		name       string
		kubeconfig func(*testing.T) []byte
		code       string
		status     int
	}{
		{"B6 SYN dropped", at(full), "connect_timeout", 504},
		{"B6 black hole", with(misbehave.BlackHole()), "connect_timeout", 504},
		{"B6 refused", at(refusing.Addr().String()), "cluster_unreachable", 502},
		{"B6 closed in the handshake", at(closing.Addr().String()), "cluster_unreachable", 502},
		{"B6 plain HTTP", at(plain.Listener.Addr().String()), "tls_invalid", 502},
		{"B6 wrong name", with(misbehave.WrongSAN()), "tls_invalid", 502},
		{"B6 expired", with(misbehave.Expired()), "tls_invalid", 502},
		{"B6 TLS 1.0", with(misbehave.TLS10()), "tls_invalid", 502},
		{"A14 self-signed without a CA", func(t *testing.T) []byte {
			return kubeconfigFor(newFake(t).URL, "", map[string]any{"token": sentinel})
		}, "tls_invalid", 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			refusal := wantRefusal(t, version(t.Context(), newTestClient(t, c.kubeconfig(t), Policy{AllowPrivate: true})), c.code)
			if refusal.Status != c.status {
				t.Errorf("status %d, want %d", refusal.Status, c.status)
			}
			if strings.Contains(refusal.Message, "127.0.0.1") {
				t.Errorf("the message %q has an address", refusal.Message)
			}
		})
	}
	t.Run("A22 tls-server-name is for the certificate alone", func(t *testing.T) {
		upstream := newFake(t)
		upstream.on("/version", answer(`{}`))
		named := func(name string) []byte {
			return []byte(strings.Replace(string(upstream.kubeconfig(sentinel)), `"server"`, `"tls-server-name":"`+name+`","server"`, 1))
		}
		if err := version(t.Context(), newTestClient(t, named("example.com"), Policy{AllowPrivate: true})); err != nil {
			t.Error(err)
		}
		wantRefusal(t, version(t.Context(), newTestClient(t, named("elsewhere.example"), Policy{AllowPrivate: true})), "tls_invalid")
		wantRefusal(t, version(t.Context(), newTestClient(t, named("example.com"), Policy{})), "address_refused")
	})
}

// fullListener is an address whose queue of connections is full, so that a SYN
// is dropped.
func fullListener(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 8 {
		conn, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the listener takes every connection")
	return ""
}
