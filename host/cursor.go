package host

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// cursor is where a page of a list ended. The caller holds it sealed.
type cursor struct {
	Namespace string `json:"n,omitempty"` // of the scope, the one to go on with
	Continue  string `json:"c,omitempty"` // the cluster's token within it, "" for its start
	After     string `json:"a,omitempty"` // namespace/name of the last item, of a cluster that ignores limits

	// Versions are those of the namespaces already read, by name.
	Versions map[string]string `json:"v,omitempty"`
}

// paging is how the caller pages through a list.
type paging struct {
	limited bool
	left    int // items still to be delivered, where limited
	cursor  cursor
	resumed bool

	c       *call
	purpose string
}

// page takes the caller's limit and continue, for the first list of a call whose
// op has them. A token is worth nothing but for the same org, cluster and
// credential, whose key seals it, and the same op, resource, namespaces and
// selectors, which the seal covers.
func (c *call) page(t *target, scope []string, namespace, labels, fields string) (paging, *registry.Refusal) {
	p := paging{c: c}
	has := func(name string) bool {
		return slices.ContainsFunc(c.op.In, func(f manifest.Field) bool { return f.Name == name })
	}
	if c.paged || !has("limit") || !has("continue") {
		return p, nil
	}
	c.paged = true
	var in struct {
		Limit    int64  `json:"limit"`
		Continue string `json:"continue"`
	}
	if json.Unmarshal(c.in.Input, &in) != nil || in.Limit < 0 {
		return p, badField("limit", "cannot be used")
	}
	p.purpose = strings.Join(append([]string{"continue", c.op.Token, t.name, namespace, labels, fields}, scope...), "\x00")
	p.limited, p.left = in.Limit > 0, int(min(in.Limit, 1<<30))
	if in.Continue == "" {
		return p, nil
	}
	plain, err := c.bound.Open(p.purpose, in.Continue)
	if err != nil || json.Unmarshal(plain, &p.cursor) != nil {
		return p, badContinue()
	}
	p.resumed = true
	return p, nil
}

// start is the index in scope from which to read.
func (p *paging) start(scope []string) (int, *registry.Refusal) {
	if !p.resumed {
		return 0, nil
	}
	at := slices.Index(scope, p.cursor.Namespace)
	if at < 0 {
		return 0, badContinue()
	}
	return at, nil
}

// stop ends the page here.
func (p *paging) stop(at cursor) *registry.Refusal {
	plain, err := json.Marshal(at)
	if err != nil {
		return upstream("the cluster's continue token cannot be used")
	}
	p.c.cursor = p.c.bound.Seal(p.purpose, plain)
	return nil
}

func badContinue() *registry.Refusal {
	return &registry.Refusal{
		Status: 400, Code: "bad_continue",
		Message: "this continue token is not from a list of the same cluster, operation and filter; begin without one",
	}
}

// composite opens a version that stands for several namespaces. It is opaque to
// callers and worth no more than the versions in it.
const composite = "n."

// joinVersions makes one version of those of several namespaces, "" where one of
// them is unknown.
func joinVersions(scope, versions []string) string {
	if len(scope) == 1 {
		return versions[0]
	}
	var b strings.Builder
	for i, ns := range scope {
		if versions[i] == "" {
			return ""
		}
		b.WriteString(ns + "=" + versions[i] + "\n")
	}
	return composite + base64.RawURLEncoding.EncodeToString([]byte(b.String()))
}

// splitVersion is the version of each namespace of scope. ok is false where one
// of them has none: the version is of another scope. A version that this host
// cannot have made is a refusal.
func splitVersion(scope []string, version string) (versions []string, ok bool, r *registry.Refusal) {
	bad := badField("version", "is not one that a list or a watch has given")
	encoded, many := strings.CutPrefix(version, composite)
	if !many {
		if !isVersion(version) {
			return nil, false, bad
		}
		return []string{version}, len(scope) == 1, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false, bad
	}
	known := make(map[string]string)
	for line := range strings.Lines(string(plain)) {
		ns, v, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !found || !isLabel(ns) || !isVersion(v) {
			return nil, false, bad
		}
		known[ns] = v
	}
	for _, ns := range scope {
		v, found := known[ns]
		if !found {
			return nil, false, nil
		}
		versions = append(versions, v)
	}
	return versions, true, nil
}

// isVersion tells a resourceVersion: a decimal number above 0.
func isVersion(s string) bool {
	if s == "" || len(s) > 20 || s[0] == '0' {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
