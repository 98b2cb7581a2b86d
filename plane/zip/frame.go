package zip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// FrameType is what a frame carries, in the high byte of its message's flags.
type FrameType uint8

// The frames. A response is one RequestFrame's answer in one piece, or a head,
// any number of data frames and an end.
const (
	RequestFrame  FrameType = 1
	ResponseFrame FrameType = 2
	HeadFrame     FrameType = 3
	DataFrame     FrameType = 4
	EndFrame      FrameType = 5
)

// proto is what both halves say they speak.
const proto = "HTTP/1.1"

// Line is one header line. A key that has several values has several lines.
type Line struct{ Key, Value string }

// Request is a request frame. Content-Length never travels, since the frame
// knows; Host does, as a line.
type Request struct {
	Method, Target, Proto string
	Header                []Line
	Body                  []byte
	Trailer               []Line
}

// Response is a response frame, or the head of a streamed response.
type Response struct {
	Status        int
	Reason, Proto string
	Header        []Line
	Body          []byte
	Trailer       []Line
}

// The layouts of frames, as schemas like any other. A request's and a response's
// agree from the third field on.
var (
	requestLayout = mustLayout(Field{Name: "method", Kind: Text}, Field{Name: "target", Kind: Text},
		Field{Name: "proto", Kind: Text}, Field{Name: "headers", Kind: Bytes},
		Field{Name: "body", Kind: Bytes}, Field{Name: "trailer", Kind: Bytes})
	responseLayout = mustLayout(Field{Name: "status", Kind: Uint16}, Field{Name: "reason", Kind: Text},
		Field{Name: "proto", Kind: Text}, Field{Name: "headers", Kind: Bytes},
		Field{Name: "body", Kind: Bytes}, Field{Name: "trailer", Kind: Bytes})
	chunkLayout = mustLayout(Field{Name: "bytes", Kind: Bytes})
)

const (
	frameRoot  = headerSize
	frameFixed = 48
)

func mustLayout(fields ...Field) *Layout {
	l, err := NewLayout(fields...)
	if err != nil {
		panic(err)
	}
	return l
}

// FrameTypeOf is the type of a frame, from its header alone.
func FrameTypeOf(msg []byte) (FrameType, error) {
	if _, _, err := openMessage(msg); err != nil {
		return 0, err
	}
	return FrameType(le.Uint16(msg[6:]) >> 8), nil
}

// openFrame opens a frame that is to be of type want.
func openFrame(msg []byte, want FrameType, l *Layout) (View, error) {
	got, err := FrameTypeOf(msg)
	if err != nil {
		return View{}, err
	}
	if got != want {
		return View{}, &FormatError{ErrFrameType, fmt.Sprintf("type %d where %d was due", got, want)}
	}
	v, err := l.View(msg)
	if err == nil && v.root != frameRoot {
		return View{}, malformed("a frame whose root is at %d", v.root)
	}
	return v, err
}

// ParseRequest reads a request frame. Its Body aliases msg.
func ParseRequest(msg []byte) (Request, error) {
	v, err := openFrame(msg, RequestFrame, requestLayout)
	if err != nil {
		return Request{}, err
	}
	r := Request{
		Method: string(v.Field(0).Bytes()),
		Target: string(v.Field(1).Bytes()),
		Proto:  string(v.Field(2).Bytes()),
		Body:   v.Field(4).Bytes(),
	}
	if r.Header, err = parseLines(v.Field(3).Bytes()); err == nil {
		r.Trailer, err = parseLines(v.Field(5).Bytes())
	}
	return r, err
}

// ParseResponse reads a response frame, or a head frame, which has no body. Its
// Body aliases msg.
func ParseResponse(msg []byte) (Response, error) {
	typ, err := FrameTypeOf(msg)
	if err != nil {
		return Response{}, err
	}
	if typ != HeadFrame {
		typ = ResponseFrame
	}
	v, err := openFrame(msg, typ, responseLayout)
	if err != nil {
		return Response{}, err
	}
	r := Response{
		Status: int(v.Field(0).Uint()),
		Reason: string(v.Field(1).Bytes()),
		Proto:  string(v.Field(2).Bytes()),
		Body:   v.Field(4).Bytes(),
	}
	if r.Header, err = parseLines(v.Field(3).Bytes()); err == nil {
		r.Trailer, err = parseLines(v.Field(5).Bytes())
	}
	return r, err
}

// ParseData is the bytes of a data frame. They alias msg.
func ParseData(msg []byte) ([]byte, error) {
	v, err := openFrame(msg, DataFrame, chunkLayout)
	if err != nil {
		return nil, err
	}
	return v.Field(0).Bytes(), nil
}

// AppendRequest appends r as a message, without a frame's length. An empty Proto
// is HTTP/1.1.
func AppendRequest(dst []byte, r *Request) []byte {
	start := len(dst)
	dst = beginFrame(dst, RequestFrame)
	at := start + frameRoot
	dst = appendRef(dst, at, r.Method)
	dst = appendRef(dst, at+8, r.Target)
	dst = appendRef(dst, at+16, orProto(r.Proto))
	dst = appendLines(dst, at+24, r.Header)
	dst = appendRef(dst, at+32, r.Body)
	dst = appendLines(dst, at+40, r.Trailer)
	endMessage(dst, start, at)
	return dst
}

// AppendResponse appends r as a message, without a frame's length. An empty
// Reason is the status' own, an empty Proto HTTP/1.1.
func AppendResponse(dst []byte, r *Response) []byte {
	start := len(dst)
	dst = beginResponse(dst, r.Status, r.Reason, r.Proto)
	at := start + frameRoot
	dst = appendLines(dst, at+24, r.Header)
	dst = appendRef(dst, at+32, r.Body)
	dst = appendLines(dst, at+40, r.Trailer)
	endMessage(dst, start, at)
	return dst
}

func beginFrame(dst []byte, t FrameType) []byte {
	return appendZeroes(appendHeader(dst, uint16(t)<<8), frameFixed)
}

func beginResponse(dst []byte, status int, reason, protocol string) []byte {
	at := len(dst) + frameRoot
	dst = beginFrame(dst, ResponseFrame)
	le.PutUint16(dst[at:], uint16(status))
	if reason == "" {
		reason = http.StatusText(status)
	}
	dst = appendRef(dst, at+8, reason)
	return appendRef(dst, at+16, orProto(protocol))
}

func orProto(s string) string {
	if s == "" {
		return proto
	}
	return s
}

// lines writes header lines straight into a frame, their count last. The zero
// value, but for slot, is ready.
type lines struct {
	slot, at, n int
}

func (l *lines) add(dst []byte, key, value string) []byte {
	if l.n == 0 {
		l.at = len(dst)
		dst = append(dst, 0, 0, 0, 0)
	}
	l.n++
	dst = le.AppendUint32(dst, uint32(len(key)))
	dst = append(dst, key...)
	dst = le.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

func (l *lines) end(dst []byte) {
	if l.n > 0 {
		le.PutUint32(dst[l.at:], uint32(l.n))
		putRef(dst, l.slot, l.at, len(dst)-l.at)
	}
}

func appendLines(dst []byte, slot int, all []Line) []byte {
	l := lines{slot: slot}
	for _, h := range all {
		if !strings.EqualFold(h.Key, "Content-Length") {
			dst = l.add(dst, h.Key, h.Value)
		}
	}
	l.end(dst)
	return dst
}

// maxLines bounds a frame's header lines; net/http bounds their bytes instead,
// and a frame is bounded already.
const maxLines = 1 << 10

func parseLines(b []byte) ([]Line, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < 4 {
		return nil, malformed("headers of %d bytes", len(b))
	}
	n := le.Uint32(b)
	if n > maxLines || int(n) > len(b)/8 {
		return nil, malformed("%d header lines in %d bytes", n, len(b))
	}
	all := make([]Line, n)
	// One copy for them all: they are small, and live and die together.
	text := string(b)
	at := 4
	for i := range all {
		for _, s := range []*string{&all[i].Key, &all[i].Value} {
			if len(b)-at < 4 {
				return nil, malformed("headers that end within line %d of %d", i, n)
			}
			size := uint64(le.Uint32(b[at:]))
			at += 4
			if size > uint64(len(b)-at) {
				return nil, malformed("headers that end within line %d of %d", i, n)
			}
			*s = text[at : at+int(size)]
			at += int(size)
		}
	}
	return all, nil
}

// WriteFrame writes one message as a frame.
func WriteFrame(w io.Writer, msg []byte) error {
	if err := checkFrame(uint64(len(msg))); err != nil {
		return err
	}
	buf := make([]byte, 4, 4+len(msg))
	binary.BigEndian.PutUint32(buf, uint32(len(msg)))
	_, err := w.Write(append(buf, msg...))
	return err
}

func checkFrame(n uint64) error {
	switch {
	case n == 0:
		return &FormatError{Err: ErrEmptyFrame}
	case n > MaxFrame:
		return &FormatError{ErrTooLarge, fmt.Sprintf("a frame of %d bytes", n)}
	}
	return nil
}

// ReadFrame reads one frame and gives its message, in buf when that is large
// enough. The end of the stream between two frames is io.EOF itself; a frame cut
// short is a [*FormatError] of [ErrShort], an illegal length one of [ErrTooLarge]
// or [ErrEmptyFrame], and after any of them r is of no more use.
func ReadFrame(r io.Reader, buf []byte) ([]byte, error) {
	// The prefix is read into buf as well: an array here would escape.
	if cap(buf) < 4 {
		buf = make([]byte, 0, 512)
	}
	if _, err := io.ReadFull(r, buf[:4]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, &FormatError{ErrShort, "a frame's length"}
		}
		return nil, err
	}
	size := binary.BigEndian.Uint32(buf[:4])
	if err := checkFrame(uint64(size)); err != nil {
		return nil, err
	}
	n := int(size)
	// Memory follows the bytes that come, not the length that was claimed.
	buf = buf[:0]
	for len(buf) < n {
		if len(buf) == cap(buf) || len(buf) == 0 && cap(buf) < min(n, firstRead) {
			grown := make([]byte, len(buf), min(n, max(firstRead, 2*len(buf))))
			copy(grown, buf)
			buf = grown
		}
		at := len(buf)
		buf = buf[:min(n, cap(buf))]
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, &FormatError{ErrShort, fmt.Sprintf("a frame of %d bytes", n)}
			}
			return nil, err
		}
	}
	return buf, nil
}

// firstRead is the most memory a length alone can claim.
const firstRead = 256 << 10
