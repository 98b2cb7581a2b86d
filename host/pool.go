package host

import (
	"context"
	"sync"
	"time"

	"github.com/hanzoai/k8s/registry"
)

func (c PoolConfig) withDefaults() PoolConfig {
	def := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	def(&c.Floor, 1)
	def(&c.Ceiling, 256)
	def(&c.Org, 64)
	def(&c.Cluster, 32)
	def(&c.Waiting, 256)
	if c.Wait == 0 {
		c.Wait = 5 * time.Second
	}
	c.Floor = min(c.Floor, c.Ceiling)
	return c
}

// instances are those of one module: clean ones ready, and never more than
// its ceiling in all.
type instances struct {
	program *program
	config  PoolConfig
	ctx     context.Context // in which instances are made
	shares  *shares

	mu      sync.Mutex
	idle    []*instance // the most recently used last
	live    int         // idle, running, being restored, being made
	long    int         // of those, running ops that wait by design
	low     int         // the fewest idle since the last trim
	making  bool        // one is being made ahead of need
	clean   int         // being restored: ready in a moment
	waiting []*waiter   // first come first
	closed  bool
	drained chan struct{} // closed when closed and nothing is live
	gone    chan struct{} // closed when the code is freed too
	served  uint64        // instances restored
	told    [3]int        // live, idle and waiting as last reported
}

// waiter is a caller that waits for an instance.
type waiter struct {
	got chan handed // buffered: one
}

type handed struct {
	instance *instance
	err      error
}

func newInstances(ctx context.Context, p *program, c PoolConfig) *instances {
	l := &instances{program: p, config: c.withDefaults(), ctx: ctx, shares: newShares(c), drained: make(chan struct{}), gone: make(chan struct{})}
	if p.first != nil {
		l.idle, l.live, p.first = append(l.idle, p.first), 1, nil
	}
	l.mu.Lock()
	l.ahead()
	l.report()
	l.mu.Unlock()
	return l
}

// report tells how the pool's size has changed. The lock is held.
func (l *instances) report() {
	now := [3]int{l.live, len(l.idle), len(l.waiting)}
	if now == l.told {
		return
	}
	l.program.engine.metrics.Pool(l.program.name, now[0]-l.told[0], now[1]-l.told[1], now[2]-l.told[2])
	l.told = now
}

// get takes a clean instance, which put must take back. It waits where all are
// in use, with a bound on how many wait and for how long.
func (l *instances) get(ctx context.Context, long bool) (*instance, error) {
	l.mu.Lock()
	if long && l.long >= max(1, l.config.Ceiling*3/4) {
		l.mu.Unlock()
		return nil, overloaded()
	}
	if long {
		l.long++
	}
	i, err := l.take(ctx)
	if err != nil && long {
		l.mu.Lock()
		l.long--
		l.mu.Unlock()
	}
	return i, err
}

// take is called with the lock held and releases it.
func (l *instances) take(ctx context.Context) (*instance, error) {
	if n := len(l.idle); n > 0 {
		i := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.low = min(l.low, len(l.idle))
		l.ahead()
		l.report()
		l.mu.Unlock()
		return i, nil
	}
	l.low = 0
	if l.closed {
		l.mu.Unlock()
		return nil, overloaded()
	}
	// One that is being restored comes sooner than one that has to be made.
	if l.live < l.config.Ceiling && l.clean <= len(l.waiting) {
		l.live++
		l.report()
		l.mu.Unlock()
		i, err := l.make()
		if err != nil {
			l.drop()
		}
		return i, err
	}
	if len(l.waiting) >= l.config.Waiting {
		l.mu.Unlock()
		return nil, overloaded()
	}
	w := &waiter{got: make(chan handed, 1)}
	l.waiting = append(l.waiting, w)
	l.report()
	t := time.NewTimer(l.config.Wait)
	l.mu.Unlock()
	defer t.Stop()
	select {
	case h := <-w.got:
		return h.instance, h.err
	case <-t.C:
	case <-ctx.Done():
	}
	if l.leave(w) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return nil, overloaded()
	}
	h := <-w.got // it was handed over meanwhile
	return h.instance, h.err
}

// leave takes w out of the queue; false if it has been served.
func (l *instances) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, o := range l.waiting {
		if o == w {
			l.waiting = append(l.waiting[:n], l.waiting[n+1:]...)
			l.report()
			return true
		}
	}
	return false
}

func (l *instances) make() (*instance, error) {
	began := time.Now()
	i, err := l.program.make(l.ctx)
	if err != nil {
		return nil, err
	}
	l.program.engine.metrics.Made(l.program.name, time.Since(began))
	return i, nil
}

// put takes back an instance after a call: at once if why says that it is to be
// thrown away, else after it is restored, which no caller waits for.
func (l *instances) put(i *instance, long bool, why Discard) {
	l.mu.Lock()
	if long {
		l.long--
	}
	if why == "" {
		l.clean++
	}
	l.mu.Unlock()
	go func() {
		restoring := why == ""
		if restoring {
			why = l.restore(i)
		}
		l.mu.Lock()
		if restoring {
			l.clean--
		}
		l.mu.Unlock()
		if why != "" {
			l.discard(i, why)
			return
		}
		l.add(i)
	}()
}

// restore restores an instance, or says why it cannot serve again.
func (l *instances) restore(i *instance) Discard {
	if i.program.snapshot == nil {
		return Spent
	}
	began := time.Now()
	blocks, ok := i.restore()
	if !ok {
		return Grew
	}
	m := l.program.engine.metrics
	m.Restored(l.program.name, blocks, time.Since(began))
	l.mu.Lock()
	l.served++
	sample := l.served%uint64(l.program.engine.verify) == 0
	l.mu.Unlock()
	if sample {
		equal := i.sum() == i.program.snapshot.sum
		m.Verified(l.program.name, equal)
		if !equal {
			l.program.engine.log.Error("an instance differs from its snapshot after it was restored", "module", l.program.name)
			return Differed
		}
	}
	return ""
}

// add gives a clean instance to who has waited longest, or keeps it.
func (l *instances) add(i *instance) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.discard(i, Closed)
		return
	}
	defer l.mu.Unlock()
	if len(l.waiting) > 0 {
		l.serve(handed{instance: i})
		return
	}
	l.idle = append(l.idle, i)
	l.report()
}

// serve hands h to the first in the queue. The lock is held.
func (l *instances) serve(h handed) {
	w := l.waiting[0]
	l.waiting = append(l.waiting[:0], l.waiting[1:]...)
	w.got <- h
	l.report()
}

// discard closes an instance, once.
func (l *instances) discard(i *instance, why Discard) {
	l.program.engine.metrics.Discarded(l.program.name, why)
	if err := i.close(); err != nil {
		l.program.engine.log.Error("closing an instance", "module", l.program.name, "error", err)
	}
	l.drop()
}

// drop forgets an instance that is no more, and makes another where one is needed.
func (l *instances) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live--
	l.report()
	if l.closed {
		if l.live == 0 {
			close(l.drained)
		}
		return
	}
	l.ahead()
}

// ahead starts to make an instance where fewer than the floor are ready, or about
// to be, beside those that are waited for. The lock is held.
func (l *instances) ahead() {
	if l.closed || l.making || l.live >= l.config.Ceiling || len(l.idle)+l.clean >= l.config.Floor+len(l.waiting) {
		return
	}
	l.making = true
	l.live++
	l.report()
	go func() {
		i, err := l.make()
		l.mu.Lock()
		l.making = false
		if err != nil && len(l.waiting) > 0 {
			l.serve(handed{err: err})
		}
		l.mu.Unlock()
		if err != nil {
			l.program.engine.log.Error("making an instance", "module", l.program.name, "error", err)
			l.fail()
			return
		}
		l.add(i)
		l.mu.Lock()
		l.ahead()
		l.mu.Unlock()
	}()
}

// fail forgets an instance that could not be made; the next caller tries again.
func (l *instances) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live--
	l.report()
	if l.closed && l.live == 0 {
		close(l.drained)
	}
	if len(l.waiting) > 0 {
		l.ahead()
	}
}

// trim closes the instances that nobody has needed since the last trim.
func (l *instances) trim() {
	l.mu.Lock()
	n := max(0, min(l.low, len(l.idle))-l.config.Floor)
	surplus := append([]*instance(nil), l.idle[:n]...)
	l.idle = append(l.idle[:0], l.idle[n:]...)
	l.low = len(l.idle)
	l.report()
	l.mu.Unlock()
	for _, i := range surplus {
		l.discard(i, Surplus)
	}
}

// close closes every instance, running ones when they come back, and then the
// code. It does not wait; drained tells.
func (l *instances) close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	idle := l.idle
	l.idle = nil
	for len(l.waiting) > 0 {
		l.serve(handed{err: overloaded()})
	}
	l.report()
	if l.live == 0 {
		close(l.drained)
	}
	l.mu.Unlock()
	for _, i := range idle {
		l.discard(i, Closed)
	}
	go func() {
		<-l.drained
		l.program.close(context.Background())
		close(l.gone)
	}()
}

func overloaded() *registry.Refusal {
	return registry.Refuse(503, "overloaded", "too many calls of this operation at once").After(time.Second)
}
