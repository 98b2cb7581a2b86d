package ops

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// Projections is every committed file that is made from these ops, by its path
// from the module's root, with readme's tables brought up to date.
func Projections(list []*manifest.Op, readme []byte) (map[string][]byte, error) {
	for name, table := range map[string]string{"ops": opsTable(list), "environment": settingsTable()} {
		var err error
		if readme, err = splice(readme, name, table); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{
		"k8s.plugin.json": Declaration(list),
		"openapi.json":    OpenAPI(list),
		"rbac.yaml":       RBAC(list),
		"README.md":       readme,
	}, nil
}

// splice puts text between a page's markers of this name.
func splice(page []byte, name, text string) ([]byte, error) {
	begin, end := fmt.Sprintf("<!-- %s: made by make generate -->\n", name), fmt.Sprintf("<!-- end of %s -->", name)
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !ok || !ended {
		return nil, fmt.Errorf("ops: the page has no markers %q and %q", strings.TrimSpace(begin), end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(text), []byte(end), after}, nil), nil
}

func opsTable(list []*manifest.Op) string {
	var out strings.Builder
	out.WriteString("\n| op | REST | what it does |\n|---|---|---|\n")
	for _, op := range sorted(list) {
		fmt.Fprintf(&out, "| `%s` | `%s %s` | %s |\n", op.Token, op.Method, op.Path, cell(op.Summary))
	}
	out.WriteString("\n")
	return out.String()
}

func settingsTable() string {
	var out strings.Builder
	out.WriteString("\n| variable | default | what it is |\n|---|---|---|\n")
	for _, s := range Settings {
		value, doc := "", s.Doc
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		if s.Secret {
			doc += " `" + s.Name + "_FILE` may name a file that holds it."
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", s.Name, value, cell(doc))
	}
	out.WriteString("\n")
	return out.String()
}

// cell is text as one cell of a table.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`).Replace(text)
}
