package registry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// TestRegistration follows one cluster from its registration to its end, on
// each store and a real cluster.
func TestRegistration(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			alpha := realWorld(t).Alpha()
			r := newRegistry(t, open(t))
			org := uniqueOrg("acme")
			before := time.Now().UTC().Truncate(time.Second)
			made, err := r.Register(as(t, org), Registration{Name: "prod", Kubeconfig: alpha.Admin(), Provider: "kind", Default: true})
			if err != nil {
				t.Fatal(err)
			}
			registered, err := time.Parse(time.RFC3339, made.Registered)
			if err != nil || registered.Before(before) || registered.After(time.Now()) || !strings.HasSuffix(made.Registered, "Z") {
				t.Errorf("registered %s, %v", made.Registered, err)
			}
			expires, err := time.Parse(time.RFC3339, made.CredentialExpires)
			if err != nil || expires.Before(time.Now()) {
				t.Errorf("the client certificate expires %s, %v", made.CredentialExpires, err)
			}
			_, text, err := alpha.Do(t.Context(), "GET", "/api/v1/nodes", nil)
			var nodes struct{ Items []json.RawMessage }
			if err != nil || json.Unmarshal(text, &nodes) != nil || len(nodes.Items) == 0 {
				t.Fatal(err, len(nodes.Items))
			}
			want := Record{Name: "prod", Org: org, Provider: "kind", Endpoint: alpha.Server, Nodes: len(nodes.Items), Default: true,
				NvidiaGpu: made.NvidiaGpu, AmdGpu: made.AmdGpu, Registered: made.Registered, CredentialExpires: made.CredentialExpires}
			if diff := cmp.Diff(want, made); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			got, err := r.Get(as(t, org), "prod")
			if diff := cmp.Diff(made, got); err != nil || diff != "" {
				t.Errorf("%v (-registered +got)\n%s", err, diff)
			}
			all, err := r.List(as(t, org))
			if diff := cmp.Diff([]Record{made}, all); err != nil || diff != "" {
				t.Errorf("%v (-registered +listed)\n%s", err, diff)
			}
			b := reach(t, r, org, "prod")
			if _, err := get(t.Context(), b, "/version"); err != nil {
				t.Error(err)
			}
			made.Default = false // which a bound does not say
			if diff := cmp.Diff(made, b.Record()); diff != "" {
				t.Errorf("(-registered +reached)\n%s", diff)
			}
			if removed, err := r.Deregister(as(t, org), "prod"); err != nil || !removed {
				t.Errorf("%t, %v", removed, err)
			}
			if all, err := r.List(as(t, org)); err != nil || len(all) != 0 || all == nil {
				t.Errorf("after deregistering the list is %v, %v", all, err)
			}
		})
	}
}

// TestRegistrationRefused: what is refused is refused before anything is dialled
// or stored.
func TestRegistrationRefused(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	good := server.Kubeconfig(sentinel)
	namespaces := make([]string, maxNamespaces+1)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("ns-%d", i)
	}
	canary := t.TempDir() + "/CANARY"
	for _, c := range []struct {
		name string
		in   Registration
		code string
	}{
		{"no name", Registration{Kubeconfig: good}, "bad_input"},
		{"C5 a name of dots", Registration{Name: "..", Kubeconfig: good}, "bad_input"},
		{"a provider of another form", Registration{Name: "prod", Provider: "a/b", Kubeconfig: good}, "bad_input"},
		{"C5 a namespace of dots", Registration{Name: "prod", Namespaces: []string{"a", ".."}, Kubeconfig: good}, "bad_input"},
		{"an empty namespace", Registration{Name: "prod", Namespaces: []string{""}, Kubeconfig: good}, "bad_input"},
		{"too many namespaces", Registration{Name: "prod", Namespaces: namespaces, Kubeconfig: good}, "bad_input"},
		{"no kubeconfig", Registration{Name: "prod"}, "kubeconfig_refused"},
		{"A1 exec", Registration{Name: "prod", Kubeconfig: []byte(strings.Replace(string(good), "    token:", "    exec: {command: touch, args: ["+canary+"]}\n    token:", 1))}, "kubeconfig_refused"},
		{"A4 tokenFile", Registration{Name: "prod", Kubeconfig: []byte(strings.Replace(string(good), "    token:", "    tokenFile: /etc/hostname\n    token:", 1))}, "kubeconfig_refused"},
		{"A24 too large", Registration{Name: "prod", Kubeconfig: bytes.Repeat([]byte("#"), maxKubeconfig+1)}, "too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &spying{Store: NewMemory(), t: t}
			_, err := newRegistry(t, store).Register(as(t, "acme"), c.in)
			wantRefusal(t, err, c.code)
			if n := store.calls.Load(); n > 0 {
				t.Errorf("the store was called %d times", n)
			}
		})
	}
	if n := server.Conns(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a command was run")
	}
}

// TestBoundIsASet: the order and the repetitions of a bound say nothing.
func TestBoundIsASet(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	r := newRegistry(t, NewMemory())
	given := []string{"b", "a", "b"}
	record, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel), Namespaces: given})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, record.Namespaces); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "a", "b"}, given); diff != "" {
		t.Errorf("the caller's own was changed (-want +got)\n%s", diff)
	}
	// Proven by a read in the bound: nothing of the whole cluster was asked.
	for _, request := range server.Requests() {
		if request.Path != "/api/v1/namespaces/a/pods" {
			t.Errorf("asked %s", request.Path)
		}
	}
}

func TestSeal(t *testing.T) {
	upstream := newFake(t)
	store := NewMemory()
	r := newRegistry(t, store)
	for _, at := range []key{{Org{"acme"}, "a"}, {Org{"acme"}, "b"}, {Org{"zoo"}, "a"}} {
		upstream.register(t, r, at.org.name, at.name, sentinel) // the same credential everywhere
	}
	b := reach(t, r, "acme", "a")
	plain := []byte(`{"continue":"` + sentinel + `","namespace":2}`)
	token := b.Seal("k8s_pods_list\x00web", plain)
	if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("the token %q is not base64url", token)
	}
	if again := b.Seal("k8s_pods_list\x00web", plain); again == token {
		t.Error("the same twice is sealed alike")
	}
	replica := newRegistry(t, store)
	for name, opener := range map[string]*Bound{"itself": b, "another replica": reach(t, replica, "acme", "a")} {
		if got, err := opener.Open("k8s_pods_list\x00web", token); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s opens %q, %v", name, got, err)
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]func() ([]byte, error){
		"another cluster": func() ([]byte, error) { return reach(t, r, "acme", "b").Open("k8s_pods_list\x00web", token) },
		"another org":     func() ([]byte, error) { return reach(t, r, "zoo", "a").Open("k8s_pods_list\x00web", token) },
		"another filter":  func() ([]byte, error) { return b.Open("k8s_pods_list\x00", token) },
		"nothing":         func() ([]byte, error) { return b.Open("k8s_pods_list\x00web", "") },
		"not base64":      func() ([]byte, error) { return b.Open("k8s_pods_list\x00web", token+"=") },
		"a line break":    func() ([]byte, error) { return b.Open("k8s_pods_list\x00web", token[:8]+"\n"+token[8:]) },
		"too short":       func() ([]byte, error) { return b.Open("k8s_pods_list\x00web", token[:8]) },
	}
	for i := range raw {
		refused[fmt.Sprintf("byte %d changed", i)] = func() ([]byte, error) {
			bad := bytes.Clone(raw)
			bad[i] ^= 1
			return b.Open("k8s_pods_list\x00web", base64.RawURLEncoding.EncodeToString(bad))
		}
	}
	for name, open := range refused {
		got, err := open()
		if refusal := asRefusal(err); refusal == nil || refusal.Code != "bad_continue" || got != nil {
			t.Errorf("%s opens: %q, %v", name, got, err)
		}
	}
	upstream.register(t, r, "acme", "a", sentinel) // the same kubeconfig again is a rotation
	_, err = reach(t, r, "acme", "a").Open("k8s_pods_list\x00web", token)
	wantRefusal(t, err, "bad_continue")
}

// TestReachReadsOnce: any number of calls of one cluster in a moment are one
// read of its record, and hardly more of it later.
func TestReachReadsOnce(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	observer := &watching{}
	r := newRegistry(t, NewMemory(), func(c *Config) { c.Observer = observer })
	if _, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
		t.Fatal(err)
	}
	observer.outcomes()
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, err := r.Reach(as(t, "acme"), "prod"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(observer.outcomes()); n > 4 {
		t.Errorf("200 calls read the KMS %d times", n)
	}
}

// TestReachAtOnceAfterRegister is C14: from the 201 on this replica has it,
// whoever was told a moment before that there is none.
func TestReachAtOnceAfterRegister(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	r := newRegistry(t, NewMemory())
	ctx, stop := context.WithCancel(as(t, "acme"))
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for ctx.Err() == nil {
				_, _ = r.Reach(ctx, "prod")
			}
		})
	}
	for i := range 30 {
		token := fmt.Sprintf("%s-%d", sentinel, i)
		if _, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(token)}); err != nil {
			t.Fatal(err)
		}
		before := len(server.Requests())
		if _, err := get(t.Context(), reach(t, r, "acme", "prod"), "/version"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{token: 1}, authorizations(server, before)); diff != "" {
			t.Fatalf("round %d (-want +got)\n%s", i, diff)
		}
		if i%3 == 0 {
			if _, err := r.Deregister(as(t, "acme"), "prod"); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reach(as(t, "acme"), "prod"); asRefusal(err) == nil || asRefusal(err).Code != "cluster_not_found" {
				t.Fatalf("round %d: after deregistering %v", i, err)
			}
		}
	}
	stop()
	asking.Wait()
}

// TestNothingIsSaid is C16: the credential is in the KMS, in its own place, and
// in nothing else. The log is swept after all tests.
func TestNothingIsSaid(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	store := NewMemory()
	r := newRegistry(t, store)
	org := orgOf(t, "acme")
	record, err := r.Register(as(t, "acme"), Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel), Default: true})
	if err != nil {
		t.Fatal(err)
	}
	b := reach(t, r, "acme", "prod")
	server.On("/version", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, failed := get(t.Context(), b, "/version")
	environment, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"the record":      fmt.Sprintf("%+v", record),
		"the bound's":     fmt.Sprintf("%+v", b.Record()),
		"an error":        fmt.Sprintf("%+v %#v", failed, asRefusal(failed)),
		"a sealed token":  b.Seal("x", []byte("y")),
		"the environment": string(environment),
	} {
		if strings.Contains(text, sentinel) {
			t.Errorf("the credential is in %s", what)
		}
	}
	for ref, item := range store.items {
		for _, data := range item.live {
			if ref != credentialRef(org, "prod") && bytes.Contains(data, []byte(sentinel)) {
				t.Errorf("the credential is at %s", ref)
			}
		}
	}
	if data, _, _ := store.Get(t.Context(), org, credentialRef(org, "prod"), 0); !bytes.Contains(data, []byte(sentinel)) {
		t.Error("the credential is not where it should be")
	}
}

// TestDoesNotWaitForTheCaller: what has begun to be written is finished though
// its caller has gone.
func TestDoesNotWaitForTheCaller(t *testing.T) {
	server := misbehave.New()
	t.Cleanup(server.Close)
	store := NewMemory()
	r := newRegistry(t, store)
	ctx, leave := context.WithCancel(context.Background())
	ctx = zip.WithCaller(ctx, zip.Caller{Org: "acme", User: "u"})
	if _, err := r.Register(ctx, Registration{Name: "prod", Kubeconfig: server.Kubeconfig(sentinel)}); err != nil {
		t.Fatal(err)
	}
	leave()
	if removed, err := r.Deregister(ctx, "prod"); err != nil || !removed || len(store.items) > 0 {
		t.Errorf("%t, %v, %d refs left", removed, err, len(store.items))
	}
}
