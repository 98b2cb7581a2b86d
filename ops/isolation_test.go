package ops_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/registry"
	"github.com/hanzoai/k8s/testcluster"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// crossed is a store in a service whose own tenancy is broken: whatever the
// caller's org is, the refs are the victim's. Who calls is still told truly.
type crossed struct {
	registry.Store
	mine, victim string
}

func (c crossed) ref(ref string) string {
	return strings.Replace(ref, "orgs/"+c.mine+"/", "orgs/"+c.victim+"/", 1)
}

func (c crossed) Get(ctx context.Context, org registry.Org, ref string, version int) ([]byte, int, error) {
	data, found, err := c.Store.Get(ctx, org, c.ref(ref), version)
	// Nor does it see that the record is another's.
	return bytes.ReplaceAll(data, []byte(`"org":"`+c.victim+`"`), []byte(`"org":"`+c.mine+`"`)), found, err
}

func (c crossed) Versions(ctx context.Context, org registry.Org, ref string) (int, []int, error) {
	return c.Store.Versions(ctx, org, c.ref(ref))
}

func (c crossed) Put(ctx context.Context, org registry.Org, ref string, data []byte, cas int) (int, error) {
	return c.Store.Put(ctx, org, c.ref(ref), data, cas)
}

func (c crossed) List(ctx context.Context, org registry.Org, ref string) ([]string, error) {
	return c.Store.List(ctx, org, c.ref(ref))
}

func (c crossed) Destroy(ctx context.Context, org registry.Org, ref string, versions ...int) error {
	return c.Store.Destroy(ctx, org, c.ref(ref), versions...)
}

// confining is a Vault of the test's own, set up as registry/vault has it for
// jwt, and the key that proves orgs to it.
func confining(t *testing.T) (*testcluster.Vault, *ecdsa.PrivateKey) {
	t.Helper()
	vault, err := testcluster.StartVault(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vault.Stop)
	do := func(method, path string, body any) []byte {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		status, answer, err := vault.Do(t.Context(), method, "/v1/"+path, text)
		if err != nil || status >= 300 {
			t.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
		}
		return answer
	}
	file := func(name string) string {
		t.Helper()
		text, err := os.ReadFile("../registry/vault/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	var mount struct{ Accessor string }
	if err := json.Unmarshal(do(http.MethodGet, "sys/auth/jwt", nil), &mount); err != nil || mount.Accessor == "" {
		t.Fatal("the jwt method has no accessor", err)
	}
	do(http.MethodPut, "sys/policies/acl/k8s-org", fields{"policy": strings.ReplaceAll(file("policy.hcl"), "ACCESSOR", mount.Accessor)})
	do(http.MethodPost, "auth/jwt/config", fields{"bound_issuer": "k8s", "jwt_validation_pubkeys": []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}})
	do(http.MethodPost, "auth/jwt/role/k8s", json.RawMessage(file("role-jwt.json")))
	return vault, key
}

// TestSecondRefusal takes the service's own tenancy away. Where one token serves
// every org, zoo then reads what is acme's; where the service proves each call's
// org, Vault itself refuses, whatever zoo asks for.
func TestSecondRefusal(t *testing.T) {
	vault, key := confining(t)
	open := func(c registry.VaultConfig) registry.Store {
		c.Address = vault.Addr
		store, err := registry.OpenVault(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	proven := open(registry.VaultConfig{Auth: "jwt", Role: "k8s", Key: key})
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	lab.On("/apis/hanzo.ai", misbehave.JSON(`{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"1"},"items":[{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"acmes-own","namespace":"default"},"spec":{}}]}`))
	const acme, zoo = "acme", "zoo"
	honest := replica(t, proven)
	honest.enrol(t, acme, "prod", lab.Kubeconfig("SENTINEL-acme"))
	const apps = "/v1/k8s/resources?cluster=prod&kind=App"
	if status, text := honest.call(acme, http.MethodGet, apps, nil); status != http.StatusOK || !bytes.Contains(text, []byte("acmes-own")) {
		t.Fatalf("acme's own: %d %s", status, text)
	}
	if status, text := honest.call(zoo, http.MethodGet, apps, nil); status != http.StatusNotFound {
		t.Errorf("the service as it is: %d %s", status, text)
	}

	broken := replica(t, crossed{open(registry.VaultConfig{Auth: "token", Token: vault.RootToken}), zoo, acme})
	if status, text := broken.call(zoo, http.MethodGet, apps, nil); status != http.StatusOK || !bytes.Contains(text, []byte("acmes-own")) {
		t.Fatalf("the tenancy was not taken away: %d %s", status, text)
	}

	refusing := replica(t, crossed{proven, zoo, acme})
	requests := len(lab.Requests())
	asked := 0
	for _, try := range []struct {
		method, target string
		body           any
	}{
		{http.MethodGet, apps, nil},
		{http.MethodGet, "/v1/k8s/pods?cluster=prod", nil},
		{http.MethodGet, "/v1/k8s/clusters", nil},
		{http.MethodGet, "/v1/k8s/clusters/prod", nil},
		{http.MethodGet, "/v1/k8s/clusters/prod/status", nil},
		{http.MethodDelete, "/v1/k8s/clusters/prod", nil},
	} {
		asked++
		status, text := refusing.call(zoo, try.method, try.target, try.body)
		if status != http.StatusServiceUnavailable || codeOf(text) != "kms_unavailable" {
			t.Errorf("%s %s: %d %s", try.method, try.target, status, text)
		}
		if bytes.Contains(text, []byte("acmes-own")) || bytes.Contains(text, []byte(lab.URL())) {
			t.Errorf("%s %s tells of acme's: %s", try.method, try.target, text)
		}
	}
	if n := len(lab.Requests()); n != requests {
		t.Errorf("%d requests came to acme's cluster", n-requests)
	}
	status, text := refusing.call(zoo, http.MethodPost, "/v1/k8s/clusters", fields{"name": "prod", "kubeconfig": string(lab.Kubeconfig("SENTINEL-zoo"))})
	if status != http.StatusServiceUnavailable {
		t.Errorf("zoo takes acme's place: %d %s", status, text)
	}
	if status, text := honest.call(acme, http.MethodGet, apps, nil); status != http.StatusOK {
		t.Errorf("acme's own, afterwards: %d %s", status, text)
	}
	for _, r := range lab.Requests()[requests:] {
		if r.Header.Get("Authorization") == "Bearer SENTINEL-zoo" && !strings.HasPrefix(r.Path, "/version") && !strings.HasPrefix(r.Path, "/api/v1/nodes") {
			t.Errorf("zoo's credential was used for %s", r.Path)
		}
	}
	t.Logf("examined %d calls", asked)
}
