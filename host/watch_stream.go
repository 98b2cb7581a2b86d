package host

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hanzoai/k8s/registry"
)

const (
	maxWait     = 55                     // seconds
	settle      = 200 * time.Millisecond // of quiet, after which changes that came are handed over
	settleMost  = 2 * time.Second        // after the first change
	reconnect   = time.Second            // between two requests of one watch
	shortLived  = 2 * time.Second        // a watch ended sooner, with nothing, made no progress
	barrenMost  = 3                      // such watches in a row mean that the version is gone
	maxWatched  = 64                     // namespaces
	windowSpare = time.Second            // left of the call's time to answer in
)

type watchRequest struct {
	Resource    string
	Kind        string
	Namespace   string
	Version     string
	WaitSeconds int
}

func (in *watchRequest) members() []member {
	return []member{{"resource", &in.Resource}, {"kind", &in.Kind}, {"namespace", &in.Namespace}, {"version", &in.Version}, {"waitSeconds", &in.WaitSeconds}}
}

// watch reads the changes after a version, or what there is where none is
// given. It waits for a first change, and ends soon after it.
func (c *call) watch(in *watchRequest) (stream, *registry.Refusal) {
	verbs := []string{"watch"}
	if in.Version == "" {
		verbs = []string{"list", "watch"}
	}
	t, r := c.target(in.Resource, in.Kind, verbs...)
	if r != nil {
		return nil, r
	}
	scope, r := c.scope(t, in.Namespace)
	if r != nil {
		return nil, r
	}
	if in.WaitSeconds < 0 || in.WaitSeconds > maxWait {
		return nil, badField("waitSeconds", "must be from 0 to 55")
	}
	if len(scope) > maxWatched {
		return nil, badField("namespace", "is needed: the registration is bound to more namespaces than can be watched at once")
	}
	t.protobuf = false
	w := &watching{
		c: c, t: t, scope: scope,
		versions: make([]string, len(scope)), frames: make(chan frame), barren: make([]atomic.Bool, len(scope)),
	}
	window := max(0, time.Duration(max(1, in.WaitSeconds))*time.Second-c.in.lost)
	if until, ok := c.ctx.Deadline(); ok {
		window = max(0, min(window, time.Until(until)-windowSpare))
	}
	w.end = time.Now().Add(window)
	if in.Version == "" {
		w.initial = c.wholeList(t, scope, selectors("", ""))
	} else {
		versions, ok, r := splitVersion(scope, in.Version)
		if r != nil {
			return nil, r
		}
		if !ok {
			return &outdated{version: in.Version}, nil
		}
		w.versions = versions
	}
	w.ctx, w.cancel = context.WithCancel(c.ctx)
	if w.initial == nil {
		w.follow()
	}
	return w, nil
}

// outdated is a watch from a version of another scope: list again.
type outdated struct{ version string }

func (o *outdated) next() ([]byte, bool, *registry.Refusal) { return nil, false, nil }
func (o *outdated) trailer() []byte                         { return versionTrailer(o.version, true) }
func (o *outdated) close()                                  {}

// watching merges the watches of its scope.
type watching struct {
	c      *call
	ctx    context.Context
	cancel context.CancelFunc
	t      *target
	scope  []string

	initial  *wholeList // what there is, while it is being read
	versions []string   // per namespace: of the last change handed over, or bookmark
	frames   chan frame
	barren   []atomic.Bool // per namespace: its last request made no progress

	end     time.Time
	changes int
	settled time.Time // when to stop waiting for more than the changes that came
	item    []byte
	expired bool
	over    bool
}

// frame is one event of one namespace's watch. Without data it is a bookmark.
type frame struct {
	at      int
	version string
	data    []byte
	expired bool
	bad     *registry.Refusal
}

func (w *watching) follow() {
	for i := range w.scope {
		go w.followOne(i, w.versions[i])
	}
}

func (w *watching) next() ([]byte, bool, *registry.Refusal) {
	if w.initial != nil {
		item, ok, r := w.initial.next()
		if r != nil {
			return nil, false, r
		}
		if ok {
			w.changes++
			w.item = append(append(append(w.item[:0], `{"type":"ADDED","object":`...), item...), '}')
			return w.item, true, nil
		}
		copy(w.versions, w.initial.versions)
		w.initial.close()
		if w.initial = nil; w.changes > 0 {
			w.over = true
		} else {
			for _, v := range w.versions {
				if !isVersion(v) {
					return nil, false, upstream("the cluster's list has no version to watch from")
				}
			}
			w.follow()
		}
	}
	for !w.over {
		until := time.Until(w.end)
		if w.changes > 0 {
			until = min(until, settle, time.Until(w.settled))
		}
		t := time.NewTimer(max(0, until))
		select {
		case f := <-w.frames:
			t.Stop()
			switch {
			case f.bad != nil:
				return nil, false, f.bad
			case f.expired:
				w.expired, w.over = true, true
			default:
				w.versions[f.at] = f.version
				if f.data == nil {
					continue
				}
				if w.changes++; w.changes == 1 {
					w.settled = time.Now().Add(settleMost)
				}
				return f.data, true, nil
			}
		case <-t.C:
			w.over = true
			for i := range w.barren {
				w.expired = w.expired || w.barren[i].Load()
			}
		case <-w.ctx.Done():
			t.Stop()
			return nil, false, ending(w.ctx)
		case <-w.c.life:
			t.Stop()
			return nil, false, w.c.ended()
		}
	}
	w.cancel()
	return nil, false, nil
}

func (w *watching) trailer() []byte {
	return versionTrailer(joinVersions(w.scope, w.versions), w.expired)
}

func (w *watching) close() {
	if w.initial != nil {
		w.initial.close()
		w.initial = nil
	}
	w.over = true
	w.cancel()
}

// send hands a frame over, and tells whether it was taken.
func (w *watching) send(f frame) bool {
	select {
	case w.frames <- f:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// followOne watches one namespace until the watch is over. A request that the
// cluster ends early is followed by another, not at once.
func (w *watching) followOne(i int, version string) {
	barren := 0
	for {
		began := time.Now()
		from := version
		if !w.request(i, &version) {
			return
		}
		if version != from || time.Since(began) > shortLived {
			barren = 0
		} else if barren++; barren == barrenMost {
			w.send(frame{at: i, expired: true})
			return
		}
		w.barren[i].Store(barren > 0)
		t := time.NewTimer(reconnect << barren)
		select {
		case <-t.C:
		case <-w.ctx.Done():
			t.Stop()
			return
		}
	}
}

// request makes one watch request and hands its events over. It answers false
// when the watch is over, and true when another request may follow.
func (w *watching) request(i int, version *string) bool {
	q := selectors("", "")
	q.Set("watch", "true")
	q.Set("resourceVersion", *version)
	q.Set("allowWatchBookmarks", "true")
	q.Set("timeoutSeconds", strconv.Itoa(max(1, int(time.Until(w.end)/time.Second)+1)))
	resp, r := w.c.send(w.ctx, "watch", w.t.name, &registry.Request{
		Method: http.MethodGet, Path: w.t.path(w.scope[i], ""), Query: q, Accept: "application/json",
		Stream: true, MaxBytes: w.c.meter.limits.BytesIn + 1,
	})
	if r != nil {
		return w.stop(i, r)
	}
	defer resp.close()
	alive := time.AfterFunc(shortLived, func() { w.barren[i].Store(false) })
	defer alive.Stop()
	in := frameReader{r: resp}
	for {
		b, err := in.next()
		if err == io.EOF {
			return true
		}
		if err != nil {
			if err == errLarge {
				return w.stop(i, tooLarge("one change is larger than what is accepted"))
			}
			if err == errCut {
				return w.stop(i, truncated())
			}
			return w.stop(i, refusal(err))
		}
		f, r := w.read(b)
		if r != nil {
			return w.stop(i, r)
		}
		if !newer(f.version, *version) {
			continue
		}
		f.at = i
		if !w.send(f) {
			return false
		}
		*version = f.version
		w.barren[i].Store(false)
	}
}

// stop ends the watch with a refusal, which may be that the version is gone.
func (w *watching) stop(i int, r *registry.Refusal) bool {
	if r.Code == "expired" {
		w.send(frame{at: i, expired: true})
	} else {
		w.send(frame{at: i, bad: r})
	}
	return false
}

// read makes a frame of one event of the cluster's.
func (w *watching) read(b []byte) (frame, *registry.Refusal) {
	kind, object := want{name: "type"}, want{name: "object"}
	if err := whole(b, &kind, &object); err != nil {
		return frame{}, malformed(err)
	}
	switch kind.text() {
	case "ADDED", "MODIFIED", "DELETED", "BOOKMARK":
	case "ERROR":
		return frame{}, wronged(object.value, w.c.bound.Redact)
	case "":
		return frame{}, wronged(b, w.c.bound.Redact)
	default:
		return frame{}, upstream("the cluster sent a change of an unknown type")
	}
	if !object.isObject() {
		return frame{}, upstream("the cluster sent a change without an object")
	}
	apiVersion, of, metadata := want{name: "apiVersion"}, want{name: "kind"}, want{name: "metadata"}
	if err := whole(object.value, &apiVersion, &of, &metadata); err != nil {
		return frame{}, malformed(err)
	}
	version := want{name: "resourceVersion"}
	if !metadata.isObject() || whole(metadata.value, &version) != nil || !isVersion(version.text()) {
		return frame{}, upstream("the cluster sent a change without a version")
	}
	if apiVersion.text() != w.t.apiVersion() || !w.t.isKind(of.text()) {
		return frame{}, upstream("the cluster sent a change of something other than " + w.t.resource)
	}
	f := frame{version: version.text()}
	if kind.text() != "BOOKMARK" {
		f.data = bytes.Clone(b)
	}
	return f, nil
}

// wronged is what the object of an ERROR event means.
func wronged(b []byte, redact func([]byte)) *registry.Refusal {
	redact(b)
	st, ok := statusOf(b)
	if !ok || st.Code < 400 {
		return upstream("the cluster ended a watch without a reason")
	}
	return judge(int(st.Code), st, 0)
}

// newer compares two versions that isVersion accepts.
func newer(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

// frameReader cuts a watch's body into its events.
type frameReader struct {
	r         io.Reader
	buf       []byte
	from, end int // what has been read and not been handed out
	err       error
}

// next is one event, good until the next call. io.EOF is the end between two.
func (f *frameReader) next() ([]byte, error) {
	at, depth, inText, escaped := f.from, 0, false, false
	for {
		for ; at < f.end; at++ {
			switch c := f.buf[at]; {
			case escaped:
				escaped = false
			case inText:
				escaped, inText = c == '\\', c != '"'
			case c == '"':
				inText = true
			case c == '{' || c == '[':
				depth++
			case depth > 0 && (c == '}' || c == ']'):
				if depth--; depth == 0 {
					b := f.buf[f.from : at+1]
					f.from = at + 1
					return b, nil
				}
			}
			if depth == 0 {
				if c := f.buf[at]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
					return nil, errShape
				}
				f.from = at + 1
			}
		}
		if f.err != nil {
			if f.from < f.end {
				return nil, errCut
			}
			if refused := refusal(f.err); f.err != io.EOF && refused.Code != "truncated" {
				return nil, refused
			}
			return nil, io.EOF
		}
		if f.end-f.from > maxObject {
			return nil, errLarge
		}
		if f.from > 0 {
			copy(f.buf, f.buf[f.from:f.end])
			at, f.end, f.from = at-f.from, f.end-f.from, 0
		}
		if f.end == len(f.buf) {
			f.buf = append(f.buf, make([]byte, max(16<<10, len(f.buf)))...)
		}
		var n int
		n, f.err = f.r.Read(f.buf[f.end:])
		f.end += n
	}
}
