package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// labApps is how many objects a lab has.
const labApps = 5

// lab is a tenant's cluster that misbehaves. It knows which credentials are in
// force, and what it was sent that was not.
type lab struct {
	*misbehave.Server
	mark string

	list string // its objects, as it would answer them
	mood atomic.Pointer[mood]

	mu      sync.Mutex
	ends    map[string]time.Time // by token: when it was rotated away; zero while it may be in force
	late    time.Duration        // the latest after its end that a token came
	foreign int                  // requests with a token that was never its own
	served  int
}

// mood is one way to misbehave.
type mood struct {
	name string
	do   misbehave.Behaviour
}

func newLab(mark string) *lab {
	l := &lab{Server: misbehave.New(), mark: mark, ends: map[string]time.Time{}}
	var items []string
	for i := range labApps {
		items = append(items, fmt.Sprintf(`{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"app-%d-%s","namespace":"default","uid":"%d","resourceVersion":"%d"},"spec":{"content":"content-%s"}}`,
			i, mark, i, i+2, mark))
	}
	l.list = `{"kind":"AppList","apiVersion":"hanzo.ai/v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	l.On("", l.serve)
	return l
}

func (l *lab) serve(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	l.mu.Lock()
	l.served++
	switch end, ours := l.ends[token]; {
	case !ours:
		l.foreign++
	case !end.IsZero():
		l.late = max(l.late, time.Since(end))
	}
	l.mu.Unlock()
	if m := l.mood.Load(); m != nil {
		m.do(w, r)
		return
	}
	l.calm(w, r)
}

func (l *lab) calm(w http.ResponseWriter, r *http.Request) {
	switch {
	case !strings.HasPrefix(r.URL.Path, "/apis/hanzo.ai/v1/"):
		misbehave.Healthy()(w, r)
	case r.URL.Query().Has("watch"):
		misbehave.WatchOpen()(w, r)
	default:
		misbehave.JSON(l.list)(w, r)
	}
}

// token is a new credential, which may come from now on.
func (l *lab) token() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	token := fmt.Sprintf("credential-%s-%d", l.mark, len(l.ends))
	l.ends[token] = time.Time{}
	return token
}

// rotated says that token is in force and no other.
func (l *lab) rotated(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, end := range l.ends {
		if t != token && end.IsZero() {
			l.ends[t] = time.Now()
		}
	}
}

// moods are the ways this lab may misbehave; other is another tenant's.
func (l *lab) moods(other *lab) []*mood {
	half := len(l.list) / 2
	return []*mood{
		{"stall", misbehave.Stall()},
		{"stall in the middle", misbehave.StallAfter(half, l.list)},
		{"crawl", misbehave.Slow(200, l.list)},
		{"cut", misbehave.Cut(half, l.list)},
		{"cut unannounced", misbehave.CutUnannounced(half, l.list)},
		{"go away", misbehave.GoAway(half, l.list)},
		{"a page", misbehave.HTML(http.StatusOK)},
		{"a broken page", misbehave.HTML(http.StatusBadGateway)},
		{"nothing", misbehave.EmptyBody()},
		{"an empty object", misbehave.EmptyObject()},
		{"another kind", misbehave.WrongKind()},
		{"throttle", misbehave.Status(http.StatusTooManyRequests, "TooManyRequests", "slow down", 1)},
		{"unwell", misbehave.Status(http.StatusInternalServerError, "InternalError", "etcd is unwell", -1)},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { misbehave.Redirect(other.URL()+r.URL.Path)(w, r) }},
		{"quote the credential", func(w http.ResponseWriter, r *http.Request) {
			misbehave.Status(http.StatusForbidden, "Forbidden", "no: "+r.Header.Get("Authorization"), -1)(w, r)
		}},
	}
}

// misbehave puts the lab into a mood at random, or leaves it calm.
func (l *lab) misbehave(other *lab, count *tally) {
	if rand.IntN(2) == 0 {
		l.mood.Store(nil)
		return
	}
	all := l.moods(other)
	m := all[rand.IntN(len(all))]
	l.mood.Store(m)
	count.fault("cluster: " + m.name)
}
