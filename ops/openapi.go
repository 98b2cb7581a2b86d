package ops

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// doc is a JSON object being made.
type doc = map[string]any

// OpenAPI is the OpenAPI 3.1 document of these ops.
func OpenAPI(list []*manifest.Op) []byte {
	paths, schemas, groups := doc{}, doc{"Problem": problemSchema()}, []string{}
	for _, op := range sorted(list) {
		item, ok := paths[op.Path].(doc)
		if !ok {
			item = doc{}
			paths[op.Path] = item
		}
		item[strings.ToLower(op.Method)] = operation(op, schemas)
		groups = merge(groups, groupOf(op.Token))
	}
	tags := make([]doc, len(groups))
	for i, g := range groups {
		tags[i] = doc{"name": g}
	}
	return indent(doc{
		"openapi": "3.1.0",
		"info": doc{
			"title":       "k8s",
			"version":     "1",
			"summary":     "Named, typed operations over every Kubernetes cluster an organisation has registered.",
			"description": apiProse,
			"license":     doc{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []doc{{"url": "/"}},
		"security": []doc{{"bearer": []string{}}, {"org": []string{}, "user": []string{}}},
		"tags":     tags,
		"paths":    paths,
		"components": doc{
			"schemas":   schemas,
			"responses": problemResponses(),
			"securitySchemes": doc{
				"bearer": doc{"type": "http", "scheme": "bearer", "description": "What a caller shows the gateway, which validates it and asserts the organisation and the user."},
				"org":    doc{"type": "apiKey", "in": "header", "name": "X-Org-Id", "description": "The organisation, as a gateway asserts it."},
				"user":   doc{"type": "apiKey", "in": "header", "name": "X-User-Id", "description": "The validated user, as a gateway asserts it."},
			},
		},
	})
}

const apiProse = `A registry of clusters, and a closed set of operations over whichever registered cluster the caller names. The caller's organisation comes from its identity and never from an input.

**Refusals** are RFC 9457 problem documents with a stable ` + "`code`" + ` and the request's id. A name that is not registered and a name that only another organisation has registered get the same 404.

**Pages.** A list takes ` + "`limit`" + ` and ` + "`continue`" + ` and answers ` + "`continue`" + ` while something is left. The token is opaque, and worth nothing to another organisation, cluster, operation or filter. Without a limit the whole list comes.

**Empty fields.** An answer leaves out empty strings and lists. In an input a zero value is the same as leaving the field out.`

// groupOf is the group in a token k8s_<group>_<verb>.
func groupOf(token string) string {
	parts := strings.SplitN(token, "_", 3)
	if len(parts) < 3 {
		return token
	}
	return parts[1]
}

// camel is a token's name as a type's.
func camel(token string) string {
	var b strings.Builder
	for _, word := range strings.Split(strings.TrimPrefix(token, "k8s_"), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func operation(op *manifest.Op, schemas doc) doc {
	o := doc{
		"operationId": op.Token,
		"tags":        []string{groupOf(op.Token)},
		"summary":     op.Summary,
		"description": op.Doc + "\n\n" + needs(op),
		"responses":   responses(op, schemas),
	}
	if op.Items != "" && slices.ContainsFunc(op.In, func(f manifest.Field) bool { return f.Name == "continue" }) {
		o["x-pagination"] = doc{"items": op.Items, "limit": "limit", "continue": "continue"}
	}
	var example map[string]json.RawMessage
	json.Unmarshal(op.Example, &example)
	binding := bindingOf(op)
	var params []doc
	var body []manifest.Field
	for _, f := range op.In {
		where := "query"
		if slices.Contains(binding.path, f.Name) {
			where = "path"
		} else if binding.body {
			body = append(body, f)
			continue
		}
		p := doc{"name": f.Name, "in": where, "required": f.Required || where == "path", "schema": schemaOf(&f, true)}
		if f.Doc != "" {
			p["description"] = f.Doc
		}
		if value, ok := example[f.Name]; ok {
			p["example"] = value
		}
		params = append(params, p)
	}
	if params != nil {
		o["parameters"] = params
	}
	if body == nil {
		return o
	}
	name := camel(op.Token) + "In"
	schemas[name] = objectSchema(body, true)
	media := doc{"schema": ref("schemas", name)}
	for _, name := range binding.path {
		delete(example, name)
	}
	if len(example) > 0 {
		media["example"] = example
	}
	required := slices.ContainsFunc(body, func(f manifest.Field) bool { return f.Required })
	o["requestBody"] = doc{"required": required, "content": doc{"application/json": media}}
	return o
}

// needs says in a sentence what an op asks of the cluster's RBAC.
func needs(op *manifest.Op) string {
	var words []string
	for _, g := range op.Grants {
		verbs := strings.Join(g.Verbs, ", ")
		switch {
		case g.URL != "":
			words = append(words, fmt.Sprintf("`%s %s`", verbs, g.URL))
		case g.Kinds:
			words = append(words, fmt.Sprintf("`%s` on the kind", verbs))
		default:
			name := resourceOf(&g)
			if g.Group != "" {
				name += "." + g.Group
			}
			words = append(words, fmt.Sprintf("`%s %s`", verbs, name))
		}
	}
	if len(words) == 0 {
		return "Asks nothing of the cluster's RBAC."
	}
	return "Needs of the cluster's RBAC: " + strings.Join(words, "; ") + "."
}

func ref(kind, name string) doc { return doc{"$ref": "#/components/" + kind + "/" + name} }

func responses(op *manifest.Op, schemas doc) doc {
	out := doc{}
	for _, status := range problemStatuses() {
		out[strconv.Itoa(status)] = ref("responses", "Status"+strconv.Itoa(status))
	}
	requestID := doc{"X-Request-Id": doc{"description": "The request's id.", "schema": doc{"type": "string"}}}
	if len(op.Out) == 0 {
		out["204"] = doc{"description": "Done.", "headers": requestID}
		return out
	}
	name := camel(op.Token) + "Out"
	schemas[name] = objectSchema(op.Out, false)
	media := doc{"schema": ref("schemas", name)}
	if len(op.Response) > 0 {
		media["example"] = op.Response
	}
	status := cmp.Or(op.Status, http.StatusOK)
	out[strconv.Itoa(status)] = doc{
		"description": cmp.Or(op.Summary, "Done."), "headers": requestID, "content": doc{"application/json": media},
	}
	return out
}

// problemStatuses is every status of a refusal.
func problemStatuses() []int {
	statuses := []int{http.StatusUnsupportedMediaType}
	for _, c := range Codes {
		if i, found := slices.BinarySearch(statuses, c.Status); !found {
			statuses = slices.Insert(statuses, i, c.Status)
		}
	}
	return statuses
}

func problemResponses() doc {
	out := doc{}
	for _, status := range problemStatuses() {
		lines := []string{http.StatusText(status) + "."}
		for _, c := range Codes {
			if c.Status == status {
				lines = append(lines, fmt.Sprintf("`%s`: %s.", c.Code, c.Title))
			}
		}
		headers := doc{"X-Request-Id": doc{"description": "The request's id.", "schema": doc{"type": "string"}}}
		if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
			headers["Retry-After"] = doc{"description": "Seconds after which to try again.", "schema": doc{"type": "integer"}}
		}
		out["Status"+strconv.Itoa(status)] = doc{
			"description": strings.Join(lines, " "),
			"headers":     headers,
			"content":     doc{"application/problem+json": doc{"schema": ref("schemas", "Problem")}},
		}
	}
	return out
}

func problemSchema() doc {
	codes := make([]string, len(Codes))
	for i, c := range Codes {
		codes[i] = c.Code
	}
	text := func(prose string) doc { return doc{"type": "string", "description": prose} }
	return doc{
		"type":        "object",
		"description": "Why a call was not done (RFC 9457). Some codes add members of their own, such as remaining or limit.",
		"required":    []string{"type", "title", "status", "detail", "code", "requestId"},
		"properties": doc{
			"type":      doc{"type": "string", "format": "uri-reference", "description": "Where the code is explained."},
			"title":     text("What the code means, in words."),
			"status":    doc{"type": "integer", "description": "The HTTP status."},
			"detail":    text("What happened, for a person."),
			"code":      doc{"type": "string", "description": "Stable. One of " + strings.Join(codes, ", ") + ", or limit_ and the limit that was passed.", "examples": []string{"cluster_not_found"}},
			"requestId": text("The request's id, as in X-Request-Id and in the operator's audit log."),
			"reason":    text("The cluster's own reason, where the verdict is the cluster's."),
			"errors": doc{
				"type": "array", "description": "Of bad_input: every field that is wrong.",
				"items": doc{
					"type": "object", "required": []string{"field", "detail"},
					"properties": doc{"field": text("Such as namespace or mounts[0].path; empty for the input as a whole."), "detail": text("What is wrong with it.")},
				},
			},
			"causes": doc{
				"type": "array", "description": "The cluster's own causes: fields, and in a conflict their owners.",
				"items": doc{"type": "object", "properties": doc{"reason": text("Of this cause."), "message": text("Of this cause."), "field": text("The field it is about.")}},
			},
		},
	}
}

// objectSchema is the JSON Schema of an object. An input is closed; an output is
// not, for fields are added to it.
func objectSchema(fields []manifest.Field, input bool) doc {
	properties, required := doc{}, []string{}
	for i := range fields {
		f := &fields[i]
		s := schemaOf(f, input)
		if f.Doc != "" {
			s["description"] = f.Doc
		}
		properties[f.Name] = s
		if f.Required {
			required = append(required, f.Name)
		}
	}
	out := doc{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	if input {
		out["additionalProperties"] = false
	}
	return out
}

// schemaOf is the JSON Schema of one field. What it forbids in an input the
// service refuses.
func schemaOf(f *manifest.Field, input bool) doc {
	s := kindSchema(f, f.Kind, input)
	if f.Secret {
		s["writeOnly"] = true
	}
	if f.Max > 0 {
		switch f.Kind {
		case manifest.String:
			s["maxLength"] = f.Max
		case manifest.Integer:
			s["maximum"] = f.Max
		case manifest.List:
			s["maxItems"] = f.Max
		case manifest.Map:
			s["maxProperties"] = f.Max
		}
	}
	if f.Kind == manifest.List {
		element := *f
		element.Kind, element.Required, element.Max = f.Of, true, 0
		s["items"] = kindSchema(&element, f.Of, input)
	}
	return s
}

// kindSchema is the schema of a value of a kind with the field's constraints but
// its size. In an input an optional field may also be empty, which is leaving it
// out.
func kindSchema(f *manifest.Field, kind manifest.Kind, input bool) doc {
	empty := input && !f.Required
	switch kind {
	case manifest.Bool:
		return doc{"type": "boolean"}
	case manifest.Integer:
		s := doc{"type": "integer", "format": "int64"}
		if f.Min != nil {
			s["minimum"] = *f.Min
			if empty {
				s["minimum"] = min(*f.Min, 0)
			}
		}
		return s
	case manifest.Map:
		return doc{"type": "object", "additionalProperties": doc{"type": "string"}}
	case manifest.Raw:
		return doc{}
	case manifest.List:
		return doc{"type": "array"}
	case manifest.Object:
		return objectSchema(f.Fields, input)
	}
	s := doc{"type": "string"}
	if input && f.Required && f.Kind == manifest.String {
		s["minLength"] = 1
	}
	choices := f.Enum
	if f.Format == manifest.KindName {
		choices = kindNames
	}
	if len(choices) > 0 {
		if empty {
			choices = append(slices.Clone(choices), "")
		}
		s["enum"] = choices
	}
	if p := patterns[f.Format]; p.pattern != "" && input {
		pattern := p.pattern
		if empty {
			pattern = "(" + pattern + ")?"
		}
		s["pattern"] = "^" + pattern + "$"
		if f.Max == 0 || f.Max > p.max {
			s["maxLength"] = p.max
		}
	}
	return s
}

// patterns is what a format comes to as a regular expression.
var patterns = map[manifest.Format]struct {
	pattern string
	max     int64
}{
	manifest.Label: {`[a-z0-9]([-a-z0-9]*[a-z0-9])?`, 63},
	manifest.Name:  {`[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`, 253},
}
