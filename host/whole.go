package host

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hanzoai/k8s/registry"
)

// wholeList reads all of a list, one namespace of its scope after the other: each in
// one answer, an item at a time as it comes. So no list takes more memory than
// another, and the cluster is not asked for pages, which cost it more than the
// answer at once.
type wholeList struct {
	c      *call
	ctx    context.Context
	cancel context.CancelFunc
	t      *target
	query  url.Values
	scope  []string

	asked    *fan[sent] // the first of each namespace
	at       int        // the namespace being read
	versions []string
	reply    *reply
	list     *arrival
	count    int    // answers of this namespace
	mark     string // a continue token seen in it before
}

// sent is an answer of which nothing has been read, or why there is none.
type sent struct {
	reply *reply
	bad   *registry.Refusal
}

func (c *call) wholeList(t *target, scope []string, query url.Values) *wholeList {
	w := &wholeList{c: c, t: t, query: query, scope: scope, versions: make([]string, len(scope))}
	w.ctx, w.cancel = context.WithCancel(c.ctx)
	w.asked = newFan(len(scope), ahead, func(i int) sent { return w.ask(i, "") })
	return w
}

func (w *wholeList) ask(i int, from string) sent {
	q := w.query
	if from != "" { // of a server that pages by itself, which no API server of Kubernetes does
		q = maps.Clone(q)
		q.Set("limit", strconv.Itoa(pageItems))
		q.Set("continue", from)
	}
	r, bad := w.c.send(w.ctx, "list", w.t.name, &registry.Request{
		Method: http.MethodGet, Path: w.t.path(w.scope[i], ""), Query: q, Accept: w.t.accept(), Bulk: true,
		MaxBytes: w.c.meter.limits.BytesIn + 1, // the meter is to say so first
	})
	return sent{r, bad}
}

func (w *wholeList) next() ([]byte, bool, *registry.Refusal) {
	for w.at < len(w.scope) {
		if w.list == nil {
			if r := w.take(w.asked.next()); r != nil {
				return nil, false, r
			}
		}
		item, ok, r := w.list.item()
		if r != nil || ok {
			return item, ok, r
		}
		version, next := w.list.version, w.list.next
		w.drop()
		if next == "" {
			w.versions[w.at] = version
			w.at, w.count, w.mark = w.at+1, 0, ""
			continue
		}
		if w.count++; w.count > maxPages || next == w.mark {
			return nil, false, upstream("the cluster's list does not come to an end")
		}
		if w.count&(w.count-1) == 0 { // marks further and further apart meet every cycle
			w.mark = next
		}
		more := make(chan sent, 1)
		go func(i int) { more <- w.ask(i, next) }(w.at)
		if r := w.take(more); r != nil {
			return nil, false, r
		}
	}
	return nil, false, nil
}

func (w *wholeList) take(wait <-chan sent) *registry.Refusal {
	select {
	case a := <-wait:
		if a.bad != nil {
			return a.bad
		}
		w.reply, w.list = a.reply, newArrival(w.t, a.reply)
		return nil
	case <-w.ctx.Done():
		return ending(w.ctx)
	}
}

func (w *wholeList) drop() {
	if w.list != nil {
		w.list.free()
		w.reply.close()
		w.list, w.reply = nil, nil
	}
}

func (w *wholeList) trailer() []byte { return versionTrailer(joinVersions(w.scope, w.versions), false) }

func (w *wholeList) close() {
	w.cancel()
	w.drop()
	w.asked.drain(func(a sent) {
		if a.reply != nil {
			a.reply.close()
		}
	})
}
