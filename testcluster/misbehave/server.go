// Package misbehave is an apiserver that does what a test tells it to:
// redirect, stall, crawl, cut, bomb, lie. Where it has not been told, it behaves:
// it answers /version, discovery and empty lists.
package misbehave

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recorded is one request the server has received.
type Recorded struct {
	Method string
	Path   string // without the query
	Query  string
	Proto  string
	Header http.Header
	Body   []byte // the first mebibyte of it
}

// Server is a TLS server on loopback with a certificate authority of its own.
type Server struct {
	listener *counted
	server   *http.Server
	ca       []byte

	mu       sync.Mutex
	rules    []rule
	requests []Recorded
	live     map[*http.Request]string
	closed   context.Context
	close    context.CancelFunc
}

type rule struct {
	prefix string
	do     Behaviour
}

// Option changes how the server meets its callers, before any request.
type Option func(*options)

type options struct {
	hosts    []string
	expired  bool
	versions [2]uint16
	http1    bool
	hole     bool
	streams  uint32
}

// WrongSAN gives the server a certificate for another host.
func WrongSAN() Option { return func(o *options) { o.hosts = []string{"elsewhere.example"} } }

// Expired gives the server a certificate that ran out yesterday.
func Expired() Option { return func(o *options) { o.expired = true } }

// TLS10 makes the server speak nothing newer than TLS 1.0.
func TLS10() Option {
	return func(o *options) { o.versions, o.http1 = [2]uint16{tls.VersionTLS10, tls.VersionTLS10}, true }
}

// HTTP1 keeps the server from offering HTTP/2.
func HTTP1() Option { return func(o *options) { o.http1 = true } }

// MaxStreams sets how many streams one HTTP/2 connection may hold; 100 without
// it, as kube-apiserver allows.
func MaxStreams(n uint32) Option { return func(o *options) { o.streams = n } }

// BlackHole accepts connections and never says a word on them.
func BlackHole() Option { return func(o *options) { o.hole = true } }

// New starts a server. It panics where it cannot, as a test has no use for it
// then.
func New(opts ...Option) *Server {
	o := options{hosts: []string{"127.0.0.1", "localhost"}, streams: 100}
	for _, set := range opts {
		set(&o)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ca, cert := certificates(o.hosts, o.expired)
	s := &Server{
		listener: &counted{Listener: listener, open: map[net.Conn]bool{}, hole: o.hole},
		ca:       ca,
		live:     map[*http.Request]string{},
	}
	s.closed, s.close = context.WithCancel(context.Background())
	s.server = &http.Server{
		Handler:   http.HandlerFunc(s.serve),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: o.versions[0], MaxVersion: o.versions[1]},
		// Broken handshakes and cut bodies are what this server is for.
		ErrorLog: log.New(io.Discard, "", 0),
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: int(o.streams)},
	}
	s.server.Protocols = new(http.Protocols)
	s.server.Protocols.SetHTTP1(true)
	s.server.Protocols.SetHTTP2(!o.http1)
	if o.hole {
		go s.listener.swallow()
	} else {
		go func() { _ = s.server.ServeTLS(s.listener, "", "") }()
	}
	return s
}

// URL is the server's address.
func (s *Server) URL() string { return "https://" + s.listener.Addr().String() }

// CA is the certificate that signed the server's, as PEM.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.ca})
}

// Kubeconfig answers a kubeconfig that reaches the server with a bearer token
// and trusts its authority.
func (s *Server) Kubeconfig(token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: test
  context:
    cluster: test
    user: test
users:
- name: test
  user:
    token: %s
`, s.URL(), base64.StdEncoding.EncodeToString(s.CA()), token)
}

// On has requests whose path begins with prefix answered by b, from now on. The
// longest prefix wins; among equals, the last. An empty prefix is every path.
func (s *Server) On(prefix string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append([]rule{{prefix, b}}, s.rules...)
	slices.SortStableFunc(s.rules, func(a, b rule) int { return len(b.prefix) - len(a.prefix) })
}

// Reset forgets what the server was told and what it has recorded.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.requests = nil, nil
}

// Requests answers every request so far, in the order they came.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Conns counts the connections that have ever been accepted.
func (s *Server) Conns() int { return s.listener.total() }

// OpenConns counts the connections that are open now.
func (s *Server) OpenConns() int { return s.listener.now() }

// Live counts the requests whose path begins with prefix that are being served
// now: whose caller has neither had its answer nor gone away.
func (s *Server) Live(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, path := range s.live {
		if strings.HasPrefix(path, prefix) {
			count++
		}
	}
	return count
}

// WaitLive waits until exactly n such requests are being served, and says
// whether that came to be in time.
func (s *Server) WaitLive(prefix string, n int, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if s.Live(prefix) == n {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// Close ends the server and every request on it.
func (s *Server) Close() {
	s.close()
	_ = s.server.Close()
	_ = s.listener.Close()
	s.listener.drop()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	s.mu.Lock()
	s.requests = append(s.requests, Recorded{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Proto: r.Proto, Header: r.Header.Clone(), Body: body,
	})
	s.live[r] = r.URL.Path
	do := Healthy()
	for _, candidate := range s.rules {
		if strings.HasPrefix(r.URL.Path, candidate.prefix) {
			do = candidate.do
			break
		}
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.live, r)
		s.mu.Unlock()
	}()
	// A behaviour may wait for the caller or for the server's end, whichever
	// comes first, by waiting for the request's context. A body that has been
	// read is put back for it.
	r.Body = io.NopCloser(bytes.NewReader(body))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closed, cancel)()
	do(w, r.WithContext(ctx))
}
