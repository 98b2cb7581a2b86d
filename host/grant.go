package host

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// target is the resource that a guest asked for, its grant checked.
type target struct {
	group, version, resource string

	name     string // as the guest wrote it: v1/pods, or a kind
	kind     string // of the closed table, "" for a resource
	cluster  bool   // not namespaced
	protobuf bool   // the API server speaks protobuf for it
}

// protobufGroups are the API groups that an API server serves itself, all in
// protobuf. Custom resources and aggregated APIs are read as JSON.
var protobufGroups = map[string]bool{
	"": true, "admissionregistration.k8s.io": true, "apps": true, "authentication.k8s.io": true,
	"authorization.k8s.io": true, "autoscaling": true, "batch": true, "certificates.k8s.io": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true, "node.k8s.io": true, "policy": true,
	"rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true,
}

// Resources that the host's own functions name.
const (
	pods       = "v1/pods"
	nodes      = "v1/nodes"
	namespaces = "v1/namespaces"
	claims     = "v1/persistentvolumeclaims"
	reviews    = "authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// target finds what a guest asked for by resource or by kind, after checking
// that the op is granted every one of verbs on it.
func (c *call) target(resource, kind string, verbs ...string) (*target, *registry.Refusal) {
	if (resource == "") == (kind == "") {
		return nil, badRequest("one of resource and kind is needed")
	}
	if kind != "" {
		for _, verb := range verbs {
			if !slices.ContainsFunc(c.op.Grants, func(g manifest.Grant) bool { return g.Kinds && slices.Contains(g.Verbs, verb) }) {
				return nil, c.notGranted(verb, "kinds")
			}
		}
		for _, k := range c.kinds {
			if k.Kind == kind {
				return &target{group: k.Group, version: k.Version, resource: k.Resource, name: k.Kind, kind: k.Kind}, nil
			}
		}
		return nil, &registry.Refusal{Status: 400, Code: "kind_not_allowed", Message: "this kind is not served; kinds are spelled exactly as in the table of kinds"}
	}
	return c.granted(resource, "", verbs...)
}

// granted finds a resource, after checking that the op is granted every one of
// verbs on it or on its subresource.
func (c *call) granted(resource, subresource string, verbs ...string) (*target, *registry.Refusal) {
	t, ok := parseResource(resource)
	if !ok {
		return nil, badRequest("a resource is written v1/pods or apps/v1/deployments")
	}
	spelled := resource
	if subresource != "" {
		spelled += "/" + subresource
	}
	for _, verb := range verbs {
		i := slices.IndexFunc(c.op.Grants, func(g manifest.Grant) bool {
			return g.Group == t.group && g.Version == t.version && g.Resource == t.resource &&
				g.Subresource == subresource && slices.Contains(g.Verbs, verb)
		})
		if i < 0 || t.secret() {
			return nil, c.notGranted(verb, spelled)
		}
		t.cluster = t.cluster || c.op.Grants[i].Cluster
	}
	if resource == nodes || resource == namespaces {
		t.cluster = true
	}
	return t, nil
}

// secret is true of what no manifest may ask for. Material reaches a namespace
// as a KMSSecret, and nothing here reads or writes a Secret.
func (t *target) secret() bool { return t.group == "" && t.resource == "secrets" }

func (c *call) grantedURL(path, verb string) *registry.Refusal {
	if !slices.ContainsFunc(c.op.Grants, func(g manifest.Grant) bool { return g.URL == path && slices.Contains(g.Verbs, verb) }) {
		return c.notGranted(verb, path)
	}
	return nil
}

func (c *call) notGranted(verb, what string) *registry.Refusal {
	return &registry.Refusal{
		Status: 403, Code: "not_granted",
		Message: clean(fmt.Sprintf("%s may not %s %s", c.op.Token, verb, what), 256),
	}
}

// parseResource reads v1/pods or apps/v1/deployments.
func parseResource(s string) (*target, bool) {
	parts := strings.Split(s, "/")
	t := &target{name: s}
	switch len(parts) {
	case 2:
		t.version, t.resource = parts[0], parts[1]
	case 3:
		t.group, t.version, t.resource = parts[0], parts[1], parts[2]
		if !isName(t.group) {
			return nil, false
		}
	default:
		return nil, false
	}
	t.protobuf = protobufGroups[t.group]
	return t, isLabel(t.version) && isLabel(t.resource)
}

func (t *target) apiVersion() string {
	if t.group == "" {
		return t.version
	}
	return t.group + "/" + t.version
}

// isKind tells whether kind is the kind of this resource. For resources of
// groups that are not the API server's own any kind is, plurals being free there.
func (t *target) isKind(kind string) bool {
	if t.kind != "" {
		return kind == t.kind
	}
	singular := strings.ToLower(kind)
	if t.group == "metrics.k8s.io" {
		var ok bool
		if singular, ok = strings.CutSuffix(singular, "metrics"); !ok {
			return false
		}
	} else if !t.protobuf {
		return kind != "" && kind != "Status"
	}
	rest, ok := strings.CutPrefix(t.resource, singular)
	if ok && singular != "" && (rest == "" || rest == "s" || rest == "es") {
		return true
	}
	stem, ok := strings.CutSuffix(singular, "y")
	return ok && t.resource == stem+"ies"
}

// path is the URL path of the resource: of one object, of a namespace's, or of
// all there are. Names and namespaces have been checked.
func (t *target) path(namespace, name string, more ...string) string {
	segments := make([]string, 0, 8)
	if t.group == "" {
		segments = append(segments, "api", t.version)
	} else {
		segments = append(segments, "apis", t.group, t.version)
	}
	if namespace != "" && !t.cluster {
		segments = append(segments, "namespaces", namespace)
	}
	segments = append(segments, t.resource)
	if name != "" {
		segments = append(segments, name)
	}
	return registry.Path(append(segments, more...)...)
}

// accept is the media type asked for.
func (t *target) accept() string {
	if t.protobuf {
		return "application/vnd.kubernetes.protobuf"
	}
	return "application/json"
}

// one checks that the caller's bound covers one object. A Namespace counts as
// in itself, except where whole says that the function reaches further.
func (c *call) one(t *target, namespace, name string, whole bool) *registry.Refusal {
	if !isName(name) {
		return badField("name", "is not a DNS-1123 name")
	}
	if !t.cluster {
		if !isLabel(namespace) {
			return badField("namespace", "is not a DNS-1123 label")
		}
		return refusal(c.bound.One(namespace))
	}
	if namespace != "" {
		return badField("namespace", "must be empty: "+t.resource+" are not namespaced")
	}
	if t.name == namespaces && !whole {
		if !isLabel(name) {
			return badField("name", "is not a DNS-1123 label")
		}
		return refusal(c.bound.One(name))
	}
	return refusal(c.bound.WholeCluster())
}

// scope is the namespaces that a list or watch covers, in order; "" stands for all.
func (c *call) scope(t *target, namespace string) ([]string, *registry.Refusal) {
	if t.cluster {
		if namespace != "" {
			return nil, badField("namespace", "must be empty: "+t.resource+" are not namespaced")
		}
		return []string{""}, refusal(c.bound.WholeCluster())
	}
	if namespace != "" && !isLabel(namespace) {
		return nil, badField("namespace", "is not a DNS-1123 label")
	}
	scope, err := c.bound.Scope(namespace)
	return slices.Sorted(slices.Values(scope)), refusal(err)
}

func isLabel(s string) bool {
	return len(s) <= validation.DNS1123LabelMaxLength && len(validation.IsDNS1123Label(s)) == 0
}

func isName(s string) bool {
	return len(s) <= validation.DNS1123SubdomainMaxLength && len(validation.IsDNS1123Subdomain(s)) == 0
}
