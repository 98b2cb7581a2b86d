package ops_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// said is all that a service has told anybody, and what may not be in it.
type said struct {
	t       *testing.T
	text    bytes.Buffer
	answers int
	markers []string
}

func (s *said) add(text []byte) {
	s.answers++
	s.text.Write(text)
	s.text.WriteByte('\n')
}

// check looks for every marker in a place.
func (s *said) check(place, text string) {
	s.t.Helper()
	if text == "" && place != "log" { // which is quiet where nothing is amiss
		s.t.Errorf("there is no %s to look at", place)
	}
	for i, marker := range s.markers {
		if at := strings.Index(text, marker); at >= 0 {
			s.t.Errorf("marker %d is in the %s: …%s…", i, place, text[max(0, at-200):min(len(text), at+len(marker)+40)])
		}
	}
}

// TestCredentialIsNotQuoted is case C16 where the cluster is against it: one that
// repeats the credential it was sent in every way there is, to every op. And
// kubeconfigs of every kind that is refused, with a secret in each part.
func TestCredentialIsNotQuoted(t *testing.T) {
	const sentinel = "SENTINEL-b7c1f0a9d3e5"
	s := replica(t, sharedVault(t))
	lab, elsewhere := misbehave.New(), misbehave.New()
	t.Cleanup(lab.Close)
	t.Cleanup(elsewhere.Close)
	org := anOrg()
	told := &said{t: t, markers: []string{sentinel, base64.StdEncoding.EncodeToString([]byte(sentinel))[:24], "SENTINEL-b7"}}
	s.enrol(t, org, "lab", lab.Kubeconfig(sentinel))

	list := opsByToken(t)
	quotes := map[string]misbehave.Behaviour{}
	for _, code := range []int{400, 401, 403, 404, 409, 410, 422, 429, 500, 503} {
		quotes[fmt.Sprint("status ", code)] = func(w http.ResponseWriter, r *http.Request) {
			misbehave.Status(code, "Reason-"+sentinel, "the message says "+r.Header.Get("Authorization"), -1)(w, r)
		}
	}
	echo := func(kind, format string) misbehave.Behaviour {
		return func(w http.ResponseWriter, r *http.Request) {
			misbehave.Body(200, kind, fmt.Sprintf(format, r.Header.Get("Authorization")))(w, r)
		}
	}
	quotes["a page"] = echo("text/html", "<h1>%s</h1>")
	quotes["another kind"] = echo("application/json", `{"kind":%q,"apiVersion":"v1"}`)
	quotes["broken JSON"] = echo("application/json", `{"kind":"AppList","apiVersion":"hanzo.ai/v1","items":[{"a":"%s`)
	quotes["a watch's error"] = echo("application/json", `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","reason":"Expired","code":500}}`+"\n")
	quotes["a redirect"] = func(w http.ResponseWriter, r *http.Request) {
		misbehave.Redirect(elsewhere.URL()+"/?"+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))(w, r)
	}
	quotes["headers"] = func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"X-Token", "Set-Cookie", "Warning", "Retry-After", "Www-Authenticate"} {
			w.Header().Set(name, r.Header.Get("Authorization"))
		}
		misbehave.EmptyObject()(w, r)
	}
	quotes["cut"] = func(w http.ResponseWriter, r *http.Request) {
		misbehave.Cut(60, `{"kind":"`+r.Header.Get("Authorization")+strings.Repeat("x", 100))(w, r)
	}
	for name, quote := range quotes {
		lab.On("", quote)
		for _, op := range list {
			var in fields
			if json.Unmarshal(op.Example, &in) != nil || in["cluster"] == nil || op.Token == plane.ClustersDeregister {
				continue
			}
			in["cluster"] = "lab"
			for field, value := range map[string]any{"waitSeconds": 1, "timeoutSeconds": 1} {
				if in[field] != nil {
					in[field] = value
				}
			}
			target, body := request(op.Method, op.Path, in)
			began := time.Now()
			_, text := s.call(org, op.Method, target, body)
			told.add(text)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s with %s took %s", op.Token, name, took)
			}
		}
		_, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", fields{"name": "lab", "kubeconfig": string(lab.Kubeconfig(sentinel))})
		told.add(text)
	}
	if len(elsewhere.Requests()) > 0 {
		t.Error("a redirect was followed")
	}
	lab.Reset()

	good := string(lab.Kubeconfig("TOKEN"))
	user := func(text string) string { return strings.Replace(good, "token: TOKEN", text, 1) }
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte(sentinel)}))
	ca := base64.StdEncoding.EncodeToString([]byte("# " + sentinel + "\n" + string(lab.CA())))
	b64 := base64.StdEncoding.EncodeToString
	for name, kubeconfig := range map[string]string{
		"a password":           user("username: admin\n    password: " + sentinel),
		"a key that is none":   user("client-certificate-data: " + b64([]byte(sentinel)) + "\n    client-key-data: " + b64([]byte(key))),
		"a key without":        user("client-key-data: " + b64([]byte(key))),
		"a plugin":             user("exec: {command: /bin/sh, args: [" + sentinel + "]}"),
		"a provider":           user("auth-provider: {name: oidc, config: {id-token: " + sentinel + "}}"),
		"a file":               user("tokenFile: /" + sentinel),
		"impersonation":        user("token: " + sentinel + "\n    as: " + sentinel),
		"two methods":          user("token: " + sentinel + "\n    username: " + sentinel),
		"a token of two lines": user(`token: "` + sentinel + `\nX: y"`),
		"an unknown field":     user("token: " + sentinel + "\n    " + sentinel + ": " + sentinel),
		"userinfo":             strings.Replace(good, "https://", "https://user:"+sentinel+"@", 1),
		"a query":              strings.Replace(good, lab.URL(), lab.URL()+"/?token="+sentinel, 1),
		"a proxy":              strings.Replace(good, "    server:", "    proxy-url: http://u:"+sentinel+"@127.0.0.1:1\n    server:", 1),
		"broken":               good + "\n\t: [" + sentinel,
		"an alias":             "x: &a " + sentinel + "\n" + good + "\ny: *" + sentinel,
		"a context":            strings.Replace(good, "current-context: test", "current-context: "+sentinel, 1),
	} {
		status, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", fields{"name": "refused", "kubeconfig": kubeconfig})
		told.add(text)
		if status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	// Whether or not it is a reason to refuse, a comment in the CA's data is not told.
	commented := strings.Replace(good, base64.StdEncoding.EncodeToString(lab.CA()), ca, 1)
	if commented == good {
		t.Fatal("the CA is not where it is thought to be")
	}
	status, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", fields{"name": "commented", "kubeconfig": commented})
	told.add(text)
	if status == http.StatusCreated {
		s.dismiss(t, org, "commented")
	} else if codeOf(text) != "kubeconfig_refused" {
		t.Errorf("a CA with a comment: %d %s", status, text)
	}
	for _, body := range []any{
		fields{"name": sentinel, "kubeconfig": good}, fields{"name": "x", "kubeconfig": fields{"token": sentinel}}, fields{"name": "x", "kubeconfig": []string{sentinel}},
		fields{"name": "x", "kubeconfig": good + "#" + sentinel, "provider": "NOT A LABEL"},
	} {
		status, text := s.call(org, http.MethodPost, "/v1/k8s/clusters", body)
		if status != http.StatusBadRequest {
			t.Errorf("%d %s", status, text)
		}
		if !strings.Contains(fmt.Sprint(body.(fields)["name"]), sentinel) { // a caller may be told what name it gave
			told.add(text)
		}
	}
	for _, target := range []string{"/healthz", "/readyz", "/metrics", "/v1/k8s/guests", "/debug/pprof/", "/debug/vars"} {
		w := httptest.NewRecorder()
		s.scrape.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		told.add(w.Body.Bytes())
		if strings.HasPrefix(target, "/debug") && w.Code != http.StatusNotFound {
			t.Errorf("%s is there", target)
		}
	}
	for _, target := range []string{"/v1/k8s/openapi.json", "/v1/k8s/docs", "/v1/k8s/clusters", "/v1/k8s/clusters/lab", "/debug/pprof/", "/metrics"} {
		_, text := s.call(org, http.MethodGet, target, nil)
		told.add(text)
	}
	told.check("answers", told.text.String())
	told.check("log", s.log.String())
	told.check("audit log", s.audit.String())

	// Of what the key store holds, only the credential is the credential.
	vault := s.world.Vault
	for ref, want := range map[string]bool{"clusters/lab/kubeconfig": true, "clusters/lab/record": false} {
		status, text, err := vault.Do(t.Context(), http.MethodGet, "/v1/secret/data/orgs/"+org+"/k8s/"+ref, nil)
		if err != nil || status != http.StatusOK || bytes.Contains(text, []byte(sentinel)) != want {
			t.Errorf("%s: %d, holds the credential: %v, %v", ref, status, !want, err)
		}
	}
	s.dismiss(t, org, "lab")
	status, text, err := vault.Do(t.Context(), http.MethodGet, "/v1/secret/data/orgs/"+org+"/k8s/clusters/lab/kubeconfig", nil)
	if err != nil || status != http.StatusNotFound || bytes.Contains(text, []byte(sentinel)) {
		t.Errorf("after it was deregistered: %d %v", status, err)
	}
	t.Logf("examined %d answers to %d ways of quoting, %d bytes in all", told.answers, len(quotes), told.text.Len()+len(s.log.String())+len(s.audit.String()))
}
