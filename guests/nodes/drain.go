package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// How often a drain looks at the node, and how long it leaves a pod alone whose
// eviction was refused, in milliseconds.
const (
	interval   = 1000
	retryAfter = 5000
)

// run evicts until no pod is left to wait for, or until the clock says so.
// Every round asks for each pod that is due, and then looks once at them all: a
// pod that a budget holds back holds up no other.
func (d *drainage) run(until int64) error {
	for {
		for _, p := range d.pods {
			if p.todo != evict || p.gone || p.asked || p.leaving || p.never || d.c.Millis() < p.retry {
				continue
			}
			if d.c.Millis() >= until {
				break
			}
			if err := d.evict(p); err != nil {
				return err
			}
		}
		if d.waiting() == 0 || d.c.Millis() >= until {
			break
		}
		if err := d.c.Sleep(min(interval, until-d.c.Millis())); err != nil {
			return err
		}
		if err := d.look(); err != nil {
			return err
		}
	}
	return d.denied()
}

// evict asks for one pod. Its error ends the drain.
func (d *drainage) evict(p *pod) error {
	gone, err := d.c.Evict(p.namespace, p.name, p.uid)
	if err == nil {
		p.gone, p.asked = gone, !gone
		return nil
	}
	f, ok := err.(*sdk.Failure)
	if !ok {
		return err
	}
	p.retry = d.c.Millis() + retryAfter
	p.reason, p.message = f.Code, f.Message
	switch {
	case over(f):
		return f
	case f.Code == "conflict":
		p.gone = true // there is a pod of that name, but not this one
	case f.Status == 403 && f.Caused("NamespaceTerminating"):
		p.reason = "namespace_terminating"
	case f.Code == "blocked_by_pdb":
	case f.Code == "throttled":
		p.retry = d.c.Millis() + max(retryAfter, int64(f.RetryAfter)*1000)
	case f.Status == 403:
		p.reason, p.never = forbidden, true
		d.forbidden = f
	case f.Status < 500:
		p.never = true
	case f.Reason == "InternalError":
		p.reason, p.never = "eviction_failed", true
	}
	return nil
}

// forbidden is the reason of a pod that the credential may not evict.
const forbidden = "forbidden"

// waiting counts the pods that time may still take away.
func (d *drainage) waiting() int {
	n := 0
	for _, p := range d.pods {
		if (p.todo == evict || p.todo == wait) && !p.gone && !p.never {
			n++
		}
	}
	return n
}

// denied is the cluster's refusal where it let the credential evict none of the
// pods that were to be: that is the op's outcome, and not the pods'.
func (d *drainage) denied() error {
	for _, p := range d.pods {
		if p.todo == evict && p.reason != forbidden {
			return nil
		}
	}
	if d.forbidden == nil {
		return nil
	}
	return d.forbidden
}

// look finds out which pods are gone and which are leaving. A look that fails
// is made up for by the next.
func (d *drainage) look() error {
	ours := make(map[string]*pod, len(d.pods))
	for _, p := range d.pods {
		ours[p.uid] = p
		p.there = false
	}
	err := d.c.Each(d.onNode(), func(m lens.Message) error {
		meta := m.Meta()
		if p := ours[meta.UID()]; p != nil {
			p.there, p.leaving = true, meta.Terminating()
		}
		return nil
	})
	if f, ok := err.(*sdk.Failure); ok && f.Status >= 500 && !over(f) {
		return nil
	} else if err != nil {
		return err
	}
	for _, p := range d.pods {
		if !p.there && !p.gone {
			p.gone = true
			if p.asked {
				d.evicted++
			}
		}
	}
	return nil
}

// over says whether a failure is the end of the call rather than of a request.
func over(f *sdk.Failure) bool {
	return f.Code == "deadline" || f.Code == "deregistered" || f.Code == "rotated" || f.Code == "canceled"
}
