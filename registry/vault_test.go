package registry

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanzoai/k8s/testcluster"
)

// realVault is a Store on the world's Vault, with the root token.
func realVault(t *testing.T) *Vault {
	t.Helper()
	at := realWorld(t).Vault
	return openVault(t, VaultConfig{Address: at.Addr, Auth: "token", Token: at.RootToken})
}

func openVault(t *testing.T, c VaultConfig) *Vault {
	t.Helper()
	c.Log = testLog()
	v, err := OpenVault(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.http.CloseIdleConnections)
	return v
}

// fakeVault answers as Vault does, and as a test says. handle answers false for
// what it leaves to the healthy Vault.
func fakeVault(t *testing.T, handle func(w http.ResponseWriter, r *http.Request) bool) VaultConfig {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case handle(w, r):
		case strings.HasPrefix(r.URL.Path, "/v1/sys/internal/ui/mounts/"):
			fmt.Fprint(w, `{"data":{"type":"kv","options":{"version":"2"}}}`)
		case r.URL.Path == "/v1/auth/token/lookup-self":
			fmt.Fprint(w, `{"data":{"ttl":0}}`)
		default:
			http.Error(w, `{"errors":[]}`, http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return VaultConfig{Address: server.URL, Auth: "token", Token: "t", Log: testLog()}
}

func TestVaultAnswers(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect to another host was followed")
	}))
	t.Cleanup(elsewhere.Close)
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		data   string
		found  int
		err    error
	}{
		{"C12 absent", status(404, `{"errors":[]}`), "", 0, nil},
		{"C12 soft-deleted", status(404, `{"data":{"data":null,"metadata":{"version":3,"deletion_time":"2024-01-01T00:00:00Z","destroyed":false}}}`), "", 3, nil},
		{"C12 destroyed", status(404, `{"data":{"data":null,"metadata":{"version":3,"destroyed":true}}}`), "", 3, nil},
		{"C12 destroyed, with data all the same", status(200, `{"data":{"data":{"a":"vault:v1:ciphertext"},"metadata":{"version":3,"destroyed":true}}}`), "", 3, nil},
		{"C12 null", status(200, `{"data":null}`), "", 0, nil},
		{"C12 data null", status(200, `{"data":{"data":null,"metadata":{"version":1}}}`), "", 1, nil},
		{"C12 data a string", status(200, `{"data":{"data":"vault:v1:ciphertext","metadata":{"version":1}}}`), "", 1, ErrCorrupt},
		{"C12 data a list", status(200, `{"data":{"data":["x"],"metadata":{"version":1}}}`), "", 1, ErrCorrupt},
		{"C12 no metadata", status(200, `{"data":{"data":{"a":1}}}`), "", 0, ErrCorrupt},
		{"C12 metadata of another type", status(200, `{"data":{"data":{"a":1},"metadata":"x"}}`), "", 0, ErrCorrupt},
		{"C12 unknown fields", status(200, `{"x":1,"data":{"y":2,"data":{"a":1},"metadata":{"version":4,"z":3}}}`), `{"a":1}`, 4, nil},
		{"C12 not JSON", status(200, `<html>`), "", 0, ErrCorrupt},
		{"C12 cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"data":`)
		}, "", 0, ErrUnavailable},
		{"C12 larger than any secret", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":{"data":{"a":"`+strings.Repeat("a", maxSecret)+`"},"metadata":{"version":1}}}`)
		}, "", 0, ErrCorrupt},
		{"C13 sealed", status(503, `{"errors":["Vault is sealed"]}`), "", 0, ErrUnavailable},
		{"C13 standby redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, "", 0, ErrUnavailable},
		{"C13 behind", status(412, `{"errors":["required index state not present"]}`), "", 0, ErrUnavailable},
		{"C13 error", status(500, `{"errors":["`+sentinel+`"]}`), "", 0, ErrUnavailable},
		{"C13 denied", status(403, `{"errors":["permission denied"]}`), "", 0, ErrDenied},
		{"C13 bad request", status(400, `{"errors":["no handler"]}`), "", 0, ErrUnavailable},
		{"C13 no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", 0, ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tokens atomic.Int32
			v := openVault(t, fakeVault(t, func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/v1/auth/token/lookup-self" {
					tokens.Add(1)
				}
				if !strings.HasPrefix(r.URL.Path, "/v1/secret/data/") {
					return false
				}
				c.answer(w, r)
				return true
			}))
			org := orgOf(t, "acme")
			data, found, err := v.Get(t.Context(), org, recordRef(org, "prod"), 0)
			if string(data) != c.data || found != c.found || !errors.Is(err, c.err) {
				t.Errorf("got %q, %d, %v; want %q, %d, %v", data, found, err, c.data, c.found, c.err)
			}
			// What a caller is told has no detail, and no credential.
			if err != nil {
				_, err := newRegistry(t, v).Get(as(t, "acme"), "prod")
				code := "kms_unavailable"
				if errors.Is(c.err, ErrCorrupt) {
					code = "kms_corrupt"
				}
				refusal := wantRefusal(t, err, code)
				for _, word := range []string{"vault", "sealed", "http", "orgs/", "/v1/"} {
					if strings.Contains(strings.ToLower(refusal.Message), word) {
						t.Errorf("the refusal %q has detail", refusal.Message)
					}
				}
			}
		})
	}
}

// TestCallerWhoLeavesTheKMS: one who leaves while the KMS is asked is not taken for
// a KMS that fails, in metrics, log or answer; a KMS that is slow is.
func TestCallerWhoLeavesTheKMS(t *testing.T) {
	asked := make(chan struct{}, 16)
	var lines lockedBuffer
	config := fakeVault(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/sys/internal/ui/mounts/secret" || r.URL.Path == "/v1/auth/token/lookup-self" {
			return false
		}
		asked <- struct{}{}
		<-r.Context().Done()
		return true
	})
	v := openVault(t, config)
	v.log = slog.New(slog.NewTextHandler(&lines, nil))
	observer := &watching{}
	r := newRegistry(t, v, func(c *Config) { c.Observer = observer })
	calls := map[string]func(context.Context) error{
		"get":  func(ctx context.Context) error { _, err := r.Get(ctx, "prod"); return err },
		"list": func(ctx context.Context) error { _, err := r.List(ctx); return err },
	}
	for name, call := range calls {
		ctx, leave := context.WithCancel(as(t, "acme"))
		go func() {
			<-asked
			leave()
		}()
		wantRefusal(t, call(ctx), "canceled")
		leave()
		ctx, leave = context.WithTimeout(as(t, "acme"), 50*time.Millisecond)
		wantRefusal(t, call(ctx), "kms_unavailable")
		leave()
		<-asked
		want := []error{context.Canceled, ErrUnavailable}
		if got := observer.outcomes(); !slices.EqualFunc(want, got, func(want, got error) bool { return errors.Is(got, want) }) {
			t.Errorf("%s: the observer was told %v, want %v", name, got, want)
		}
	}
	if n := strings.Count(lines.text(), "the KMS does not answer"); n != len(calls) {
		t.Errorf("of a KMS that does not answer there are %d lines, want %d", n, len(calls))
	}
}

func TestVaultMounts(t *testing.T) {
	for name, mount := range map[string]string{
		"C13 version 1":          `{"data":{"type":"kv","options":{"version":"1"}}}`,
		"C13 version unsaid":     `{"data":{"type":"kv","options":null}}`,
		"C13 another engine":     `{"data":{"type":"cubbyhole"}}`,
		"C13 options of a shape": `{"data":{"type":"kv","options":"x"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			config := fakeVault(t, func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/v1/sys/internal/ui/mounts/") {
					fmt.Fprint(w, mount)
					return true
				}
				return false
			})
			if _, err := OpenVault(t.Context(), config); err == nil {
				t.Error("it was opened")
			}
		})
	}
	t.Run("C13 the real Vault's version 1", func(t *testing.T) {
		at := privateVault(t)
		vaultMust(t, at, "POST", "sys/mounts/old", `{"type":"kv","options":{"version":"1"}}`)
		if _, err := OpenVault(t.Context(), VaultConfig{Address: at.Addr, Auth: "token", Token: at.RootToken, Mount: "old", Log: testLog()}); err == nil {
			t.Error("it was opened")
		}
	})
}

// TestVaultReady: a KMS that is sealed, or that has lost its mount, is not ready,
// and is ready again afterwards.
func TestVaultReady(t *testing.T) {
	var state atomic.Pointer[string]
	say := func(s string) { state.Store(&s) }
	say("")
	config := fakeVault(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/sys/internal/ui/mounts/") || *state.Load() == "" {
			return false
		}
		if *state.Load() == "sealed" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, *state.Load())
		return true
	})
	v, err := OpenVault(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state string
		ready bool
	}{{"", true}, {"sealed", false}, {`{"data":{"type":"kv","options":{"version":"1"}}}`, false}, {"", true}} {
		say(c.state)
		if err := v.Ready(t.Context()); (err == nil) != c.ready {
			t.Errorf("%q: %v", c.state, err)
		}
	}
}

// TestVaultLagging is C14: a standby that is behind this process's own write is
// waited for, and what it says instead is never written on.
func TestVaultLagging(t *testing.T) {
	var reads atomic.Int32
	var cas atomic.Value
	version := func(n int) string {
		return fmt.Sprintf(`{"data":{"data":{"v":%d},"metadata":{"version":%d},"version":%d}}`, n, n, n)
	}
	v := openVault(t, fakeVault(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case !strings.HasPrefix(r.URL.Path, "/v1/secret/data/"):
			return false
		case r.Method != http.MethodGet:
			var body struct{ Options struct{ Cas int } }
			_ = json.NewDecoder(r.Body).Decode(&body)
			cas.Store(body.Options.Cas)
			fmt.Fprint(w, version(body.Options.Cas+1))
		case reads.Add(1) <= 3:
			fmt.Fprint(w, version(1))
		default:
			fmt.Fprint(w, version(2))
		}
		return true
	}))
	org := orgOf(t, "acme")
	if got, err := v.Put(t.Context(), org, recordRef(org, "prod"), []byte(`{"v":2}`), 1); err != nil || got != 2 || cas.Load() != 1 {
		t.Fatal(got, err, cas.Load())
	}
	data, found, err := v.Get(t.Context(), org, recordRef(org, "prod"), 0)
	if err != nil || found != 2 || string(data) != `{"v":2}` {
		t.Errorf("read %q, version %d, %v after writing version 2", data, found, err)
	}
	reads.Store(-1 << 20) // it never catches up
	start := time.Now()
	if _, found, err := v.Get(t.Context(), org, recordRef(org, "prod"), 0); err != nil || found != 1 {
		t.Errorf("version %d, %v", found, err)
	}
	if took := time.Since(start); took > 3*ownWriteGrace {
		t.Errorf("waited %s for a standby", took)
	}
}

// privateVault is a Vault with nothing on it but what the test puts there.
func privateVault(t *testing.T) *testcluster.Vault {
	t.Helper()
	at, err := testcluster.StartVault(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Stop)
	return at
}

func vaultMust(t *testing.T, at *testcluster.Vault, method, path, body string) []byte {
	t.Helper()
	status, answer, err := at.Do(t.Context(), method, "/v1/"+path, []byte(body))
	if err != nil || status >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
	}
	return answer
}

// setUp runs vault/setup.sh as it is, against a Vault that has none of what it
// makes, and answers what it prints.
func setUp(t *testing.T, at *testcluster.Vault, args ...string) []string {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "vault")); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for range 2 { // it may be run again
		cmd := exec.CommandContext(t.Context(), "vault/setup.sh", args...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "VAULT_ADDR="+at.Addr, "VAULT_TOKEN="+at.RootToken)
		cmd.Stderr = os.Stderr
		if out, err = cmd.Output(); err != nil {
			t.Fatalf("setup.sh: %v", err)
		}
	}
	return strings.Fields(string(out))
}

func publicKeyFile(t *testing.T, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, encode("PUBLIC KEY", der), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestVaultRefusesAnotherOrg takes the service's own tenancy away: the store is
// asked, as one org, for the refs of another. Vault itself refuses.
func TestVaultRefusesAnotherOrg(t *testing.T) {
	at := privateVault(t)
	vaultMust(t, at, "DELETE", "sys/mounts/secret", "")
	vaultMust(t, at, "DELETE", "sys/auth/jwt", "")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"RS256": rsaKey, "ES256": ecKey} {
		t.Run(name, func(t *testing.T) {
			setUp(t, at, "jwt", publicKeyFile(t, key))
			v := openVault(t, VaultConfig{Address: at.Addr, Auth: "jwt", Role: "k8s", Key: key})
			ctx := t.Context()
			// C4: spellings that fold into one another, and names a policy could misread.
			orgs := []string{"acme", "Acme", "ACME", "zoo", "K", "k", "\u212a", "\ufb01", "fi", "a b", "acme/x", "{{x}}", `q"t`, "\u00e9", "e\u0301", "a+b", "+x", "%2f", "a?b", "a#b"}
			written := map[string]string{}
			for i, org := range orgs {
				if strings.Contains(org, "/") {
					continue
				}
				o := orgOf(t, org)
				if _, dup := written[o.name]; dup {
					continue
				}
				written[o.name] = fmt.Sprintf(`{"of":"%d-%s"}`, i, name)
				if err := v.Destroy(ctx, o, recordRef(o, "prod")); err != nil {
					t.Fatalf("%q destroys its own: %v", org, err)
				}
				if _, err := v.Put(ctx, o, recordRef(o, "prod"), []byte(written[o.name]), 0); err != nil {
					t.Fatalf("%q writes its own: %v", org, err)
				}
			}
			for mine := range written {
				for theirs := range written {
					org, other := Org{mine}, Org{theirs}
					data, _, err := v.Get(ctx, org, recordRef(other, "prod"), 0)
					if mine == theirs {
						if err != nil || string(data) != written[mine] {
							t.Errorf("%q reads its own: %q, %v", mine, data, err)
						}
						continue
					}
					if !errors.Is(err, ErrDenied) || data != nil {
						t.Errorf("%q reads %q's: %q, %v", mine, theirs, data, err)
					}
				}
			}
			acme, zoo := orgOf(t, "acme"), orgOf(t, "zoo")
			if _, _, err := v.Versions(ctx, zoo, recordRef(acme, "prod")); !errors.Is(err, ErrDenied) {
				t.Errorf("zoo reads acme's metadata: %v", err)
			}
			if _, err := v.Put(ctx, zoo, recordRef(acme, "prod"), []byte(`{}`), 1); !errors.Is(err, ErrDenied) {
				t.Errorf("zoo writes acme's: %v", err)
			}
			if _, err := v.List(ctx, zoo, clustersRef(acme)); !errors.Is(err, ErrDenied) {
				t.Errorf("zoo lists acme's: %v", err)
			}
			if _, err := v.List(ctx, zoo, "orgs"); !errors.Is(err, ErrDenied) {
				t.Errorf("zoo lists the orgs: %v", err)
			}
			if err := v.Destroy(ctx, zoo, recordRef(acme, "prod")); !errors.Is(err, ErrDenied) {
				t.Errorf("zoo destroys acme's: %v", err)
			}
			if err := v.Destroy(ctx, zoo, recordRef(acme, "prod"), 1); !errors.Is(err, ErrDenied) {
				t.Errorf("zoo destroys a version of acme's: %v", err)
			}
			testStore(t, v)
			for _, s := range v.sessions {
				if s.expires.IsZero() || time.Until(s.expires) > 15*time.Minute {
					t.Errorf("an org's token lives until %s", s.expires)
				}
			}
		})
	}
	t.Run("another key", func(t *testing.T) {
		other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenVault(t.Context(), VaultConfig{Address: at.Addr, Auth: "jwt", Role: "k8s", Key: other, Log: testLog()}); err == nil {
			t.Error("a proof signed with another key was taken")
		}
	})
}

func TestVaultAppRole(t *testing.T) {
	at := privateVault(t)
	vaultMust(t, at, "DELETE", "sys/auth/approle", "")
	ids := setUp(t, at, "approle")
	if len(ids) != 2 {
		t.Fatalf("setup.sh printed %d words", len(ids))
	}
	v := openVault(t, VaultConfig{Address: at.Addr, Auth: "approle", RoleID: ids[0], SecretID: ids[1]})
	testStore(t, v)
	org := orgOf(t, "acme")
	if _, err := v.List(t.Context(), org, "other"); !errors.Is(err, ErrDenied) {
		t.Errorf("the service's token lists what is not the service's: %v", err)
	}
	// C13: the token ends in the middle of the day.
	token := v.sessions[""].client.Token()
	vaultMust(t, at, "POST", "auth/token/revoke", fmt.Sprintf(`{"token":%q}`, token))
	if _, _, err := v.Get(t.Context(), org, recordRef(org, "prod"), 0); err != nil {
		t.Errorf("after its token was revoked: %v", err)
	}
	if v.sessions[""].client.Token() == token {
		t.Error("the revoked token is kept")
	}
}

func TestVaultTokenIsRenewed(t *testing.T) {
	at := privateVault(t)
	var made struct {
		Auth struct {
			Token string `json:"client_token"`
		}
	}
	if err := json.Unmarshal(vaultMust(t, at, "POST", "auth/token/create", `{"policies":["root"],"ttl":"2s","renewable":true,"no_parent":true}`), &made); err != nil {
		t.Fatal(err)
	}
	v := openVault(t, VaultConfig{Address: at.Addr, Auth: "token", Token: made.Auth.Token})
	org := orgOf(t, "acme")
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if _, _, err := v.Get(t.Context(), org, recordRef(org, "prod"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVaultKubernetes(t *testing.T) {
	world := realWorld(t)
	alpha, at := world.Alpha(), privateVault(t)
	vaultMust(t, at, "DELETE", "sys/auth/kubernetes", "")
	if err := alpha.Apply(t.Context(), []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"k8s"}}`)); err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"k8s","namespace":"k8s"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"k8s-reviews-tokens"},
		  "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:auth-delegator"},
		  "subjects":[{"kind":"ServiceAccount","name":"k8s","namespace":"k8s"}]}`,
	} {
		if err := alpha.Apply(t.Context(), []byte(object)); err != nil {
			t.Fatal(err)
		}
	}
	status, answer, err := alpha.Do(t.Context(), "POST", "/api/v1/namespaces/k8s/serviceaccounts/k8s/token",
		[]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`))
	var token struct{ Status struct{ Token string } }
	if err != nil || status != http.StatusCreated || json.Unmarshal(answer, &token) != nil {
		t.Fatal(status, err)
	}
	dir := t.TempDir()
	ca, file := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	if err := errors.Join(os.WriteFile(ca, alpha.CA, 0o600), os.WriteFile(file, []byte(token.Status.Token+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	setUp(t, at, "kubernetes", alpha.Server, ca)
	deadline := time.Now().Add(5 * time.Second)
	config := VaultConfig{Address: at.Addr, Auth: "kubernetes", Role: "k8s", TokenFile: file, Log: testLog()}
	for {
		// The cluster's authorizer learns of the binding in its own time.
		v, err := OpenVault(t.Context(), config)
		if err == nil {
			t.Cleanup(v.http.CloseIdleConnections)
			testStore(t, v)
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestVaultConfig(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (VaultConfig{Key: weak}).proof(Org{"acme"}, time.Now()); err == nil {
		t.Error("a proof was signed with a short RSA key")
	}
	for i, c := range []VaultConfig{
		{}, {Address: "x"}, {Address: "x", Auth: "ldap"}, {Address: "x", Auth: "token"}, {Address: "x", Auth: "approle", RoleID: "r"},
		{Address: "x", Auth: "kubernetes"}, {Address: "x", Auth: "jwt", Role: "r"}, {Address: "x", Auth: "token", Token: "t", CA: []byte("no")},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if _, err := OpenVault(context.Background(), c); err == nil {
				t.Error("it was opened")
			}
		})
	}
}
