package ops

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

//go:embed docs.html
var docsText string

var docsTemplate = template.Must(template.New("docs").Funcs(template.FuncMap{
	// The documents are Markdown, and the page is not.
	"needs": func(op *manifest.Op) string { return strings.ReplaceAll(needs(op), "`", "") },
	"json": func(text json.RawMessage) string {
		var out bytes.Buffer
		if json.Indent(&out, text, "", "  ") != nil {
			return ""
		}
		return out.String()
	},
}).Parse(docsText))

// docsPage is the reference page, which loads nothing and runs nothing.
func docsPage(list []*manifest.Op) []byte {
	type group struct {
		Name string
		Ops  []*manifest.Op
	}
	var groups []group
	for _, op := range sorted(list) {
		name := groupOf(op.Token)
		if n := len(groups); n == 0 || groups[n-1].Name != name {
			groups = append(groups, group{Name: name})
		}
		g := &groups[len(groups)-1]
		g.Ops = append(g.Ops, op)
	}
	var out bytes.Buffer
	if err := docsTemplate.Execute(&out, map[string]any{"Groups": groups, "Codes": Codes, "Kinds": Kinds}); err != nil {
		panic(err) // the template is ours and takes any manifest
	}
	return out.Bytes()
}
