package host

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/hanzoai/k8s/registry"
)

// ahead is how many namespaces of a bound are read at once.
const ahead = 4

type listRequest struct {
	Resource      string
	Kind          string
	Namespace     string
	LabelSelector string
	FieldSelector string
}

func (in *listRequest) members() []member {
	return []member{{"resource", &in.Resource}, {"kind", &in.Kind}, {"namespace", &in.Namespace}, {"labelSelector", &in.LabelSelector}, {"fieldSelector", &in.FieldSelector}}
}

// list reads all objects that the caller's bound and page cover.
func (c *call) list(in *listRequest) (stream, *registry.Refusal) {
	t, r := c.target(in.Resource, in.Kind, "list")
	if r != nil {
		return nil, r
	}
	if t.name == namespaces && in.Namespace == "" && c.bound.WholeCluster() != nil {
		return c.listBound(t, in)
	}
	scope, r := c.scope(t, in.Namespace)
	if r != nil {
		return nil, r
	}
	p, r := c.page(t, scope, in.Namespace, in.LabelSelector, in.FieldSelector)
	if r != nil {
		return nil, r
	}
	query := selectors(in.LabelSelector, in.FieldSelector)
	if !p.limited && !p.resumed {
		return c.wholeList(t, scope, query), nil
	}
	return c.pagedList(t, scope, query, p)
}

// scoped is a list of what is in the namespaces of a scope, read one after the
// other.
type scoped struct {
	c      *call
	ctx    context.Context
	cancel context.CancelFunc
	t      *target
	query  url.Values
	scope  []string

	at       int      // the namespace being read
	from     string   // the continue token that its answer was asked for by
	count    int      // answers of it
	mark     string   // a continue token seen there before
	versions []string // of the namespaces read to their end
}

func (c *call) scoped(t *target, scope []string, query url.Values) scoped {
	s := scoped{c: c, t: t, query: query, scope: scope, versions: make([]string, len(scope))}
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	return s
}

// request asks for a namespace: all of it, or a page of limit items that begins
// at a continue token, "" being the start.
func (s *scoped) request(i int, from string, limit int) *registry.Request {
	q := maps.Clone(s.query)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if from != "" {
		q.Set("continue", from)
	}
	return &registry.Request{Method: http.MethodGet, Path: s.t.path(s.scope[i], ""), Query: q, Accept: s.t.accept(), Bulk: true}
}

// goesOn counts an answer, after which the namespace goes on at next, and refuses
// one that never ends.
func (s *scoped) goesOn(next string) *registry.Refusal {
	if s.count++; s.count > maxPages || next != "" && (next == s.from || next == s.mark) {
		return upstream("the cluster's list does not come to an end")
	}
	if s.count&(s.count-1) == 0 { // marks further and further apart meet every cycle
		s.mark = next
	}
	return nil
}

// leave ends the namespace being read, whose version is that of its last answer.
func (s *scoped) leave(version string) {
	s.versions[s.at] = version
	s.at, s.from, s.count, s.mark = s.at+1, "", 0, ""
}

func (s *scoped) trailer() []byte { return versionTrailer(joinVersions(s.scope, s.versions), false) }

// pagedList is a list a page at a time: what a caller asked for a page of. The
// next page is fetched while this one is read.
type pagedList struct {
	scoped
	paging

	more chan fetched // the next page of the namespace being read
	page *page
	i    int  // the next item of page
	cut  bool // page held more than was asked for
	done bool
}

// fetched is a page, or why there is none.
type fetched struct {
	page *page
	bad  *registry.Refusal
}

func (c *call) pagedList(t *target, scope []string, query url.Values, p paging) (*pagedList, *registry.Refusal) {
	at, r := p.start(scope)
	if r != nil {
		return nil, r
	}
	l := &pagedList{scoped: c.scoped(t, scope, query), paging: p}
	l.at, l.from = at, p.cursor.Continue
	for i := range at {
		l.versions[i] = p.cursor.Versions[scope[i]]
	}
	return l, nil
}

func (l *pagedList) next() ([]byte, bool, *registry.Refusal) {
	for {
		if l.page != nil {
			if l.i < len(l.page.items) {
				s := l.page.items[l.i]
				l.i++
				return l.page.body[s.start:s.end], true, nil
			}
			if r := l.turn(); r != nil {
				return nil, false, r
			}
		}
		if l.done {
			return nil, false, nil
		}
		if r := l.load(); r != nil {
			return nil, false, r
		}
	}
}

// load waits for the next page and has the one after it fetched.
func (l *pagedList) load() *registry.Refusal {
	wait := l.more
	if l.more = nil; wait == nil {
		wait = l.fetch(l.at, l.from, pageItems)
	}
	var f fetched
	select {
	case f = <-wait:
	case <-l.ctx.Done():
		return ending(l.ctx)
	}
	if f.bad != nil {
		return f.bad
	}
	p := f.page
	l.page, l.i, l.cut = p, 0, false
	if r := l.goesOn(p.next); r != nil {
		return r
	}
	if l.cursor.After != "" {
		n, r := l.behind(l.cursor.After)
		if r != nil {
			return r
		}
		p.items = p.items[n:]
		if len(p.items) > 0 {
			l.cursor.After = ""
		}
	}
	if l.limited {
		if l.cut = len(p.items) > l.left; l.cut {
			if _, r := l.behind(""); r != nil {
				return r
			}
			p.items = p.items[:l.left]
		}
		l.left -= len(p.items)
	}
	switch {
	case l.cut, l.limited && l.left == 0:
	case p.next != "":
		l.more = l.fetch(l.at, p.next, p.ask())
	}
	return nil
}

// turn leaves a page that has been read.
func (l *pagedList) turn() *registry.Refusal {
	p := l.page
	l.page = nil
	defer p.free()
	switch full := l.limited && l.left == 0; {
	case l.cut:
		last := p.items[len(p.items)-1]
		return l.end(cursor{Namespace: l.scope[l.at], Continue: l.from, After: l.t.key(p.body[last.start:last.end])}, p.version)
	case p.next != "" && full:
		return l.end(cursor{Namespace: l.scope[l.at], Continue: p.next}, p.version)
	case p.next != "":
		l.from = p.next
	default:
		l.leave(p.version)
		l.cursor.After = ""
		if l.at == len(l.scope) {
			l.done = true
		} else if full {
			return l.end(cursor{Namespace: l.scope[l.at]}, "")
		}
	}
	return nil
}

// end ends the page of the caller before the end of the list.
func (l *pagedList) end(at cursor, version string) *registry.Refusal {
	l.done = true
	if len(l.scope) == 1 {
		l.versions[0] = version
	}
	at.Versions = make(map[string]string)
	for i := range l.at {
		at.Versions[l.scope[i]] = l.versions[i]
	}
	return l.stop(at)
}

// fetch asks for one page. Where a page is too large, fewer items are asked for.
func (l *pagedList) fetch(i int, from string, items int) chan fetched {
	if l.limited {
		items = min(items, l.left)
	}
	to := make(chan fetched, 1)
	go func() {
		var f fetched
		for {
			f.page, f.bad = l.fetchPage(i, from, items)
			if f.bad == nil || f.bad.Code != "too_large" || items == 1 {
				break
			}
			items = max(1, items/8)
		}
		to <- f
	}()
	return to
}

func (l *pagedList) fetchPage(i int, from string, items int) (*page, *registry.Refusal) {
	p, r := l.scoped.c.fetch(l.ctx, "list", l.t.name, l.request(i, from, items), &pages, pageMax)
	if r != nil {
		return nil, r
	}
	if r := p.split(l.t); r != nil {
		p.free()
		return nil, r
	}
	return p, nil
}

// behind counts the items up to and with the one called after. The order of the
// items is checked on the way: it is what a cluster that ignores limits is
// resumed by.
func (l *pagedList) behind(after string) (n int, r *registry.Refusal) {
	last := ""
	for _, s := range l.page.items {
		key := l.t.key(l.page.body[s.start:s.end])
		if key <= last {
			return 0, upstream("the cluster ignores the limit asked for, and its list is in no order")
		}
		if last = key; key <= after {
			n++
		}
	}
	return n, nil
}

// key orders items as the cluster does: by namespace, then by name.
func (t *target) key(item []byte) string {
	var namespace, name []byte
	if t.protobuf {
		namespace, name = nameOfProtobuf(item)
	} else {
		namespace, name = nameOfJSON(item)
	}
	return string(namespace) + "\x00" + string(name)
}

func (l *pagedList) close() {
	l.cancel()
	if l.page != nil {
		l.page.free()
		l.page = nil
	}
}

func versionTrailer(version string, expired bool) []byte {
	b, _ := json.Marshal(struct {
		Version string `json:"version"`
		Expired bool   `json:"expired,omitempty"`
	}{version, expired})
	return b
}

// listBound lists the Namespaces of a bound, by reading each. Those that do not
// exist are left out.
func (c *call) listBound(t *target, in *listRequest) (stream, *registry.Refusal) {
	if _, r := c.granted(namespaces, "", "get"); r != nil {
		return nil, r
	}
	scope, err := c.bound.Scope("")
	if err != nil {
		return nil, refusal(err)
	}
	if in.LabelSelector != "" || in.FieldSelector != "" {
		return nil, badRequest("the namespaces of a bounded registration cannot be selected from")
	}
	scope = slices.Sorted(slices.Values(scope))
	p, r := c.page(t, scope, "", "", "")
	if r != nil {
		return nil, r
	}
	b := &boundListing{c: c, t: t, scope: scope, paging: p}
	if b.at, r = p.start(scope); r != nil {
		return nil, r
	}
	b.ctx, b.cancel = context.WithCancel(c.ctx)
	rest := scope[b.at:]
	b.objects = newFan(len(rest), ahead, func(i int) gotten {
		o, r := c.object(b.ctx, "get", t, &registry.Request{Method: http.MethodGet, Path: t.path("", rest[i])})
		return gotten{o, r}
	})
	return b, nil
}

// boundListing reads Namespaces one by one.
type boundListing struct {
	c      *call
	ctx    context.Context
	cancel context.CancelFunc
	t      *target
	scope  []string
	paging

	at      int
	objects *fan[gotten]
	current *object
	done    bool
}

type gotten struct {
	object *object
	bad    *registry.Refusal
}

func (b *boundListing) next() ([]byte, bool, *registry.Refusal) {
	b.drop()
	for !b.done {
		if b.limited && b.left == 0 {
			b.done = true
			if b.at < len(b.scope) {
				return nil, false, b.stop(cursor{Namespace: b.scope[b.at]})
			}
			break
		}
		wait := b.objects.next()
		if wait == nil {
			break
		}
		var g gotten
		select {
		case g = <-wait:
		case <-b.ctx.Done():
			return nil, false, ending(b.ctx)
		}
		b.at++
		if g.bad != nil {
			if g.bad.Code == "not_found" {
				continue
			}
			return nil, false, g.bad
		}
		b.current = g.object
		b.left--
		return g.object.next()
	}
	return nil, false, nil
}

func (b *boundListing) drop() {
	if b.current != nil {
		b.current.close()
		b.current = nil
	}
}

func (b *boundListing) trailer() []byte { return versionTrailer("", false) }

func (b *boundListing) close() {
	b.cancel()
	b.drop()
}
