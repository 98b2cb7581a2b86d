package ops

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/hanzoai/k8s/registry"
)

// GatewaySecretHeader is the header in which a gateway proves itself by the
// shared secret.
const GatewaySecretHeader = "X-Gateway-Secret"

// minSecret is the fewest bytes of a shared secret.
const minSecret = 16

// Gateway is how the product listener knows its gateway. Identity headers are
// worth something only from one, so without a proof the listener stays on the
// loopback interface.
type Gateway struct {
	Secret string // the gateway sends it in X-Gateway-Secret

	// CertFile and KeyFile make the listener speak TLS, and ClientCAFile makes it
	// ask for a client certificate of this CA.
	CertFile, KeyFile, ClientCAFile string
}

// proves is true when a request can only come from the gateway.
func (g *Gateway) proves() bool { return g.Secret != "" || g.ClientCAFile != "" }

// Listen opens the product listener. An empty host is the loopback interface,
// or every interface when the gateway proves itself. A host that others can
// reach without a proof is an error that says what to do.
func (g *Gateway) Listen(host, port string) (net.Listener, error) {
	if g.Secret != "" && len(g.Secret) < minSecret {
		return nil, fmt.Errorf("K8S_GATEWAY_SECRET is shorter than %d bytes: take a random one, such as of openssl rand -hex 32", minSecret)
	}
	if !g.proves() {
		if host == "" {
			host = "127.0.0.1"
		}
		if !loopback(host) {
			return nil, fmt.Errorf("HOST is %s, where others than the gateway could reach this service and say they are anybody: "+
				"set K8S_GATEWAY_SECRET or K8S_CLIENT_CA so that the gateway proves itself, or leave HOST empty to listen on 127.0.0.1 only", host)
		}
	}
	config, err := g.tls()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("the product listener: %w", err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, nil
}

// loopback is true for an address that only this machine can reach.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// tls is the listener's TLS, nil for none.
func (g *Gateway) tls() (*tls.Config, error) {
	if g.CertFile == "" && g.KeyFile == "" {
		if g.ClientCAFile != "" {
			return nil, errors.New("K8S_CLIENT_CA needs K8S_TLS_CERT and K8S_TLS_KEY beside it: a client certificate is only asked for over TLS")
		}
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(g.CertFile, g.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("K8S_TLS_CERT and K8S_TLS_KEY: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if g.ClientCAFile != "" {
		pem, err := os.ReadFile(g.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("K8S_CLIENT_CA: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("K8S_CLIENT_CA: %s holds no certificate", g.ClientCAFile)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// check lets through what carries the shared secret, once and exactly, and
// takes the header away. Without a secret it lets everything through: then the
// listener is on the loopback interface or asked for a client certificate.
func (g *Gateway) check(next http.Handler) http.Handler {
	if g.Secret == "" {
		return next
	}
	want := sha256.Sum256([]byte(g.Secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Values(GatewaySecretHeader)
		var got [sha256.Size]byte
		if len(given) == 1 {
			got = sha256.Sum256([]byte(given[0]))
		}
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			id := requestID(r.Header)
			w.Header().Set("X-Request-Id", id)
			writeProblem(w, registry.Refuse(http.StatusForbidden, "no_tenant", "the request did not come through the gateway"), id)
			return
		}
		r.Header.Del(GatewaySecretHeader)
		next.ServeHTTP(w, r)
	})
}
