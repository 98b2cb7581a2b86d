package misbehave

import (
	"net"
	"sync"
)

// counted is a listener that knows its connections.
type counted struct {
	net.Listener
	hole bool

	mu   sync.Mutex
	ever int
	open map[net.Conn]bool
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &tracked{Conn: conn, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ever++
	l.open[c] = true
	return c, nil
}

// swallow accepts for ever and keeps what it accepts silent.
func (l *counted) swallow() {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			buffer := make([]byte, 4096)
			for {
				if _, err := conn.Read(buffer); err != nil {
					return
				}
			}
		}()
	}
}

func (l *counted) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ever
}

func (l *counted) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// drop closes what is still open.
func (l *counted) drop() {
	l.mu.Lock()
	conns := make([]net.Conn, 0, len(l.open))
	for conn := range l.open {
		conns = append(conns, conn)
	}
	l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

type tracked struct {
	net.Conn
	of *counted
}

func (c *tracked) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
