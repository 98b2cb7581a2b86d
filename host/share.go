package host

import (
	"context"
	"sync"

	"github.com/hanzoai/k8s/registry"
)

// shares bounds what one org, and one cluster of it, may have of a module's
// instances, so that calls that wait for a cluster that does not answer keep
// only calls of their own waiting. Of each share, as of the whole, a quarter is
// kept from ops that wait by design.
type shares struct {
	config PoolConfig

	mu   sync.Mutex
	held map[holder]*share
}

// holder is whose a share is: an org's, or a cluster's of it.
type holder struct {
	org     registry.Org
	cluster string // "" with ops that reach none
	whole   bool   // all the clusters of the org
	long    bool   // the part of the share that ops that wait by design may have
}

type share struct {
	places chan struct{} // holds one for each place that is taken
	users  int           // that hold a place or wait for one
}

func newShares(c PoolConfig) *shares {
	return &shares{config: c.withDefaults(), held: map[holder]*share{}}
}

// enter takes a place for one call, which leave gives back. It waits where all
// are taken, with the pool's bound on how many wait and for how long; a call of
// an op that waits by design does not.
func (s *shares) enter(ctx context.Context, org registry.Org, cluster string, long bool) (leave func(), err error) {
	taken := make([]holder, 0, 4)
	leave = func() {
		for _, o := range taken {
			s.leave(o, true)
		}
	}
	if long {
		for _, o := range []holder{{org: org, cluster: cluster, long: true}, {org: org, whole: true, long: true}} {
			select {
			case s.join(o) <- struct{}{}:
				taken = append(taken, o)
			default:
				s.leave(o, false)
				leave()
				return nil, overloaded()
			}
		}
	}
	waiting, cancel := context.WithTimeout(ctx, s.config.Wait)
	defer cancel()
	// The cluster's first: a call that waits for that has no place of the org's.
	for _, o := range []holder{{org: org, cluster: cluster}, {org: org, whole: true}} {
		places := s.join(o)
		if places == nil || !take(waiting, places) {
			if places != nil {
				s.leave(o, false)
			}
			leave()
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, overloaded()
		}
		taken = append(taken, o)
	}
	return leave, nil
}

// take waits for a place until ctx ends. Who has waited longest is first.
func take(ctx context.Context, places chan<- struct{}) bool {
	if ctx.Err() != nil {
		return false // although there be a place
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// join is a holder's places, nil where too many wait for one.
func (s *shares) join(o holder) chan struct{} {
	size := s.config.Cluster
	if o.whole {
		size = s.config.Org
	}
	if o.long {
		size = max(1, size*3/4)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[o]
	if h == nil {
		h = &share{places: make(chan struct{}, size)}
		s.held[o] = h
	}
	if !o.long && h.users >= size+s.config.Waiting {
		return nil
	}
	h.users++
	return h.places
}

// leave undoes a join, and gives back the place if one was had.
func (s *shares) leave(o holder, had bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[o]
	if had {
		<-h.places
	}
	if h.users--; h.users == 0 {
		delete(s.held, o)
	}
}
