package registry

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
)

const (
	maxKubeconfig   = 256 << 10 // bytes
	maxDepth        = 32        // of nested collections
	maxToken        = 32 << 10  // bytes
	maxCertificates = 256       // in one bundle
)

// SafeRESTConfig is the address and the credential a kubeconfig's current
// context names, and nothing else: Host, TLSClientConfig's CAData, CertData,
// KeyData and ServerName, and BearerToken. It reads no file, runs nothing,
// resolves and dials nothing.
//
// It refuses a kubeconfig larger than 256 KiB (too_large, 413), an address that
// is visibly against the policy (address_refused, 400), and with
// kubeconfig_refused, 400, whatever has no place here: exec and auth-provider
// plugins, fields that name a file, proxy-url, impersonation, insecure TLS,
// basic or ambiguous authentication, a server that is not an absolute https
// URL, YAML anchors, aliases and tags, keys written twice, fields it does not
// know, expired certificates and tokens. A refusal names the field and never
// quotes a value.
func SafeRESTConfig(kubeconfig []byte, policy Policy) (*rest.Config, error) {
	return safeRESTConfig(kubeconfig, policy, time.Now())
}

// safeRESTConfig is SafeRESTConfig at the time now; the zero time is one at
// which nothing has expired.
func safeRESTConfig(kubeconfig []byte, policy Policy, now time.Time) (*rest.Config, error) {
	root, err := parse(kubeconfig)
	if err != nil {
		return nil, err
	}
	var doc document
	if err := doc.read(root); err != nil {
		return nil, err
	}
	cluster, user, err := doc.current()
	if err != nil {
		return nil, err
	}
	cfg := &rest.Config{}
	if err := cluster.check(cfg, policy, now); err != nil {
		return nil, err
	}
	if err := user.check(cfg, now); err != nil {
		return nil, err
	}
	return cfg, nil
}

// current is the cluster and the user the current context names. Nothing is
// ever chosen because it is the only or the first one.
func (d *document) current() (cluster clusterEntry, user userEntry, err error) {
	if d.currentContext == "" {
		return cluster, user, kubeconfigRefused("current-context", "is missing")
	}
	var context contextEntry
	for _, c := range d.contexts {
		if c.name == d.currentContext {
			context = c
		}
	}
	for _, c := range d.clusters {
		if c.name == context.cluster {
			cluster = c
		}
	}
	for _, u := range d.users {
		if u.name == context.user {
			user = u
		}
	}
	switch {
	case context.name == "":
		err = kubeconfigRefused("current-context", "names none of contexts")
	case context.cluster == "":
		err = kubeconfigRefused(context.path+".cluster", "is missing")
	case context.user == "":
		err = kubeconfigRefused(context.path+".user", "is missing")
	case cluster.name == "":
		err = kubeconfigRefused(context.path+".cluster", "names none of clusters")
	case user.name == "":
		err = kubeconfigRefused(context.path+".user", "names none of users")
	}
	return cluster, user, err
}

func (c clusterEntry) check(cfg *rest.Config, policy Policy, now time.Time) error {
	host, url, why := server(c.server)
	if why != "" {
		return kubeconfigRefused(c.path+".server", "%s", why)
	}
	if err := policy.checkHost(host); err != nil {
		return Refuse(http.StatusBadRequest, "address_refused", "%s.server: the address is not one this service may connect to", c.path)
	}
	cfg.Host = url
	if c.serverName != "" {
		name, why := hostname(c.serverName)
		if why != "" || net.ParseIP(name) != nil {
			return kubeconfigRefused(c.path+".tls-server-name", "must be a DNS name")
		}
		cfg.ServerName = name
	}
	if c.ca != "" {
		path := c.path + ".certificate-authority-data"
		certs, why := certificates(c.ca)
		if why != "" {
			return kubeconfigRefused(path, "%s", why)
		}
		live := now.IsZero()
		for _, cert := range certs {
			live = live || now.Before(cert.NotAfter)
			cfg.CAData = append(cfg.CAData, encode("CERTIFICATE", cert.Raw)...)
		}
		if !live {
			return kubeconfigRefused(path, "has expired")
		}
	}
	return nil
}

func (u userEntry) check(cfg *rest.Config, now time.Time) error {
	token := strings.TrimSpace(u.token)
	cert, key := u.path+".client-certificate-data", u.path+".client-key-data"
	switch {
	case u.username != "" || u.password != "":
		return kubeconfigRefused(u.path, "has a username or password, which is not allowed; use a token or a client certificate")
	case token != "" && (u.cert != "" || u.key != ""):
		return kubeconfigRefused(u.path, "has both a token and a client certificate; only one is allowed")
	case u.cert != "" && u.key == "":
		return kubeconfigRefused(key, "is missing beside the client certificate")
	case u.key != "" && u.cert == "":
		return kubeconfigRefused(cert, "is missing beside the client key")
	case token == "" && u.cert == "":
		return kubeconfigRefused(u.path, "has neither a token nor a client certificate")
	}
	if token != "" {
		if len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return kubeconfigRefused(u.path+".token", "is not a bearer token")
		}
		cfg.BearerToken = token
	} else {
		certs, why := certificates(u.cert)
		if why != "" {
			return kubeconfigRefused(cert, "%s", why)
		}
		for _, c := range certs {
			cfg.CertData = append(cfg.CertData, encode("CERTIFICATE", c.Raw)...)
		}
		if cfg.KeyData, why = privateKey(u.key); why != "" {
			return kubeconfigRefused(key, "%s", why)
		}
		if _, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData); err != nil {
			return kubeconfigRefused(key, "is not the client certificate's key")
		}
	}
	if expires := credentialExpires(cfg); !now.IsZero() && !expires.IsZero() && !now.Before(expires) {
		return kubeconfigRefused(u.path, "has a credential that has expired")
	}
	return nil
}

// server is the host and the normal form of an apiserver's URL. why is "" when
// it is good, and never holds any of it.
func server(raw string) (host, url, why string) {
	const scheme = "https://"
	if raw == "" {
		return "", "", "is missing"
	}
	if len(raw) < len(scheme) || !strings.EqualFold(raw[:len(scheme)], scheme) {
		return "", "", "must be an absolute https:// URL"
	}
	authority, path, _ := strings.Cut(raw[len(scheme):], "/")
	switch {
	case strings.ContainsAny(raw, "@"):
		return "", "", "must not carry a user or password"
	case strings.ContainsAny(raw, "?#"):
		return "", "", "must not have a query or a fragment"
	}
	host, port, why := hostPort(authority)
	if why != "" {
		return "", "", why
	}
	url = scheme + strings.TrimSuffix(net.JoinHostPort(host, port), ":443")
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return host, url, ""
	}
	for segment := range strings.SplitSeq(path, "/") {
		bad := strings.ContainsFunc(segment, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-._~:", c)
		})
		if bad || segment == "" || segment == "." || segment == ".." {
			return "", "", "has a path that is not plain"
		}
	}
	return host, url + "/" + path, ""
}

// decode reads base64 as a kubeconfig holds it: folded over lines or not.
func decode(data string) ([]byte, bool) {
	out, err := base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(data), ""))
	return out, err == nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// certificates reads a base64 PEM bundle that holds certificates and, but for
// text between them, nothing else.
func certificates(data string) (certs []*x509.Certificate, why string) {
	bundle, ok := decode(data)
	if !ok {
		return nil, "is not base64"
	}
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, "holds something other than certificates"
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || len(certs) == maxCertificates {
			return nil, "holds a certificate that cannot be read, or too many"
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, "holds no PEM certificate"
	}
	return certs, ""
}

// privateKey reads a base64 PEM file with one private key, not encrypted. Other
// blocks, such as a curve's parameters, are dropped.
func privateKey(data string) (key []byte, why string) {
	file, ok := decode(data)
	if !ok {
		return nil, "is not base64"
	}
	for {
		var block *pem.Block
		if block, file = pem.Decode(file); block == nil {
			break
		}
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if key != nil || len(block.Headers) > 0 {
			return nil, "must hold one private key that is not encrypted"
		}
		key = encode(block.Type, block.Bytes)
	}
	if key == nil {
		return nil, "holds no PEM private key"
	}
	return key, ""
}

// credentialExpires is when cfg's credential stops working: the client
// certificate's end, or a JWT's. It is zero when the credential does not say.
func credentialExpires(cfg *rest.Config) time.Time {
	if block, _ := pem.Decode(cfg.CertData); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return cert.NotAfter.UTC()
		}
	}
	parts := strings.Split(cfg.BearerToken, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0).UTC()
}

// sealed is cfg as the smallest kubeconfig that says the same, in JSON. It is
// what the KMS keeps, and SafeRESTConfig of it is cfg.
func sealed(cfg *rest.Config) ([]byte, error) {
	const name = "cluster"
	return json.Marshal(clientcmd.Config{
		Kind: "Config", APIVersion: "v1", CurrentContext: name,
		Clusters: []clientcmd.NamedCluster{{Name: name, Cluster: clientcmd.Cluster{
			Server: cfg.Host, TLSServerName: cfg.ServerName, CertificateAuthorityData: cfg.CAData,
		}}},
		AuthInfos: []clientcmd.NamedAuthInfo{{Name: name, AuthInfo: clientcmd.AuthInfo{
			Token: cfg.BearerToken, ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData,
		}}},
		Contexts: []clientcmd.NamedContext{{Name: name, Context: clientcmd.Context{Cluster: name, AuthInfo: name}}},
	})
}
