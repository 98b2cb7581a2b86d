package main

import (
	"bytes"
	"net"
	"strings"
	"sync"
)

// hole is another address of a lab's: it passes connections on until it is dug,
// and is then a black hole. It accepts, and never says a word, on the connections
// there are as on new ones.
type hole struct {
	net.Listener
	of *lab

	mu   sync.Mutex
	dug  bool
	open map[net.Conn]bool
}

func newHole(of *lab) (*hole, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hole{Listener: l, of: of, open: map[net.Conn]bool{}}
	go h.accept()
	return h, nil
}

// kubeconfig reaches the lab through the hole.
func (h *hole) kubeconfig(token string) []byte {
	return bytes.ReplaceAll(h.of.Kubeconfig(token), []byte(h.of.URL()), []byte("https://"+h.Addr().String()))
}

// dig makes it a black hole, or with false an address again, for new
// connections: those that have lost a byte are of no use.
func (h *hole) dig(dug bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dug = dug
	if !dug {
		for conn := range h.open {
			_ = conn.Close()
		}
	}
}

// Close ends it and every connection.
func (h *hole) Close() error {
	err := h.Listener.Close()
	h.dig(false)
	return err
}

func (h *hole) accept() {
	for {
		conn, err := h.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", strings.TrimPrefix(h.of.URL(), "https://"))
		if err != nil {
			_ = conn.Close()
			continue
		}
		h.mu.Lock()
		h.open[conn], h.open[to] = true, true
		h.mu.Unlock()
		go h.pass(conn, to)
		go h.pass(to, conn)
	}
}

// pass passes on what comes from one end, or lets it vanish.
func (h *hole) pass(from, to net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, from)
	}()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		h.mu.Lock()
		dug := h.dug
		h.mu.Unlock()
		if dug {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
