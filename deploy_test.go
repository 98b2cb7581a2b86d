package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/hanzoai/k8s/testcluster"
)

// collections are where the kinds of the deployed objects are created.
var collections = map[string]string{
	"Namespace":           "/api/v1/namespaces",
	"ServiceAccount":      "/api/v1/namespaces/k8s/serviceaccounts",
	"Service":             "/api/v1/namespaces/k8s/services",
	"Deployment":          "/apis/apps/v1/namespaces/k8s/deployments",
	"PodDisruptionBudget": "/apis/policy/v1/namespaces/k8s/poddisruptionbudgets",
	"NetworkPolicy":       "/apis/networking.k8s.io/v1/namespaces/k8s/networkpolicies",
	"ClusterRole":         "/apis/rbac.authorization.k8s.io/v1/clusterroles",
}

// TestManifestsAreTakenByTheAPIServer offers every object of deploy/ and
// rbac.yaml to a real API server, which checks it strictly and keeps nothing.
func TestManifestsAreTakenByTheAPIServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	world, err := testcluster.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cluster := world.Clusters[1]
	namespace := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"k8s"}}`)
	if status, body, err := cluster.Do(ctx, http.MethodPost, collections["Namespace"], namespace); err != nil || status != 201 && status != 409 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	n := 0
	for _, file := range []string{"deploy/kubernetes.yaml", "rbac.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for reader := yaml.NewYAMLToJSONDecoder(bytes.NewReader(text)); ; n++ {
			var object struct {
				Kind     string          `json:"kind"`
				Metadata json.RawMessage `json:"metadata"`
			}
			var raw json.RawMessage
			if err := reader.Decode(&raw); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if err := json.Unmarshal(raw, &object); err != nil {
				t.Fatal(err)
			}
			path := collections[object.Kind]
			if path == "" {
				t.Fatalf("%s: there is no collection for %s", file, object.Kind)
			}
			status, body, err := cluster.Do(ctx, http.MethodPost, path+"?dryRun=All&fieldValidation=Strict", raw)
			if err != nil || status != http.StatusCreated {
				t.Errorf("%s: %s: %d %s %v", file, object.Kind, status, body, err)
			}
		}
	}
	examined(t, n, "objects")
}

// TestDeploymentSetsWhatIsRead holds the Deployment's variables against the
// table of settings.
func TestDeploymentSetsWhatIsRead(t *testing.T) {
	text, err := os.ReadFile("deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "- name: ")
		if !ok || strings.ToUpper(name) != name {
			continue
		}
		n++
		if !read(name) {
			t.Errorf("nothing reads %s", name)
		}
	}
	examined(t, n, "variables")
}
