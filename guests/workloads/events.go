package main

import (
	"slices"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// listEvents answers events, oldest first: what the cluster's controllers said
// of an object, how often, and when last.
//
// lastSeen is the time of a series' last observation, else the last timestamp,
// the event's own time, the first timestamp or its creation, whichever there is
// first; 0 where none is, and never now. count is the series', else the event's
// own, else 1. A page is sorted within itself.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"events": [{"namespace": "web", "name": "shop-7d4b9c-x2x7p.18a1", "type": "Warning",
// "reason": "BackOff", "message": "Back-off restarting failed container", "object": "Pod/shop-7d4b9c-x2x7p",
// "count": 12, "lastSeen": 1767366245}]}
//
//k8s:op k8s_workloads_list_events GET /v1/k8s/workloads/events in=plane.EventsIn out=plane.Events items=events
//k8s:grant list v1/events
//k8s:limit memoryPages=2048
func listEvents(c *sdk.Call) error {
	// The events as they will be answered, and where each lies among them.
	var written []byte
	var order []occurrence
	err := c.Each(c.Selected("v1/events"), func(e lens.Message) error {
		seen := lastSeen(e)
		start := len(written)
		written = c.Append(written, func(w *sdk.Writer) { event(e, seen, w) })
		order = append(order, occurrence{seen, start, len(written)})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(order, func(a, b occurrence) int {
		switch {
		case a.seen < b.seen:
			return -1
		case a.seen > b.seen:
			return 1
		}
		return 0
	})
	for _, o := range order {
		if err := c.EmitRaw(written[o.start:o.end]); err != nil {
			return err
		}
	}
	return nil
}

type occurrence struct {
	seen       int64
	start, end int
}

// The fields of corev1.Event.
const (
	eventObject         = 2
	eventReason         = 3
	eventMessage        = 4
	eventFirstTimestamp = 6
	eventLastTimestamp  = 7
	eventCount          = 8
	eventType           = 9
	eventTime           = 10
	eventSeries         = 11

	objectKind = 1
	objectName = 3

	seriesCount        = 1
	seriesLastObserved = 2
)

func event(e lens.Message, seen int64, w *sdk.Writer) {
	meta, object := e.Meta(), e.Sub(eventObject)
	count := e.Sub(eventSeries).Int32(seriesCount)
	if count == 0 {
		count = e.Int32(eventCount)
	}
	if count == 0 {
		count = 1
	}
	about := object.Str(objectKind)
	if name := object.Str(objectName); name != "" {
		about += "/" + name
	}
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Str("type", e.Str(eventType))
	w.Str("reason", e.Str(eventReason))
	w.Str("message", e.Str(eventMessage))
	w.Str("object", about)
	w.Int("count", count)
	w.Int("lastSeen", seen)
}

func lastSeen(e lens.Message) int64 {
	if t, ok := e.Sub(eventSeries).MicroTime(seriesLastObserved); ok {
		return t
	}
	if t, ok := e.Time(eventLastTimestamp); ok {
		return t
	}
	if t, ok := e.MicroTime(eventTime); ok {
		return t
	}
	if t, ok := e.Time(eventFirstTimestamp); ok {
		return t
	}
	t, _ := e.Meta().Time(lens.MetaCreationTimestamp)
	return t
}
