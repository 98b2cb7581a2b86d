package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	mine   = "markaaaaaaaaaaaaaaaa"
	theirs = "markbbbbbbbbbbbbbbbb"
)

// answered is an answer with one object for each mark.
func answered(marks ...string) reply {
	var items []string
	for i, mark := range marks {
		items = append(items, fmt.Sprintf(`{"name":"app-%d","spec":{"content":"content-%s"}}`, i, mark))
	}
	return reply{status: http.StatusOK, body: []byte(`{"resources":[` + strings.Join(items, ",") + `]}`)}
}

func refused(status int, code string, header ...string) reply {
	got := reply{status: status, code: code, header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		got.header.Set(header[i], header[i+1])
	}
	return got
}

// TestAnothersMarkIsABreach holds answers that must be told of, and answers that
// must not, against the checks that every answer of the run passes.
func TestAnothersMarkIsABreach(t *testing.T) {
	own := call{kind: "lab", list: "resources", items: 2, target: "/v1/k8s/resources"}
	foreign := call{kind: "foreign", only: []int{http.StatusNotFound}, target: "/v1/k8s/clusters/own-" + theirs}
	real := call{kind: "real", list: "resources", items: 2}
	clusters := call{kind: "registry", list: "clusters"}
	registered := func(names ...string) reply {
		return reply{status: http.StatusOK, body: fmt.Appendf(nil, `{"clusters":[{"name":"%s"}]}`, strings.Join(names, `"},{"name":"`))}
	}
	for _, c := range []struct {
		name  string
		call  call
		got   reply
		clean bool // of others' marks and of credentials
		right bool // for this call
	}{
		{"its own", own, answered(mine, mine), true, true},
		{"another's", own, answered(theirs, theirs), false, false},
		{"one of another's", own, answered(mine, theirs), false, false},
		{"another's beside its own", own, answered(mine, mine, theirs), false, false},
		{"a short list", own, answered(mine), true, false},
		{"nothing", own, answered(), true, false},
		{"no mark at all", own, answered("", ""), true, false},
		{"a credential", own, reply{status: http.StatusBadGateway, code: "bad_upstream", body: []byte("Bearer credential-" + mine + "-0")}, false, true},
		{"another's mark in a refusal", own, reply{status: http.StatusBadGateway, code: "bad_upstream", body: []byte(theirs)}, false, true},
		{"a credential that was rotated", own, refused(503, "rotated", "Retry-After", "1"), true, true},
		{"a credential that was rotated, and not when to come again", own, refused(503, "rotated"), true, false},
		{"a registration that is said to be gone", own, refused(404, "deregistered"), true, false},
		{"a cluster that is cut off", own, refused(502, "truncated"), true, true},
		{"a cluster that is fine and refused", real, refused(502, "truncated"), true, false},
		{"an excused refusal", real, refused(429, "rate_limited", "Retry-After", "1"), true, true},
		{"one without Retry-After", real, refused(429, "rate_limited"), true, false},
		{"a breaker without Retry-After", own, refused(503, "breaker_open"), true, false},
		{"a fault of the service's", own, refused(500, "guest_fault"), true, false},
		{"a registration that is gone", own, refused(404, "cluster_not_found"), true, false},
		{"every registration", clusters, registered("lab", "own-"+mine, "real"), true, true},
		{"a lost registration", clusters, registered("own-"+mine, "real"), true, false},
		{"another's name, refused", foreign, refused(404, "cluster_not_found"), true, true},
		{"another's name, which the call had named", foreign, reply{status: 404, code: "cluster_not_found", body: []byte("own-" + theirs)}, true, true},
		{"another's name, answered", foreign, answered(mine), true, false},
		{"another's name, known", foreign, refused(403, "forbidden"), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &runner{out: io.Discard, count: newTally()}
			me := &tenant{mark: mine}
			if err := r.clean(me, c.call.target, c.got); (err == nil) != c.clean {
				t.Errorf("clean: %v", err)
			}
			if err := c.call.right(me, c.got); (err == nil) != c.right {
				t.Errorf("right: %v", err)
			}
		})
	}
}

// TestABreachFailsTheRun sees that what is counted as a breach is printed and is
// an error, and that a replica that has grown is one that is told.
func TestABreachFailsTheRun(t *testing.T) {
	count := newTally()
	count.add("lab", "ok", 1)
	if err := count.print(io.Discard, 1); err != nil {
		t.Fatal(err)
	}
	count.breach("an answer to %s holds %s", mine, theirs)
	var out strings.Builder
	if err := count.print(&out, 1); err == nil || !strings.Contains(out.String(), theirs) {
		t.Errorf("%v: %s", err, out.String())
	}
	before := held{goroutines: 150, descriptors: 100}
	for _, c := range []struct {
		after held
		want  bool
	}{
		{before, false},
		{held{goroutines: 150, descriptors: 131}, true},
		{held{goroutines: 186, descriptors: 100}, true},
		{held{goroutines: 185, descriptors: 130}, false},
	} {
		if got := grown(before, c.after); got != c.want {
			t.Errorf("from %s to %s has grown: %v", before, c.after, got)
		}
	}
}
