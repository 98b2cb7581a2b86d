package zip

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// maxIdle bounds the connections a pool keeps for later. Calls beyond it
	// have connections too, which are closed after them.
	maxIdle = 32
	// maxIdleTime is less than a server's idle timeout, so that the server is
	// rarely the one to close.
	maxIdleTime = 90 * time.Second
)

// pool is the connections to one socket. A connection carries one exchange at a
// time.
type pool struct {
	path string
	mu   sync.Mutex
	idle []*conn // the most recently used last
}

// pools are this process's, by socket path: the name stands for whatever process
// serves it now, so a restarted app is reached by the same pool.
var pools sync.Map

func poolOf(path string) *pool {
	if p, ok := pools.Load(path); ok {
		return p.(*pool)
	}
	p, _ := pools.LoadOrStore(path, &pool{path: path})
	return p.(*pool)
}

// CloseIdle closes every pooled connection that no call is using.
func CloseIdle() {
	pools.Range(func(_, v any) bool {
		p := v.(*pool)
		p.mu.Lock()
		idle := p.idle
		p.idle = nil
		p.mu.Unlock()
		for _, c := range idle {
			c.Close()
		}
		return true
	})
}

// conn is a client's connection.
type conn struct {
	*net.UnixConn
	raw    syscall.RawConn
	br     *bufio.Reader
	reused bool
	parked time.Time

	// probe is raw's callback and alive its result: a field, so that asking
	// does not allocate.
	probe func(fd uintptr) bool
	alive bool
}

func (p *pool) dial(ctx context.Context) (*conn, error) {
	var d net.Dialer
	wait := time.Millisecond
	for {
		nc, err := d.DialContext(ctx, "unix", p.path)
		if errors.Is(err, syscall.EAGAIN) && wait < time.Second {
			// The server's backlog is full, which a unix socket reports
			// instead of waiting.
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(wait):
			}
			wait *= 2
			continue
		}
		if err != nil {
			return nil, err
		}
		return newConn(nc.(*net.UnixConn))
	}
}

func newConn(uc *net.UnixConn) (*conn, error) {
	peer, err := peerOf(uc)
	if err == nil {
		err = trust(peer, self())
	}
	if err != nil {
		uc.Close()
		return nil, err
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		uc.Close()
		return nil, err
	}
	c := &conn{UnixConn: uc, raw: raw, br: bufio.NewReaderSize(uc, 4<<10)}
	c.probe = func(fd uintptr) bool {
		// Nothing is due: anything but "would block" is the end, or bytes
		// that belong to no request.
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		c.alive = errors.Is(err, syscall.EAGAIN)
		return true
	}
	return c, nil
}

// take is an idle connection that is still alive, or a new one.
func (p *pool) take(ctx context.Context) (*conn, error) {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return p.dial(ctx)
		}
		c := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		c.alive = false
		if time.Since(c.parked) < maxIdleTime && c.br.Buffered() == 0 && c.raw.Read(c.probe) == nil && c.alive {
			c.reused = true
			return c, nil
		}
		c.Close()
	}
}

func (p *pool) park(c *conn) {
	c.parked = time.Now()
	p.mu.Lock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, c)
		c = nil
	}
	p.mu.Unlock()
	if c != nil {
		c.Close()
	}
}

// reply is an answer, its body in the buffer of the exchange.
type reply struct {
	status int
	body   []byte
}

// exchange sends a request, which has room for the length before it, and reads
// the answer into buf.
func (p *pool) exchange(ctx context.Context, request, buf []byte) ([]byte, reply, error) {
	binary.BigEndian.PutUint32(request, uint32(len(request)-4))
	for {
		c, err := p.take(ctx)
		if err != nil {
			return buf, reply{}, err
		}
		var r reply
		var unread bool
		buf, r, unread, err = c.exchange(ctx, request, buf)
		if err == nil {
			p.park(c)
			return buf, r, nil
		}
		c.Close()
		// A connection that died while it was idle says so on first use.
		// Every one of them can be such, so this ends when they are used up
		// and a new one fails.
		if !unread || !c.reused || ctx.Err() != nil {
			return buf, reply{}, err
		}
	}
}

// exchange runs one request. unread says that the server cannot have acted on
// it: the kernel refused the bytes, or reports that they were thrown away unread.
// An end of the stream is not that, since the server may have read them all.
func (c *conn) exchange(ctx context.Context, request, buf []byte) (_ []byte, r reply, unread bool, err error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
		defer func() {
			if !stop() && err == nil {
				err = ctx.Err() // the deadline it set is still on the connection
			}
		}()
	}
	if _, err := c.Write(request); err != nil {
		return buf, r, errors.Is(err, syscall.EPIPE), fmt.Errorf("sending: %w", err)
	}
	if _, err := c.br.Peek(1); err != nil {
		return buf, r, errors.Is(err, syscall.ECONNRESET), fmt.Errorf("no answer: %w", noEOF(err))
	}
	buf, r, err = c.read(buf)
	return buf, r, false, err
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// read reads one answer: a response in one frame, or a head, data and an end,
// whose bodies are put together.
func (c *conn) read(buf []byte) ([]byte, reply, error) {
	buf, err := ReadFrame(c.br, buf)
	if err != nil {
		return buf, reply{}, fmt.Errorf("reading the answer: %w", noEOF(err))
	}
	typ, err := FrameTypeOf(buf)
	if err != nil {
		return buf, reply{}, err
	}
	l, want := responseLayout, ResponseFrame
	if typ == HeadFrame {
		want = HeadFrame
	}
	v, err := openFrame(buf, want, l)
	if err != nil {
		return buf, reply{}, err
	}
	r := reply{status: int(v.Field(0).Uint()), body: v.Field(4).Bytes()}
	if r.status < 200 || r.status > 599 {
		return buf, reply{}, malformed("an answer of status %d", r.status)
	}
	if typ != HeadFrame {
		return buf, r, nil
	}
	var body, chunk []byte
	for {
		if chunk, err = ReadFrame(c.br, chunk); err != nil {
			return buf, reply{}, fmt.Errorf("reading a streamed answer: %w", noEOF(err))
		}
		if typ, err = FrameTypeOf(chunk); err != nil {
			return buf, reply{}, err
		}
		if typ == EndFrame {
			r.body = body
			return buf, r, nil
		}
		data, err := ParseData(chunk)
		if err != nil {
			return buf, reply{}, err
		}
		if len(data) > MaxFrame-len(body) {
			return buf, reply{}, &FormatError{ErrTooLarge, "a streamed answer"}
		}
		body = append(body, data...)
	}
}
