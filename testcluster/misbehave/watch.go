package misbehave

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Watch answers a watch with frames exactly as they are given, one after the
// other, and then ends the stream. A request that is no watch is answered
// healthily, so that one prefix serves a list and its watch.
func Watch(frames ...string) Behaviour { return watch(false, frames) }

// WatchOpen is Watch whose stream stays open after the last frame, until the
// caller goes away.
func WatchOpen(frames ...string) Behaviour { return watch(true, frames) }

func watch(open bool, frames []string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		if asked := r.URL.Query().Get("watch"); asked != "true" && asked != "1" {
			Healthy()(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		flush(w)
		for _, frame := range frames {
			if _, err := io.WriteString(w, frame); err != nil {
				return
			}
			flush(w)
		}
		if open {
			<-r.Context().Done()
		}
	}
}

// Event is a frame with an object, which is given as JSON.
func Event(kind, object string) string {
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, object)
}

// Bookmark is the frame that only says how far the watch has come.
func Bookmark(kind, apiVersion, resourceVersion string) string {
	return Event("BOOKMARK", fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q,"creationTimestamp":null}}`,
		kind, apiVersion, resourceVersion))
}

// Gone is the frame of a watch whose resourceVersion is too old.
func Gone() string {
	return Event("ERROR", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
		`"message":"too old resource version: 1 (1000)","reason":"Expired","code":410}`)
}

// Half is the first half of a frame, and with nothing after it a truncated one.
func Half(frame string) string { return frame[:len(frame)/2] }

// Huge is a frame whose object holds a string of so many bytes.
func Huge(size int) string {
	return Event("ADDED", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"huge","namespace":"default","resourceVersion":"2"},"data":"`+
		strings.Repeat("a", size)+`"}`)
}
