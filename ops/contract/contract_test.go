package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/oapi-codegen/runtime" // what a generated client imports
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/hanzoai/k8s/ops/live"
	"github.com/hanzoai/k8s/testcluster"
)

const document = "../../openapi.json"

// generator is the Go client generator, pinned.
const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"

func theValidator(t *testing.T) validator.Validator {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if errs != nil {
		t.Fatal(errs)
	}
	return v
}

// operation is one op as the document has it.
type operation struct {
	method, path, token string
	Parameters          []struct {
		Name, In string
		Example  any
	}
	RequestBody struct {
		Content map[string]struct{ Example map[string]any }
	}
	Responses map[string]struct {
		Content map[string]struct{ Example json.RawMessage }
	}
}

func operations(t *testing.T) []operation {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var list []operation
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			op := operation{method: strings.ToUpper(method), path: path}
			var id struct{ OperationID string }
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			json.Unmarshal(raw, &id)
			op.token = id.OperationID
			list = append(list, op)
		}
	}
	return list
}

// request is the op's example as a request, with values of the caller's own in
// the place of the example's.
func (op *operation) request(base string, own map[string]any) *http.Request {
	path, query := op.path, url.Values{}
	value := func(name string, example any) any {
		if v, ok := own[name]; ok {
			return v
		}
		return example
	}
	for _, p := range op.Parameters {
		v := value(p.Name, p.Example)
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(fmt.Sprint(v)))
		case v != nil:
			query.Set(p.Name, fmt.Sprint(v))
		}
	}
	var body io.Reader
	if media, ok := op.RequestBody.Content["application/json"]; ok {
		fields := make(map[string]any)
		for name, v := range media.Example {
			fields[name] = value(name, v)
		}
		text, _ := json.Marshal(fields)
		body = bytes.NewReader(text)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	r, err := http.NewRequest(op.method, base+path, body)
	if err != nil {
		panic(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Org-Id", "acme")
	r.Header.Set("X-User-Id", "u1")
	return r
}

func TestDocumentIsValid(t *testing.T) {
	ok, errs := theValidator(t).ValidateDocument()
	for _, e := range errs {
		t.Errorf("%s: %s", e.Message, e.Reason)
		for _, s := range e.SchemaValidationErrors {
			t.Errorf("  %s", s.Reason)
		}
	}
	if !ok {
		t.Error("the document is not valid")
	}
}

// TestExamplesFit holds every example against its own schema.
func TestExamplesFit(t *testing.T) {
	v := theValidator(t)
	n := 0
	for _, op := range operations(t) {
		r := op.request("http://k8s.example", nil)
		if ok, errs := v.ValidateHttpRequest(r); !ok {
			for _, e := range errs {
				t.Errorf("%s: its example is refused: %s: %s", op.token, e.Message, e.Reason)
			}
		}
		for status, response := range op.Responses {
			example := response.Content["application/json"].Example
			if !strings.HasPrefix(status, "2") || len(example) == 0 {
				continue
			}
			n++
			code := map[string]int{"200": 200, "201": 201}[status]
			answer := &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"r"}}, Body: io.NopCloser(bytes.NewReader(example))}
			if ok, errs := v.ValidateHttpResponse(op.request("http://k8s.example", nil), answer); !ok {
				for _, e := range errs {
					t.Errorf("%s: its response is no response: %s: %s %v", op.token, e.Message, e.Reason, e.SchemaValidationErrors)
				}
			}
		}
	}
	if n == 0 {
		t.Fatal("examined nothing")
	}
	t.Logf("examined %d examples", n)
}

// boot is the time that the world and the build may take.
const boot = 40 * time.Minute

// service is the live service, with prod of acme registered.
var service = sync.OnceValues(func() (*live.Service, error) {
	ctx, cancel := context.WithTimeout(context.Background(), boot)
	defer cancel()
	world, err := testcluster.Open(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "contract-")
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "k8s")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	s, err := live.Start(ctx, binary, world.Vault)
	if err != nil {
		return nil, err
	}
	body, _ := json.Marshal(map[string]any{"name": "contract", "kubeconfig": string(world.Clusters[0].Admin())})
	r, _ := http.NewRequest(http.MethodPost, s.URL+"/v1/k8s/clusters", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Org-Id", "acme")
	r.Header.Set("X-User-Id", "u1")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	return s, nil
})

func theService(t *testing.T) *live.Service {
	t.Helper()
	s, err := service()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLiveAnswersFit calls every op and holds the answer, be it a success or a
// problem, against the document.
func TestLiveAnswersFit(t *testing.T) {
	s := theService(t)
	v := theValidator(t)
	n, succeeded := 0, 0
	for _, op := range operations(t) {
		if op.token == "k8s_clusters_deregister" || op.token == "k8s_clusters_register" {
			continue
		}
		namespace := "team-a"
		if op.token == "k8s_namespaces_delete" {
			namespace = ensureNamespace(t, s.URL)
		}
		for _, own := range []map[string]any{
			{"cluster": "contract", "namespace": namespace, "labelSelector": "", "nodeName": "", "continue": "", "version": "", "waitSeconds": 1, "pod": "none", "name": "web", "kind": "App"},
			{"cluster": "nobodys"},
			{"cluster": "NOT A NAME"},
		} {
			n++
			resp, err := http.DefaultClient.Do(op.request(s.URL, own))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode < 300 {
				succeeded++
			}
			resp.Body = io.NopCloser(bytes.NewReader(text))
			if ok, errs := v.ValidateHttpResponse(op.request(s.URL, own), resp); !ok {
				for _, e := range errs {
					t.Errorf("%s answered %d %.300s, which the document does not have: %s: %s %v", op.token, resp.StatusCode, text, e.Message, e.Reason, e.SchemaValidationErrors)
				}
			}
		}
	}
	if succeeded == 0 {
		t.Fatal("nothing succeeded")
	}
	t.Logf("examined %d answers, of which %d are successes", n, succeeded)
}

// ensureNamespace makes a namespace that can go: the world's own are others' too.
func ensureNamespace(t *testing.T, url string) string {
	t.Helper()
	const name = "contract-goes"
	body := strings.NewReader(`{"cluster":"contract","namespace":"` + name + `"}`)
	r, err := http.NewRequest(http.MethodPost, url+"/v1/k8s/namespaces", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Org-Id": {"acme"}, "X-User-Id": {"u1"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("making a namespace answers %d", resp.StatusCode)
	}
	return name
}

const goCaller = `package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

func main() {
	identity := func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Org-Id", "acme")
		r.Header.Set("X-User-Id", "u1")
		return nil
	}
	client, err := NewClientWithResponses(os.Args[1], WithRequestEditorFn(identity))
	if err != nil {
		panic(err)
	}
	namespace := "team-a"
	pods, err := client.K8sPodsListWithResponse(context.Background(), &K8sPodsListParams{Cluster: "contract", Namespace: &namespace})
	if err != nil {
		panic(err)
	}
	for _, pod := range *pods.JSON200.Pods {
		fmt.Println(*pod.Name, *pod.Phase, pod.Restarts)
	}
	gone, err := client.K8sPodsListWithResponse(context.Background(), &K8sPodsListParams{Cluster: "nobodys"})
	if err != nil {
		panic(err)
	}
	fmt.Println(gone.ApplicationproblemJSON404.Code)
}
`

// TestGeneratedGoClient makes a Go client with oapi-codegen and runs it.
func TestGeneratedGoClient(t *testing.T) {
	s := theService(t)
	dir, err := os.MkdirTemp(".", "generated-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("run", generator, "-generate", "types,client", "-package", "main", "-o", filepath.Join(dir, "client.go"), document)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(goCaller), 0o600); err != nil {
		t.Fatal(err)
	}
	out := run("run", "./"+dir, s.URL)
	if !strings.Contains(out, "Running") || !strings.Contains(out, "cluster_not_found") {
		t.Errorf("the client printed %s", out)
	}
}
