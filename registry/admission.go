package registry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what one org, and one of its clusters, may have in the air. A
// field that is 0 has its default; a negative one does not bound.
type Limits struct {
	Short    int     // short calls at once on one cluster; 64
	Long     int     // long calls (watches, drains, followed logs) at once on one cluster; 200
	OrgShort int     // short calls at once of one org; 256
	OrgLong  int     // long calls at once of one org; 500
	OrgRate  float64 // calls begun a second by one org; 200. One too early waits for its turn, up to 250 ms
	OrgBurst int     // calls begun at once by one org that has been quiet; 100
}

func (l Limits) complete() Limits {
	def := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	def(&l.Short, 64)
	def(&l.Long, 200)
	def(&l.OrgShort, 256)
	def(&l.OrgLong, 500)
	def(&l.OrgBurst, 100)
	if l.OrgRate == 0 {
		l.OrgRate = 200
	}
	return l
}

// admission counts the calls in the air. Short and long ones are counted apart,
// so that a tenant's watches do not use up its reads.
type admission struct {
	limits Limits

	mu   sync.Mutex
	orgs map[Org]*load
}

type load struct {
	short, long int
	rate        *rate.Limiter
	clusters    map[string]*[2]int // short and long, by cluster
}

// patience is how long a call waits for its turn in its org's rate. Who asks
// faster than it may is slowed down by that before it is refused, and what is
// not asked costs the others nothing.
const patience = 250 * time.Millisecond

// tidyAbove is how many orgs are remembered before quiet ones are forgotten.
const tidyAbove = 1024

// Admit takes a place for one call of the caller's org to its cluster of that
// name, registered or not; release gives it back and may be called again. long
// is for calls that wait: watches, drains. Its refusals are no_tenant,
// rate_limited (429, the org has too many) and overloaded (503, the cluster
// has), both with RetryAfter, and what ctx ends by while the call waits for its
// turn.
func (r *Registry) Admit(ctx context.Context, cluster string, long bool) (release func(), err error) {
	org, err := Tenant(ctx)
	if err != nil {
		return nil, err
	}
	release, wait, err := r.admission.admit(org, cluster, long, time.Now())
	if err != nil || wait == 0 {
		return release, err
	}
	if err := sleep(ctx, wait); err != nil {
		release()
		return nil, failure(ctx, err)
	}
	return release, nil
}

// admit takes the place and says how long the call has to wait before it begins.
func (a *admission) admit(org Org, cluster string, long bool, now time.Time) (release func(), wait time.Duration, err error) {
	kind, perCluster, perOrg := 0, a.limits.Short, a.limits.OrgShort
	if long {
		kind, perCluster, perOrg = 1, a.limits.Long, a.limits.OrgLong
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.orgs[org]
	if l == nil {
		a.tidy(now)
		l = &load{clusters: map[string]*[2]int{}}
		if a.limits.OrgRate > 0 && a.limits.OrgBurst > 0 {
			l.rate = rate.NewLimiter(rate.Limit(a.limits.OrgRate), a.limits.OrgBurst)
		}
		a.orgs[org] = l
	}
	inOrg := &l.short
	if long {
		inOrg = &l.long
	}
	at := l.clusters[cluster]
	if at == nil {
		at = &[2]int{}
	}
	switch {
	case perCluster >= 0 && at[kind] >= perCluster:
		return nil, 0, Refuse(http.StatusServiceUnavailable, "overloaded", "too many calls to this cluster are running").After(time.Second)
	case perOrg >= 0 && *inOrg >= perOrg:
		return nil, 0, Refuse(http.StatusTooManyRequests, "rate_limited", "too many calls of this org are running").After(time.Second)
	}
	if l.rate != nil {
		turn := l.rate.ReserveN(now, 1)
		if wait = turn.DelayFrom(now); wait > patience {
			turn.CancelAt(now)
			return nil, 0, Refuse(http.StatusTooManyRequests, "rate_limited", "this org makes calls faster than it may").After(time.Second)
		}
	}
	at[kind]++
	*inOrg++
	l.clusters[cluster] = at
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		*inOrg--
		if at[kind]--; *at == [2]int{} {
			delete(l.clusters, cluster)
		}
	}), wait, nil
}

// tidy forgets orgs that have nothing running and their whole burst left.
func (a *admission) tidy(now time.Time) {
	if len(a.orgs) < tidyAbove {
		return
	}
	for org, l := range a.orgs {
		if l.short == 0 && l.long == 0 && (l.rate == nil || l.rate.TokensAt(now) >= float64(a.limits.OrgBurst)) {
			delete(a.orgs, org)
		}
	}
}
