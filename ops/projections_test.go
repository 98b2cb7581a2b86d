package ops

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
)

var tools = []*manifest.Op{widgets, gadgets, {
	Token: "k8s_tools_get", Method: "GET", Path: "/v1/k8s/tools/{cluster}/{name}", Summary: "Answers a tool.", Doc: "Answers <b>one</b> tool & no more.",
	In: []manifest.Field{
		{Name: "cluster", Kind: manifest.String, Required: true}, {Name: "name", Kind: manifest.String, Required: true},
	},
	Out: []manifest.Field{{Name: "name", Kind: manifest.String}},
	Grants: []manifest.Grant{
		{Verbs: []string{"get"}, Version: "v1", Resource: "nodes", Subresource: "proxy", Cluster: true},
		{Verbs: []string{"list", "get"}, Version: "v1", Resource: "nodes", Cluster: true},
		{Verbs: []string{"get"}, Kinds: true},
		{Verbs: []string{"get"}, URL: "/version"},
	},
}}

func TestDeclarationIsSorted(t *testing.T) {
	var d declaration
	if err := json.Unmarshal(Declaration(tools), &d); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range d.Routes {
		got = append(got, r.Method+" "+r.Pattern+" "+r.Op)
	}
	want := []string{
		"GET /v1/k8s/docs ", "GET /v1/k8s/gadgets k8s_gadgets_list", "GET /v1/k8s/openapi.json ",
		"GET /v1/k8s/tools/:cluster/:name k8s_tools_get", "POST /v1/k8s/widgets/:namespace k8s_widgets_make",
	}
	if diff := cmp.Diff(want, got); diff != "" || d.Name != "k8s" || !slices.IsSorted(d.Ops) || len(d.Ops) != len(tools) {
		t.Errorf("%s%+v", diff, d)
	}
}

func TestProjectionsDoNotDependOnTheOrderOfModules(t *testing.T) {
	backwards := slices.Clone(tools)
	slices.Reverse(backwards)
	for name, project := range map[string]func([]*manifest.Op) []byte{"declaration": Declaration, "openapi": OpenAPI, "rbac": RBAC, "docs": docsPage} {
		if !bytes.Equal(project(tools), project(backwards)) {
			t.Errorf("%s", name)
		}
	}
}

func TestRBACIsTheGrants(t *testing.T) {
	got := string(RBAC(tools))
	_, rules, _ := strings.Cut(got, "rules:\n")
	for _, want := range []string{
		"  # k8s_tools_get: get, list\n  - apiGroups: [\"\"]\n    resources: [nodes]\n    verbs: [get, list]\n",
		"  # k8s_tools_get: get\n  - apiGroups: [\"\"]\n    resources: [nodes/proxy]\n    verbs: [get]\n",
		"  - apiGroups: [\"hanzo.ai\"]\n    resources: [apps, datastores, ingressroutes, middlewares]\n    verbs: [get]\n",
		"  - nonResourceURLs: [\"/version\"]\n    verbs: [get]\n",
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("there is no\n%sin\n%s", want, rules)
		}
	}
}

// TestDocsPageLoadsNothing looks for whatever makes a browser fetch or run
// something, and for prose that came through as markup.
func TestDocsPageLoadsNothing(t *testing.T) {
	page := docsPage(tools)
	for _, never := range []string{`(?i)<script`, `(?i)\bsrc=`, `(?i)<link`, `(?i)@import`, `(?i)url\(`, `(?i)<iframe`, `https?://`, `(?i)\son\w+=`, `<b>one</b>`} {
		if found := regexp.MustCompile(never).Find(page); found != nil {
			t.Errorf("it has %s", found)
		}
	}
	for _, want := range []string{`id="k8s_tools_get"`, `id="cluster_not_found"`, `KMSSecret`, `&lt;b&gt;one&lt;/b&gt; tool &amp; no more`} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("it has no %s", want)
		}
	}
}

func TestSchemaSaysWhatIsRefused(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties           map[string]map[string]any
				Required             []string
				AdditionalProperties *bool
			}
		}
	}
	if err := json.Unmarshal(OpenAPI(tools), &doc); err != nil {
		t.Fatal(err)
	}
	in := doc.Components.Schemas["WidgetsMakeIn"]
	if in.AdditionalProperties == nil || *in.AdditionalProperties || !cmp.Equal(in.Required, []string{"cluster"}) {
		t.Errorf("%+v", in)
	}
	for field, want := range map[string]map[string]any{
		"cluster": {"type": "string", "minLength": 1.0, "maxLength": 63.0, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
		"mode":    {"type": "string", "enum": []any{"fast", "slow", ""}},
		"size":    {"type": "integer", "format": "int64", "minimum": 0.0, "maximum": 10.0},
		"key":     {"type": "string", "writeOnly": true},
		"spec":    {},
		"labels":  {"type": "object", "additionalProperties": map[string]any{"type": "string"}, "maxProperties": 2.0},
	} {
		if diff := cmp.Diff(want, in.Properties[field]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", field, diff)
		}
	}
}
