package main

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
)

func TestPrintsPods(t *testing.T) {
	t.Setenv("ZIP_RUNTIME_DIR", filepath.Join(t.TempDir(), "zip"))
	l, err := zip.Listen("k8s")
	if err != nil {
		t.Fatal(err)
	}
	s := &zip.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := zip.CallerOf(r.Context())
		if _, err := zip.Tenant(c); err != nil {
			zip.WriteError(w, &zip.Error{Status: http.StatusForbidden, Code: "no_tenant", Msg: err.Error()})
			return
		}
		zip.WriteAnswer(w, &plane.Pods{Pods: []plane.Pod{{Namespace: "web", Name: "web-0", Phase: "Running", Restarts: 2}}})
	})}
	go s.Serve(l)
	defer s.Close()
	defer zip.CloseIdle()

	var out strings.Builder
	ctx := zip.WithCaller(context.Background(), zip.Caller{Org: "acme", User: "u1"})
	if err := run(ctx, &out, &plane.PodsIn{Cluster: "prod"}); err != nil {
		t.Fatal(err)
	}
	if want := "web/web-0\tRunning\t2 restarts\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	err = run(context.Background(), &out, &plane.PodsIn{Cluster: "prod"})
	if err == nil || !strings.Contains(err.Error(), "403 no_tenant") {
		t.Errorf("without a caller: %v", err)
	}
}

// A consumer must not inherit the service: that is what the plane is for.
func TestLinksOnlyThePlane(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/hanzoai/k8s/plane"
	want := []string{module, module + "/zip", module + "/zip/examples/consumer"}
	if got := strings.Fields(string(out)); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("links %q, want %q", got, want)
	}
}
