package build

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane"
)

const root = "../.."

// TestBuiltins lifts every built-in guest and holds it against plane.
func TestBuiltins(t *testing.T) {
	dirs, err := filepath.Glob(root + "/guests/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, op := range plane.Table() {
		want[op.Token] = true
	}
	ops := 0
	for _, main := range dirs {
		m, err := Lift(filepath.Dir(main))
		if err != nil {
			t.Error(err)
			continue
		}
		if m.Name == "clusters" { // what compiling it would say
			m.Imports = manifest.RegistryFunctions
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", main, err)
		}
		for _, op := range m.Ops {
			ops++
			if !want[op.Token] {
				t.Errorf("%s is no token of plane, or comes twice", op.Token)
			}
			delete(want, op.Token)
			if len(op.Doc) < 60 || strings.Contains(op.Doc, "k8s:") || !strings.HasSuffix(op.Summary, ".") {
				t.Errorf("the prose of %s is %q, its summary %q", op.Token, op.Doc, op.Summary)
			}
		}
	}
	for token := range want {
		t.Errorf("no guest answers %s", token)
	}
	t.Logf("%d ops of %d guests", ops, len(dirs))
	if ops == 0 {
		t.Error("nothing was examined")
	}
}

func TestLift(t *testing.T) {
	m, err := Lift(root + "/guests/nodes")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(m.Ops, func(o manifest.Op) bool { return o.Token == plane.NodesCordon })
	op := m.Ops[i]
	if op.Method != "POST" || op.Path != "/v1/k8s/nodes/{node}/cordon" || !op.Long || op.Limits.Millis == 0 || op.Example == nil || op.Response == nil {
		t.Errorf("got %+v", op)
	}
	grants := []manifest.Grant{
		{Verbs: []string{"patch"}, Version: "v1", Resource: "nodes", Cluster: true},
		{Verbs: []string{"list"}, Version: "v1", Resource: "pods"},
		{Verbs: []string{"create"}, Version: "v1", Resource: "pods", Subresource: "eviction"},
	}
	if diff := cmp.Diff(grants, op.Grants); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	var names []string
	for _, f := range op.In {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"cluster", "node", "schedulable", "drain", "timeoutSeconds", "force", "deleteEmptyDirData", "dryRun"}, names); diff != "" {
		t.Errorf("in, in the order of plane's fields (-want +got):\n%s", diff)
	}
	zero := int64(0)
	timeout := op.In[4]
	timeout.Doc = ""
	if diff := cmp.Diff(manifest.Field{Name: "timeoutSeconds", Kind: manifest.Integer, Min: &zero, Max: 600}, timeout); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	remaining := op.Out[1]
	if remaining.Kind != manifest.List || remaining.Of != manifest.Object || len(remaining.Fields) != 4 {
		t.Errorf("remaining is %+v", remaining)
	}
}

const good = `// Package main is a guest.
//
//k8s:version v1.2.3
package main

import "github.com/hanzoai/k8s/guests/sdk"

func init() { sdk.Handle("k8s_x_get", get) }

func main() {}

// In is an input.
type In struct {
	Cluster string ` + "`json:\"cluster\" k8s:\"format=label\"`" + `
}

// Out is an answer.
type Out struct {
	N int ` + "`json:\"n\"`" + ` // a number
}

// get answers a number.
//
// Example: {"cluster": "prod"}
//
// Response: {"n": 1}
//
//k8s:op k8s_x_get GET /v1/k8s/x in=In out=Out
//k8s:grant get url:/version
func get(c *sdk.Call) error { return c.Answer(func(w *sdk.Writer) { w.Int("n", 1) }) }
`

func TestLiftRefuses(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"good", "", "", ""},
		{"no prose", "// get answers a number.\n//\n", "", "without prose"},
		{"prose that does not begin with the function", "// get answers", "// answers", "must begin with its name"},
		{"no example", "// Example: {\"cluster\": \"prod\"}\n//\n", "", "needs an Example"},
		{"no response", "// Response: {\"n\": 1}\n//\n", "", "needs an Example: and a Response"},
		{"an example that is not JSON", `{"cluster": "prod"}`, `{cluster}`, "the example"},
		{"handled by another", `"k8s_x_get", get`, `"k8s_x_get", put`, "is handled by"},
		{"handled and not documented", "//k8s:op", "//k8s_op", "directives and no"},
		{"a type that is not there", "out=Out", "out=Nope", "no type that crosses the wire"},
		{"a type that does not cross", "	N int", "	N map[string]int", "does not cross the wire"},
		{"a field without a name", "`json:\"n\"`", "", "has no JSON name"},
		{"an unknown constraint", "format=label", "pattern=x", "a field has no pattern"},
		{"an unknown directive", "//k8s:grant", "//k8s:allow", "no directive allow"},
		{"a grant of nothing", "get url:/version", "get v1", "is no resource"},
		{"an unknown limit", "//k8s:grant get url:/version", "//k8s:limit speed=9", "speed"},
		{"another package", "package main\n", "package other\n", "package main"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if !strings.Contains(good, tt.from) {
				t.Fatal("the case changes nothing")
			}
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(strings.ReplaceAll(good, tt.from, tt.to)), 0o644); err != nil && tt.from != "" {
				t.Fatal(err)
			}
			if tt.from == "" {
				if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(good), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m, err := Lift(dir)
			if tt.want == "" {
				if err != nil || m.Version != "v1.2.3" || m.Ops[0].Doc != "Answers a number." || m.Ops[0].Out[0].Doc != "A number" {
					t.Errorf("got %+v, %v", m, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestNew writes a guest, tests it, and builds it twice.
func TestNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "widgets")
	if err := New("widgets", dir, "", root); err != nil {
		t.Fatal(err)
	}
	if err := New("widgets", dir, "", root); err == nil {
		t.Error("a guest was written over another")
	}
	if err := New("Widgets!", dir+"2", "", root); err == nil {
		t.Error("a name that is none was taken")
	}
	goTest(t, dir)
	out := filepath.Join(t.TempDir(), "widgets.wasm")
	first, err := Build(dir, out)
	if err != nil {
		t.Fatal(err)
	}
	if first.Cached || first.Manifest.Name != "widgets" || first.Manifest.Ops[0].Token != "k8s_widgets_list" {
		t.Errorf("got %+v", first)
	}
	if diff := cmp.Diff([]string{"close", "emit", "fail", "input", "list", "next"}, first.Manifest.Imports); diff != "" {
		t.Errorf("imports (-want +got):\n%s", diff)
	}
	second, err := Build(dir, out)
	if err != nil || !second.Cached {
		t.Errorf("built again: %+v, %v", second, err)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "widgets.wasm")
	if _, err := Build(dir, again); err != nil {
		t.Fatal(err)
	}
	if same, err := os.ReadFile(again); err != nil || !bytes.Equal(wasm, same) {
		t.Errorf("the same source made another module: %v", err)
	}
	if m, err := Inspect(wasm); err != nil || !cmp.Equal(m, first.Manifest) {
		t.Errorf("inspected: %+v, %v", m, err)
	}
	for _, bad := range [][]byte{nil, wasm[:7], wasm[:len(wasm)-1], append([]byte("x"), wasm...)} {
		if _, err := Inspect(bad); err == nil {
			t.Error("a damaged module was taken")
		}
	}
}

// TestExamples tests and builds the shipped examples, as their users would.
func TestExamples(t *testing.T) {
	for _, name := range []string{"daemonsets", "cronjobs"} {
		dir := root + "/guests/examples/" + name
		goTest(t, dir)
		r, err := Build(dir, filepath.Join(t.TempDir(), name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		if op := r.Manifest.Ops[0]; op.Token != "k8s_"+name+"_list" {
			t.Errorf("%s answers %s", name, op.Token)
		}
	}
}

func goTest(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("go", "test", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test in %s: %v\n%s", dir, err, out)
	}
}

func TestImportsOfWhatIsNoModule(t *testing.T) {
	if _, err := Imports([]byte("#!/bin/sh\n")); !errors.Is(err, errModule) {
		t.Errorf("got %v", err)
	}
}
