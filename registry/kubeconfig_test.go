package registry

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pair is a self-signed certificate and its key, as base64 PEM.
func pair(t testing.TB, name string, notAfter time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: notAfter, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(encode("CERTIFICATE", der)), base64.StdEncoding.EncodeToString(encode("PRIVATE KEY", keyDER))
}

// sample is a kubeconfig in pieces, so that a case can change one.
type sample struct {
	top, cluster, user, context string // lines of YAML, indented as they must be
	currentContext              string
}

func newSample() sample {
	return sample{
		top:            "apiVersion: v1\nkind: Config\n",
		cluster:        "    server: https://k8s.example.com:6443\n",
		user:           "    token: " + sentinel + "\n",
		context:        "    cluster: c\n    user: u\n",
		currentContext: "current-context: c\n",
	}
}

func (s sample) String() string {
	return s.top + s.currentContext +
		"clusters:\n- name: c\n  cluster:\n" + s.cluster +
		"users:\n- name: u\n  user:\n" + s.user +
		"contexts:\n- name: c\n  context:\n" + s.context
}

func TestKubeconfigRefused(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "CANARY")
	cert, key := pair(t, "admin", time.Now().Add(time.Hour))
	oldCert, oldKey := pair(t, "admin", time.Now().Add(-time.Hour))
	_, otherKey := pair(t, "other", time.Now().Add(time.Hour))
	text64 := base64.StdEncoding.EncodeToString([]byte("not PEM"))
	rawPEM, _ := base64.StdEncoding.DecodeString(cert)
	manyCerts := base64.StdEncoding.EncodeToString(bytes.Repeat(rawPEM, 300))
	expiredJWT := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1000}`)) + ".sig"
	indented := strings.ReplaceAll(strings.TrimSpace(string(rawPEM)), "\n", "\n      ")

	top := func(lines string) sample { s := newSample(); s.top += lines; return s }
	cluster := func(lines string) sample { s := newSample(); s.cluster += lines; return s }
	server := func(url string) sample { s := newSample(); s.cluster = "    server: " + url + "\n"; return s }
	user := func(lines string) sample { s := newSample(); s.user += lines; return s }
	onlyUser := func(lines string) sample { s := newSample(); s.user = lines; return s }
	context := func(lines string) sample { s := newSample(); s.context = lines; return s }
	current := func(line string) sample { s := newSample(); s.currentContext = line; return s }
	ca := func(data string) sample { return cluster("    certificate-authority-data: " + data + "\n") }

	const refused = "kubeconfig_refused"
	cases := []struct {
		name string
		doc  fmt.Stringer
		code string
		at   string // part of the message: the field's path, or what is said of it
	}{
		{"A1 exec", user("    exec: {apiVersion: v1, command: /bin/sh, args: [-c, \"touch " + canary + "\"]}\n"), refused, "users[0].user.exec"},
		{"A1 exec alone with metacharacters", onlyUser("    exec: {command: \"./x; touch " + canary + "\"}\n"), refused, "users[0].user.exec"},
		{"A3 auth-provider gcp", user("    auth-provider: {name: gcp, config: {cmd-path: /bin/touch, cmd-args: " + canary + "}}\n"), refused, "users[0].user.auth-provider"},
		{"A3 auth-provider oidc", onlyUser("    auth-provider: {name: oidc, config: {idp-certificate-authority: /etc/passwd, idp-issuer-url: \"http://169.254.169.254\"}}\n"), refused, "users[0].user.auth-provider"},
		{"A3 exec and auth-provider", onlyUser("    exec: {command: x}\n    auth-provider: {name: gcp}\n"), refused, "users[0].user.exec"},
		{"A4 tokenFile beside token", user("    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n"), refused, "users[0].user.tokenFile"},
		{"A4 certificate-authority", cluster("    certificate-authority: /etc/ssl/ca.pem\n"), refused, "clusters[0].cluster.certificate-authority"},
		{"A4 client-certificate", user("    client-certificate: a.pem\n"), refused, "users[0].user.client-certificate"},
		{"A4 client-key", user("    client-key: a.pem\n"), refused, "users[0].user.client-key"},
		{"A6 basic auth and token", user("    username: u\n    password: " + sentinel + "\n"), refused, "users[0].user"},
		{"A6 basic auth alone", onlyUser("    username: u\n    password: " + sentinel + "\n"), refused, "username or password"},
		{"A6 certificate without key", onlyUser("    client-certificate-data: " + cert + "\n"), refused, "client-key-data"},
		{"A6 key without certificate", onlyUser("    client-key-data: " + key + "\n"), refused, "client-certificate-data"},
		{"A6 certificate and token", user("    client-certificate-data: " + cert + "\n    client-key-data: " + key + "\n"), refused, "both"},
		{"A6 another certificate's key", onlyUser("    client-certificate-data: " + cert + "\n    client-key-data: " + otherKey + "\n"), refused, "client-key-data"},
		{"A6 nothing", onlyUser("    {}\n"), refused, "neither"},
		{"A6 expired certificate", onlyUser("    client-certificate-data: " + oldCert + "\n    client-key-data: " + oldKey + "\n"), refused, "expired"},
		{"A6 expired token", onlyUser("    token: " + expiredJWT + "\n"), refused, "expired"},
		{"A6 token with a line break inside", onlyUser("    token: \"a\\r\\nX-Evil: 1\"\n"), refused, "users[0].user.token"},
		{"A6 token that is a number", onlyUser("    token: 12345\n"), refused, "users[0].user.token"},
		{"A8 duplicate context", context("    cluster: c\n    user: u\n- name: c\n  context: {cluster: c, user: u}\n"), refused, "contexts[1].name"},
		{"A8 duplicate cluster", cluster("- name: c\n  cluster: {server: \"https://other.example.com\"}\n"), refused, "clusters[1].name"},
		{"A8 duplicate user", user("- name: u\n  user: {token: x}\n"), refused, "users[1].name"},
		{"A8 duplicate extension", cluster("    extensions: [{name: e, extension: {}}, {name: e}]\n"), refused, "clusters[0].cluster.extensions[1].name"},
		{"A8 empty name", cluster("- name: \"\"\n  cluster: {server: \"https://other.example.com\"}\n"), refused, "clusters[1].name"},
		{"A8 no name", user("- user: {token: x}\n"), refused, "users[1].name"},
		{"A8 key written twice", user("    token: other\n"), refused, "twice"},
		{"A11 no current-context", current(""), refused, "current-context"},
		{"A11 empty current-context", current("current-context: \"\"\n"), refused, "current-context"},
		{"A11 current-context of no context", current("current-context: other\n"), refused, "current-context"},
		{"A11 context without user", context("    cluster: c\n"), refused, "contexts[0].context.user"},
		{"A11 context of no user", context("    cluster: c\n    user: " + sentinel + "\n"), refused, "contexts[0].context.user"},
		{"A11 context of no cluster", context("    cluster: " + sentinel + "\n    user: u\n"), refused, "contexts[0].context.cluster"},
		{"A11 context without cluster", context("    user: u\n"), refused, "contexts[0].context.cluster"},
		{"A11 contexts null", raw("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: null\n"), refused, "current-context"},
		{"A12 empty server", server(`""`), refused, "clusters[0].cluster.server"},
		{"A12 no server", func() sample { s := newSample(); s.cluster = "    {}\n"; return s }(), refused, "clusters[0].cluster.server"},
		{"A13 no scheme", server("api.example.com:6443"), refused, "https"},
		{"A13 bare address", server("10.0.0.1"), refused, "https"},
		{"A13 scheme-relative", server("//h"), refused, "https"},
		{"A13 HTTP", server("HTTP://h"), refused, "https"},
		{"A13 http", server("http://h"), refused, "https"},
		{"A13 ftp", server("ftp://h"), refused, "https"},
		{"A13 https without slashes", server("https:h"), refused, "https"},
		{"A14 insecure", cluster("    insecure-skip-tls-verify: true\n"), refused, "insecure-skip-tls-verify"},
		{"A14 insecure with CA", cluster("    insecure-skip-tls-verify: true\n    certificate-authority-data: " + cert + "\n"), refused, "insecure-skip-tls-verify"},
		{"A14 insecure, spelled otherwise", cluster("    insecure-skip-tls-verify: \"yes\"\n"), refused, "insecure-skip-tls-verify"},
		{"A15 proxy socks5", cluster("    proxy-url: socks5://127.0.0.1:1080\n"), refused, "clusters[0].cluster.proxy-url"},
		{"A15 proxy with password", cluster("    proxy-url: http://user:" + sentinel + "@corp-proxy:3128\n"), refused, "clusters[0].cluster.proxy-url"},
		{"A17 userinfo", server("https://user:" + sentinel + "@host:6443"), refused, "user or password"},
		{"A17 query", server("https://host:6443?x=1"), refused, "query"},
		{"A17 fragment", server("\"https://host:6443/#f\""), refused, "query"},
		{"A17 path, query, fragment", server("\"https://host:6443/p?x=1#f\""), refused, "query"},
		{"A17 empty query", server("\"https://host:6443?\""), refused, "query"},
		{"A17 dot segments", server("https://host:6443/a/../b"), refused, "path"},
		{"A17 escaped path", server("https://host:6443/%2e%2e"), refused, "path"},
		{"A17 double slash", server("https://host:6443//api"), refused, "path"},
		{"A20 IDN", server("https://k8s.exämple"), refused, "host"},
		{"A20 full-width dot", server("https://k8s。example"), refused, "host"},
		{"A20 zero-width", server("\"https://k8s\\u200b.example\""), refused, "host"},
		{"A20 localhost.localdomain", server("https://localhost.localdomain"), "address_refused", "clusters[0].cluster.server"},
		{"A20 localhost with dot and case", server("https://LocalHost.:6443"), "address_refused", "clusters[0].cluster.server"},
		{"A20 254 characters", server("https://" + strings.Repeat("a.", 126) + "aa"), refused, "host"},
		{"A20 empty label", server("https://a..example"), refused, "host"},
		{"A20 two trailing dots", server("https://a.example.."), refused, "host"},
		{"A20 octal", server("https://0177.0.0.1"), refused, "IPv4"},
		{"A20 hexadecimal", server("https://0x7f000001"), refused, "IPv4"},
		{"A20 decimal", server("https://2130706433"), refused, "IPv4"},
		{"A20 short IPv4", server("https://127.1"), refused, "IPv4"},
		{"A20 loopback", server("https://127.0.0.1:6443"), "address_refused", "clusters[0].cluster.server"},
		{"A20 mapped loopback", server("\"https://[::ffff:127.0.0.1]\""), "address_refused", "clusters[0].cluster.server"},
		{"A20 metadata", server("https://169.254.169.254"), "address_refused", "clusters[0].cluster.server"},
		{"A20 zone", server("\"https://[fe80::1%25eth0]\""), refused, "IPv6"},
		{"A21 port 0", server("https://host:0"), refused, "port"},
		{"A21 port 65536", server("https://host:65536"), refused, "port"},
		{"A21 port -1", server("https://host:-1"), refused, "port"},
		{"A21 empty port", server("\"https://host:\""), refused, "port"},
		{"A21 leading zero", server("https://host:06443"), refused, "port"},
		{"A21 space", server("\"https://host:443 \""), refused, "port"},
		{"A21 plus", server("https://host:+443"), refused, "port"},
		{"A21 two ports", server("https://host:443:443"), refused, "port"},
		{"A22 IP", cluster("    tls-server-name: 10.0.0.1\n"), refused, "tls-server-name"},
		{"A22 IPv6", cluster("    tls-server-name: \"::1\"\n"), refused, "tls-server-name"},
		{"A22 URL", cluster("    tls-server-name: https://x\n"), refused, "tls-server-name"},
		{"A23 placeholder", ca("<base64>"), refused, "certificate-authority-data"},
		{"A23 raw PEM", cluster("    certificate-authority-data: |\n      " + indented + "\n"), refused, "certificate-authority-data"},
		{"A23 base64 of no PEM", ca(text64), refused, "certificate-authority-data"},
		{"A23 a private key", ca(key), refused, "certificate-authority-data"},
		{"A23 expired", ca(oldCert), refused, "expired"},
		{"A23 too large", ca(base64.StdEncoding.EncodeToString(make([]byte, 2<<20))), "too_large", "KiB"},
		{"A23 too many", ca(manyCerts[:len(manyCerts)/4*4]), refused, "certificate-authority-data"},
		{"A24 kind", raw("kind: List\n"), refused, "kind"},
		{"A24 version", raw("apiVersion: v2\nkind: Config\n"), refused, "apiVersion"},
		{"A24 extensions of 1 MB", top("extensions: [{name: e, extension: {x: " + strings.Repeat("a", 1<<20) + "}}]\n"), "too_large", "KiB"},
		{"A24 unknown field", user("    " + sentinel + ": x\n"), refused, "users[0].user"},
		{"A24 unknown field at the top", top(sentinel + ": x\n"), refused, "kubeconfig"},
		{"A24 not YAML", raw("{" + sentinel), refused, "neither"},
		{"A24 empty", raw(""), refused, "empty"},
		{"A24 a string", raw(sentinel), refused, "mapping"},
		{"A24 UTF-16", raw("\xff\xfea\x00"), refused, "UTF-8"},
		{"A24 NUL", raw("a: \x00"), refused, "UTF-8"},
		{"A24 two documents", raw(newSample().String() + "---\n" + newSample().String()), refused, "more than one"},
		{"A24 wrong type", raw("clusters: {a: " + sentinel + "}\n"), refused, "clusters"},
		{"A24 tag", onlyUser("    token: !!binary " + text64 + "\n"), refused, "tags"},
		{"A25 as", user("    as: system:admin\n"), refused, "users[0].user.as"},
		{"A25 as-groups", user("    as-groups: [\"system:masters\"]\n"), refused, "users[0].user.as-groups"},
		{"A25 as-uid without as", user("    as-uid: \"1\"\n"), refused, "users[0].user.as-uid"},
		{"A25 as-user-extra", user("    as-user-extra: {a: [b]}\n"), refused, "users[0].user.as-user-extra"},
		{"A1 in a context that is not the current one", user("- name: other\n  user: {exec: {command: x}}\n"), refused, "users[1].user.exec"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := SafeRESTConfig([]byte(c.doc.String()), Policy{})
			got := wantRefusal(t, err, c.code)
			if !strings.Contains(got.Message, c.at) {
				t.Errorf("message %q does not name %q", got.Message, c.at)
			}
			if got.Status < 400 || got.Status > 422 {
				t.Errorf("status %d is not one of a caller's input", got.Status)
			}
		})
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a command of a kubeconfig was run")
	}
}

type raw string

func (r raw) String() string { return string(r) }

// TestKubeconfigBombs is A10: what would take a parser long or a lot of memory.
func TestKubeconfigBombs(t *testing.T) {
	var aliases strings.Builder
	aliases.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&aliases, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	many := func(s string) string { return strings.Repeat(s, (maxKubeconfig-16)/len(s)) }
	for name, doc := range map[string]string{
		"A10 aliases":            aliases.String(),
		"A10 one alias":          strings.Replace(newSample().String(), "- name: u", "- name: &n u", 1),
		"A10 merge key":          "a: &a {kind: Config}\nb:\n  <<: *a\n",
		"A10 flow sequences":     many("["),
		"A10 flow mappings":      many("{a: "),
		"A10 JSON nesting":       strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000),
		"A10 block sequences":    many("- "),
		"A10 explicit keys":      many("? "),
		"A10 simple keys":        "[" + many("a: b,"),
		"A10 flow of quotes":     many(`{"a":"`),
		"A10 comments":           many("#\n"),
		"A10 comments in a list": "a:\n" + many("- #x\n"),
		"A10 tabs":               many("\t"),
		"A10 line breaks":        "a: \"" + many("\n"),
		"A10 documents":          many("---\n"),
		"A10 open quotes":        many("'"),
		"A10 anchors":            many("&a "),
		"A10 directives":         many("%YAML 1.1\n"),
		"A10 deep but valid":     "extensions: [{name: e, extension: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}]\n" + newSample().String(),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := SafeRESTConfig([]byte(doc), Policy{})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			wantRefusal(t, err, "kubeconfig_refused")
			if took > time.Second {
				t.Errorf("took %s", took)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<20 {
				t.Errorf("allocated %d MiB", grown>>20)
			}
		})
	}
}

func TestKubeconfigAccepted(t *testing.T) {
	cert, key := pair(t, "admin", time.Now().Add(time.Hour))
	oldCert, _ := pair(t, "old", time.Now().Add(-time.Hour))
	pemOf := func(data string) string { b, _ := base64.StdEncoding.DecodeString(data); return string(b) }
	fold := func(s, by string) string {
		var b strings.Builder
		for i := 0; i < len(s); i += 64 {
			b.WriteString(by + s[i:min(i+64, len(s))])
		}
		return b.String()
	}
	with := func(edit func(*sample)) string { s := newSample(); edit(&s); return s.String() }
	ca := func(lines string) string { return with(func(s *sample) { s.cluster += lines }) }
	type want struct{ Host, ServerName, CA, Cert, Key, Token string }
	plain := want{Host: "https://k8s.example.com:6443", Token: sentinel}
	withCA := plain
	withCA.CA = pemOf(cert)
	host := func(h string) want { w := plain; w.Host = h; return w }
	commented := base64.StdEncoding.EncodeToString([]byte("# " + sentinel + "\n" + pemOf(cert) + "# end\n"))
	bundle := base64.StdEncoding.EncodeToString([]byte(pemOf(oldCert) + pemOf(cert)))
	withBundle := plain
	withBundle.CA = pemOf(oldCert) + pemOf(cert)

	cases := []struct {
		name string
		doc  string
		want want
	}{
		{"a token", newSample().String(), plain},
		{"A14 no CA is the system's roots", newSample().String(), plain},
		{"A6 a client certificate", with(func(s *sample) {
			s.user = "    client-certificate-data: " + cert + "\n    client-key-data: " + key + "\n"
		}), want{Host: plain.Host, Cert: pemOf(cert), Key: pemOf(key)}},
		{"A13 upper-case https", with(func(s *sample) { s.cluster = "    server: HTTPS://k8s.example.com:6443\n" }), plain},
		{"A14 insecure false", ca("    insecure-skip-tls-verify: false\n"), plain},
		{"A25 empty impersonation", with(func(s *sample) { s.user += "    as: \"\"\n    as-groups: []\n" }), plain},
		{"A20 case and one trailing dot", with(func(s *sample) { s.cluster = "    server: https://K8S.Example.COM.:6443/\n" }), plain},
		{"A20 punycode", with(func(s *sample) { s.cluster = "    server: https://k8s.xn--exmple-cua\n" }), host("https://k8s.xn--exmple-cua")},
		{"A20 IPv4", with(func(s *sample) { s.cluster = "    server: https://8.8.8.8\n" }), host("https://8.8.8.8")},
		{"A20 IPv6", with(func(s *sample) { s.cluster = "    server: \"https://[2606:4700:0::1111]:443\"\n" }), host("https://[2606:4700::1111]")},
		{"A17 a path", with(func(s *sample) { s.cluster = "    server: https://rancher.example.com/k8s/clusters/c-m-abc:1/\n" }), host("https://rancher.example.com/k8s/clusters/c-m-abc:1")},
		{"A22 tls-server-name", ca("    tls-server-name: Kubernetes.Default\n"), func() want { w := plain; w.ServerName = "kubernetes.default"; return w }()},
		{"A23 one line", ca("    certificate-authority-data: " + cert + "\n"), withCA},
		{"A23 folded", ca("    certificate-authority-data: >-\n" + fold(cert, "\n      ")[1:] + "\n"), withCA},
		{"A23 block scalar", ca("    certificate-authority-data: |\n" + fold(cert, "\n      ")[1:] + "\n"), withCA},
		{"A23 CRLF", strings.ReplaceAll(ca("    certificate-authority-data: |\n"+fold(cert, "\n      ")[1:]+"\n"), "\n", "\r\n"), withCA},
		{"A23 comments are dropped", ca("    certificate-authority-data: " + commented + "\n"), withCA},
		{"A23 a bundle with one expired", ca("    certificate-authority-data: " + bundle + "\n"), withBundle},
		{"A24 JSON", string(kubeconfigFor(plain.Host, "", map[string]any{"token": sentinel})), plain},
		{"A24 JSON with tabs", "{\n\t\"current-context\": \"c\",\n\t\"clusters\": [{\"name\": \"c\", \"cluster\": {\"server\": \"https:\\/\\/k8s.example.com:6443\"}}],\n\t\"users\": [{\"name\":\"u\",\"user\":{\"token\":\"" + sentinel + "\"}}],\n\t\"contexts\": [{\"name\":\"c\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}]}", plain},
		{"A24 preferences", with(func(s *sample) { s.top += "preferences: {colors: true, extensions: [{name: x}]}\n" }), plain},
		{"A24 minikube's extensions", ca("    extensions:\n    - extension:\n        last-update: Mon, 01 Jan 2024 00:00:00 UTC\n        provider: minikube.sigs.k8s.io\n        version: v1.32.0\n      name: cluster_info\n"), plain},
		{"A24 byte order mark", "\xef\xbb\xbf" + newSample().String(), plain},
		{"A24 no kind", with(func(s *sample) { s.top = "" }), plain},
		{"a token with a line break after it", with(func(s *sample) { s.user = "    token: |\n      " + sentinel + "\n" }), plain},
		{"another context is left out", with(func(s *sample) { s.user += "- name: other\n  user: {token: x}\n" }), plain},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := SafeRESTConfig([]byte(c.doc), Policy{})
			if err != nil {
				t.Fatal(err)
			}
			got := want{cfg.Host, cfg.ServerName, string(cfg.CAData), string(cfg.CertData), string(cfg.KeyData), cfg.BearerToken}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			checkAccepted(t, []byte(c.doc), Policy{})
		})
	}
}

// checkAccepted holds what is accepted to more than having been accepted: its
// sealed form means the same, and neither holds anything that has no place.
func checkAccepted(t *testing.T, doc []byte, policy Policy) {
	t.Helper()
	cfg, err := SafeRESTConfig(doc, policy)
	if err != nil {
		return
	}
	kept := *cfg
	kept.Host, kept.BearerToken = "", ""
	kept.ServerName, kept.CAData, kept.CertData, kept.KeyData = "", nil, nil, nil
	if !reflect.ValueOf(kept).IsZero() {
		t.Fatalf("more was taken over than an address and a credential: %+v", kept)
	}
	seal, err := sealed(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := SafeRESTConfig(seal, policy)
	if err != nil {
		t.Fatalf("the sealed form is refused: %v", err)
	}
	if !reflect.DeepEqual(cfg, again) {
		t.Fatal("the sealed form means something else")
	}
	rest, ok := strings.CutPrefix(cfg.Host, "https://")
	authority, _, _ := strings.Cut(rest, "/")
	host, _, why := hostPort(authority)
	if !ok || why != "" || policy.checkHost(host) != nil || strings.ContainsAny(cfg.Host, "?#@ \\") {
		t.Fatalf("the server %q is not an https URL the policy opens", cfg.Host)
	}
	if (cfg.BearerToken == "") == (len(cfg.CertData) == 0) || (len(cfg.CertData) == 0) != (len(cfg.KeyData) == 0) {
		t.Fatal("there is not exactly one credential")
	}
	var tree any
	if err := json.Unmarshal(seal, &tree); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, k := range strings.Fields("kind apiVersion current-context clusters users contexts name cluster user context server " +
		"certificate-authority-data tls-server-name token client-certificate-data client-key-data") {
		allowed[k] = true
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, child := range v {
				if !allowed[k] {
					t.Fatalf("the sealed form has a field %q", k)
				}
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(tree)
}

func FuzzSafeRESTConfig(f *testing.F) {
	cert, key := pair(f, "admin", time.Now().Add(100*365*24*time.Hour))
	full := newSample()
	full.cluster += "    certificate-authority-data: " + cert + "\n    tls-server-name: a.b\n"
	full.user = "    client-certificate-data: " + cert + "\n    client-key-data: " + key + "\n"
	for _, doc := range []string{
		newSample().String(), full.String(), string(kubeconfigFor("https://[2606::1]:1/x", "", map[string]any{"token": "t", "exec": nil})),
		"a: &a [*a]", "{", "? a\n: b", "- - -", "'", "%YAML 1.2\n---\n", "!!map {}", "<<: {}",
		strings.Replace(newSample().String(), "token", "tokenFile", 1),
		strings.Replace(newSample().String(), "https://k8s", "https://a@k8s", 1),
		strings.Replace(newSample().String(), "k8s.example.com", "0x7f.1", 1),
		newSample().String() + "users: []\n",
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		start := time.Now()
		_, err := SafeRESTConfig(doc, Policy{})
		if took := time.Since(start); took > 2*time.Second {
			t.Fatalf("took %s", took)
		}
		if err != nil {
			if asRefusal(err) == nil {
				t.Fatalf("the error %v is no refusal", err)
			}
			return
		}
		checkAccepted(t, doc, Policy{})
	})
}

// FuzzServer holds the URL's reader against the standard library's.
func FuzzServer(f *testing.F) {
	for _, s := range []string{"https://a", "https://a.:1/b", "https://[::1]:2", "https://1.2.3.4:443/", "https://0x1", "HTTPS://A/b/c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, given string) {
		host, url, why := server(given)
		if why != "" {
			if len(given) > 12 && strings.Contains(why, given) {
				t.Fatalf("%q quotes its input", why)
			}
			return
		}
		again, same, why := server(url)
		if why != "" || same != url || again != host {
			t.Fatalf("%q became %q became %q (%s)", given, url, same, why)
		}
		if ip := net.ParseIP(host); ip == nil && strings.ContainsAny(host, ":/ \\@%") {
			t.Fatalf("the host %q is not a host", host)
		}
	})
}

func TestCredentialExpires(t *testing.T) {
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	cert, key := pair(t, "admin", end)
	jwt := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix())) + ".sig"
	for _, c := range []struct {
		name string
		user map[string]any
		want time.Time
	}{
		{"a certificate", map[string]any{"client-certificate-data": cert, "client-key-data": key}, end},
		{"a JWT", map[string]any{"token": jwt}, end},
		{"an opaque token", map[string]any{"token": "a.b.c"}, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := SafeRESTConfig(kubeconfigFor("https://k8s.example.com", "", c.user), Policy{})
			if err != nil {
				t.Fatal(err)
			}
			if got := credentialExpires(cfg); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
