package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Bounds of a manifest.
const (
	MaxOps        = 200
	MaxFields     = 500 // of one In or Out, nested ones included
	MaxFieldDepth = 8
)

// Prefix is what the path of every op begins with.
const Prefix = "/v1/k8s/"

// Reserved are the first segments of a path that are the service's own. No op's
// path begins with one, nor with a parameter, which could stand for one.
var Reserved = []string{"docs", "guests"}

// Functions are the functions of module "k8s" (host/ABI.md).
var Functions = []string{
	"input", "emit", "fail", "next", "close", "sleep", "log",
	"get", "list", "watch", "logs", "stats", "can", "version",
	"create", "apply", "delete", "evict", "cordon", "expand",
	"clusters_list", "clusters_get", "clusters_register", "clusters_deregister",
}

// RegistryFunctions are those of Functions that reach the registry itself. A
// shipped module may not import them.
var RegistryFunctions = []string{"clusters_list", "clusters_get", "clusters_register", "clusters_deregister"}

// Verbs are the verbs of a grant.
var Verbs = []string{"get", "list", "watch", "create", "patch", "delete"}

var (
	tokenPattern      = regexp.MustCompile(`^k8s_[a-z0-9]+(_[a-z0-9]+)*$`)
	labelPattern      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	subdomainPattern  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	versionPattern    = regexp.MustCompile(`^v(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)
	fieldPattern      = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,63}$`)
	segmentPattern    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	resourcePattern   = regexp.MustCompile(`^[a-z][a-z0-9]{0,62}$`)
	apiVersionPattern = regexp.MustCompile(`^v[1-9][0-9]{0,2}((alpha|beta)[1-9][0-9]{0,2})?$`)
	urlPattern        = regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+$`)
)

// IsVersion tells whether a text is a module's version, v<major>.<minor>.<patch>.
func IsVersion(s string) bool { return versionPattern.MatchString(s) }

// Validate checks everything that can be said of a manifest by itself: that its
// names are well formed and unique, its schemas closed and bounded, its paths
// bound to its inputs, its grants exact, and that no input names a tenant. Its
// error is an *Error, of the first thing wrong.
func (m *Manifest) Validate() (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			err = e
		default:
			panic(e)
		}
	}()
	check(m.ABI == ABI, "abi", "%d; this host speaks %d", m.ABI, ABI)
	check(labelPattern.MatchString(m.Name), "name", "%q is not a DNS label", m.Name)
	check(versionPattern.MatchString(m.Version), "version", "%q is not v<major>.<minor>.<patch>", m.Version)
	for i, f := range m.Imports {
		at := fmt.Sprintf("imports[%d]", i)
		check(slices.Contains(Functions, f), at, "the ABI has no function %q", f)
		check(!slices.Contains(m.Imports[:i], f), at, "%q comes twice", f)
	}
	check(len(m.Ops) > 0, "ops", "there are none")
	check(len(m.Ops) <= MaxOps, "ops", "more than %d", MaxOps)
	tokens, routes := map[string]bool{}, map[string]bool{}
	for i := range m.Ops {
		op, at := &m.Ops[i], fmt.Sprintf("ops[%d]", i)
		check(tokenPattern.MatchString(op.Token) && len(op.Token) <= 64, at+".token", "%q is not k8s_<group>_<verb>", op.Token)
		check(!tokens[op.Token], at+".token", "%q comes twice", op.Token)
		tokens[op.Token] = true
		op.validate(at, m)
		check(!routes[op.Route()], at+".path", "%s comes twice", op.Route())
		routes[op.Route()] = true
	}
	return nil
}

func check(ok bool, path, format string, args ...any) {
	if !ok {
		panic(&Error{Path: path, Reason: fmt.Sprintf(format, args...)})
	}
}

// Route is the op's method and path with its parameters unnamed: two ops with
// one Route would answer the same requests.
func (o *Op) Route() string {
	segments := strings.Split(o.Path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return o.Method + " " + strings.Join(segments, "/")
}

// Overlaps tells whether there is a request that either op could be taken to be
// meant by: a parameter stands for any segment, so a path that spells one out
// would take that one away from it.
func (o *Op) Overlaps(other *Op) bool {
	a, b := strings.Split(o.Path, "/"), strings.Split(other.Path, "/")
	if o.Method != other.Method || len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !strings.HasPrefix(a[i], "{") && !strings.HasPrefix(b[i], "{") {
			return false
		}
	}
	return true
}

// Parameters are the names in the op's path, in order.
func (o *Op) Parameters() []string {
	var names []string
	for s := range strings.SplitSeq(o.Path, "/") {
		if len(s) > 2 && s[0] == '{' {
			names = append(names, s[1:len(s)-1])
		}
	}
	return names
}

func (o *Op) validate(at string, m *Manifest) {
	query := false
	switch o.Method {
	case "GET", "DELETE":
		query = true
	case "POST", "PUT":
	default:
		check(false, at+".method", "%q is not GET, POST, PUT or DELETE", o.Method)
	}
	check(o.Status == 0 || o.Status == 200 || o.Status == 201, at+".status", "%d is not 200 or 201", o.Status)
	check(strings.TrimSpace(o.Summary) != "", at+".summary", "an op without prose")
	check(strings.TrimSpace(o.Doc) != "", at+".doc", "an op without prose")

	in := fieldList{query: query, in: true}
	in.validate(at+".in", o.In, 1)
	out := fieldList{}
	out.validate(at+".out", o.Out, 1)
	o.validatePath(at + ".path")

	if o.Items != "" {
		i := slices.IndexFunc(o.Out, func(f Field) bool { return f.Name == o.Items })
		check(i >= 0 && o.Out[i].Kind == List && o.Out[i].Of == Object, at+".items", "%q is not a list of objects in out", o.Items)
	}
	sample(at+".example", o.Example, o.In)
	sample(at+".response", o.Response, o.Out)

	for i, g := range o.Grants {
		g.validate(fmt.Sprintf("%s.grants[%d]", at, i))
	}
	registers := slices.Contains(m.Imports, "clusters_register")
	cluster := slices.ContainsFunc(o.In, func(f Field) bool { return f.Name == "cluster" && f.Kind == String })
	check(len(o.Grants) == 0 || cluster || registers, at+".in", "an op with grants must name its cluster")
	o.Limits.validate(at + ".limits")
}

func (o *Op) validatePath(at string) {
	check(strings.HasPrefix(o.Path, Prefix) && len(o.Path) <= 200, at, "%q is not below %s", o.Path, Prefix)
	first, _, _ := strings.Cut(o.Path[len(Prefix):], "/")
	check(!strings.HasPrefix(first, "{") && !slices.Contains(Reserved, first), at, "%q belongs to the service itself", o.Path)
	seen := map[string]bool{}
	for s := range strings.SplitSeq(o.Path[len(Prefix):], "/") {
		if !strings.HasPrefix(s, "{") {
			check(segmentPattern.MatchString(s), at, "%q is no path segment", s)
			continue
		}
		check(len(s) > 2 && s[len(s)-1] == '}', at, "%q is no parameter", s)
		name := s[1 : len(s)-1]
		check(!seen[name], at, "the parameter %q comes twice", name)
		seen[name] = true
		i := slices.IndexFunc(o.In, func(f Field) bool { return f.Name == name })
		check(i >= 0, at, "the parameter %q is no field of in", name)
		f := o.In[i]
		check(f.Kind == String && !f.Secret && f.Required, at, "the parameter %q must be a required string", name)
	}
}

// fieldList validates an op's In or Out.
type fieldList struct {
	in    bool
	query bool // crosses as a query string
	n     int
}

func (l *fieldList) validate(at string, fs []Field, depth int) {
	check(depth <= MaxFieldDepth, at, "nested deeper than %d", MaxFieldDepth)
	seen := map[string]bool{}
	for i := range fs {
		l.n++
		check(l.n <= MaxFields, at, "more than %d fields", MaxFields)
		f, at := &fs[i], fmt.Sprintf("%s[%d]", at, i)
		check(fieldPattern.MatchString(f.Name), at+".name", "%q is no field name", f.Name)
		folded := strings.ToLower(f.Name)
		check(!seen[folded], at+".name", "%q comes twice", f.Name)
		seen[folded] = true
		if l.in {
			check(!namesTenant(f.Name), at+".name", "%q names a tenant: no input does", f.Name)
		}
		l.field(at, f, depth)
	}
}

func (l *fieldList) field(at string, f *Field, depth int) {
	switch f.Kind {
	case String, Bool, Integer, Map, Raw, Object, List:
	default:
		check(false, at+".kind", "there is no kind %q", f.Kind)
	}
	nested := f.Kind == Object
	if f.Kind == List {
		check(f.Of == String || f.Of == Integer || f.Of == Object, at+".of", "a list of %q", f.Of)
		nested = f.Of == Object
	} else {
		check(f.Of == "", at+".of", "only a list has elements")
	}
	if nested {
		check(len(f.Fields) > 0, at+".fields", "an object without fields")
		l.validate(at+".fields", f.Fields, depth+1)
	} else {
		check(len(f.Fields) == 0, at+".fields", "only objects have fields")
	}
	if l.query && depth == 1 {
		scalar := f.Kind == String || f.Kind == Bool || f.Kind == Integer || f.Kind == List && f.Of == String
		check(scalar, at+".kind", "%s does not fit a query string", f.Kind)
	}
	text := f.Kind == String || f.Kind == List && f.Of == String
	switch f.Format {
	case "":
	case Name, Label, Selector, KindName:
		check(text, at+".format", "%q is for strings", f.Format)
	case LabelKeys:
		check(f.Kind == Map, at+".format", "%q is for maps", f.Format)
	default:
		check(false, at+".format", "there is no format %q", f.Format)
	}
	check(len(f.Enum) == 0 || text, at+".enum", "only strings have one")
	for i, e := range f.Enum {
		check(e != "" && !slices.Contains(f.Enum[:i], e), at+".enum", "%q is empty or comes twice", e)
	}
	check(f.Min == nil || f.Kind == Integer, at+".min", "only integers have one")
	check(f.Kind != Bool || f.Max == 0, at+".max", "a bool has none")
	check(f.Kind == Integer || f.Max >= 0, at+".max", "%d is negative", f.Max)
	check(f.Min == nil || f.Max == 0 || *f.Min <= f.Max, at+".min", "above max")
	check(!f.Secret || l.in && depth == 1 && f.Kind == String && !l.query, at+".secret", "only a string of a request body can be secret")
}

// namesTenant tells whether one of the words of a camel-case name is a tenant's.
func namesTenant(name string) bool {
	start := 0
	for i, c := range name + "A" {
		if i == 0 || !unicode.IsUpper(c) {
			continue
		}
		switch strings.ToLower(name[start:i]) {
		case "org", "orgs", "orgid", "orgname", "organization", "organizations", "organisation", "organisations",
			"tenant", "tenants", "tenantid", "tenantname":
			return true
		}
		start = i
	}
	return false
}

// sample checks that an example is an object of known fields.
func sample(at string, text json.RawMessage, fs []Field) {
	if len(text) == 0 {
		return
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(text, &members)
	check(err == nil && members != nil, at, "not a JSON object")
	for name := range members {
		known := slices.ContainsFunc(fs, func(f Field) bool { return f.Name == name })
		check(known, at, "there is no field %q", name)
	}
}

func (g *Grant) validate(at string) {
	set := 0
	for _, b := range []bool{g.Resource != "", g.Kinds, g.URL != ""} {
		if b {
			set++
		}
	}
	check(set == 1, at, "exactly one of resource, kinds and url")
	check(len(g.Verbs) > 0, at+".verbs", "there are none")
	for i, v := range g.Verbs {
		check(slices.Contains(Verbs, v), at+".verbs", "%q is not one of %s", v, strings.Join(Verbs, ", "))
		check(!slices.Contains(g.Verbs[:i], v), at+".verbs", "%q comes twice", v)
	}
	if g.Resource == "" {
		check(g.Group == "" && g.Version == "" && g.Subresource == "" && !g.Cluster, at, "group, version, subresource and cluster belong to a resource")
	} else {
		check(g.Group == "" || subdomainPattern.MatchString(g.Group) && len(g.Group) <= 253, at+".group", "%q is no API group", g.Group)
		check(apiVersionPattern.MatchString(g.Version), at+".version", "%q is no API version", g.Version)
		check(resourcePattern.MatchString(g.Resource), at+".resource", "%q is no resource", g.Resource)
		check(g.Subresource == "" || resourcePattern.MatchString(g.Subresource), at+".subresource", "%q is no subresource", g.Subresource)
		check(g.Group != "" || g.Resource != "secrets", at+".resource", "secrets are never granted")
	}
	if g.URL != "" {
		check(urlPattern.MatchString(g.URL) && !strings.Contains(g.URL, ".."), at+".url", "%q is no path", g.URL)
		check(len(g.Verbs) == 1 && g.Verbs[0] == "get", at+".verbs", "a url can only be got")
	}
}

func (l *Limits) validate(at string) {
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"fuel", l.Fuel}, {"fuelPerItem", l.FuelPerItem}, {"memoryPages", l.MemoryPages}, {"hostCalls", l.HostCalls},
		{"bytesIn", l.BytesIn}, {"items", l.Items}, {"bytesOut", l.BytesOut}, {"hostMillis", l.HostMillis}, {"millis", l.Millis},
	} {
		check(f.v >= 0 && f.v < 1<<53, at+"."+f.name, "%d is out of range", f.v)
	}
	check(l.MemoryPages <= 1<<16, at+".memoryPages", "%d is more than 4 GiB", l.MemoryPages)
	check(l.Millis <= 3_600_000 && l.HostMillis <= 3_600_000, at+".millis", "more than an hour")
}
