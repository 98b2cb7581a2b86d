package ops

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/hanzoai/k8s/host/manifest"
)

// declaration is what a zip host learns of this service: its name, its routes
// and its ops.
type declaration struct {
	Name   string          `json:"name"`
	Routes []declaredRoute `json:"routes"`
	Ops    []string        `json:"ops"`
}

type declaredRoute struct {
	Method  string `json:"method"`
	Pattern string `json:"pattern"` // parameters as :name
	Op      string `json:"op,omitempty"`
}

// documents are the routes that are no op.
var documents = []declaredRoute{
	{Method: "GET", Pattern: Prefix + "/docs"},
	{Method: "GET", Pattern: Prefix + "/openapi.json"},
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// Declaration is k8s.plugin.json: the routes sorted by pattern and method, the
// ops sorted.
func Declaration(list []*manifest.Op) []byte {
	d := declaration{Name: Name, Routes: slices.Clone(documents), Ops: []string{}}
	for _, op := range list {
		pattern := parameter.ReplaceAllString(op.Path, ":$1")
		d.Routes = append(d.Routes, declaredRoute{op.Method, pattern, op.Token})
		d.Ops = append(d.Ops, op.Token)
	}
	slices.SortFunc(d.Routes, func(a, b declaredRoute) int {
		return cmp.Or(cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Method, b.Method))
	})
	slices.Sort(d.Ops)
	return indent(d)
}

// indent is v as JSON for people and diffs.
func indent(v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // v is made of strings, numbers and JSON that was checked
	}
	return append(text, '\n')
}
