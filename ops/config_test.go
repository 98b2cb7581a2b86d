package ops

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestConfigNeedsNothing(t *testing.T) {
	c, err := ReadConfig(env())
	if err != nil {
		t.Fatal(err)
	}
	if c.Port != "8000" || c.OpsPort != "9090" || c.Host != "" || c.MaxBody != 1<<20 || c.StopTimeout != 30*time.Second ||
		c.KMS.Address != "" || c.KMS.Mount != "secret" || c.Policy.AllowPrivate || c.Gateway.proves() {
		t.Errorf("%+v", c)
	}
}

func TestConfigIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	os.WriteFile(file, []byte("hvs.x\n"), 0o600)
	c, err := ReadConfig(env("PORT", "80", "KMS_ADDR", "https://vault", "KMS_TOKEN_FILE", file, "K8S_ALLOW_PRIVATE_HOSTS", "true",
		"K8S_ALLOW_CIDRS", "10.0.0.0/8, fd12::/48", "K8S_CACHE_DIR", "off", "K8S_NEAR", "0", "K8S_GUEST_DENY", "a,b", "LOG_LEVEL", "debug"))
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd12::/48")}
	if c.Port != "80" || c.KMS.Address != "https://vault" || c.KMS.Token != "hvs.x" || !c.Policy.AllowPrivate || c.CacheDir != "" || c.Policy.Near >= 0 ||
		!cmp.Equal(c.GuestDeny, []string{"a", "b"}) || !cmp.Equal(c.Policy.Allow, want, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })) {
		t.Errorf("%+v", c)
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	const sentinel = "SENTINEL-c0"
	for _, pairs := range [][]string{
		{"PORT", "http"}, {"OPS_PORT", "70000"}, {"K8S_MAX_BODY", "0"}, {"K8S_STOP_SECONDS", "-1"}, {"LOG_LEVEL", "loud"}, {"K8S_NEAR", "soon"}, {"K8S_NEAR", "-1s"},
		{"K8S_ALLOW_PRIVATE_HOSTS", "yes please"}, {"K8S_ALLOW_CIDRS", "10.0.0.1/8"}, {"K8S_ALLOW_CIDRS", "everything"}, {"K8S_GUEST_DOWNGRADE", "x"},
		{"KMS_CA", "/no/such/file"}, {"KMS_JWT_KEY", "/no/such/file"}, {"KMS_TOKEN_FILE", "/no/such/file"},
		{"KMS_TOKEN", sentinel, "KMS_TOKEN_FILE", "config_test.go"},
	} {
		_, err := ReadConfig(env(pairs...))
		if name := strings.TrimSuffix(pairs[0], "_FILE"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", pairs, err)
		}
		if err != nil && strings.Contains(err.Error(), sentinel) {
			t.Errorf("the error quotes a secret: %v", err)
		}
	}
}

func TestSettingsAreOneTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range Settings {
		if seen[s.Name] || s.Doc == "" || s.set == nil {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
	}
	table := settingsTable()
	for name := range seen {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("%s is not in the README's table", name)
		}
	}
}

func TestGrantsOfAClusterRole(t *testing.T) {
	grants, err := parseGrants(RBAC([]*manifest.Op{{Token: "k8s_x_y", Grants: []manifest.Grant{
		{Verbs: []string{"get", "list"}, Kinds: true},
		{Verbs: []string{"get"}, Version: "v1", Resource: "pods", Subresource: "log"},
		{Verbs: []string{"get"}, URL: "/version"},
	}}}))
	if err != nil {
		t.Fatal(err)
	}
	kinds, logs, version := false, false, false
	for _, g := range grants {
		kinds = kinds || g.Kinds && cmp.Equal(g.Verbs, []string{"get", "list"})
		logs = logs || g.Resource == "pods" && g.Subresource == "log"
		version = version || g.URL == "/version"
	}
	if !kinds || !logs || !version {
		t.Errorf("%+v", grants)
	}
	for _, text := range []string{"", "kind: Role\nrules: [{}]", "kind: ClusterRole", "{", "kind: ClusterRole\nrules: [{apiGroups: [''], resources: [pods], verbs: [get], resourceNames: [a]}]"} {
		if _, err := parseGrants([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestTrustNeedsKeys(t *testing.T) {
	for _, c := range []*Config{{GuestDir: "/modules"}, {GuestKeys: "/no/such"}, {GuestGrants: "/no/such"}, {GuestDeny: []string{"sha256:1"}},
		{GuestDeny: []string{"sha256:" + strings.Repeat("A", 64)}}, {GuestDeny: []string{"sha256:" + strings.Repeat("x", 64)}},
	} {
		if _, err := c.Trust(); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// TestStateDirectory: where modules are shipped their versions are kept, and
// nowhere else is a directory made for that.
func TestStateDirectory(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/var/state")
	keys := filepath.Join(t.TempDir(), "keys.pem")
	os.WriteFile(keys, []byte(`-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE526z7iWhsPr7Kv6N+OhhAdTenaQh
8/ZRy3vhaxHyspOBhcKUdkK0IxrPaSntzmNzSPVpxwUwNm7sHqoEZEDVxQ==
-----END PUBLIC KEY-----
`), 0o600)
	for _, tt := range []struct {
		pairs []string
		want  string
	}{
		{nil, ""},
		{[]string{"K8S_STATE_DIR", "/mine"}, ""},
		{[]string{"K8S_GUEST_DIR", "/modules", "K8S_GUEST_KEYS", keys}, "/var/state/k8s"},
		{[]string{"K8S_GUEST_DIR", "/modules", "K8S_GUEST_KEYS", keys, "K8S_STATE_DIR", "/mine"}, "/mine"},
	} {
		c, err := ReadConfig(env(tt.pairs...))
		if err != nil {
			t.Fatal(err)
		}
		if trust, err := c.Trust(); err != nil || trust.StateDir != tt.want {
			t.Errorf("%v: %q, %v; want %q", tt.pairs, trust.StateDir, err, tt.want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	c, err := ReadConfig(env("K8S_GUEST_DIR", "/modules", "K8S_GUEST_KEYS", keys))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Trust(); err == nil || !strings.Contains(err.Error(), "K8S_STATE_DIR") {
		t.Errorf("nowhere to keep versions: %v", err)
	}
}

func TestSplice(t *testing.T) {
	page := []byte("a\n<!-- ops: made by make generate -->\nold\n<!-- end of ops -->\nb\n")
	once, err := splice(page, "ops", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	twice, err := splice(once, "ops", "new\n")
	if err != nil || !bytes.Equal(once, twice) || !bytes.Contains(once, []byte("-->\nnew\n<!--")) {
		t.Errorf("%s\n%s\n%v", once, twice, err)
	}
	if _, err := splice(page, "environment", ""); err == nil {
		t.Error("markers that are not there were found")
	}
}
