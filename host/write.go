package host

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/hanzoai/k8s/registry"
)

// manager is the field manager of all that is written here.
const manager = "hanzo-cloud"

// maxWritten is the largest object that a guest may write, in bytes of JSON.
const maxWritten = 1536 << 10

var written = url.Values{"fieldManager": {manager}, "fieldValidation": {"Strict"}}

// fits checks that an object is the one its request names. What a cluster alone
// may say of an object is refused in it.
func (t *target) fits(object json.RawMessage, namespace string) (name string, r *registry.Refusal) {
	if len(object) > maxWritten {
		return "", &registry.Refusal{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "the object is too large"}
	}
	apiVersion, kind, metadata, status := want{name: "apiVersion"}, want{name: "kind"}, want{name: "metadata"}, want{name: "status"}
	if whole(object, &apiVersion, &kind, &metadata, &status) != nil || !metadata.isObject() {
		return "", badField("object", "is not an object with metadata")
	}
	if apiVersion.text() != t.apiVersion() || !t.isKind(kind.text()) {
		return "", badField("object", "is not one of "+t.name)
	}
	if status.value != nil {
		return "", badField("object", "may not have a status: that is the cluster's")
	}
	wantName, ns, managed, generate, version := want{name: "name"}, want{name: "namespace"}, want{name: "managedFields"}, want{name: "generateName"}, want{name: "resourceVersion"}
	if whole(metadata.value, &wantName, &ns, &managed, &generate, &version) != nil {
		return "", badField("object", "has metadata that cannot be read")
	}
	if managed.value != nil || generate.value != nil || version.value != nil {
		return "", badField("object", "may not have managedFields, generateName or resourceVersion")
	}
	if ns.text() != namespace && (ns.value != nil || t.cluster) {
		return "", badField("object", "is of another namespace")
	}
	return wantName.text(), nil
}

type createRequest struct {
	Resource  string
	Namespace string
	Object    json.RawMessage
}

func (in *createRequest) members() []member {
	return []member{{"resource", &in.Resource}, {"namespace", &in.Namespace}, {"object", &in.Object}}
}

// create makes an object that must not be there yet.
func (c *call) create(in *createRequest) (stream, *registry.Refusal) {
	t, r := c.granted(in.Resource, "", "create")
	if r != nil {
		return nil, r
	}
	name, r := t.fits(in.Object, in.Namespace)
	if r != nil {
		return nil, r
	}
	if r := c.one(t, in.Namespace, name, false); r != nil {
		return nil, r
	}
	return c.single("create", t, &registry.Request{
		Method: http.MethodPost, Path: t.path(in.Namespace, ""), Query: written,
		ContentType: "application/json", Body: in.Object,
	})
}

type applyRequest struct {
	Resource  string
	Kind      string
	Namespace string
	Name      string
	Object    json.RawMessage
}

func (in *applyRequest) members() []member {
	return []member{{"resource", &in.Resource}, {"kind", &in.Kind}, {"namespace", &in.Namespace}, {"name", &in.Name}, {"object", &in.Object}}
}

// apply makes an object what it says, by server-side apply, and forces nothing.
func (c *call) apply(in *applyRequest) (stream, *registry.Refusal) {
	t, r := c.target(in.Resource, in.Kind, "create", "patch")
	if r != nil {
		return nil, r
	}
	name, r := t.fits(in.Object, in.Namespace)
	if r != nil {
		return nil, r
	}
	if name != in.Name {
		return nil, badField("object", "has another name than the request")
	}
	if r := c.one(t, in.Namespace, in.Name, false); r != nil {
		return nil, r
	}
	return c.single("patch", t, &registry.Request{
		Method: http.MethodPatch, Path: t.path(in.Namespace, in.Name), Query: written,
		ContentType: "application/apply-patch+yaml", Body: in.Object,
	})
}

type deleteRequest struct {
	Resource  string
	Kind      string
	Namespace string
	Name      string
	UID       string
}

func (in *deleteRequest) members() []member {
	return []member{{"resource", &in.Resource}, {"kind", &in.Kind}, {"namespace", &in.Namespace}, {"name", &in.Name}, {"uid", &in.UID}}
}

// remove deletes an object, and what it owns in the background. One that is not
// there is no failure.
func (c *call) remove(in *deleteRequest) (stream, *registry.Refusal) {
	t, r := c.target(in.Resource, in.Kind, "delete")
	if r != nil {
		return nil, r
	}
	if r := c.one(t, in.Namespace, in.Name, true); r != nil {
		return nil, r
	}
	options := `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}`
	if in.UID != "" {
		if !isUID(in.UID) {
			return nil, badField("uid", "is not one")
		}
		options = `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background","preconditions":{"uid":"` + in.UID + `"}}`
	}
	resp, r := c.send(c.ctx, "delete", t.name, &registry.Request{
		Method: http.MethodDelete, Path: t.path(in.Namespace, in.Name), Accept: "application/json",
		ContentType: "application/json", Body: []byte(options), MaxBytes: maxObject,
	})
	switch {
	case r == nil:
		resp.close()
		return &values{items: [][]byte{[]byte(`{"removed":true}`)}}, nil
	case r.Code == "not_found":
		return &values{items: [][]byte{[]byte(`{"removed":false}`)}}, nil
	}
	return nil, r
}

type evictRequest struct {
	Namespace string
	Pod       string
	UID       string
}

func (in *evictRequest) members() []member {
	return []member{{"namespace", &in.Namespace}, {"pod", &in.Pod}, {"uid", &in.UID}}
}

// evict asks for a pod to be evicted, where uid is given only that very one. A
// pod that is gone is {"status":404}. What a disruption budget holds back is
// blocked_by_pdb, which passes; throttled is about the cluster and not the pod;
// multiple_pdbs does not pass.
func (c *call) evict(in *evictRequest) (stream, *registry.Refusal) {
	t, r := c.granted(pods, "eviction", "create")
	if r != nil {
		return nil, r
	}
	if r := c.one(t, in.Namespace, in.Pod, false); r != nil {
		return nil, r
	}
	preconditions := ""
	if in.UID != "" {
		if !isUID(in.UID) {
			return nil, badField("uid", "is not one")
		}
		preconditions = `,"deleteOptions":{"preconditions":{"uid":"` + in.UID + `"}}`
	}
	body := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"` + in.Namespace + `","name":"` + in.Pod + `"}` + preconditions + `}`
	resp, r := c.send(c.ctx, "create", "v1/pods/eviction", &registry.Request{
		Method: http.MethodPost, Path: t.path(in.Namespace, in.Pod, "eviction"), Accept: "application/json",
		ContentType: "application/json", Body: []byte(body), MaxBytes: maxObject,
	})
	switch {
	case r == nil:
		resp.close()
		return &values{items: [][]byte{[]byte(`{"status":201}`)}}, nil
	case r.Code == "not_found":
		return &values{items: [][]byte{[]byte(`{"status":404}`)}}, nil
	case r.Code == "throttled" && isBudget(r):
		blocked := *r
		blocked.Status, blocked.Code = http.StatusConflict, "blocked_by_pdb"
		return nil, &blocked
	case r.Code == "bad_upstream" && strings.Contains(r.Message, "more than one PodDisruptionBudget"):
		several := *r
		several.Status, several.Code = http.StatusConflict, "multiple_pdbs"
		return nil, &several
	}
	return nil, r
}

// isBudget tells the 429 of a disruption budget from that of a busy API server.
func isBudget(r *registry.Refusal) bool {
	causes, _ := r.Details["causes"].([]Cause)
	for _, cause := range causes {
		if cause.Reason == "DisruptionBudget" {
			return true
		}
	}
	return false
}

type cordonRequest struct {
	Node        string
	Schedulable *bool
}

func (in *cordonRequest) members() []member {
	return []member{{"node", &in.Node}, {"schedulable", &in.Schedulable}}
}

// cordon sets spec.unschedulable of a node and nothing else.
func (c *call) cordon(in *cordonRequest) (stream, *registry.Refusal) {
	t, r := c.granted(nodes, "", "patch")
	if r != nil {
		return nil, r
	}
	if in.Schedulable == nil {
		return nil, badField("schedulable", "is required")
	}
	if r := c.one(t, "", in.Node, true); r != nil {
		return nil, r
	}
	body := `{"spec":{"unschedulable":true}}`
	if *in.Schedulable {
		body = `{"spec":{"unschedulable":null}}`
	}
	return c.single("patch", t, &registry.Request{
		Method: http.MethodPatch, Path: t.path("", in.Node), Query: url.Values{"fieldManager": {manager}},
		ContentType: "application/merge-patch+json", Body: []byte(body),
	})
}

type expandRequest struct {
	Namespace string
	Name      string
	Storage   string
	Version   string
}

func (in *expandRequest) members() []member {
	return []member{{"namespace", &in.Namespace}, {"name", &in.Name}, {"storage", &in.Storage}, {"version", &in.Version}}
}

// quantity is a size, in any of the forms a claim may have one in but with an
// exponent.
var quantity = regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,9})?([KMGTPE]i|[mkMGTPE])?$`)

// expand sets a claim's storage request and nothing else, if the claim is still
// as it was at version.
func (c *call) expand(in *expandRequest) (stream, *registry.Refusal) {
	t, r := c.granted(claims, "", "patch")
	if r != nil {
		return nil, r
	}
	if r := c.one(t, in.Namespace, in.Name, false); r != nil {
		return nil, r
	}
	if !quantity.MatchString(in.Storage) {
		return nil, badField("storage", "is not a size such as 20Gi")
	}
	if !isVersion(in.Version) {
		return nil, badField("version", "is not a resourceVersion")
	}
	body := `{"metadata":{"resourceVersion":"` + in.Version + `"},"spec":{"resources":{"requests":{"storage":"` + in.Storage + `"}}}}`
	return c.single("patch", t, &registry.Request{
		Method: http.MethodPatch, Path: t.path(in.Namespace, in.Name), Query: url.Values{"fieldManager": {manager}},
		ContentType: "application/merge-patch+json", Body: []byte(body),
	})
}

// isUID tells a UID, which goes into JSON as it is.
func isUID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isHex(c) && c != '-' {
			return false
		}
	}
	return true
}
