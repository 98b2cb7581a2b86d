package ops

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// rule is one rule of the ClusterRole: what it names, the verbs on it, and the
// ops that need it, each with the verbs it needs.
type rule struct {
	group, url string
	resources  []string
	verbs      []string
	ops        []string // "token: verbs"
}

// RBAC is rbac.yaml: the ClusterRole that a registered credential needs for all
// of these ops, a rule for each resource and set of ops. It is what the
// manifests' grants come to and nothing else; the closed kinds are written out.
func RBAC(list []*manifest.Op) []byte {
	var out bytes.Buffer
	out.WriteString(`# Made by make generate from the grants in the guests' manifests. Do not edit.
#
# What the credential of a whole-cluster registration must be allowed to do for
# every op to work. Leave out the rules of ops that are not to be used. For a
# registration bound to namespaces, bind the namespaced rules in each of them
# with a Role instead. nodes/proxy is a rule of its own because it is the widest
# of them: through it, who holds the credential can reach every kubelet. This
# service only ever reads stats/summary through it.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: k8s
rules:
`)
	for _, r := range rules(list) {
		for _, op := range r.ops {
			fmt.Fprintf(&out, "  # %s\n", op)
		}
		if r.url != "" {
			fmt.Fprintf(&out, "  - nonResourceURLs: [%q]\n", r.url)
		} else {
			fmt.Fprintf(&out, "  - apiGroups: [%q]\n    resources: [%s]\n", r.group, strings.Join(r.resources, ", "))
		}
		fmt.Fprintf(&out, "    verbs: [%s]\n", strings.Join(r.verbs, ", "))
	}
	return out.Bytes()
}

// rules is the rules of these ops, sorted by group and resource, with the URLs
// last.
func rules(list []*manifest.Op) []rule {
	byName := make(map[string]*rule)
	add := func(op string, verbs []string, group, resource, url string) {
		name := group + "/" + resource + " " + url
		r := byName[name]
		if r == nil {
			r = &rule{group: group, resources: []string{resource}, url: url}
			byName[name] = r
		}
		r.verbs = merge(r.verbs, verbs...)
		r.ops = merge(r.ops, op+": "+strings.Join(slices.Sorted(slices.Values(verbs)), ", "))
	}
	for _, op := range list {
		for _, g := range op.Grants {
			switch {
			case g.URL != "":
				add(op.Token, g.Verbs, "", "", g.URL)
			case g.Kinds:
				for _, k := range Kinds {
					add(op.Token, g.Verbs, k.Group, k.Resource, "")
				}
			default:
				add(op.Token, g.Verbs, g.Group, resourceOf(&g), "")
			}
		}
	}
	var sorted []rule
	for _, r := range byName {
		sorted = append(sorted, *r)
	}
	slices.SortFunc(sorted, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.group, b.group), cmp.Compare(a.resources[0], b.resources[0]))
	})
	// What the same ops need of one group is one rule.
	var merged []rule
	for _, r := range sorted {
		i := slices.IndexFunc(merged, func(m rule) bool {
			return r.url == "" && m.url == "" && m.group == r.group && slices.Equal(m.ops, r.ops)
		})
		if i < 0 {
			merged = append(merged, r)
			continue
		}
		merged[i].resources = append(merged[i].resources, r.resources...)
	}
	return merged
}

// resourceOf is a grant's resource as RBAC writes it.
func resourceOf(g *manifest.Grant) string {
	if g.Subresource != "" {
		return g.Resource + "/" + g.Subresource
	}
	return g.Resource
}

// merge adds words to a sorted list that has each once.
func merge(list []string, words ...string) []string {
	for _, w := range words {
		if i, found := slices.BinarySearch(list, w); !found {
			list = slices.Insert(list, i, w)
		}
	}
	return list
}
