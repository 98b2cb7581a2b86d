package ops_test

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/k8s/testcluster/misbehave"
)

// resources is what this process, and the service in it, hold.
type resources struct{ goroutines, descriptors, instances int }

func (s *stack) resources(t *testing.T) (r resources) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	r.goroutines = runtime.NumGoroutine()
	if open, err := os.ReadDir("/proc/self/fd"); err == nil { // not everywhere
		r.descriptors = len(open)
	}
	for _, found := range inUse.FindAllStringSubmatch(s.metrics(t), -1) {
		n, err := strconv.Atoi(found[2])
		if err != nil {
			t.Fatal(err)
		}
		if found[1] == "live" {
			r.instances += n
		} else {
			r.instances -= n
		}
	}
	return r
}

var inUse = regexp.MustCompile(`k8s_guest_instances\{module="[^"]*",state="(live|idle)"\} (\d+)`)

// TestCallersWhoLeave is case B16: 500 callers open a watch and drop their
// connection. The cluster's requests end with them, and so does all that was
// held for them.
func TestCallersWhoLeave(t *testing.T) {
	const callers, atOnce = 500, 20
	s := replica(t, sharedVault(t))
	lab := misbehave.New()
	t.Cleanup(lab.Close)
	org := anOrg()
	s.enrol(t, org, "lab", lab.Kubeconfig("SENTINEL-left"))
	t.Cleanup(func() { s.dismiss(t, org, "lab") })
	version := s.watchVersion(t, org)
	lab.On("/apis/hanzo.ai", misbehave.WatchOpen())
	round := func(n int) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		for range n {
			wait.Go(func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+labWatch+version, nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("X-Org-Id", org)
				r.Header.Set("X-User-Id", "u1")
				// A connection of its own, which goes with the caller.
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				if resp, err := client.Do(r); err == nil {
					resp.Body.Close()
					t.Errorf("a watch ended by itself: %d", resp.StatusCode)
				}
			})
		}
		if !lab.WaitLive("/apis/hanzo.ai", n, 20*time.Second) {
			t.Fatalf("%d of %d watches came to the cluster", lab.Live("/apis/hanzo.ai"), n)
		}
		leave()
		wait.Wait()
		if !lab.WaitLive("/apis/hanzo.ai", 0, 5*time.Second) {
			t.Fatalf("%d requests outlive their callers", lab.Live("/apis/hanzo.ai"))
		}
	}
	round(atOnce)
	time.Sleep(time.Second)
	before := s.resources(t)
	for range callers / atOnce {
		round(atOnce)
	}
	var after resources
	for range 100 {
		after = s.resources(t)
		if after.goroutines <= before.goroutines+10 && after.descriptors <= before.descriptors+5 && after.instances <= before.instances {
			t.Logf("%d callers left; held before %+v, after %+v", callers, before, after)
			if n := strings.Count(s.audit.String(), `"code":"canceled"`); n < callers {
				t.Errorf("%d audit lines tell of callers who left", n)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("held before %+v, after %d callers left %+v", before, callers, after)
}
