package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// call is one call that callers make.
type call struct {
	kind   string // of call, for the figures: real, lab, registry, foreign
	method string
	target string
	list   string // the list in its answer, "" for none
	items  int    // how many of the tenant's own it has
	only   []int  // the statuses that are right, where 200 is not

	hangUp time.Duration // after which the caller goes away; 0 is never
}

func get(kind, path, list string, items int, query ...string) call {
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	return call{kind: kind, method: http.MethodGet, target: path, list: list, items: items}
}

// everything reads all that a tenant has.
func (t *tenant) everything() []call {
	return []call{
		get("registry", "/v1/k8s/clusters", "clusters", 1),
		get("real", "/v1/k8s/pods", "pods", pods, "cluster", "real"),
		get("real", "/v1/k8s/pods", "pods", pods, "cluster", t.own()),
		get("real", "/v1/k8s/workloads/configmaps", "configMaps", configMaps, "cluster", "real", "namespace", t.namespace),
		get("real", "/v1/k8s/resources", "resources", apps, "cluster", "real", "kind", "App"),
		get("real", "/v1/k8s/resources/watch", "changes", apps, "cluster", "real", "kind", "App", "waitSeconds", "1"),
		get("lab", "/v1/k8s/resources", "resources", labApps, "cluster", "lab", "kind", "App"),
		get("lab", "/v1/k8s/resources/watch", "changes", labApps, "cluster", "lab", "kind", "App", "waitSeconds", "1"),
	}
}

// any is a call at random; other is another tenant, whom it may try to get at.
func (t *tenant) any(other *tenant) call {
	if rand.IntN(5) == 0 {
		return t.foreign(other)
	}
	all := append(t.everything(),
		get("registry", "/v1/k8s/clusters/real", "", 0),
		get("real", "/v1/k8s/resources/App/"+t.namespace+"/"+t.mark+"-0", "", 0, "cluster", t.own()),
		get("real", "/v1/k8s/pods", "pods", 1, "cluster", "real", "limit", "1"),
		get("lab", "/v1/k8s/resources", "resources", labApps, "cluster", "lab", "kind", "App", "namespace", "default"),
		get("lab", "/v1/k8s/clusters/lab/status", "", 0),
	)
	if version := t.version.Load(); version != nil {
		all = append(all, get("lab", "/v1/k8s/resources/watch", "", 0, "cluster", "lab", "kind", "App", "waitSeconds", "3", "version", *version))
	}
	c := all[rand.IntN(len(all))]
	if rand.IntN(10) == 0 {
		c.hangUp = time.Duration(rand.IntN(50)) * time.Millisecond
	}
	return c
}

// foreign is an attempt to read what is another tenant's.
func (t *tenant) foreign(other *tenant) call {
	refused := func(c call, statuses ...int) call {
		c.kind, c.only = "foreign", statuses
		return c
	}
	switch page := other.page.Load(); rand.IntN(4) {
	case 0:
		return refused(get("", "/v1/k8s/pods", "", 0, "cluster", "real", "namespace", other.namespace), 403)
	case 1:
		return refused(get("", "/v1/k8s/pods", "", 0, "cluster", other.own()), 404)
	case 2:
		return refused(get("", "/v1/k8s/clusters/"+other.own(), "", 0), 404)
	default:
		if page == nil {
			return refused(get("", "/v1/k8s/namespaces", "", 0, "cluster", "real"), 403)
		}
		return refused(get("", "/v1/k8s/pods", "", 0, "cluster", "real", "limit", "1", "continue", *page), 400)
	}
}

// whole says what an answer of 200 lacks of, or has beside, what the tenant has.
func (c call) whole(t *tenant, got reply) error {
	if c.list == "" {
		return nil
	}
	if c.list == "clusters" {
		for _, name := range t.registrations() {
			if !strings.Contains(string(got.body), fmt.Sprintf(`"name":%q`, name)) {
				return fmt.Errorf("%s is not registered", name)
			}
		}
		return nil
	}
	all, own := marked(got.body, c.list, t.mark)
	// Every namespace has a config map of the cluster's own.
	if c.list == "configMaps" {
		all -= strings.Count(string(got.body), `"name":"kube-root-ca.crt"`)
	}
	if all != c.items || own != c.items {
		return fmt.Errorf("a short or a foreign list: %d of %d %s are the tenant's, who has %d", own, all, c.list, c.items)
	}
	return nil
}

// excused are the refusals that load and faults explain, whatever the cluster.
var excused = []string{"rate_limited", "overloaded", "kms_unavailable", "deadline", "rotated"}

// never are those that nothing explains.
var never = []string{"internal", "deregistered", "guest_fault", "fuel_exhausted", "no_tenant", "route_not_found", "method_not_allowed", "bad_input", "kms_corrupt", "cluster_not_found", "outside_bound", "bad_continue"}

// right says what is wrong with a reply.
func (c call) right(t *tenant, got reply) error {
	if slices.Contains([]string{"rate_limited", "overloaded", "breaker_open", "kms_unavailable", "rotated"}, got.code) && got.header.Get("Retry-After") == "" {
		return fmt.Errorf("%d %s without Retry-After", got.status, got.code)
	}
	switch {
	case c.only != nil:
		if !slices.Contains(c.only, got.status) && !slices.Contains(excused, got.code) {
			return fmt.Errorf("an attempt at another's got %d %s", got.status, got.code)
		}
		return nil
	case got.status == http.StatusOK:
		return c.whole(t, got)
	case c.kind == "lab" && !slices.Contains(never, got.code), slices.Contains(excused, got.code):
		return nil
	}
	return fmt.Errorf("%d %s", got.status, got.code)
}

// anyMark is what every tenant's marks look like, and the beginning of every
// credential of a lab.
var anyMark = regexp.MustCompile(`credential-mark|mark[a-z2-7]{16}`)

// clean says that an answer has no mark of another's and no credential. What the
// call itself named may be repeated.
func (r *runner) clean(t *tenant, target string, got reply) error {
	r.count.checked.Add(1)
	for _, found := range anyMark.FindAllString(string(got.body), -1) {
		if found != t.mark && !strings.Contains(target, found) {
			return fmt.Errorf("an answer to %s holds %s", t.mark, found)
		}
		r.count.marks.Add(1)
	}
	return nil
}

// caller makes calls of one tenant's until ctx ends.
func (r *runner) caller(ctx context.Context, t *tenant) {
	for {
		pause := time.Duration(rand.Float64() * 2 * float64(r.options.pace))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		other := r.tenants[rand.IntN(len(r.tenants))]
		if other == t {
			continue
		}
		r.once(ctx, t, r.fleet.members[rand.IntN(len(r.fleet.members))], t.any(other))
	}
}

// patience is how long callers wait for an answer.
const patience = 10 * time.Second

func (r *runner) once(ctx context.Context, t *tenant, m *member, c call) {
	limit := patience
	if c.hangUp > 0 {
		limit = c.hangUp
	}
	one, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	got, err := r.fleet.ask(one, m, t.org, c.method, c.target, nil)
	switch {
	case errors.Is(err, errKilled):
		r.count.add(c.kind, "(replica killed)", 0)
		return
	case err != nil && one.Err() != nil:
		r.count.add(c.kind, "(caller left)", 0)
		return
	case err != nil:
		r.count.add(c.kind, "(failed)", 0)
		r.count.breach("%s %s: %v", c.method, c.target, err)
		return
	}
	code := got.code
	if code == "" {
		code = "ok"
	}
	r.count.add(c.kind, code, time.Since(begun))
	if err := errors.Join(c.right(t, got), r.clean(t, c.target, got)); err != nil {
		r.count.breach("%s %s: %v", c.method, c.target, err)
	}
	remember(&t.page, continuation, c.list == "pods", got.body)
	remember(&t.version, version, c.kind == "lab" && c.list == "changes", got.body)
}

var (
	continuation = regexp.MustCompile(`"continue":"([^"]+)"`)
	version      = regexp.MustCompile(`"version":"([^"]+)"[^{}]*}$`)
)

// remember keeps what an answer has to go on with.
func remember(at *atomic.Pointer[string], what *regexp.Regexp, wanted bool, body []byte) {
	if found := what.FindSubmatch(body); wanted && found != nil {
		token := string(found[1])
		at.Store(&token)
	}
}
