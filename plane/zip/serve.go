package zip

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// serverConn is one client's connection.
type serverConn struct {
	*net.UnixConn
	s       *Server
	peer    Peer
	br      *bufio.Reader
	retired atomic.Bool     // to be closed once nothing is being handled
	ctx     context.Context // of the connection: ends with it
	end     context.CancelFunc
}

func newServerConn(s *Server, uc *net.UnixConn, peer Peer) *serverConn {
	c := &serverConn{UnixConn: uc, s: s, peer: peer, br: bufio.NewReaderSize(uc, 4<<10)}
	c.ctx, c.end = context.WithCancel(context.WithValue(context.Background(), peerKey{}, peer))
	return c
}

func (c *serverConn) close() {
	c.end()
	c.UnixConn.Close()
}

// retire has the connection end: an idle one now, and one that is handling a
// request, or that has read one, after the answer.
func (c *serverConn) retire() {
	c.retired.Store(true)
	c.SetReadDeadline(time.Unix(1, 0))
}

// serve runs the connection. Reading goes on in a goroutine of its own while a
// request is handled, so that a client that goes away is noticed; a client that
// keeps to the protocol sends nothing then, and one that sends its next request
// early has it wait.
func (c *serverConn) serve() {
	c.setReadDeadline(time.Now().Add(c.s.idleTimeout()))
	frames := make(chan []byte)
	go func() {
		defer close(frames)
		for {
			msg, err := ReadFrame(c.br, nil)
			if err != nil {
				// A deadline is our own doing, and says nothing of the client.
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					c.end()
				}
				return
			}
			select {
			case frames <- msg:
			case <-c.ctx.Done():
				return
			}
		}
	}()
	for msg := range frames {
		c.setReadDeadline(time.Time{}) // a handler may take longer than idling may
		if !c.handle(msg) || c.retired.Load() {
			break
		}
		c.setReadDeadline(time.Now().Add(c.s.idleTimeout()))
	}
	c.close()
	for range frames { // until the reader is gone
	}
}

// setReadDeadline does not undo retire, which may come at any time.
func (c *serverConn) setReadDeadline(t time.Time) {
	c.SetReadDeadline(t)
	if c.retired.Load() {
		c.SetReadDeadline(time.Unix(1, 0))
	}
}

// handle answers one request, and reports whether the connection is of more use.
func (c *serverConn) handle(msg []byte) bool {
	req, err := ParseRequest(msg)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	r, err := c.request(ctx, &req)
	if err != nil {
		return c.refuse(req.Target, err)
	}
	w := &answer{target: req.Target, header: make(http.Header, 4)}
	buf := scratches.Get().(*[]byte)
	w.body = (*buf)[:0]
	defer func() {
		*buf = w.body
		putScratch(buf)
	}()
	if panicked := c.call(w, r); panicked != nil {
		if panicked == http.ErrAbortHandler {
			return false
		}
		c.s.log().Error("zip: a handler panicked", "target", req.Target, "panic", panicked, "stack", string(debug.Stack()))
		return c.refuse(req.Target, &Error{Status: http.StatusInternalServerError, Code: "internal", Msg: "the service failed on this request"})
	}
	if w.tooLarge {
		return c.refuse(req.Target, &Error{Status: http.StatusInternalServerError, Code: "answer_too_large", Msg: "the answer is larger than a frame"})
	}
	return c.send(w, r.Method)
}

// call runs the handler and gives what it panicked with.
func (c *serverConn) call(w *answer, r *http.Request) (panicked any) {
	defer func() { panicked = recover() }()
	c.s.Handler.ServeHTTP(w, r)
	return nil
}

// request is the frame as a request of net/http, or the refusal of it.
func (c *serverConn) request(ctx context.Context, req *Request) (*http.Request, error) {
	bad := func(msg string) (*http.Request, error) {
		return nil, &Error{Status: http.StatusBadRequest, Code: "bad_request", Msg: msg}
	}
	if req.Method == "" || strings.ContainsFunc(req.Method, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return bad("not a method")
	}
	if !strings.HasPrefix(req.Target, "/") {
		return bad("the target is not a path")
	}
	u, err := url.ParseRequestURI(req.Target)
	if err != nil {
		return bad("the target is not a path")
	}
	h := make(http.Header, len(req.Header))
	values := make([]string, len(req.Header)) // one allocation for them all
	host := ""
	for i, line := range req.Header {
		key := textproto.CanonicalMIMEHeaderKey(line.Key)
		if !validLine(key, line.Value) {
			return bad("a header is not one")
		}
		switch key {
		case "Content-Length":
			continue
		case "Host":
			if host != "" {
				return bad("two hosts")
			}
			host = line.Value
			continue
		}
		if have := h[key]; have != nil {
			h[key] = append(have, line.Value)
			continue
		}
		values[i] = line.Value
		h[key] = values[i : i+1 : i+1]
	}
	caller, err := CallerFromHeader(h)
	if err != nil {
		return nil, &Error{Status: http.StatusBadRequest, Code: "bad_identity", Msg: strings.TrimPrefix(err.Error(), "zip: ")}
	}
	r := &http.Request{
		Method: req.Method, URL: u, RequestURI: req.Target, Host: host,
		Proto: proto, ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: http.NoBody, ContentLength: int64(len(req.Body)), RemoteAddr: "@",
	}
	if len(req.Body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(req.Body))
	}
	return r.WithContext(WithInbound(ctx, caller)), nil
}

// validLine says whether a header may be handed to code that writes headers out
// again.
func validLine(key, value string) bool {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	}) {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// answer is what a handler writes.
type answer struct {
	target   string // what was asked for, by which a refusal has its form
	header   http.Header
	status   int
	body     []byte
	tooLarge bool
}

func (w *answer) Header() http.Header { return w.header }

func (w *answer) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic("zip: a handler answers with status " + strconv.Itoa(status))
	}
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

func (w *answer) Write(b []byte) (int, error) {
	if !w.fits(len(b)) {
		return 0, &FormatError{ErrTooLarge, "an answer"}
	}
	w.body = append(w.body, b...)
	return len(b), nil
}

func (w *answer) WriteString(s string) (int, error) {
	if !w.fits(len(s)) {
		return 0, &FormatError{ErrTooLarge, "an answer"}
	}
	w.body = append(w.body, s...)
	return len(s), nil
}

func (w *answer) fits(n int) bool {
	w.WriteHeader(http.StatusOK)
	w.tooLarge = w.tooLarge || n > MaxFrame-len(w.body)
	return !w.tooLarge
}

// send writes an answer as a frame.
func (c *serverConn) send(w *answer, method string) bool {
	w.WriteHeader(http.StatusOK)
	body := w.body
	if method == http.MethodHead || w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		body = nil
	}
	if len(body) > 0 && w.header["Content-Type"] == nil {
		w.header.Set("Content-Type", http.DetectContentType(body))
	}
	buf := scratches.Get().(*[]byte)
	defer putScratch(buf)
	head := beginResponse(append((*buf)[:0], 0, 0, 0, 0), w.status, "", "")
	const at = 4 + frameRoot
	l := lines{slot: at + 24}
	for key, values := range w.header {
		if key == "Content-Length" || key == "Transfer-Encoding" || strings.HasPrefix(key, http.TrailerPrefix) {
			continue
		}
		for _, v := range values {
			head = l.add(head, key, v)
		}
	}
	l.end(head)
	if len(body) > 0 {
		putRef(head, at+32, len(head), len(body))
	}
	*buf = head
	size := len(head) - 4 + len(body)
	if err := checkFrame(uint64(size)); err != nil {
		return c.refuse(w.target, &Error{Status: http.StatusInternalServerError, Code: "answer_too_large", Msg: "the answer is larger than a frame"})
	}
	le.PutUint32(head[4+8:], frameRoot)
	le.PutUint32(head[4+12:], uint32(size))
	head[0], head[1], head[2], head[3] = byte(size>>24), byte(size>>16), byte(size>>8), byte(size)
	c.SetWriteDeadline(time.Now().Add(c.s.writeTimeout()))
	var err error
	if len(body) <= 4<<10 {
		*buf = append(head, body...)
		_, err = c.Write(*buf)
	} else {
		both := net.Buffers{head, body} // one writev, and no copy
		_, err = both.WriteTo(c.UnixConn)
	}
	return err == nil
}

// refuse answers a request that does not reach its handler, or whose handler
// failed: as a call is refused, or as REST is, by what was asked for.
func (c *serverConn) refuse(target string, err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Status: http.StatusInternalServerError, Code: "internal", Msg: "the service failed on this request"}
	}
	w := &answer{target: target, header: make(http.Header, 1)}
	if _, call := OpOf(target); call {
		WriteError(w, e)
	} else {
		w.header.Set("Content-Type", "application/problem+json")
		w.WriteHeader(e.Status)
		json.NewEncoder(w).Encode(map[string]any{
			"type": "about:blank", "title": http.StatusText(e.Status), "status": e.Status, "code": e.Code, "detail": e.Msg,
		})
	}
	return c.send(w, "")
}

// WriteError answers a call with a refusal: the error's status, and a [Fault].
func WriteError(w http.ResponseWriter, e *Error) {
	body, err := Marshal(Fault{int32(e.Status), e.Code, e.Msg})
	if err != nil {
		body, _ = Marshal(Fault{int32(e.Status), e.Code, fmt.Sprintf("a message of %d bytes", len(e.Msg))})
	}
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(e.Status)
	w.Write(body)
}

// WriteAnswer answers a call with out, a pointer to a struct: 200 and the
// message, or 204 for a nil pointer.
func WriteAnswer(w http.ResponseWriter, out any) error {
	buf := scratches.Get().(*[]byte)
	defer putScratch(buf)
	var err error
	if *buf, err = Append((*buf)[:0], out); err != nil {
		return err
	}
	if len(*buf) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", ContentType)
	_, err = w.Write(*buf)
	return err
}
