package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

const (
	dialTimeout      = 5 * time.Second // to connect, and again for the TLS handshake
	pingAfter        = 5 * time.Second // of silence on an HTTP/2 connection
	pingTimeout      = 10 * time.Second
	maxHeader        = 64 << 10 // bytes of an answer's header
	defaultMaxBytes  = 64 << 20 // decompressed bytes of an answer
	attempts         = 3        // of a read that a cluster answers with 429 or 503 and Retry-After
	longestRetryWait = 10 * time.Second
)

// Request is one request to a cluster. It has no header of the caller's: what a
// cluster is sent is the credential, these fields, and the call's [Traceparent].
type Request struct {
	Method      string
	Path        string     // made by [Path]
	Query       url.Values // nil is none
	Accept      string     // "" is application/json
	ContentType string     // of Body
	Body        []byte
	Stream      bool  // a watch or a followed log: it does not share the connections of short requests
	Bulk        bool  // a list, whose answer may be long: it has a connection to itself
	MaxBytes    int64 // cap on the answer's decompressed bytes; 0 is 64 MiB
}

// Path is an absolute URL path of the given segments, each escaped.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// client is the one kind of Kubernetes client there is: one credential at one
// address. Every connection is made by dial, which asks the policy; none is
// shared with another client, and close ends them all.
type client struct {
	base  string // the apiserver's URL
	token string

	// Streams have connections of their own, so that any number of them, on a
	// server that allows so many a connection, does not keep a short request out.
	// Lists are read over HTTP/1.1, whose bodies come without frames that are handed
	// from one goroutine to another: half the work for the same bytes.
	short, long, bulk *lane

	dialer   net.Dialer
	distance distance
	near     time.Duration // see Policy

	life context.Context // ends with close, for close's reason
	end  context.CancelCauseFunc

	mu    sync.Mutex
	conns map[*tracked]struct{} // nil once closed
}

// lane is a transport. While it has no connection, of those that ask one makes
// the first, which over HTTP/2 is enough for them all.
type lane struct {
	*http.Transport
	client *client
	tls    *tls.Config

	// client.mu guards what follows.
	open    int      // connections
	opening *opening // nil where none is being waited for
}

// opening is a first connection that is being made.
type opening struct {
	done chan struct{}
	err  *Refusal // why there is none; nil also where that was only its maker's to know
}

// newClient is the only constructor of a Kubernetes client in the module. It
// dials nothing.
func newClient(cfg *rest.Config, policy Policy) (*client, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, kubeconfigRefused("kubeconfig", "its TLS part cannot be used")
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if tlsConfig.ServerName == "" {
		at, err := url.Parse(cfg.Host)
		if err != nil {
			return nil, kubeconfigRefused("kubeconfig", "its server cannot be used")
		}
		tlsConfig.ServerName = at.Hostname()
	}
	c := &client{
		base: cfg.Host, token: cfg.BearerToken,
		dialer: net.Dialer{
			Timeout: dialTimeout,
			ControlContext: func(_ context.Context, _, address string, raw syscall.RawConn) error {
				return policy.control(address, raw)
			},
		},
		near:  policy.Near,
		conns: map[*tracked]struct{}{},
	}
	if c.near == 0 {
		c.near = nearby
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	var either, one http.Protocols
	either.SetHTTP1(true)
	either.SetHTTP2(true)
	one.SetHTTP1(true)
	c.short, c.long, c.bulk = c.lane(tlsConfig, either), c.lane(tlsConfig, either), c.lane(tlsConfig, one)
	return c, nil
}

// lane has no proxy, whatever the environment says, and opens as many connections
// as its requests need.
func (c *client) lane(config *tls.Config, protocols http.Protocols) *lane {
	l := &lane{client: c, tls: config.Clone()}
	l.tls.NextProtos = []string{"http/1.1"}
	if protocols.HTTP2() {
		l.tls.NextProtos = []string{"h2", "http/1.1"}
	}
	l.Transport = &http.Transport{
		Proxy:                  nil,
		DialTLSContext:         l.dial,
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return nil, addressRefused() },
		Protocols:              &protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: pingAfter},
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         32 << 10,
	}
	return l
}

// enter lets a request go where the lane has a connection, or has it wait for the
// one that is being made. made is nil for all but the request that is to make it,
// which calls it with how that ended. The error is why another could make none.
func (l *lane) enter(ctx context.Context) (made func(*Refusal), err error) {
	for {
		l.client.mu.Lock()
		o := l.opening
		if o == nil && l.open > 0 {
			l.client.mu.Unlock()
			return nil, nil
		}
		if o == nil {
			o = &opening{done: make(chan struct{})}
			l.opening = o
			l.client.mu.Unlock()
			return l.made(o), nil
		}
		l.client.mu.Unlock()
		select {
		case <-o.done:
			if o.err != nil {
				refusal := *o.err
				refusal.Unsent = true
				return nil, &refusal
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// made ends an opening; what ends it first counts.
func (l *lane) made(o *opening) func(*Refusal) {
	return func(err *Refusal) {
		l.client.mu.Lock()
		defer l.client.mu.Unlock()
		if l.opening == o {
			l.opening, o.err = nil, err
			close(o.done)
		}
	}
}

// dial connects to the address and proves that it is the cluster. Its errors
// are refusals.
func (l *lane) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c := l.client
	raw, err := c.dialer.DialContext(c.distance.measure(ctx), network, address)
	if err != nil {
		return nil, dialFailure(err)
	}
	conn := &tracked{Conn: raw, lane: l}
	if !c.track(conn) {
		_ = raw.Close()
		return nil, context.Cause(c.life)
	}
	ctx, cancel := context.WithTimeout(ctx, c.dialer.Timeout)
	defer cancel()
	secure := tls.Client(conn, l.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeFailure(err)
	}
	c.mu.Lock()
	conn.ready = true
	l.open++
	c.mu.Unlock()
	return secure, nil
}

func dialFailure(err error) *Refusal {
	var timeout net.Error
	var dns *net.DNSError
	switch r := asRefusal(err); {
	case r != nil:
		return r
	case errors.As(err, &dns) && dns.IsNotFound:
		// Else a tenant could ask which names there are where this service runs.
		return addressRefused()
	case errors.As(err, &dns):
		return Refuse(http.StatusBadGateway, "cluster_unreachable", "the cluster's name does not resolve")
	case errors.As(err, &timeout) && timeout.Timeout():
		return Refuse(http.StatusGatewayTimeout, "connect_timeout", "the cluster did not take a connection within %s", dialTimeout)
	}
	return Refuse(http.StatusBadGateway, "cluster_unreachable", "the cluster does not take connections")
}

func handshakeFailure(err error) *Refusal {
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return Refuse(http.StatusBadGateway, "tls_invalid", "the cluster's certificate is not valid for its name, its time or its authority")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Refuse(http.StatusGatewayTimeout, "connect_timeout", "the cluster did not complete a TLS handshake within %s", dialTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		return Refuse(http.StatusBadGateway, "cluster_unreachable", "the cluster closed the connection during the TLS handshake")
	}
	return Refuse(http.StatusBadGateway, "tls_invalid", "the cluster does not speak TLS 1.2 or later as this service does")
}

// tracked is a connection its client can end.
type tracked struct {
	net.Conn
	lane  *lane
	ready bool // counted as open
}

func (t *tracked) Close() error {
	c := t.lane.client
	c.mu.Lock()
	delete(c.conns, t)
	if t.ready {
		t.ready = false
		t.lane.open--
	}
	c.mu.Unlock()
	return t.Conn.Close()
}

func (c *client) track(conn *tracked) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		return false
	}
	c.conns[conn] = struct{}{}
	return true
}

// close ends every request with reason, and every connection.
func (c *client) close(reason error) {
	c.end(reason)
	c.mu.Lock()
	conns := c.conns
	c.conns = nil
	c.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
	for _, l := range []*lane{c.short, c.long, c.bulk} {
		l.CloseIdleConnections()
	}
}

// do has once send a request, and a read again where the cluster asks for that.
func (c *client) do(ctx context.Context, req *Request, once func(context.Context, *Request) (*http.Response, error)) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := once(ctx, req)
		if err != nil || attempt == attempts || req.Method != http.MethodGet {
			return resp, err
		}
		wait, again := retryAfter(resp)
		if deadline, ok := ctx.Deadline(); !again || wait > longestRetryWait || ok && time.Until(deadline) <= wait {
			return resp, nil
		}
		_ = resp.Body.Close()
		tied, untie := c.tie(ctx)
		err = sleep(tied, wait)
		untie()
		if err != nil {
			return nil, c.failure(ctx, err)
		}
	}
}

// retryAfter is how long a cluster that refuses for load asks to be left alone,
// at least a moment.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31)
	return max(time.Duration(seconds)*time.Second, 100*time.Millisecond), err == nil
}

func (c *client) once(ctx context.Context, req *Request) (*http.Response, error) {
	if !plainPath(req.Path) {
		return nil, Refuse(http.StatusBadRequest, "bad_input", "the request's path is not plain")
	}
	ctx, release := c.tie(ctx)
	lane := c.short
	switch {
	case req.Stream:
		lane = c.long
	case req.Bulk:
		lane = c.bulk
	}
	made, err := lane.enter(ctx)
	if err != nil {
		err = c.failure(ctx, err)
		release()
		return nil, err
	}
	if made != nil {
		defer made(nil)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { made(nil) }})
	}
	out, err := http.NewRequestWithContext(ctx, req.Method, c.base+req.Path, nil)
	if err != nil {
		release()
		return nil, Refuse(http.StatusBadRequest, "bad_input", "the request cannot be made")
	}
	out.URL.RawQuery = req.Query.Encode()
	if req.Body != nil {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(req.Body)), int64(len(req.Body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(req.Body)), nil }
		out.Header.Set("Content-Type", req.ContentType)
	}
	accept := req.Accept
	if accept == "" {
		accept = "application/json"
	}
	out.Header.Set("Accept", accept)
	if c.distance.within(c.near) {
		out.Header.Set("Accept-Encoding", "identity")
	}
	out.Header.Set("User-Agent", "hanzo-k8s")
	if trace := Traceparent(ctx); trace != "" {
		out.Header.Set("Traceparent", trace)
	}
	if c.token != "" {
		out.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := lane.RoundTrip(out)
	if err != nil {
		refusal := c.failure(ctx, err)
		if made != nil && ctx.Err() == nil {
			made(refusal)
		}
		release()
		return nil, refusal
	}
	left := req.MaxBytes
	if left <= 0 {
		left = defaultMaxBytes
	}
	resp.Body = &body{ReadCloser: resp.Body, client: c, ctx: ctx, left: left, cap: left, release: sync.OnceFunc(release)}
	if refusal := unusable(resp); refusal != nil {
		_ = resp.Body.Close()
		return nil, refusal
	}
	return resp, nil
}

// tie is ctx, ending with the client's life too.
func (c *client) tie(ctx context.Context) (tied context.Context, untie func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// plainPath says that a path has no empty and no dot segment, however escaped.
func plainPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return false
	}
	for segment := range strings.SplitSeq(rest, "/") {
		name, err := url.PathUnescape(segment)
		if err != nil || name == "" || name == "." || name == ".." || strings.ContainsAny(segment, "?#") {
			return false
		}
	}
	return true
}

// unusable refuses an answer that is no answer: a redirect, which is never
// followed, a change of protocol, an encoding nobody asked for, and a body whose
// end could not be told from a cut.
func unusable(resp *http.Response) *Refusal {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return Refuse(http.StatusBadGateway, "redirected", "the cluster answered with a redirect, which is not followed")
	case resp.StatusCode < 200:
		return Refuse(http.StatusBadGateway, "bad_upstream", "the cluster's answer is not one of an API server")
	case resp.Header.Get("Content-Encoding") != "":
		return Refuse(http.StatusBadGateway, "bad_upstream", "the cluster's answer has an encoding that was not asked for")
	case resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && !resp.Uncompressed:
		return Refuse(http.StatusBadGateway, "bad_upstream", "the cluster's answer does not say where it ends")
	}
	return nil
}

// body caps an answer and says why it ended early.
type body struct {
	io.ReadCloser
	client    *client
	ctx       context.Context
	left, cap int64
	release   func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n = int(b.left)
		err = Refuse(http.StatusBadGateway, "too_large", "the cluster's answer is larger than %d bytes", b.cap)
	} else if err != nil && (err != io.EOF || b.ctx.Err() != nil || b.client.life.Err() != nil) {
		// An end that comes after the call's own can be the server's tidy answer to
		// the connection being closed, and not the answer's.
		err = b.client.failure(b.ctx, cut{err})
	}
	b.left -= int64(n)
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
}

// cut is an error met in the middle of an answer.
type cut struct{ error }

// failure is the refusal an error of the transport is: first of all that the
// client has been closed, which breaks connections before it ends contexts.
func (c *client) failure(ctx context.Context, err error) *Refusal {
	if r := asRefusal(context.Cause(c.life)); r != nil {
		return r
	}
	return failure(ctx, err)
}

// failure is the refusal an error met in ctx is. Its words are never the
// error's, which can hold an address.
func failure(ctx context.Context, err error) *Refusal {
	var timeout net.Error
	if r := asRefusal(context.Cause(ctx)); r != nil {
		return r
	}
	if r := asRefusal(err); r != nil {
		return r
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return canceled()
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return Refuse(http.StatusGatewayTimeout, "deadline", "the cluster did not answer in time")
	case errors.As(err, &cut{}):
		return Refuse(http.StatusBadGateway, "truncated", "the cluster's answer was cut short")
	case errors.As(err, &timeout) && timeout.Timeout():
		return Refuse(http.StatusGatewayTimeout, "deadline", "the cluster did not answer in time")
	}
	return Refuse(http.StatusBadGateway, "cluster_unreachable", "the connection to the cluster ended before it answered")
}
