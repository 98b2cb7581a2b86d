package registry

import (
	"net/http"
	"sync"
	"time"
)

const (
	breakerFailures = 5 // in a row, that open it
	breakerPause    = 2 * time.Second
	breakerLongest  = 30 * time.Second
)

// breaker keeps requests from a cluster that does not answer. After
// breakerFailures in a row it is open for a pause, then lets one request
// through to see; that one closes it, or doubles the pause.
type breaker struct {
	changed func(state string)

	mu       sync.Mutex
	failures int
	pause    time.Duration // 0 while closed
	until    time.Time     // the end of the pause
	probing  bool
}

// enter lets a request through, or refuses it with breaker_open. probe is for
// leave.
func (b *breaker) enter(now time.Time) (probe bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.pause == 0:
		return false, nil
	case b.probing || now.Before(b.until):
		return false, Refuse(http.StatusServiceUnavailable, "breaker_open",
			"the cluster has not answered lately; requests to it are held back").After(max(b.until.Sub(now), time.Second))
	}
	b.probing = true
	b.changed("half_open")
	return true, nil
}

// leave says how a request that was let through ended. One that tells nothing
// of the cluster, because its caller left or it shared another's failure to
// connect, is neither.
func (b *breaker) leave(now time.Time, probe bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch answered, failed := err == nil, isSilence(err); {
	case answered:
		if b.pause > 0 {
			b.changed("closed")
		}
		b.failures, b.pause = 0, 0
	case failed && probe:
		b.pause = min(2*b.pause, breakerLongest)
		b.until = now.Add(b.pause)
		b.changed("open")
	case failed && b.pause == 0:
		if b.failures++; b.failures >= breakerFailures {
			b.pause = breakerPause
			b.until = now.Add(b.pause)
			b.changed("open")
		}
	}
}

// isSilence says that err is a cluster's that does not answer.
func isSilence(err error) bool {
	r := asRefusal(err)
	if r == nil || r.Unsent {
		return false
	}
	switch r.Code {
	case "connect_timeout", "cluster_unreachable", "tls_invalid", "deadline":
		return true
	}
	return false
}
