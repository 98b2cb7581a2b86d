package ops_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/ops/builtin"
)

// raw sends a request as these very lines and gives the answer's status and
// body. A connection that is closed without an answer is status 0.
func (s *stack) raw(t *testing.T, target string, headers ...string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: k8s\r\n%s\r\nConnection: close\r\n\r\n", target, strings.Join(headers, "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	var body strings.Builder
	bufio.NewReader(resp.Body).WriteTo(&body)
	return resp.StatusCode, body.String()
}

// TestTenancyOnTheWire sends the identity headers in every odd way that a
// gateway, or somebody in front of it, could.
func TestTenancyOnTheWire(t *testing.T) {
	s := theStack(t)
	const user = "X-User-Id: u1"
	long := strings.Repeat("x", 129)
	tests := []struct {
		name    string
		headers []string
		status  int
		code    string // of a refusal
		org     string // whose record it is, of a success
	}{
		{"as a gateway does", []string{"X-Org-Id: acme", user}, 200, "", "acme"},
		{"the other org", []string{"X-Org-Id: zoo", user}, 200, "", "zoo"},
		{"surrounding space", []string{"X-Org-Id: \t acme \t ", user}, 200, "", "acme"},
		{"odd case", []string{"x-oRG-iD: acme", "X-USER-ID: u1"}, 200, "", "acme"},
		{"no identity", []string{"Accept: */*"}, 403, "no_tenant", ""},
		{"an org without a user", []string{"X-Org-Id: acme"}, 403, "no_tenant", ""},
		{"a user without an org", []string{user}, 403, "no_tenant", ""},
		{"a blank user", []string{"X-Org-Id: acme", "X-User-Id:   "}, 403, "no_tenant", ""},
		{"an empty org", []string{"X-Org-Id:", user}, 403, "no_tenant", ""},
		{"a blank org", []string{"X-Org-Id:  \t ", user}, 403, "no_tenant", ""},
		{"two orgs", []string{"X-Org-Id: acme", "X-Org-Id: zoo", user}, 403, "no_tenant", ""},
		{"two orgs in two cases", []string{"X-Org-Id: acme", "x-org-id: zoo", user}, 403, "no_tenant", ""},
		{"one org twice", []string{"X-Org-Id: acme", "X-Org-Id: acme", user}, 403, "no_tenant", ""},
		{"an org and an empty one", []string{"X-Org-Id: acme", "X-Org-Id:", user}, 403, "no_tenant", ""},
		{"two users", []string{"X-Org-Id: acme", user, "X-User-Id: u2"}, 403, "no_tenant", ""},
		{"two orgs joined", []string{"X-Org-Id: acme,zoo", user}, 403, "no_tenant", ""},
		{"two orgs joined with space", []string{"X-Org-Id: acme, acme", user}, 403, "no_tenant", ""},
		{"an underscore twin beside", []string{"X-Org-Id: acme", "X_Org_Id: zoo", user}, 200, "", "acme"},
		{"an underscore twin alone", []string{"X_Org_Id: acme", user}, 403, "no_tenant", ""},
		{"a space before the colon", []string{"X-Org-Id : acme", user}, 400, "", ""},
		{"a folded line is one value", []string{"X-Org-Id: acme\r\n zoo", user}, 404, "cluster_not_found", ""},
		{"a NUL", []string{"X-Org-Id: ac\x00me", user}, 400, "", ""},
		{"a bare CR", []string{"X-Org-Id: acme\rX-Org-Id: zoo", user}, 400, "", ""},
		{"a tab inside", []string{"X-Org-Id: ac\tme", user}, 403, "no_tenant", ""},
		{"a slash", []string{"X-Org-Id: zoo/k8s/clusters/prod", user}, 403, "no_tenant", ""},
		{"dots", []string{"X-Org-Id: ..", user}, 403, "no_tenant", ""},
		{"a wildcard", []string{"X-Org-Id: *", user}, 403, "no_tenant", ""},
		{"a plus", []string{"X-Org-Id: +", user}, 403, "no_tenant", ""},
		{"129 bytes", []string{"X-Org-Id: " + long, user}, 403, "no_tenant", ""},
		{"128 bytes", []string{"X-Org-Id: " + long[:128], user}, 404, "cluster_not_found", ""},
		{"not UTF-8", []string{"X-Org-Id: acme\xff", user}, 403, "no_tenant", ""},
		{"another case is another org", []string{"X-Org-Id: Acme", user}, 404, "cluster_not_found", ""},
		{"upper case is another org", []string{"X-Org-Id: ACME", user}, 404, "cluster_not_found", ""},
		{"a ligature is another org", []string{"X-Org-Id: z\ufb00", user}, 404, "cluster_not_found", ""},
		{"full width is another org", []string{"X-Org-Id: ａｃｍｅ", user}, 404, "cluster_not_found", ""},
		{"hop-by-hop cannot take it away", []string{"Connection: X-Org-Id, X-User-Id", "X-Org-Id: acme", user}, 200, "", "acme"},
		{"impersonation does nothing", []string{"X-Org-Id: acme", user, "Impersonate-User: zoo", "Impersonate-Group: system:masters",
			"X-Remote-User: zoo", "Authorization: Bearer x", "Forwarded: for=zoo"}, 200, "", "acme"},
		{"a flag that is none", []string{"X-Org-Id: acme", user, "X-User-IsAdmin: maybe"}, 403, "no_tenant", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body := s.raw(t, "/v1/k8s/clusters/prod", tt.headers...)
			var answer struct{ Code, Org string }
			json.Unmarshal([]byte(body), &answer)
			if status != tt.status || answer.Code != tt.code || answer.Org != tt.org {
				t.Errorf("got %d %q org %q, want %d %q org %q: %s", status, answer.Code, answer.Org, tt.status, tt.code, tt.org, body)
			}
		})
	}
}

// TestSameNameIsTwoClusters shows by the objects themselves that prod of acme
// and prod of zoo are two.
func TestSameNameIsTwoClusters(t *testing.T) {
	s := theStack(t)
	for i, org := range []string{"acme", "zoo"} {
		want, other := s.world.Clusters[i].Name, s.world.Clusters[1-i].Name
		status, body := s.call(org, http.MethodGet, "/v1/k8s/nodes?cluster=prod", nil)
		if status != 200 || !strings.Contains(string(body), `"name":"`+want+"-node-") || strings.Contains(string(body), other+"-node-") {
			t.Errorf("%s: %d %s", org, status, body)
		}
	}
}

// TestForeignClusterIsNobodys asks every op for a cluster of another org's and
// for one of nobody's: but for the name and the request's id, the answers are
// the same byte for byte.
func TestForeignClusterIsNobodys(t *testing.T) {
	s := theStack(t)
	list, err := builtin.Ops()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, op := range list {
		var in map[string]any
		if json.Unmarshal(op.Example, &in) != nil || in["cluster"] == nil {
			continue
		}
		n++
		ask := func(cluster string) string {
			in["cluster"] = cluster
			target, body := request(op.Method, op.Path, in)
			status, text := s.call("zoo", op.Method, target, body)
			var doc struct{ RequestID string }
			json.Unmarshal(text, &doc)
			if doc.RequestID != "" {
				text = []byte(strings.ReplaceAll(string(text), doc.RequestID, "ID"))
			}
			return fmt.Sprintf("%d %s", status, strings.ReplaceAll(string(text), cluster, "NAME"))
		}
		foreign, nobodys := ask("bound"), ask("voids")
		if diff := cmp.Diff(nobodys, foreign); diff != "" {
			t.Errorf("%s (-nobody's +another org's)\n%s", op.Token, diff)
		}
		idempotent := op.Token == "k8s_clusters_deregister"
		if !idempotent && !strings.HasPrefix(foreign, "404 ") {
			t.Errorf("%s answered %s", op.Token, foreign)
		}
	}
	if n != len(list)-2 {
		t.Errorf("%d of %d ops name a cluster in their example", n, len(list))
	}
	t.Logf("examined %d ops", n)
	if status, _ := s.call("acme", http.MethodGet, "/v1/k8s/clusters/bound", nil); status != 200 {
		t.Errorf("acme's cluster is gone: %d", status)
	}
}

// TestBoundedRegistration asks every op that names a namespace for one outside
// of the bound, and every cluster-wide one for the whole cluster.
func TestBoundedRegistration(t *testing.T) {
	s := theStack(t)
	list, err := builtin.Ops()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, op := range list {
		if len(op.Grants) == 0 || op.Token == "k8s_clusters_register" || op.Token == "k8s_clusters_status" {
			continue
		}
		var in map[string]any
		if json.Unmarshal(op.Example, &in) != nil {
			t.Fatalf("%s has no example", op.Token)
		}
		in["cluster"] = "bound"
		for _, f := range op.In {
			if f.Name == "namespace" {
				in["namespace"] = "kube-system"
			}
		}
		n++
		target, body := request(op.Method, op.Path, in)
		status, text := s.call("acme", op.Method, target, body)
		var doc struct{ Code string }
		json.Unmarshal(text, &doc)
		namespaced := strings.Contains(fmt.Sprint(in["namespace"]), "kube-system")
		wide := op.Token == "k8s_namespaces_list" // answers the bound itself
		if !wide && (status != 403 || doc.Code != "outside_bound") {
			t.Errorf("%s (namespaced: %v) answered %d %s", op.Token, namespaced, status, text)
		}
		if wide && (status != 200 || strings.Contains(string(text), "kube-system")) {
			t.Errorf("%s answered %d %s", op.Token, status, text)
		}
	}
	if n == 0 {
		t.Fatal("examined nothing")
	}
	t.Logf("examined %d ops", n)
}

// TestEveryBadInputIsRefused makes bad values for every field of every op, by
// its schema, and sees each refused before anything is dialled.
func TestEveryBadInputIsRefused(t *testing.T) {
	s := theStack(t)
	list, err := builtin.Ops()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, op := range list {
		for _, f := range op.In {
			for what, value := range badValues(&f) {
				var in map[string]any
				json.Unmarshal(op.Example, &in)
				if in == nil {
					in = map[string]any{}
				}
				if value == missing {
					delete(in, f.Name)
				} else {
					in[f.Name] = value
				}
				inPath := strings.Contains(op.Path, "{"+f.Name+"}")
				query := op.Method == http.MethodGet || op.Method == http.MethodDelete
				if value == missing && inPath || (query || inPath) && !isText(value) {
					continue // another route, or another way to write the same text
				}
				n++
				target, body := request(op.Method, op.Path, in)
				status, text := s.call("acme", op.Method, target, body)
				var doc struct{ Code string }
				json.Unmarshal(text, &doc)
				tooLarge := what == "too long" && status == 413 && doc.Code == "too_large"
				if (status != 400 || doc.Code != "bad_input") && !tooLarge {
					t.Errorf("%s with %s %s answered %d %s", op.Token, f.Name, what, status, text)
				}
			}
		}
		var in map[string]any
		json.Unmarshal(op.Example, &in)
		if in == nil {
			in = map[string]any{}
		}
		in["org"] = "zoo"
		n++
		target, body := request(op.Method, op.Path, in)
		if status, text := s.call("acme", op.Method, target, body); status != 400 {
			t.Errorf("%s with an org answered %d %s", op.Token, status, text)
		}
	}
	if n == 0 {
		t.Fatal("examined nothing")
	}
	t.Logf("examined %d bad inputs of %d ops", n, len(list))
}

// missing stands for a field that is not there.
var missing = new(int)

func isText(v any) bool {
	_, ok := v.(string)
	return ok || v == missing
}

// badValues is what a field's schema forbids, by what is wrong with it.
func badValues(f *manifest.Field) map[string]any {
	bad := map[string]any{}
	if f.Required && f.Kind != manifest.Bool {
		bad["missing"] = missing
	}
	switch f.Kind {
	case manifest.String:
		bad["a number"], bad["null"], bad["a list"] = 1, nil, []string{"x"}
		if f.Max > 0 {
			bad["too long"] = strings.Repeat("x", int(f.Max)+1)
		}
		if len(f.Enum) > 0 {
			bad["no choice"] = "no-such-choice"
		}
		switch f.Format {
		case manifest.Label, manifest.Name:
			for _, name := range []string{"UPPER", "..", ".", "a/b", "a_b", "-a", "a-", "a?watch=true", "a%2fb", "é", "https:node1:10250", strings.Repeat("a", 254)} {
				bad["called "+name] = name
			}
		case manifest.Selector:
			bad["no selector"] = "=="
		case manifest.KindName:
			for _, kind := range []string{"Secret", "secret", "secrets", "app", "APP", "v1/Secret", "Pod"} {
				bad["a "+kind] = kind
			}
		}
	case manifest.Integer:
		bad["text"], bad["a fraction"], bad["too large"] = "x", 1.5, json.Number("9223372036854775808")
		if f.Max > 0 {
			bad["over the maximum"] = f.Max + 1
		}
		if f.Min != nil {
			bad["under the minimum"] = *f.Min - 1
			if *f.Min == 1 {
				bad["under the minimum"] = -1
			}
		}
	case manifest.Bool:
		bad["text"], bad["a number"] = "maybe", 1
	case manifest.Map:
		bad["a list"], bad["numbers"] = []string{"x"}, map[string]int{"a": 1}
		if f.Format == manifest.LabelKeys {
			bad["a bad key"] = map[string]string{"a b": "c"}
		}
	case manifest.List:
		bad["an object"] = map[string]string{"a": "b"}
		bad["of lists"] = [][]string{{"x"}}
	case manifest.Object:
		bad["a list"] = []string{"x"}
	}
	return bad
}
