package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tally counts what happens. It is safe for concurrent use.
type tally struct {
	checked, marks atomic.Int64 // answers looked at, and marks seen in them

	mu       sync.Mutex
	outcomes map[outcome]int
	took     map[outcome][]time.Duration
	faults   map[string]int
	breaches map[string]int
}

type outcome struct{ kind, code string }

func newTally() *tally {
	return &tally{outcomes: map[outcome]int{}, took: map[outcome][]time.Duration{}, faults: map[string]int{}, breaches: map[string]int{}}
}

// add counts a call; took is 0 where it had no answer.
func (c *tally) add(kind, code string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := outcome{kind, code}
	c.outcomes[at]++
	if took > 0 {
		c.took[at] = append(c.took[at], took)
	}
}

func (c *tally) fault(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[what]++
}

func (c *tally) breach(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breaches[fmt.Sprintf(format, args...)]++
}

// quantile is the q-th of durations, which it sorts.
func quantile[T cmp.Ordered](all []T, q float64) (none T) {
	if len(all) == 0 {
		return none
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// told is how many breaches are printed.
const told = 30

// print prints the figures. Its error says that there were breaches.
func (c *tally) print(out io.Writer, took time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, n := range c.outcomes {
		total += n
	}
	if took > 0 {
		fmt.Fprintf(out, "%d calls in %.0f s, %.0f a second; %d answers looked at, %d marks in them, none another's unless told below\n\n",
			total, took.Seconds(), float64(total)/took.Seconds(), c.checked.Load(), c.marks.Load())
		fmt.Fprintf(out, "%-9s %-22s %8s %9s %9s\n", "calls of", "outcome", "calls", "p50 ms", "p99 ms")
	}
	keys := slices.SortedFunc(maps.Keys(c.outcomes), func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(c.outcomes[b], c.outcomes[a]), cmp.Compare(a.code, b.code))
	})
	for _, at := range keys {
		fmt.Fprintf(out, "%-9s %-22s %8d %9.1f %9.1f\n", at.kind, at.code, c.outcomes[at], millis(quantile(c.took[at], .5)), millis(quantile(c.took[at], .99)))
	}
	fmt.Fprintln(out)
	for _, what := range slices.Sorted(maps.Keys(c.faults)) {
		fmt.Fprintf(out, "%8d  %s\n", c.faults[what], what)
	}
	if len(c.breaches) == 0 {
		fmt.Fprintln(out, "\nno breach")
		return nil
	}
	fmt.Fprintln(out)
	for n, what := range slices.Sorted(maps.Keys(c.breaches)) {
		if n == told {
			fmt.Fprintln(out, "and more")
			break
		}
		fmt.Fprintf(out, "BREACH %d times: %s\n", c.breaches[what], what)
	}
	return fmt.Errorf("%d kinds of breach", len(c.breaches))
}
