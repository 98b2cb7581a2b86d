package zip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type echoIn struct {
	Text string
	Wait bool
}
type echoOut struct {
	Text   string
	Caller string
	Peer   int
}

// serve serves h as app "t" for the length of a test.
func serve(t testing.TB, s *Server) (path string) {
	t.Helper()
	runtimeDir(t)
	l, err := Listen("t")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
		CloseIdle()
	})
	return l.Path()
}

// ops is a handler of operations, as a service would have.
func ops(byToken map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := OpOf(r.URL.Path)
		h := byToken[token]
		if !ok || h == nil || r.Method != http.MethodPost {
			WriteError(w, &Error{Status: 404, Code: "no_op", Msg: "no such operation"})
			return
		}
		h(w, r)
	})
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in echoIn
	if err == nil {
		err = Unmarshal(body, &in)
	}
	if err != nil {
		WriteError(w, &Error{Status: 400, Msg: err.Error()})
		return
	}
	c, _ := CallerOf(r.Context())
	p, _ := PeerOf(r.Context())
	WriteAnswer(w, &echoOut{in.Text, fmt.Sprintf("%+v", c), p.PID})
}

func TestAsk(t *testing.T) {
	serve(t, &Server{Handler: ops(map[string]http.HandlerFunc{
		"echo": echo,
		"nothing": func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 || r.Host != "t" || r.Header.Get("Content-Type") != ContentType || r.RemoteAddr != "@" {
				t.Errorf("request %+v", r)
			}
			WriteAnswer(w, (*echoOut)(nil))
		},
		"refuse": func(w http.ResponseWriter, r *http.Request) {
			WriteError(w, &Error{Status: 404, Code: "cluster_not_found", Msg: "no cluster"})
		},
		"plain": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "go away", http.StatusTooManyRequests) },
		"junk":  func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "not a message") },
	})})
	ctx := WithCaller(context.Background(), everybody)
	for _, text := range []string{"", "hello", strings.Repeat("large ", 1<<18)} {
		out, err := Ask[echoIn, echoOut](ctx, "t", "echo", &echoIn{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&echoOut{text, fmt.Sprintf("%+v", everybody), os.Getpid()}, out); d != "" {
			t.Errorf("%d bytes of text, -want +got:\n%.500s", len(text), d)
		}
	}
	if out, err := Ask[echoIn, echoOut](ctx, "t", "nothing", nil); err != nil || out == nil || *out != (echoOut{}) {
		t.Errorf("an answer of nothing: %+v, %v", out, err)
	}
	for _, c := range []struct {
		app, op string
		want    Error
	}{
		{"t", "refuse", Error{Status: 404, Code: "cluster_not_found", Msg: "no cluster"}},
		{"t", "unknown", Error{Status: 404, Code: "no_op", Msg: "no such operation"}},
		{"t", "plain", Error{Status: 429, Msg: "go away\n"}},
		{"t", "junk", Error{Status: 502}},
		{"nobody", "echo", Error{Status: 502}},
		{"t", "a/b", Error{Status: 400, Code: "bad_op"}},
		{"t", "", Error{Status: 400, Code: "bad_op"}},
		{"t", "Echo", Error{Status: 400, Code: "bad_op"}},
		{"t", "echo?x", Error{Status: 400, Code: "bad_op"}},
		{"../t", "echo", Error{Status: 400, Code: "bad_app"}},
	} {
		out, err := Ask[echoIn, echoOut](ctx, c.app, c.op, &echoIn{})
		var e *Error
		if !errors.As(err, &e) || out != nil || e.Status != c.want.Status || e.Code != c.want.Code || c.want.Msg != "" && e.Msg != c.want.Msg {
			t.Errorf("%s of %s: %+v, %v", c.op, c.app, out, err)
		}
		if c.want.Status == 502 && e.Err == nil {
			t.Errorf("%s of %s: a failure without a cause", c.op, c.app)
		}
	}
	if _, err := Ask[struct{ M map[string]string }, echoOut](ctx, "t", "echo", &struct{ M map[string]string }{}); !errors.As(err, new(*TypeError)) {
		t.Errorf("an input that cannot cross: %v", err)
	}
	if _, err := Ask[echoIn, echoOut](WithCaller(ctx, Caller{Org: "a\nb"}), "t", "echo", nil); !errors.As(err, new(*IdentityError)) {
		t.Errorf("a caller that cannot cross: %v", err)
	}
}

func TestAskAtOnce(t *testing.T) {
	s := &Server{Handler: ops(map[string]http.HandlerFunc{"echo": echo})}
	serve(t, s)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 50 {
				text := strings.Repeat(fmt.Sprint(i, "/", j, " "), 1+i*j)
				ctx := WithCaller(context.Background(), Caller{Org: fmt.Sprint("org", i), User: "u"})
				out, err := Ask[echoIn, echoOut](ctx, "t", "echo", &echoIn{Text: text})
				if err != nil || out.Text != text || !strings.Contains(out.Caller, fmt.Sprintf("Org:org%d ", i)) {
					t.Errorf("%d/%d: %v", i, j, err)
					return
				}
			}
		})
	}
	wg.Wait()
	path, _ := SocketPath("t")
	p := poolOf(path)
	p.mu.Lock()
	idle := len(p.idle)
	p.mu.Unlock()
	if idle == 0 || idle > maxIdle {
		t.Errorf("%d idle connections, %d at most", idle, maxIdle)
	}
}

func TestCancelling(t *testing.T) {
	began := make(chan struct{}, 1)
	ended := make(chan error, 1)
	serve(t, &Server{Handler: ops(map[string]http.HandlerFunc{
		"echo": echo,
		"wait": func(w http.ResponseWriter, r *http.Request) {
			began <- struct{}{}
			select {
			case <-r.Context().Done():
				ended <- r.Context().Err()
			case <-time.After(10 * time.Second):
				ended <- errors.New("the context did not end")
			}
		},
	})})
	ask := func(ctx context.Context, op string) *Error {
		t.Helper()
		_, err := Ask[echoIn, echoOut](ctx, "t", op, &echoIn{})
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		return e
	}
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-began; cancel() }()
		if e := ask(ctx, "wait"); e == nil || e.Status != 499 || !errors.Is(e, context.Canceled) {
			t.Errorf("cancelled: %v", e)
		}
		if err := <-ended; err != context.Canceled {
			t.Errorf("the handler: %v", err)
		}
		ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
		if e := ask(ctx, "wait"); e == nil || e.Status != 504 || !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("past its deadline: %v", e)
		}
		<-began
		<-ended
		if e := ask(ctx, "echo"); e == nil || e.Status != 504 {
			t.Errorf("with a context that has ended: %v", e)
		}
		cancel()
		if e := ask(context.Background(), "echo"); e != nil {
			t.Errorf("after that: %v", e)
		}
	}
}

func TestRestartedServer(t *testing.T) {
	handler := ops(map[string]http.HandlerFunc{"echo": echo})
	runtimeDir(t)
	defer CloseIdle()
	for i := range 5 {
		l, err := Listen("t")
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{Handler: handler}
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		var wg sync.WaitGroup
		for range 8 { // so that several idle connections go stale at once
			wg.Go(func() {
				if _, err := Ask[echoIn, echoOut](context.Background(), "t", "echo", &echoIn{Text: "x"}); err != nil {
					t.Errorf("server %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != ErrServerClosed {
			t.Error(err)
		}
	}
}

// A request is sent again only when the server cannot have read it.
func TestNothingIsDoneTwice(t *testing.T) {
	runtimeDir(t)
	defer CloseIdle()
	l, err := Listen("t")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ok := AppendResponse(nil, &Response{Status: 204})
	read := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for read < 2 {
			if _, err := ReadFrame(c, nil); err != nil {
				return
			}
			if read++; read == 1 {
				WriteFrame(c, ok)
			}
		}
	}()
	if _, err := Ask[echoIn, echoOut](context.Background(), "t", "echo", nil); err != nil {
		t.Fatal(err)
	}
	_, err = Ask[echoIn, echoOut](context.Background(), "t", "echo", nil)
	var e *Error
	if !errors.As(err, &e) || e.Status != 502 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a server that read the request and closed: %v", err)
	}
	<-done
	if read != 2 {
		t.Errorf("the request was sent %d times", read-1)
	}
}

func TestShutdownLetsAnswersOut(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	s := &Server{Handler: ops(map[string]http.HandlerFunc{"wait": func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-release
		if err := r.Context().Err(); err != nil {
			WriteError(w, &Error{Status: 500, Msg: "the context ended: " + err.Error()})
			return
		}
		WriteAnswer(w, &echoOut{Text: "done"})
	}})}
	serve(t, s)
	got := make(chan error, 1)
	go func() {
		out, err := Ask[echoIn, echoOut](context.Background(), "t", "wait", nil)
		if err == nil && out.Text != "done" {
			err = errors.New(out.Text)
		}
		got <- err
	}()
	<-began
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	select {
	case err := <-down:
		t.Errorf("Shutdown did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if err := <-got; err != nil {
		t.Error(err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestShutdownRunsOutOfTime(t *testing.T) {
	began := make(chan struct{})
	s := &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	})}
	serve(t, s)
	got := make(chan error, 1)
	go func() {
		_, err := Ask[echoIn, echoOut](context.Background(), "t", "wait", nil)
		got <- err
	}()
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-got; err == nil {
		t.Error("the call succeeded")
	}
}

func TestTooManyConnections(t *testing.T) {
	path := serve(t, &Server{Handler: ops(map[string]http.HandlerFunc{"echo": echo}), MaxConns: 2})
	var held []net.Conn
	good := framed(t, Request{Method: "POST", Target: CallPath + "echo"})
	for range 2 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(good)
		if _, err := ReadFrame(c, nil); err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	_, err := Ask[echoIn, echoOut](context.Background(), "t", "echo", nil)
	var e *Error
	if !errors.As(err, &e) || e.Status != 503 || e.Code != "overloaded" {
		t.Errorf("a third connection: %v", err)
	}
	held[0].Close()
	for range 100 {
		if _, err = Ask[echoIn, echoOut](context.Background(), "t", "echo", nil); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("with room again: %v", err)
}

func TestServeAddr(t *testing.T) {
	dir := runtimeDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "child.sock")
	s := &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RawQuery) })}
	done := make(chan error, 1)
	go func() { done <- s.ServeAddr(path) }()
	for range 100 {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	res, err := exchange(t, path, framed(t, Request{Method: "GET", Target: "/v1/k8s/pods?cluster=prod"}))
	if err != nil || string(res.Body) != "cluster=prod" {
		t.Errorf("%q, %v", res.Body, err)
	}
	s.Close()
	if err := <-done; err != ErrServerClosed {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := new(Server).ServeAddr(path); err == nil {
		t.Error("served where others could replace the socket")
	}
}

// A peer of the reference may stream its answer.
func TestStreamedAnswer(t *testing.T) {
	runtimeDir(t)
	defer CloseIdle()
	l, err := Listen("t")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	body, err := Marshal(echoOut{Text: strings.Repeat("streamed ", 1000)})
	if err != nil {
		t.Fatal(err)
	}
	chunk := func(typ FrameType, data []byte) []byte {
		msg := appendZeroes(appendHeader(nil, uint16(typ)<<8), 8)
		msg = appendRef(msg, frameRoot, data)
		endMessage(msg, 0, frameRoot)
		return msg
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for {
			if _, err := ReadFrame(c, nil); err != nil {
				return
			}
			head := AppendResponse(nil, &Response{Status: 200})
			head[7] = byte(HeadFrame)
			WriteFrame(c, head)
			WriteFrame(c, chunk(DataFrame, body[:100]))
			WriteFrame(c, chunk(DataFrame, nil))
			WriteFrame(c, chunk(DataFrame, body[100:]))
			WriteFrame(c, chunk(EndFrame, nil))
		}
	}()
	for range 2 {
		out, err := Ask[echoIn, echoOut](context.Background(), "t", "echo", nil)
		if err != nil || len(out.Text) != 9000 {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
