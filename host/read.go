package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/hanzoai/k8s/registry"
)

// reply is the cluster's answer to one request. Its body counts against the
// call as it is read, and its close notes the request.
type reply struct {
	*http.Response
	c     *call
	ctx   context.Context
	noted HostCall
}

func (r *reply) Read(b []byte) (int, error) {
	n, err := r.Body.Read(b)
	r.noted.Bytes += int64(n)
	if over := r.c.meter.bytesIn(n); over != nil {
		return n, over
	}
	if err != nil { // an end too: that of a call that is over may not be the body's
		if over := ending(r.ctx); over != nil {
			return n, over
		}
		if over := r.c.ended(); over != nil {
			return n, over
		}
	}
	return n, err
}

func (r *reply) close() {
	r.Body.Close()
	r.c.record(r.noted)
}

// send makes one request of the cluster, for a verb on a resource. What is not a
// success is the refusal that the cluster meant. It is safe for concurrent use.
func (c *call) send(ctx context.Context, verb, resource string, q *registry.Request) (*reply, *registry.Refusal) {
	resp, err := c.bound.Do(ctx, q)
	bad := refusal(err)
	if q.Method != http.MethodGet && resource != reviews && (bad == nil || !bad.Unsent) {
		c.wrote.Store(true)
	}
	if bad != nil {
		c.record(HostCall{Verb: verb, Resource: resource})
		if r := ending(ctx); r != nil {
			return nil, r
		}
		if r := c.ended(); r != nil {
			return nil, r
		}
		return nil, bad
	}
	r := &reply{Response: resp, c: c, ctx: ctx, noted: HostCall{Verb: verb, Resource: resource, Status: resp.StatusCode}}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer r.close()
		bad := verdict(r, c.bound.Redact)
		if r := c.ended(); r != nil { // which may be all there is to it
			return nil, r
		}
		return nil, bad
	}
	return r, nil
}

// fetch is send for answers that are read whole, max bytes at most, into a page
// that the caller frees.
func (c *call) fetch(ctx context.Context, verb, resource string, q *registry.Request, home pool, max int) (*page, *registry.Refusal) {
	q.MaxBytes = int64(max) + 1
	r, bad := c.send(ctx, verb, resource, q)
	if bad != nil {
		return nil, bad
	}
	defer r.close()
	p := newPage(home)
	if err := p.read(r, max); err != nil {
		p.free()
		if errors.Is(err, errLarge) {
			return nil, tooLarge("the cluster's answer is too large")
		}
		return nil, refusal(err)
	}
	return p, nil
}

// single is fetch for an answer that is one object of the target.
func (c *call) single(verb string, t *target, q *registry.Request) (stream, *registry.Refusal) {
	o, r := c.object(c.ctx, verb, t, q)
	if r != nil {
		return nil, r
	}
	return o, nil
}

func (c *call) object(ctx context.Context, verb string, t *target, q *registry.Request) (*object, *registry.Refusal) {
	q.Accept = t.accept()
	p, r := c.fetch(ctx, verb, t.name, q, &objects, maxObject)
	if r != nil {
		return nil, r
	}
	at, r := p.check(t)
	if r != nil {
		p.free()
		return nil, r
	}
	return &object{page: p, at: at}, nil
}

type getRequest struct {
	Resource  string
	Kind      string
	Namespace string
	Name      string
}

func (in *getRequest) members() []member {
	return []member{{"resource", &in.Resource}, {"kind", &in.Kind}, {"namespace", &in.Namespace}, {"name", &in.Name}}
}

// get reads one object.
func (c *call) get(in *getRequest) (stream, *registry.Refusal) {
	t, r := c.target(in.Resource, in.Kind, "get")
	if r != nil {
		return nil, r
	}
	if r := c.one(t, in.Namespace, in.Name, false); r != nil {
		return nil, r
	}
	return c.single("get", t, &registry.Request{Method: http.MethodGet, Path: t.path(in.Namespace, in.Name)})
}

// clusterVersion reads /version. It is not about any namespace, so a bounded
// registration may.
func (c *call) clusterVersion(*noRequest) (stream, *registry.Refusal) {
	if r := c.grantedURL("/version", "get"); r != nil {
		return nil, r
	}
	p, r := c.fetch(c.ctx, "get", "/version", &registry.Request{
		Method: http.MethodGet, Path: registry.Path("version"), Accept: "application/json",
	}, &objects, 64<<10)
	if r != nil {
		return nil, r
	}
	git := want{name: "gitVersion"}
	if err := whole(p.body, &git); err != nil {
		p.free()
		return nil, malformed(err)
	}
	if git.text() == "" {
		p.free()
		return nil, upstream("the cluster answered with something other than its version")
	}
	return &object{page: p, at: span{0, len(p.body)}}, nil
}

type canRequest struct {
	Verb      string
	Group     string
	Resource  string
	Namespace string
}

func (in *canRequest) members() []member {
	return []member{{"verb", &in.Verb}, {"group", &in.Group}, {"resource", &in.Resource}, {"namespace", &in.Namespace}}
}

// can asks the cluster what the registered credential may do.
func (c *call) can(in *canRequest) (stream, *registry.Refusal) {
	t, r := c.granted(reviews, "", "create")
	if r != nil {
		return nil, r
	}
	if in.Namespace == "" {
		r = refusal(c.bound.WholeCluster())
	} else if !isLabel(in.Namespace) {
		r = badField("namespace", "is not a DNS-1123 label")
	} else {
		r = refusal(c.bound.One(in.Namespace))
	}
	if r != nil {
		return nil, r
	}
	resource, subresource, _ := strings.Cut(in.Resource, "/")
	type attributes struct {
		Verb        string `json:"verb"`
		Group       string `json:"group"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource,omitempty"`
		Namespace   string `json:"namespace,omitempty"`
	}
	type spec struct {
		ResourceAttributes attributes `json:"resourceAttributes"`
	}
	body, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       spec   `json:"spec"`
	}{"authorization.k8s.io/v1", "SelfSubjectAccessReview", spec{attributes{in.Verb, in.Group, resource, subresource, in.Namespace}}})
	if err != nil {
		return nil, badRequest("the review cannot be written")
	}
	t.protobuf = false
	o, r := c.object(c.ctx, "create", t, &registry.Request{
		Method: http.MethodPost, Path: t.path("", ""), ContentType: "application/json", Body: body,
	})
	if r != nil {
		return nil, r
	}
	status := want{name: "status"}
	if err := whole(o.page.body, &status); err != nil || !status.isObject() {
		o.close()
		return nil, upstream("the cluster answered a review without a verdict")
	}
	verdict := bytes.Clone(status.value)
	o.close()
	return &values{items: [][]byte{verdict}}, nil
}

// selectors are the query of a list or watch.
func selectors(labels, fields string) url.Values {
	q := make(url.Values, 6)
	if labels != "" {
		q.Set("labelSelector", labels)
	}
	if fields != "" {
		q.Set("fieldSelector", fields)
	}
	return q
}
