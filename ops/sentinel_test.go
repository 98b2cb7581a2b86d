package ops_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/ops/builtin"
	"github.com/hanzoai/k8s/testcluster"
)

// TestCredentialIsNowhere registers a cluster with a token, calls every op with
// it, well and badly, and then looks for the token, whole and in pieces, in
// every answer, log line, audit line and metric, in the environment, and in the
// files that the service could have written. It is in the key store and nowhere
// else.
func TestCredentialIsNowhere(t *testing.T) {
	s := theStack(t)
	rules := []testcluster.Rule{{Groups: []string{"*"}, Resources: []string{"nodes", "pods", "deployments"}, Verbs: []string{"get", "list"}}}
	kubeconfig, err := s.world.Clusters[0].ServiceAccount(t.Context(), "sentinel", rules)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`token: "?([A-Za-z0-9_.-]{100,})`).FindSubmatch(kubeconfig)
	if found == nil {
		t.Fatal("the kubeconfig has no token")
	}
	token := string(found[1])
	markers := []string{token, token[len(token)-40:], base64.StdEncoding.EncodeToString([]byte(token))[:80]}

	var answers bytes.Buffer
	call := func(method, target string, body any) int {
		status, text := s.call("acme", method, target, body)
		answers.Write(text)
		answers.WriteByte('\n')
		return status
	}
	register := map[string]any{"name": "sentinel", "kubeconfig": string(kubeconfig)}
	if status := call(http.MethodPost, "/v1/k8s/clusters", register); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answers.String())
	}
	list, err := builtin.Ops()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range list {
		var in map[string]any
		if json.Unmarshal(op.Example, &in) != nil || in["cluster"] == nil || op.Token == "k8s_clusters_deregister" {
			continue
		}
		in["cluster"] = "sentinel"
		target, body := request(op.Method, op.Path, in)
		call(op.Method, target, body)
		in["limit"] = -1
		target, body = request(op.Method, op.Path, in)
		call(op.Method, target, body)
	}
	broken := []string{
		strings.Replace(string(kubeconfig), "https://", "http://", 1),
		strings.Replace(string(kubeconfig), "token:", "tokenFile: /x\n    token:", 1),
		strings.Replace(string(kubeconfig), "current-context", "current-kontext", 1),
		string(kubeconfig) + "\n\t: broken [",
		strings.Replace(string(kubeconfig), "127.0.0.1", "169.254.169.254", 1),
		strings.Replace(string(kubeconfig), token, token+"\x00", 1),
	}
	for _, text := range broken {
		status := call(http.MethodPost, "/v1/k8s/clusters", map[string]any{"name": "broken", "kubeconfig": text})
		if status < 400 || status >= 500 {
			t.Errorf("a broken kubeconfig got %d", status)
		}
	}
	call(http.MethodPost, "/v1/k8s/clusters", map[string]any{"name": "a", "kubeconfig": []string{string(kubeconfig)}})
	call(http.MethodPost, "/v1/k8s/clusters", map[string]any{"name": "a", "kubeconfig": string(kubeconfig), "provider": strings.Repeat("x", 2000)})

	places := map[string]string{
		"answer": answers.String(), "log": s.log.String(), "audit log": s.audit.String(),
		"metrics": s.metrics(t), "environment": strings.Join(os.Environ(), "\n"),
	}
	n := 0
	for place, text := range places {
		if place != "environment" && place != "log" && len(text) == 0 {
			t.Errorf("there is no %s to look at", place)
		}
		n += len(text)
		for i, marker := range markers {
			if strings.Contains(text, marker) {
				t.Errorf("marker %d is in the %s", i, place)
			}
		}
	}
	files := 0
	for _, dir := range []string{".", os.Getenv("ZIP_RUNTIME_DIR")} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			for i, marker := range markers {
				if bytes.Contains(text, []byte(marker)) {
					t.Errorf("marker %d is in %s", i, path)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if status := call(http.MethodDelete, "/v1/k8s/clusters/sentinel", nil); status != 200 {
		t.Errorf("deregistering: %d", status)
	}
	if n == 0 || files == 0 {
		t.Fatal("examined nothing")
	}
	t.Logf("examined %d bytes and %d files", n, files)
}
