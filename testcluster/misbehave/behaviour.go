package misbehave

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Behaviour is how one request is answered. Any handler function is one. The
// request's context ends when the caller goes away or the server is closed.
type Behaviour = http.HandlerFunc

// JSON answers with a body as it stands, as JSON, and with 200.
func JSON(body string) Behaviour { return Body(http.StatusOK, "application/json", body) }

// Body answers with exactly this.
func Body(status int, contentType, body string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Redirect sends the caller to another address, keeping its method.
func Redirect(url string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", url)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// Stall never sends so much as a status, until the caller goes away.
func Stall() Behaviour {
	return func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
}

// StallAfter sends the head of an answer and n bytes of body, and then nothing,
// until the caller goes away.
func StallAfter(n int, body string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body[:min(n, len(body))])
		flush(w)
		<-r.Context().Done()
	}
}

// Slow sends a body at so many bytes a second.
func Slow(bytesPerSecond int, body string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		step := max(1, bytesPerSecond/20)
		for len(body) > 0 {
			n := min(step, len(body))
			if _, err := io.WriteString(w, body[:n]); err != nil {
				return
			}
			flush(w)
			body = body[n:]
			if !pause(r, time.Duration(n)*time.Second/time.Duration(bytesPerSecond)) {
				return
			}
		}
	}
}

// Cut promises the whole body, sends n bytes of it and breaks off: HTTP/1.1
// loses its connection, HTTP/2 its stream.
func Cut(n int, body string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body[:min(n, len(body))])
		flush(w)
		panic(http.ErrAbortHandler)
	}
}

// CutUnannounced is Cut without a length: only the missing last chunk, or the
// stream's reset, says that the body is not whole.
func CutUnannounced(n int, body string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body[:min(n, len(body))])
		flush(w)
		panic(http.ErrAbortHandler)
	}
}

// Bomb sends a well-formed list whose one item is a string of so many bytes,
// compressed to about a thousandth, whatever the caller said it accepts.
func Bomb(size int) Behaviour {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"`)
	block := bytes.Repeat([]byte("a"), 1<<16)
	for left := size; left > 0; left -= len(block) {
		_, _ = zip.Write(block[:min(left, len(block))])
	}
	_, _ = io.WriteString(zip, `"}}]}`)
	_ = zip.Close()
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

// Endless sends a list whose items never end.
func Endless() Behaviour {
	item := strings.Repeat(`{"metadata":{"name":"pod","namespace":"default"}},`, 100)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
		for err == nil && r.Context().Err() == nil {
			_, err = io.WriteString(w, item)
		}
	}
}

// DeepNesting sends a list with one item whose spec is so many objects deep.
func DeepNesting(depth int) Behaviour {
	return JSON(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"deep"},"spec":` +
		strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat(`}`, depth) + `}]}`)
}

// HTML answers with a page, as login portals (200) and load balancers (502) do.
func HTML(status int) Behaviour {
	return Body(status, "text/html", "<!doctype html><html><head><title>Sign in</title></head><body><script>alert(1)</script>Sign in</body></html>")
}

// EmptyBody answers 200 and nothing.
func EmptyBody() Behaviour { return JSON("") }

// EmptyObject answers 200 and {}.
func EmptyObject() Behaviour { return JSON("{}") }

// WrongKind answers with a perfectly good object of another kind.
func WrongKind() Behaviour {
	return JSON(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"other","namespace":"default"},"data":{"a":"b"}}`)
}

// Status answers with a Kubernetes Status. A negative retryAfter sends no
// Retry-After.
func Status(code int, reason, message string, retryAfter int) Behaviour {
	body, err := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": message, "reason": reason, "code": code,
	})
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if retryAfter >= 0 {
			w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		Body(code, "application/json", string(body))(w, r)
	}
}

// GoAway sends n bytes of a body and then tells the caller that its connection
// is not long for this world: HTTP/2 gets a GOAWAY while the rest of the body
// still follows, HTTP/1.1 a Connection: close.
func GoAway(n int, body string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// net/http turns this header into a GOAWAY on HTTP/2.
		w.Header().Set("Connection", "close")
		n := min(n, len(body))
		_, _ = io.WriteString(w, body[:n])
		flush(w)
		if pause(r, 50*time.Millisecond) {
			_, _ = io.WriteString(w, body[n:])
		}
	}
}

// Pages answers each page of a list with what page says for its continue token,
// which is empty for the first. items are the page's objects as JSON; next is
// the token of the page after, empty for the last. The limit asked for is
// page's to honour or not.
func Pages(kind, apiVersion string, page func(token string) (items []string, next string)) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		items, next := page(r.URL.Query().Get("continue"))
		JSON(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`,
			kind, apiVersion, next, strings.Join(items, ",")))(w, r)
	}
}

// Sequence answers the first request with the first behaviour, and so on; the
// last one stays.
func Sequence(all ...Behaviour) Behaviour {
	var count atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		all[min(int(count.Add(1)), len(all))-1](w, r)
	}
}

// After waits before it behaves.
func After(d time.Duration, b Behaviour) Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		if pause(r, d) {
			b(w, r)
		}
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// pause waits and says whether the caller is still there.
func pause(r *http.Request, d time.Duration) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-time.After(d):
		return true
	}
}
