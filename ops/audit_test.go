package ops_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// auditOf is the audit line of one request, which must be there already.
func (s *stack) auditOf(t *testing.T, id string) (line map[string]any) {
	t.Helper()
	n := 0
	for text := range strings.Lines(s.audit.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if l["requestId"] == id {
			line = l
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%s has %d audit lines when its answer is there", id, n)
	}
	return line
}

// identified sends a request with an id, and with a user and an actor.
func (s *stack) identified(t *testing.T, id, org, method, target string, body any) (int, []byte) {
	t.Helper()
	status, text := exchange(method, s.url+target, body, "X-Org-Id", org, "X-User-Id", "u-audit", "X-Acted-By", "bot-audit", "X-Request-Id", id)
	if status == 0 {
		t.Fatalf("%s", text)
	}
	return status, text
}

// TestAuditLines calls every op, on the real cluster, well and as somebody else,
// and reads the line that each call left: who, what, where, what became of it and
// what it cost, and nothing of a credential or of an object.
func TestAuditLines(t *testing.T) {
	s := theStack(t)
	ns := s.namespace(t)
	must(t, s.alpha(), http.MethodPost, "/api/v1/namespaces/"+ns+"/configmaps", `{"metadata":{"name":"told"},"data":{"key":"OBJECT-CONTENT"}}`)
	sum := regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	n := 0
	check := func(op *manifest.Op, org string, in fields) {
		t.Helper()
		n++
		id := fmt.Sprintf("audit-%d-%d", n, time.Now().UnixNano())
		target, body := request(op.Method, op.Path, in)
		status, text := s.identified(t, id, org, op.Method, target, body)
		line := s.auditOf(t, id)
		decision, code := "allowed", ""
		if status >= 400 {
			decision, code = "refused", codeOf(text)
		}
		want := map[string]any{
			"org": org, "user": "u-audit", "actedBy": "bot-audit", "op": op.Token, "transport": "rest", "decision": decision, "code": code, "status": float64(status), "msg": "call",
		}
		for _, name := range []string{"cluster", "namespace"} {
			want[name] = ""
			if v, ok := in[name].(string); ok {
				want[name] = v
			}
		}
		for name, value := range want {
			if line[name] != value {
				t.Errorf("%s: %s is %v, want %v: %s", op.Token, name, line[name], value, text)
			}
		}
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"])); err != nil || time.Since(at) > time.Minute {
			t.Errorf("%s: time is %v", op.Token, line["time"])
		}
		for _, name := range []string{"bytesIn", "bytesOut", "fuel", "items", "seconds"} {
			if v, ok := line[name].(float64); !ok || v < 0 {
				t.Errorf("%s: %s is %v", op.Token, name, line[name])
			}
		}
		if code == "bad_input" {
			return // no module has seen it
		}
		if !sum.MatchString(fmt.Sprint(line["module"])) {
			t.Errorf("%s: module is %v", op.Token, line["module"])
		}
		calls, ok := line["hostCalls"].([]any)
		if !ok {
			t.Errorf("%s: hostCalls is %v", op.Token, line["hostCalls"])
		}
		for _, c := range calls {
			made, _ := c.(map[string]any)
			verb, _ := made["verb"].(string)
			_, isStatus := made["status"].(float64)
			_, isBytes := made["bytes"].(float64)
			count, _ := made["count"].(float64)
			if verb == "" || made["resource"] == "" || !isStatus || !isBytes || count < 1 || len(made) != 5 {
				t.Errorf("%s: a host call is %v", op.Token, made)
			}
		}
		if status == http.StatusOK && in["cluster"] == "prod" && len(op.Grants) > 0 && len(calls) == 0 {
			t.Errorf("%s: a call that reached a cluster has no host calls: %v", op.Token, line)
		}
	}
	for _, op := range opsByToken(t) {
		in := fields{}
		if len(op.Example) > 0 {
			if err := json.Unmarshal(op.Example, &in); err != nil {
				t.Fatal(err)
			}
		}
		if op.Method != http.MethodGet {
			// What writes is refused: that is a line too.
			check(op, "nobody", in)
			continue
		}
		if in["cluster"] != nil {
			in["cluster"] = "prod"
		}
		if in["namespace"] != nil {
			in["namespace"] = ns
		}
		delete(in, "continue")
		delete(in, "version")
		if in["waitSeconds"] != nil {
			in["waitSeconds"] = 1
		}
		check(op, "acme", in)
		check(op, "nobody", in)
	}
	told := opsByToken(t)["k8s_workloads_list_configmaps"]
	check(told, "acme", fields{"cluster": "prod", "namespace": ns})
	check(told, "acme", fields{"cluster": "bound", "namespace": ns})
	for _, marker := range []string{"OBJECT-CONTENT", "kubeconfig\":", "certificate-authority-data", "PRIVATE KEY"} {
		if strings.Contains(s.audit.String(), marker) {
			t.Errorf("the audit lines hold %q", marker)
		}
	}
	t.Logf("examined the lines of %d calls", n)
}

// TestAuditLineComesFirst looks, from a cluster that stalls in the middle of its
// answer and from callers that read theirs, for an answer whose line is missing.
func TestAuditLineComesFirst(t *testing.T) {
	s := replica(t, sharedVault(t))
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	org := anOrg()
	s.enrol(t, org, "lab", lab.Kubeconfig("SENTINEL-audit"))
	t.Cleanup(func() { s.dismiss(t, org, "lab") })
	const apps = "/v1/k8s/resources?cluster=lab&kind=App"
	for i, b := range []misbehave.Behaviour{
		misbehave.Healthy(), misbehave.EmptyBody(), misbehave.HTML(200), misbehave.Redirect("https://127.0.0.1:1/"),
		misbehave.Cut(10, `{"kind":"AppList","apiVersion":"hanzo.ai/v1","items":[]}`), misbehave.Status(403, "Forbidden", "OBJECT-CONTENT", -1),
	} {
		lab.On("/apis/hanzo.ai", b)
		id := fmt.Sprintf("first-%d", i)
		status, text := s.identified(t, id, org, http.MethodGet, apps, nil)
		if line := s.auditOf(t, id); line["status"] != float64(status) || line["code"] != codeOf(text) {
			t.Errorf("%d: %d %s, and the line has %v %v", i, status, text, line["status"], line["code"])
		}
	}
	if text := s.audit.String(); strings.Contains(text, "OBJECT-CONTENT") || strings.Contains(text, "SENTINEL") {
		t.Error("the lines hold what a cluster said, or a credential")
	}
}
