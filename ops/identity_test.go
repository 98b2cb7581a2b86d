package ops

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
)

func TestListenerStaysOnLoopbackWithoutAProof(t *testing.T) {
	secret := strings.Repeat("s", minSecret)
	tests := []struct {
		name    string
		host    string
		gateway Gateway
		bound   string // the address, "" when it refuses
		says    string // of the refusal
	}{
		{"nothing set", "", Gateway{}, "127.0.0.1", ""},
		{"loopback, version 6", "::1", Gateway{}, "::1", ""},
		{"all of 127", "127.0.0.2", Gateway{}, "127.0.0.2", ""},
		{"by name", "localhost", Gateway{}, "127.0.0.1", ""},
		{"everywhere", "0.0.0.0", Gateway{}, "", "K8S_GATEWAY_SECRET"},
		{"everywhere, version 6", "::", Gateway{}, "", "K8S_GATEWAY_SECRET"},
		{"some address", "10.0.0.1", Gateway{}, "", "HOST is 10.0.0.1"},
		{"some name", "k8s.example", Gateway{}, "", "HOST is k8s.example"},
		{"TLS alone proves nothing", "0.0.0.0", Gateway{CertFile: "x", KeyFile: "x"}, "", "K8S_CLIENT_CA"},
		{"a secret", "", Gateway{Secret: secret}, "::", ""},
		{"a secret, everywhere", "0.0.0.0", Gateway{Secret: secret}, "::", ""},
		{"a short secret", "", Gateway{Secret: secret[1:]}, "", "shorter than"},
		{"a CA without TLS", "", Gateway{ClientCAFile: "ca.pem"}, "", "K8S_TLS_CERT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := tt.gateway.Listen(tt.host, "0")
			if err != nil {
				if tt.bound != "" || !strings.Contains(err.Error(), tt.says) {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			defer l.Close()
			if got := l.Addr().(*net.TCPAddr).IP.String(); got != tt.bound {
				t.Errorf("it listens on %s, want %q", got, tt.bound)
			}
		})
	}
}

func TestSharedSecret(t *testing.T) {
	const secret = "a secret of the gateway"
	e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: emitAll("")}, func(o *Options) { o.Gateway.Secret = secret })
	tests := []struct {
		name    string
		headers []string
		status  int
	}{
		{"right", []string{GatewaySecretHeader, secret}, 200},
		{"none", nil, 403},
		{"empty", []string{GatewaySecretHeader, ""}, 403},
		{"wrong", []string{GatewaySecretHeader, secret + "x"}, 403},
		{"a prefix", []string{GatewaySecretHeader, secret[:5]}, 403},
		{"twice", []string{GatewaySecretHeader, secret, GatewaySecretHeader, secret}, 403},
		{"right and wrong", []string{GatewaySecretHeader, "x", GatewaySecretHeader, secret}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/v1/k8s/gadgets?cluster=prod", "/v1/k8s/openapi.json", "/v1/k8s/docs"} {
				w := e.do(t, "GET", path, "", tt.headers...)
				if w.Code != tt.status || strings.Contains(w.Body.String(), secret) {
					t.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
			}
		})
	}
}

// issue makes a certificate signed by parent, or by itself, and writes it and
// its key as PEM files.
func issue(t *testing.T, dir, name string, parent *tls.Certificate) (cert *tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signer, signerKey := template, any(key)
	if parent != nil {
		signer, signerKey = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return &pair, certFile, keyFile
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	ca, caFile, _ := issue(t, dir, "ca", nil)
	otherCA, _, _ := issue(t, dir, "other-ca", nil)
	_, certFile, keyFile := issue(t, dir, "server", ca)
	gateway, _, _ := issue(t, dir, "gateway", ca)
	stranger, _, _ := issue(t, dir, "stranger", otherCA)

	g := Gateway{CertFile: certFile, KeyFile: keyFile, ClientCAFile: caFile}
	e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: emitAll("")}, func(o *Options) { o.Gateway = g })
	l, err := g.Listen("127.0.0.1", "0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(e.Product(), e.log)
	go server.Serve(l)
	defer server.Close()

	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	for _, tt := range []struct {
		name string
		cert *tls.Certificate
		ok   bool
	}{{"the gateway", gateway, true}, {"nobody", nil, false}, {"a stranger", stranger, false}} {
		t.Run(tt.name, func(t *testing.T) {
			config := &tls.Config{RootCAs: roots}
			if tt.cert != nil {
				config.Certificates = []tls.Certificate{*tt.cert}
			}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
			r, _ := http.NewRequest("GET", "https://"+l.Addr().String()+"/v1/k8s/gadgets?cluster=prod", nil)
			r.Header.Set("X-Org-Id", "acme")
			r.Header.Set("X-User-Id", "u1")
			resp, err := client.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			if ok := err == nil && resp.StatusCode == 200; ok != tt.ok {
				t.Errorf("it was let through: %v (%v), want %v", ok, err, tt.ok)
			}
		})
	}
}
