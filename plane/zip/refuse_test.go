package zip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// exchange sends raw bytes on a connection of its own and reads one answer.
func exchange(t *testing.T, path string, frames ...[]byte) (Response, error) {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	for _, f := range frames {
		if _, err := c.Write(f); err != nil {
			return Response{}, err
		}
	}
	msg, err := ReadFrame(c, nil)
	if err != nil {
		return Response{}, err
	}
	return ParseResponse(msg)
}

func framed(t *testing.T, r Request) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteFrame(&b, AppendRequest(nil, &r)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestServerRefuses(t *testing.T) {
	path := serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("the handler's own")
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/large":
			for range 1 + MaxFrame>>20 {
				w.Write(make([]byte, 1<<20))
			}
		case "/many-headers":
			w.Header().Set("X", strings.Repeat("x", 2<<20))
			for range MaxFrame >> 20 {
				w.Write(make([]byte, 1<<20))
			}
		default:
			fmt.Fprintf(w, "%s %s %v", r.Method, r.RequestURI, r.Header)
		}
	})})
	get := func(target string, lines ...Line) Request {
		return Request{Method: "GET", Target: target, Header: lines}
	}
	for _, c := range []struct {
		name   string
		req    Request
		status int
		code   string
	}{
		{"fine", get("/v1/x?y=1", Line{"x-a", "1"}, Line{"X-A", "2"}), 200, ""},
		{"repeated identity", get("/v1", Line{"X-Org-Id", "a"}, Line{"x-org-id", "a"}), 400, "bad_identity"},
		{"joined identity", get("/v1", Line{"X-Org-Id", "a, b"}), 400, "bad_identity"},
		{"not a flag", get("/v1", Line{"X-User-IsAdmin", "maybe"}), 400, "bad_identity"},
		{"two hosts", get("/v1", Line{"Host", "a"}, Line{"host", "b"}), 400, "bad_request"},
		{"header injection", get("/v1", Line{"A", "b\r\nX-Org-Id: zoo"}), 400, "bad_request"},
		{"header name", get("/v1", Line{"A: b\r\nC", "d"}), 400, "bad_request"},
		{"no header name", get("/v1", Line{"", "d"}), 400, "bad_request"},
		{"no target", get(""), 400, "bad_request"},
		{"another host's target", get("http://elsewhere/v1"), 400, "bad_request"},
		{"star", get("*"), 400, "bad_request"},
		{"no method", Request{Target: "/v1"}, 400, "bad_request"},
		{"odd method", Request{Method: "GE T", Target: "/v1"}, 400, "bad_request"},
		{"panic", get("/panic"), 500, "internal"},
		{"too large", get("/large"), 500, "answer_too_large"},
		{"too large by its headers", get("/many-headers"), 500, "answer_too_large"},
	} {
		// The connection goes on after a refusal: the second answer is fine.
		res, err := exchange(t, path, framed(t, c.req))
		if err != nil || res.Status != c.status {
			t.Errorf("%s: %d %q, %v, want %d", c.name, res.Status, res.Body, err, c.status)
			continue
		}
		if c.code == "" {
			continue
		}
		var problem struct {
			Status int
			Code   string
		}
		if err := json.Unmarshal(res.Body, &problem); err != nil || problem.Status != c.status || problem.Code != c.code {
			t.Errorf("%s: %s, %v", c.name, res.Body, err)
		}
		c.req.Target = CallPath + "echo"
		if c.code == "bad_identity" {
			res, err := exchange(t, path, framed(t, c.req))
			var f Fault
			if err != nil || Unmarshal(res.Body, &f) != nil || f.Code != c.code || int(f.Status) != c.status {
				t.Errorf("%s, called as an operation: %+v, %+v, %v", c.name, res, f, err)
			}
		}
	}
	if res, err := exchange(t, path, framed(t, get("/abort"))); err == nil {
		t.Errorf("an aborted request was answered: %+v", res)
	}
}

func TestConnectionGoesOnAfterARefusal(t *testing.T) {
	path := serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			io.WriteString(w, "half of an")
			panic("the handler's own")
		}
		io.WriteString(w, "fine")
	})})
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []int{200, 500, 200, 400, 200} {
		req := Request{Method: "GET", Target: "/"}
		if want == 500 {
			req.Target = "/panic"
		} else if want == 400 {
			req.Target = "no path"
		}
		if _, err := c.Write(framed(t, req)); err != nil {
			t.Fatal(err)
		}
		msg, err := ReadFrame(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := ParseResponse(msg)
		if err != nil || res.Status != want || want == 200 && string(res.Body) != "fine" {
			t.Errorf("%d %q, %v, want %d", res.Status, res.Body, err, want)
		}
	}
}

func TestBadFramesCloseOnlyTheirConnection(t *testing.T) {
	path := serve(t, &Server{Handler: ops(map[string]http.HandlerFunc{"echo": echo}), IdleTimeout: 300 * time.Millisecond})
	good := framed(t, Request{Method: "POST", Target: CallPath + "echo"})
	bystander, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer bystander.Close()
	magic := bytes.Clone(good)
	magic[4] = 'Y'
	response := []byte{0, 0, 0, 0}
	response = AppendResponse(response, &Response{Status: 200})
	response[3] = byte(len(response) - 4)
	for name, raw := range map[string][]byte{
		"bad magic":   magic,
		"a response":  response,
		"zero length": {0, 0, 0, 0},
		"over-size":   {4, 0, 0, 1},
		"HTTP":        []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
	} {
		if res, err := exchange(t, path, raw); err == nil {
			t.Errorf("%s was answered: %+v", name, res)
		}
		bystander.Write(good)
		if _, err := ReadFrame(bystander, nil); err != nil {
			t.Fatalf("after %s, on another connection: %v", name, err)
		}
	}
	for name, raw := range map[string][]byte{"half a frame": good[:len(good)/2], "nothing": nil} {
		start := time.Now()
		if res, err := exchange(t, path, raw); err == nil || time.Since(start) < 200*time.Millisecond {
			t.Errorf("%s: %+v, %v, after %v; want to be closed when idling is over", name, res, err, time.Since(start))
		}
	}
}

func TestTwoRequestsAtOnceAreAnsweredInOrder(t *testing.T) {
	path := serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })})
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all []byte
	for i := range 5 {
		all = append(all, framed(t, Request{Method: "GET", Target: fmt.Sprint("/", i)})...)
	}
	c.Write(all)
	for i := range 5 {
		msg, err := ReadFrame(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := ParseResponse(msg); err != nil || string(res.Body) != fmt.Sprint("/", i) {
			t.Errorf("answer %d: %q, %v", i, res.Body, err)
		}
	}
}
