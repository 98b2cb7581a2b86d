package zip

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// ErrServerClosed is what Serve returns after Shutdown or Close.
var ErrServerClosed = errors.New("zip: server closed")

// Server serves frames with an [http.Handler]. Its fields are not to be changed
// once it serves.
//
// A request reaches the handler as one from net/http would: with its method,
// URL, header and body, RemoteAddr "@", and in its context the identity it came
// with ([CallerOf]) and the process it came from ([PeerOf]). The context ends
// when the client goes away and when the server is closed. A request whose
// identity headers cannot be believed is refused with 400 and does not reach the
// handler.
//
// An answer is one frame: what the handler writes is held until it returns. One
// that does not fit [MaxFrame] becomes a refusal of status 500, and so does a
// panic; the connection goes on. A connection that sends what cannot be read as a
// request is closed, and no other is affected.
type Server struct {
	Handler http.Handler

	// MaxConns is how many connections are open at once; 0 is 1024. A further
	// one is answered with 503 and closed.
	MaxConns int

	// IdleTimeout closes a connection that has not sent the whole of its next
	// request so long after its last answer; 0 is 5 minutes.
	IdleTimeout time.Duration

	// WriteTimeout closes a connection that does not take its answer in so
	// long; 0 is 30 seconds.
	WriteTimeout time.Duration

	// AllowUIDs are users whose processes may connect besides our own user's.
	AllowUIDs []int

	// Log is told of panics and of refused peers; nil is slog's default.
	Log *slog.Logger

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	conns     map[*serverConn]struct{}
	done      sync.WaitGroup // connections
	refusals  chan struct{}
}

func (s *Server) maxConns() int {
	if s.MaxConns > 0 {
		return s.MaxConns
	}
	return 1024
}

func (s *Server) idleTimeout() time.Duration {
	if s.IdleTimeout > 0 {
		return s.IdleTimeout
	}
	return 5 * time.Minute
}

func (s *Server) writeTimeout() time.Duration {
	if s.WriteTimeout > 0 {
		return s.WriteTimeout
	}
	return 30 * time.Second
}

func (s *Server) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.Default()
}

// ServeApp claims the socket of an app with [Listen] and serves it.
func (s *Server) ServeApp(app string) error {
	l, err := Listen(app)
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// ServeAddr claims the socket at a path, such as ZIP_ADDR's, with [ListenPath]
// and serves it.
func (s *Server) ServeAddr(path string) error {
	l, err := ListenPath(path)
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// Serve serves the connections of l, which it closes, until Shutdown or Close;
// then it returns [ErrServerClosed]. Connections other than to a unix socket are
// closed: nobody vouches for who made them.
func (s *Server) Serve(l net.Listener) error {
	if s.Handler == nil {
		l.Close()
		return errors.New("zip: a server without a handler")
	}
	if !s.track(l) {
		l.Close()
		return ErrServerClosed
	}
	defer s.untrack(l)
	var wait time.Duration
	for {
		nc, err := l.Accept()
		if err != nil {
			if s.isClosed() {
				return ErrServerClosed
			}
			var temporary interface{ Temporary() bool }
			if !errors.As(err, &temporary) || !temporary.Temporary() {
				return err
			}
			// Out of descriptors, say. Serving what is open frees some.
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			time.Sleep(wait)
			continue
		}
		wait = 0
		s.accept(nc)
	}
}

func (s *Server) accept(nc net.Conn) {
	uc, ok := nc.(*net.UnixConn)
	if !ok {
		nc.Close()
		return
	}
	peer, err := peerOf(uc)
	if err == nil {
		err = admit(peer, self(), s.AllowUIDs)
	}
	if err != nil {
		s.log().Warn("zip: peer refused", "pid", peer.PID, "uid", peer.UID, "error", err)
		uc.Close()
		return
	}
	c := newServerConn(s, uc, peer)
	s.mu.Lock()
	closed := s.closed
	full := len(s.conns) >= s.maxConns()
	if !closed && !full {
		s.conns[c] = struct{}{}
	}
	if !closed {
		s.done.Add(1) // before the lock is given up: Shutdown waits on it
	}
	s.mu.Unlock()
	switch {
	case closed:
		c.close()
	case !full:
		go func() {
			defer s.done.Done()
			c.serve()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
	default:
		s.overflow(c)
	}
}

// overflow answers a connection too many. Only so many at once are worth an
// answer; the others are closed.
func (s *Server) overflow(c *serverConn) {
	select {
	case s.refusals <- struct{}{}:
		go func() {
			defer s.done.Done()
			defer func() { <-s.refusals }()
			defer c.close()
			c.SetDeadline(time.Now().Add(time.Second))
			if msg, err := ReadFrame(c.br, nil); err == nil {
				r, _ := ParseRequest(msg)
				c.refuse(r.Target, &Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Msg: "too many connections"})
			}
		}()
	default:
		c.close()
		s.done.Done()
	}
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.listeners == nil {
		s.listeners = make(map[net.Listener]struct{})
		s.conns = make(map[*serverConn]struct{})
		s.refusals = make(chan struct{}, 16)
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) untrack(l net.Listener) {
	l.Close()
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// stop closes the listeners and ends each connection so.
func (s *Server) stop(end func(*serverConn)) {
	s.mu.Lock()
	s.closed = true
	listeners := make([]net.Listener, 0, len(s.listeners))
	for l := range s.listeners {
		listeners = append(listeners, l)
	}
	conns := make([]*serverConn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, c := range conns {
		end(c)
	}
}

// Shutdown stops listening, lets the requests being handled be answered, and
// closes each connection after its answer; idle ones at once. When ctx ends first
// it closes the rest, which ends their requests' contexts, and returns ctx's
// error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop((*serverConn).retire)
	idle := make(chan struct{})
	go func() {
		s.done.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		s.Close()
		return ctx.Err()
	}
}

// Close stops listening and closes every connection, which ends the contexts of
// the requests being handled.
func (s *Server) Close() error {
	s.stop((*serverConn).close)
	return nil
}
