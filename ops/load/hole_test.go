package main

import (
	"crypto/tls"
	"net"
	"testing"
	"time"
)

// TestHole sees that a hole passes connections on, is silent on old ones and new
// ones once it is dug, and passes new ones on when it is filled.
func TestHole(t *testing.T) {
	l := newLab(mine)
	defer l.Close()
	h, err := newHole(l)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	shakes := func(patience time.Duration) error {
		conn, err := net.Dial("tcp", h.Addr().String())
		if err != nil {
			t.Fatalf("it does not accept: %v", err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake()
	}
	if err := shakes(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	old, err := tls.Dial("tcp", h.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	h.dig(true)
	for what, err := range map[string]error{"a new connection": shakes(200 * time.Millisecond), "an old one": speak(old)} {
		if failed, ok := err.(net.Error); !ok || !failed.Timeout() {
			t.Errorf("%s is answered or ended: %v", what, err)
		}
	}
	h.dig(false)
	if err := shakes(10 * time.Second); err != nil {
		t.Error(err)
	}
	if failed, ok := speak(old).(net.Error); ok && failed.Timeout() {
		t.Error("an old connection, which lost bytes, is still there")
	}
}

// speak asks on a connection and waits a little for the first byte.
func speak(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := conn.Write([]byte("GET /version HTTP/1.1\r\nHost: lab\r\n\r\n")); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}
