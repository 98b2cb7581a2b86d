package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/ops/builtin"
	"github.com/hanzoai/k8s/plane"
)

// The gates hold what this repository promises of itself against its source.
// Each says how much it examined, and one that examined nothing fails.

const module = "github.com/hanzoai/k8s"

// Bounds of what the service links.
const (
	maxPackages   = 450
	maxKubernetes = 100
)

// examined ends a gate: it fails when there was nothing to look at.
func examined(t *testing.T, n int, what string) {
	t.Helper()
	if n == 0 {
		t.Fatalf("examined no %s", what)
	}
	t.Logf("examined %d %s", n, what)
}

// goList runs go list and gives its lines, one for each package.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// foreign is the packages that a package links and that are neither the standard
// library's nor among own.
func foreign(t *testing.T, pkg string, own ...string) (others []string, all int) {
	t.Helper()
	for _, dep := range goList(t, "-deps", "-f", "{{.ImportPath}}={{.Standard}}", pkg) {
		path, standard, _ := strings.Cut(dep, "=")
		all++
		if standard != "true" && !slices.Contains(own, path) {
			others = append(others, path)
		}
	}
	return others, all
}

func builtinOps(t *testing.T) []*manifest.Op {
	t.Helper()
	list, err := builtin.Ops()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestPlaneIsStandardLibrary(t *testing.T) {
	others, n := foreign(t, "./plane", module+"/plane")
	if others != nil {
		t.Errorf("plane links %s", others)
	}
	examined(t, n, "packages")
}

func TestZipIsStandardLibrary(t *testing.T) {
	others, n := foreign(t, "./plane/zip", module+"/plane/zip")
	if others != nil {
		t.Errorf("plane/zip links %s", others)
	}
	examined(t, n, "packages")
}

func TestConsumerLinksNothingElse(t *testing.T) {
	consumer := "/plane/zip/examples/consumer"
	others, n := foreign(t, "."+consumer, module+consumer, module+"/plane", module+"/plane/zip")
	if others != nil {
		t.Errorf("a consumer links %s", others)
	}
	examined(t, n, "packages")
}

func TestWhatTheServiceLinks(t *testing.T) {
	deps := goList(t, "-deps", ".")
	kubernetes := 0
	for _, dep := range deps {
		if strings.HasPrefix(dep, "k8s.io/") || strings.HasPrefix(dep, "sigs.k8s.io/") {
			kubernetes++
		}
		for _, never := range []string{"kustomize", "k8s.io/kubernetes", "k8s.io/client-go/kubernetes", "k8s.io/api/", "k8s.io/apiserver", module + "/testcluster"} {
			if strings.Contains(dep, never) {
				t.Errorf("the service links %s", dep)
			}
		}
	}
	if len(deps) >= maxPackages || kubernetes >= maxKubernetes {
		t.Errorf("%d packages, of which %d are of Kubernetes; want under %d and %d", len(deps), kubernetes, maxPackages, maxKubernetes)
	}
	t.Logf("%d packages of Kubernetes", kubernetes)
	examined(t, len(deps), "packages")
}

// TestOneRoomOneImport holds the imports of every package against the house's
// plan: which room may import what. ops/bench is outside of it: it is made of
// what people run instead.
func TestOneRoomOneImport(t *testing.T) {
	only := map[string][]string{
		"k8s.io/client-go/":                    {"registry"},
		"github.com/hashicorp/vault/":          {"registry"},
		"github.com/tetratelabs/wazero":        {"host"},
		"github.com/go-chi/":                   {"ops"},
		"github.com/prometheus/client_golang/": {"ops"},
		"github.com/alecthomas/kong":           {""},
	}
	guest := []string{module + "/plane", module + "/guests/sdk"}
	n := 0
	for _, line := range goList(t, "-f", "{{.ImportPath}}={{.Name}}={{range .Imports}}{{.}},{{end}}", "./...") {
		parts := strings.SplitN(line, "=", 3)
		room := strings.TrimPrefix(strings.TrimPrefix(parts[0], module), "/")
		if room == "ops/bench" {
			continue
		}
		for _, path := range strings.Split(strings.TrimSuffix(parts[2], ","), ",") {
			n++
			path, _, _ = strings.Cut(path, " ") // a package that does not build has more to say
			for prefix, rooms := range only {
				if strings.HasPrefix(path, prefix) && !slices.ContainsFunc(rooms, func(r string) bool { return room == r || r != "" && strings.HasPrefix(room, r+"/") }) {
					t.Errorf("%s imports %s", parts[0], path)
				}
			}
			isGuest := strings.HasPrefix(room, "guests/") && strings.Count(room, "/") == 1 && parts[1] == "main"
			if isGuest && strings.Contains(path, ".") && !slices.ContainsFunc(guest, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }) {
				t.Errorf("the guest %s imports %s", parts[0], path)
			}
		}
	}
	examined(t, n, "imports")
}

func TestProjectionsAreFresh(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ops.Projections(builtinOps(t), readme)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale: run make generate (-live +committed)\n%s", name, diff)
		}
	}
	examined(t, len(files), "files")
}

func TestOpenAPIIsWithinTheDeclaration(t *testing.T) {
	var api struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	var declared struct {
		Routes []struct{ Method, Pattern, Op string } `json:"routes"`
		Ops    []string                               `json:"ops"`
	}
	for file, into := range map[string]any{"openapi.json": &api, "k8s.plugin.json": &declared} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	routes := make(map[string]string)
	for _, r := range declared.Routes {
		routes[r.Method+" "+r.Pattern] = r.Op
	}
	colon := regexp.MustCompile(`\{(\w+)\}`)
	n := 0
	for path, methods := range api.Paths {
		for method, op := range methods {
			n++
			name := strings.ToUpper(method) + " " + colon.ReplaceAllString(path, ":$1")
			if got, ok := routes[name]; !ok || got != op.OperationID || !slices.Contains(declared.Ops, got) {
				t.Errorf("%s is %s in openapi.json and %q in the declaration", name, op.OperationID, got)
			}
		}
	}
	examined(t, n, "operations")
}

func TestEveryOpCarriesProse(t *testing.T) {
	list := builtinOps(t)
	for _, op := range list {
		for what, text := range map[string]string{"summary": op.Summary, "doc": op.Doc, "example": string(op.Example), "response": string(op.Response)} {
			if len(op.In) == 0 && what == "example" {
				continue
			}
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s", op.Token, what)
			}
		}
	}
	examined(t, len(list), "ops")
}

func TestEveryPlaneTokenIsAnOp(t *testing.T) {
	got := make(map[string]bool)
	for _, op := range builtinOps(t) {
		got[op.Token] = true
	}
	table := plane.Table()
	for _, row := range table {
		if !got[row.Token] {
			t.Errorf("%s is in plane and is no op", row.Token)
		}
		delete(got, row.Token)
	}
	for token := range got {
		t.Errorf("%s is an op and is not in plane", token)
	}
	examined(t, len(table), "tokens")
}

func TestNoInputNamesATenant(t *testing.T) {
	tenant := regexp.MustCompile(`(?i)^(x-?)?(org|organi[sz]ation|tenant|account|owner|user)(id|name)?s?$`)
	n := 0
	var walk func(op string, fields []manifest.Field)
	walk = func(op string, fields []manifest.Field) {
		for _, f := range fields {
			n++
			if tenant.MatchString(f.Name) {
				t.Errorf("%s takes %s", op, f.Name)
			}
			walk(op, f.Fields)
		}
	}
	for _, op := range builtinOps(t) {
		walk(op.Token, op.In)
	}
	examined(t, n, "inputs")
}

func TestEveryOpNamesItsClusterButTwo(t *testing.T) {
	var without []string
	list := builtinOps(t)
	for _, op := range list {
		if !slices.ContainsFunc(op.In, func(f manifest.Field) bool { return f.Name == "cluster" && f.Required }) {
			without = append(without, op.Token)
		}
	}
	slices.Sort(without)
	if diff := cmp.Diff([]string{plane.ClustersList, plane.ClustersRegister}, without); diff != "" {
		t.Errorf("ops without a cluster (-want +got)\n%s", diff)
	}
	examined(t, len(list), "ops")
}

func TestNothingIsGrantedOnSecrets(t *testing.T) {
	n := 0
	for _, op := range builtinOps(t) {
		for _, g := range op.Grants {
			n++
			if g.Group == "" && (g.Resource == "secrets" || g.Resource == "*") || slices.Contains(g.Verbs, "*") {
				t.Errorf("%s is granted %+v", op.Token, g)
			}
		}
	}
	if regexp.MustCompile(`resources: \[[^\]]*\bsecrets\b`).Match(ops.RBAC(builtinOps(t))) {
		t.Error("rbac.yaml names secrets")
	}
	for _, k := range ops.Kinds {
		if k.Kind == "Secret" || k.Resource == "secrets" {
			t.Error("Secret is among the kinds")
		}
	}
	examined(t, n, "grants")
}

// TestEveryPackageHasTests fails for a package in which nothing is tested, and
// for a test that says beforehand that it will not run.
func TestEveryPackageHasTests(t *testing.T) {
	test := regexp.MustCompile(`(?m)^func (Test|Fuzz|Example)\w*\(`)
	skip := regexp.MustCompile(`\.(Skip|Skipf|SkipNow)\(|^//go:build`)
	n := 0
	for _, line := range goList(t, "-f", "{{.Dir}}={{range .TestGoFiles}}{{.}},{{end}}{{range .XTestGoFiles}}{{.}},{{end}}", "./...") {
		n++
		dir, files, _ := strings.Cut(line, "=")
		tested := false
		for _, file := range strings.Split(strings.TrimSuffix(files, ","), ",") {
			if file == "" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			tested = tested || test.Match(text)
			if found := skip.Find(text); found != nil && file != "gates_test.go" {
				t.Errorf("%s has %s", filepath.Join(dir, file), found)
			}
		}
		if !tested {
			t.Errorf("%s has no test", dir)
		}
	}
	examined(t, n, "packages")
}

func TestContinuousIntegrationRunsMakeTest(t *testing.T) {
	text, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	runs := false
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		runs = runs || line == "make test" || line == "exec make test"
	}
	if !runs {
		t.Error(".ci/run does not call make test")
	}
	info, err := os.Stat(".ci/run")
	if err != nil || info.Mode()&0o111 == 0 {
		t.Error(".ci/run is not executable")
	}
	examined(t, lines, "lines")
}

func TestNotesAreOnePage(t *testing.T) {
	target, err := os.Readlink("CLAUDE.md")
	if err != nil || target != "LLM.md" {
		t.Errorf("CLAUDE.md is not a symbolic link to LLM.md: %q, %v", target, err)
	}
	links := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	n := 0
	for _, page := range []string{"README.md", "LLM.md", "SECURITY.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			n++
			if _, err := os.Stat(link[1]); err != nil {
				t.Error(fmt.Errorf("%s: %w", page, err))
			}
		}
	}
	examined(t, n, "links")
}
