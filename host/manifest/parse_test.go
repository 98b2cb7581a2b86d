package manifest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// valid is a manifest with something of everything.
const valid = `{
 "abi": 1, "name": "pods", "version": "v1.2.3", "imports": ["input", "list", "next", "emit"],
 "ops": [{
  "token": "k8s_pods_list", "method": "GET", "path": "/v1/k8s/pods", "summary": "Lists pods.", "doc": "Lists pods.",
  "example": {"cluster": "prod"}, "response": {"pods": []},
  "grants": [{"verbs": ["list"], "version": "v1", "resource": "pods"}, {"verbs": ["get"], "url": "/version"}, {"verbs": ["get", "list"], "kinds": true}],
  "in": [
   {"name": "cluster", "kind": "string", "required": true, "format": "label"},
   {"name": "limit", "kind": "integer", "min": 0, "max": 500},
   {"name": "phases", "kind": "list", "of": "string", "enum": ["Running", "Failed"]}],
  "out": [{"name": "pods", "kind": "list", "of": "object", "fields": [{"name": "name", "kind": "string"}, {"name": "labels", "kind": "map"}]}],
  "items": "pods", "long": true, "limits": {"fuel": 10, "millis": 1000}
 }, {
  "token": "k8s_pods_put", "method": "PUT", "path": "/v1/k8s/pods/{namespace}/{pod}", "status": 201, "summary": "Puts.", "doc": "Puts.",
  "in": [
   {"name": "cluster", "kind": "string", "required": true},
   {"name": "namespace", "kind": "string", "required": true},
   {"name": "pod", "kind": "string", "required": true},
   {"name": "labels", "kind": "map", "format": "labels"},
   {"name": "spec", "kind": "raw", "max": 100},
   {"name": "token", "kind": "string", "secret": true}]
 }]}`

func TestParse(t *testing.T) {
	m, err := Parse([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Ops[1].Parameters(), []string{"namespace", "pod"}; !cmp.Equal(got, want) {
		t.Errorf("Parameters() = %v, want %v", got, want)
	}
	if got, want := m.Ops[1].Route(), "PUT /v1/k8s/pods/{}/{}"; got != want {
		t.Errorf("Route() = %q, want %q", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ from, to, path string }{
		"unknown field":        {`"abi": 1`, `"abi": 1, "surprise": 2`, ""},
		"key twice":            {`"abi": 1`, `"abi": 1, "abi": 1`, ""},
		"key in two cases":     {`"abi": 1`, `"abi": 1, "ABI": 1`, ""},
		"nested key twice":     {`{"fuel": 10`, `{"fuel": 10, "fuel": 20`, ""},
		"two values":           {`"millis": 1000}`, `"millis": 1000}}]}{"ops":[{`, ""},
		"abi":                  {`"abi": 1`, `"abi": 2`, "abi"},
		"name":                 {`"name": "pods", "version"`, `"name": "Pods", "version"`, "name"},
		"version":              {`v1.2.3`, `v1.2`, "version"},
		"version zeroes":       {`v1.2.3`, `v1.02.3`, "version"},
		"import unknown":       {`"next", "emit"`, `"next", "exec"`, "imports[3]"},
		"import twice":         {`"next", "emit"`, `"next", "next"`, "imports[3]"},
		"token":                {`"k8s_pods_list"`, `"pods_list"`, "ops[0].token"},
		"token twice":          {`"k8s_pods_put"`, `"k8s_pods_list"`, "ops[1].token"},
		"method":               {`"GET"`, `"PATCH"`, "ops[0].method"},
		"path outside":         {`"/v1/k8s/pods"`, `"/v1/pods"`, "ops[0].path"},
		"path dots":            {`"/v1/k8s/pods"`, `"/v1/k8s/../pods"`, "ops[0].path"},
		"path empty segment":   {`"/v1/k8s/pods"`, `"/v1/k8s//pods"`, "ops[0].path"},
		"path wildcard":        {`"/v1/k8s/pods"`, `"/v1/k8s/*"`, "ops[0].path"},
		"path of the service":  {`"/v1/k8s/pods"`, `"/v1/k8s/docs"`, "ops[0].path"},
		"path of operators":    {`"/v1/k8s/pods"`, `"/v1/k8s/guests/all"`, "ops[0].path"},
		"path of anything":     {`/v1/k8s/pods/{namespace}/{pod}`, `/v1/k8s/{namespace}/{pod}`, "ops[1].path"},
		"parameter unknown":    {`{pod}`, `{pods}`, "ops[1].path"},
		"parameter twice":      {`{pod}`, `{namespace}`, "ops[1].path"},
		"parameter optional":   {`"pod", "kind": "string", "required": true`, `"pod", "kind": "string"`, "ops[1].path"},
		"parameter pattern":    {`{pod}`, `{pod:.*}`, "ops[1].path"},
		"status":               {`"status": 201`, `"status": 204`, "ops[1].status"},
		"no prose":             {`"summary": "Puts."`, `"summary": " "`, "ops[1].summary"},
		"tenant":               {`"name": "limit"`, `"name": "org"`, "ops[0].in[1].name"},
		"tenant in camel case": {`"name": "limit"`, `"name": "theOrgId"`, "ops[0].in[1].name"},
		"tenant id":            {`"name": "limit"`, `"name": "tenantID"`, "ops[0].in[1].name"},
		"field name":           {`"name": "limit"`, `"name": "_limit"`, "ops[0].in[1].name"},
		"field twice":          {`"name": "limit"`, `"name": "cluster"`, "ops[0].in[1].name"},
		"kind":                 {`"kind": "integer"`, `"kind": "float"`, "ops[0].in[1].kind"},
		"map in a query":       {`"kind": "integer", "min": 0, "max": 500`, `"kind": "map"`, "ops[0].in[1].kind"},
		"format unknown":       {`"format": "label"`, `"format": "email"`, "ops[0].in[0].format"},
		"format of a map":      {`"format": "label"`, `"format": "labels"`, "ops[0].in[0].format"},
		"min above max":        {`"min": 0`, `"min": 501`, "ops[0].in[1].min"},
		"list of lists":        {`"of": "string"`, `"of": "list"`, "ops[0].in[2].of"},
		"object without":       {`"of": "string", "enum": ["Running", "Failed"]`, `"of": "object"`, "ops[0].in[2].fields"},
		"enum twice":           {`["Running", "Failed"]`, `["Failed", "Failed"]`, "ops[0].in[2].enum"},
		"items":                {`"items": "pods"`, `"items": "cluster"`, "ops[0].items"},
		"secret map":           {`"name": "spec", "kind": "raw", "max": 100`, `"name": "spec", "kind": "raw", "secret": true`, "ops[1].in[4].secret"},
		"secret in a query":    {`"format": "label"`, `"secret": true`, "ops[0].in[0].secret"},
		"example unknown":      {`{"cluster": "prod"}`, `{"clusters": "prod"}`, "ops[0].example"},
		"example no object":    {`{"cluster": "prod"}`, `[]`, "ops[0].example"},
		"grant of two":         {`"url": "/version"`, `"url": "/version", "kinds": true`, "ops[0].grants[1]"},
		"grant of none":        {`, "url": "/version"`, ``, "ops[0].grants[1]"},
		"grant star":           {`"verbs": ["list"]`, `"verbs": ["*"]`, "ops[0].grants[0].verbs"},
		"grant without verbs":  {`"verbs": ["list"]`, `"verbs": []`, "ops[0].grants[0].verbs"},
		"grant of secrets":     {`"resource": "pods"`, `"resource": "secrets"`, "ops[0].grants[0].resource"},
		"grant path":           {`"resource": "pods"`, `"resource": "pods/exec"`, "ops[0].grants[0].resource"},
		"grant no version":     {`"version": "v1", "resource"`, `"resource"`, "ops[0].grants[0].version"},
		"grant url star":       {`"url": "/version"`, `"url": "/*"`, "ops[0].grants[1].url"},
		"grants, no cluster":   {`"name": "cluster", "kind": "string", "required": true, "format": "label"`, `"name": "where", "kind": "string"`, "ops[0].example"},
		"negative limit":       {`{"fuel": 10`, `{"fuel": -10`, "ops[0].limits.fuel"},
		"an hour and more":     {`"millis": 1000`, `"millis": 3600001`, "ops[0].limits.millis"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(valid, c.from, c.to, 1)
			if text == valid {
				t.Fatalf("%q is not in the manifest", c.from)
			}
			_, err := Parse([]byte(text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Parse() = %v, want an *Error", err)
			}
			if e.Path != c.path {
				t.Errorf("Parse() = %v, want its path to be %q", e, c.path)
			}
		})
	}
}

func TestParseBounds(t *testing.T) {
	deep := strings.Repeat(`{"name":"a","kind":"object","fields":[`, MaxFieldDepth+1) + `{"name":"a","kind":"string"}` + strings.Repeat(`]}`, MaxFieldDepth+1)
	for name, text := range map[string]string{
		"size":         `{"doc":"` + strings.Repeat("x", MaxSize) + `"}`,
		"text nesting": `{"ops":` + strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1) + `}`,
		"field depth":  strings.Replace(valid, `{"name": "spec", "kind": "raw", "max": 100}`, deep, 1),
		"no object":    `[]`,
		"nothing":      ``,
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzParse checks that what parses is valid and survives a round trip.
func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(`{"abi":1,"name":"a","version":"v0.0.0","imports":null,"ops":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatalf("parsed, and yet: %v", err)
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		n, err := Parse(again)
		if err != nil {
			t.Fatalf("%v in %s", err, again)
		}
		third, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(again), string(third)); diff != "" {
			t.Error(diff)
		}
	})
}
