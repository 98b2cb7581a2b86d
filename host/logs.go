package host

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hanzoai/k8s/registry"
)

const (
	logMax   = 1 << 20  // bytes of a log that are handed over: the newest
	logChunk = 64 << 10 // bytes handed over at once
	logWait  = 15 * time.Second
)

type logsRequest struct {
	Namespace string
	Pod       string
	Container string
	TailLines int
}

func (in *logsRequest) members() []member {
	return []member{{"namespace", &in.Namespace}, {"pod", &in.Pod}, {"container", &in.Container}, {"tailLines", &in.TailLines}}
}

// logs reads the end of a container's log. The cluster is told tailLines, but
// not limitBytes, which would drop the newest lines; nor is it trusted with
// either. What a log holds beyond the call's bytes is a refusal.
func (c *call) logs(in *logsRequest) (stream, *registry.Refusal) {
	t, r := c.granted(pods, "log", "get")
	if r != nil {
		return nil, r
	}
	if r := c.one(t, in.Namespace, in.Pod, false); r != nil {
		return nil, r
	}
	q := selectors("", "")
	if in.Container != "" {
		if !isLabel(in.Container) {
			return nil, badField("container", "is not a DNS-1123 label")
		}
		q.Set("container", in.Container)
	}
	if in.TailLines < 0 {
		return nil, badField("tailLines", "is negative")
	}
	if in.TailLines > 0 {
		q.Set("tailLines", strconv.Itoa(in.TailLines))
	}
	l := &logging{ring: rings.Get().(*ring)}
	l.ring.n = 0
	if r := c.readLog(l, &registry.Request{
		Method: http.MethodGet, Path: t.path(in.Namespace, in.Pod, "log"), Query: q, Accept: "*/*",
		Stream: true, MaxBytes: c.meter.limits.BytesIn + 1,
	}); r != nil {
		l.close()
		return nil, r
	}
	l.rest, l.dropped = l.ring.text()
	return l, nil
}

func (c *call) readLog(l *logging, q *registry.Request) *registry.Refusal {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	wait := logWait
	if until, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(until)*3/4)
	}
	slow := time.AfterFunc(wait, cancel)
	resp, r := c.send(ctx, "get", "v1/pods/log", q)
	if !slow.Stop() && r != nil && c.ctx.Err() == nil {
		return kubeletUnreachable()
	}
	if r != nil {
		return logRefusal(r)
	}
	defer resp.close()
	if resp.StatusCode == http.StatusNoContent { // the pod has no node yet
		return notStarted("the pod has not been scheduled")
	}
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
		return upstream("the cluster answered a log with a web page")
	}
	if _, err := io.Copy(l.ring, onlyReader{resp}); err != nil {
		return refusal(err)
	}
	return nil
}

// onlyReader hides WriterTo and the like from io.Copy.
type onlyReader struct{ io.Reader }

// logRefusal says what a refusal means when it is of a log. The API server tells
// a kubelet's troubles in words only.
func logRefusal(r *registry.Refusal) *registry.Refusal {
	switch {
	case r.Status == 400 && (strings.Contains(r.Message, "waiting to start") || strings.Contains(r.Message, "not been scheduled") || strings.Contains(r.Message, "is terminated")):
		return notStarted(r.Message)
	case r.Status == 400 && strings.Contains(r.Message, "previous terminated container"):
		return &registry.Refusal{Status: 404, Code: "no_previous_logs", Reason: r.Reason, Message: r.Message}
	case r.Code == "bad_upstream" || r.Code == "deadline":
		for _, sign := range []string{"dial tcp", "no preferred addresses", "connection refused", "i/o timeout", "no route to host", "error trying to reach service", "Timeout"} {
			if strings.Contains(r.Message, sign) || strings.Contains(r.Reason, sign) {
				return kubeletUnreachable()
			}
		}
	}
	return r
}

func notStarted(message string) *registry.Refusal {
	return &registry.Refusal{Status: http.StatusConflict, Code: "not_started", Message: message}
}

// kubeletUnreachable does not say where the kubelet is.
func kubeletUnreachable() *registry.Refusal {
	return &registry.Refusal{Status: http.StatusGatewayTimeout, Code: "kubelet_unreachable", Message: "the node's kubelet does not answer the cluster"}
}

// ring keeps the newest bytes written to it.
type ring struct {
	b [logMax]byte
	n int64 // written in all
}

var rings = sync.Pool{New: func() any { return new(ring) }}

func (r *ring) Write(b []byte) (int, error) {
	n := len(b)
	if n > logMax {
		r.n += int64(n - logMax)
		b = b[n-logMax:]
	}
	at := int(r.n % logMax)
	k := copy(r.b[at:], b)
	copy(r.b[:], b[k:])
	r.n += int64(len(b))
	return n, nil
}

// text is what the ring holds as valid UTF-8, and whether older text was
// dropped. The first line is then a whole one, where there is one nearby.
func (r *ring) text() (text []byte, dropped bool) {
	if r.n <= logMax {
		text = r.b[:r.n]
	} else {
		at := int(r.n % logMax)
		text = append(append(make([]byte, 0, logMax), r.b[at:]...), r.b[:at]...)
		text, dropped = onLine(text), true
	}
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if len(text) > logMax { // a replacement is longer than what it replaces
		text, dropped = onLine(text[len(text)-logMax:]), true
	}
	return text, dropped
}

// onLine drops the start of text that was cut anywhere: up to the next line if
// that is near, else up to the next rune.
func onLine(text []byte) []byte {
	if i := bytes.IndexByte(text[:min(len(text), 16<<10)], '\n'); i >= 0 {
		return text[i+1:]
	}
	for i := 0; i < min(utf8.UTFMax, len(text)); i++ {
		if utf8.RuneStart(text[i]) {
			return text[i:]
		}
	}
	return text
}

// logging hands a log over in chunks, each valid UTF-8.
type logging struct {
	ring    *ring
	rest    []byte
	dropped bool
}

func (l *logging) next() ([]byte, bool, *registry.Refusal) {
	if len(l.rest) == 0 {
		return nil, false, nil
	}
	n := min(len(l.rest), logChunk)
	for n < len(l.rest) && n > logChunk-utf8.UTFMax && !utf8.RuneStart(l.rest[n]) {
		n--
	}
	chunk := l.rest[:n]
	l.rest = l.rest[n:]
	return chunk, true, nil
}

func (l *logging) trailer() []byte {
	if l.dropped {
		return []byte(`{"truncated":true}`)
	}
	return []byte(`{"truncated":false}`)
}

func (l *logging) close() {
	if l.ring != nil {
		rings.Put(l.ring)
		l.ring, l.rest = nil, nil
	}
}
