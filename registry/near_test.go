package registry

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// TestNearClustersSendPlain: compressing takes longer than sending where the
// cluster is near, and shorter where it is far.
func TestNearClustersSendPlain(t *testing.T) {
	for name, tt := range map[string]struct {
		near time.Duration
		far  bool // after the first request
		want []string
	}{
		// How near it is shows with the first connection.
		"near":          {near: time.Hour, want: []string{"gzip", "identity", "identity"}},
		"far":           {near: time.Nanosecond, want: []string{"gzip", "gzip", "gzip"}},
		"never that":    {near: -1, want: []string{"gzip", "gzip", "gzip"}},
		"the usual one": {near: 0, far: true, want: []string{"gzip", "gzip", "gzip"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := misbehave.New()
			t.Cleanup(server.Close)
			var got []string
			server.On("/version", func(w http.ResponseWriter, r *http.Request) {
				got = append(got, r.Header.Get("Accept-Encoding"))
				io.WriteString(w, "{}")
			})
			c := newTestClient(t, server.Kubeconfig(sentinel), Policy{AllowPrivate: true, Near: tt.near})
			for range 3 {
				if err := version(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if tt.far {
					c.distance.Store(int64(20 * time.Millisecond))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("what was asked for (-want +got):\n%s", diff)
			}
		})
	}
}
