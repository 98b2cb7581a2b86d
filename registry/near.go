package registry

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// nearby is within how long a cluster has connected that is in the same network,
// unless a Policy says otherwise.
const nearby = time.Millisecond

// distance is how long the quickest connection to a cluster took to be made, in
// nanoseconds; 0 is not known.
type distance struct{ atomic.Int64 }

// measure has the connections made in ctx noted.
func (d *distance) measure(ctx context.Context) context.Context {
	var began atomic.Int64
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(string, string) { began.Store(time.Now().UnixNano()) },
		ConnectDone: func(_, _ string, err error) {
			if took := max(1, time.Now().UnixNano()-began.Load()); err == nil {
				for old := d.Load(); (old == 0 || took < old) && !d.CompareAndSwap(old, took); old = d.Load() {
				}
			}
		},
	})
}

// within says whether the cluster is known to be so near.
func (d *distance) within(near time.Duration) bool {
	took := time.Duration(d.Load())
	return took > 0 && took <= near
}
