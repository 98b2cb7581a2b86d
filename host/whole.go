package host

import (
	"net/url"

	"github.com/hanzoai/k8s/registry"
)

// wholeList is all of a list, each namespace in one answer, an item at a time as
// it comes. So no list takes more memory than another, and the cluster is not
// asked for pages, which cost it more than the answer at once.
type wholeList struct {
	scoped

	asked *fan[sent] // the first of each namespace
	reply *reply
	list  *arrival
}

// sent is an answer of which nothing has been read, or why there is none.
type sent struct {
	reply *reply
	bad   *registry.Refusal
}

func (c *call) wholeList(t *target, scope []string, query url.Values) *wholeList {
	w := &wholeList{scoped: c.scoped(t, scope, query)}
	w.asked = newFan(len(scope), ahead, func(i int) sent { return w.ask(i, "", 0) })
	return w
}

func (w *wholeList) ask(i int, from string, limit int) sent {
	q := w.request(i, from, limit)
	q.MaxBytes = w.c.meter.limits.BytesIn + 1 // the meter is to say so first
	r, bad := w.c.send(w.ctx, "list", w.t.name, q)
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
			w.leave(version)
			continue
		}
		// Of a server that pages by itself, which no API server of Kubernetes does.
		if r := w.goesOn(next); r != nil {
			return nil, false, r
		}
		w.from = next
		more := make(chan sent, 1)
		go func(i int) { more <- w.ask(i, next, pageItems) }(w.at)
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

func (w *wholeList) close() {
	w.cancel()
	w.drop()
	w.asked.drain(func(a sent) {
		if a.reply != nil {
			a.reply.close()
		}
	})
}
