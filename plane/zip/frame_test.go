package zip

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lineOrder is the order in which a vector has its headers, which the reference
// does not fix.
func lineOrder(raw []byte, all map[string][]string) []Line {
	var out []Line
	for key, values := range all {
		for _, v := range values {
			out = append(out, Line{key, v})
		}
	}
	slices.SortFunc(out, func(a, b Line) int { return bytes.Index(raw, []byte(a.Key)) - bytes.Index(raw, []byte(b.Key)) })
	return out
}

func TestFramesAreTheReferencesBytes(t *testing.T) {
	for _, v := range readVectors(t).Frames {
		t.Run(v.Name, func(t *testing.T) {
			raw := unhex(t, v.Hex)
			var body []byte
			if v.BodyHex != "" {
				body = unhex(t, v.BodyHex)
			}
			header := lineOrder(raw, v.Headers)
			var got []byte
			if v.Kind == "request" {
				want := Request{Method: v.Method, Target: v.Target, Proto: proto, Header: header, Body: body}
				got = AppendRequest(nil, &want)
				parsed, err := ParseRequest(raw)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, parsed); d != "" {
					t.Errorf("parsed, -want +got:\n%s", d)
				}
				if _, err := ParseResponse(raw); !errors.Is(err, ErrFrameType) {
					t.Errorf("a request read as a response: %v", err)
				}
			} else {
				want := Response{Status: v.Status, Header: header, Body: body}
				got = AppendResponse(nil, &want)
				parsed, err := ParseResponse(raw)
				if err != nil {
					t.Fatal(err)
				}
				want.Reason, want.Proto = parsed.Reason, proto
				if d := cmp.Diff(want, parsed); d != "" || parsed.Reason == "" {
					t.Errorf("parsed, -want +got:\n%s", d)
				}
				if _, err := ParseRequest(raw); !errors.Is(err, ErrFrameType) {
					t.Errorf("a response read as a request: %v", err)
				}
			}
			if h := hex.EncodeToString(got); h != v.Hex {
				t.Errorf("encoded\n got %s\nwant %s", h, v.Hex)
			}
			var stream bytes.Buffer
			if err := WriteFrame(&stream, got); err != nil {
				t.Fatal(err)
			}
			if h := hex.EncodeToString(stream.Bytes()); h != v.WithLengthPrefix+v.Hex {
				t.Errorf("framed %s", h)
			}
			back, err := ReadFrame(&stream, nil)
			if err != nil || !bytes.Equal(back, raw) {
				t.Errorf("read back %x, %v", back, err)
			}
			if _, err := ReadFrame(&stream, nil); err != io.EOF {
				t.Errorf("between frames: %v, want io.EOF", err)
			}
		})
	}
}

func TestFramesThatAreNone(t *testing.T) {
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for _, c := range []struct {
		name   string
		stream []byte
		want   error
	}{
		{"zero", length(0), ErrEmptyFrame},
		{"over", length(MaxFrame + 1), ErrTooLarge},
		{"far over", length(1<<32 - 1), ErrTooLarge},
		{"half a length", length(9)[:2], ErrShort},
		{"no message", length(9), ErrShort},
		{"half a message", append(length(9), "ZAP"...), ErrShort},
		{"much claimed", append(length(MaxFrame), "ZAP"...), ErrShort},
	} {
		if _, err := ReadFrame(bytes.NewReader(c.stream), nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		ReadFrame(bytes.NewReader(append(length(MaxFrame), "ZAP"...)), nil)
	}); n > 20 {
		t.Errorf("a length alone costs %v allocations", n)
	}
	if err := WriteFrame(io.Discard, nil); !errors.Is(err, ErrEmptyFrame) {
		t.Errorf("writing nothing: %v", err)
	}
	if err := WriteFrame(io.Discard, make([]byte, MaxFrame+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("writing too much: %v", err)
	}
}

func TestLargestFrame(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), MaxFrame/16)
	var stream bytes.Buffer
	if err := WriteFrame(&stream, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFrame(&stream, nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestHeaderLines(t *testing.T) {
	all := []Line{{"A", "1"}, {"content-length", "7"}, {"A", "2"}, {"B", ""}}
	req, err := ParseRequest(AppendRequest(nil, &Request{Method: "GET", Target: "/", Header: all, Trailer: all[2:]}))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Line{{"A", "1"}, {"A", "2"}, {"B", ""}}, req.Header); d != "" {
		t.Errorf("headers, -want +got:\n%s", d)
	}
	if d := cmp.Diff(all[2:], req.Trailer); d != "" {
		t.Errorf("trailers, -want +got:\n%s", d)
	}
	for _, raw := range []string{"\x01", "\x01\x00\x00\x00", "\xff\xff\xff\xff" + strings.Repeat("\x00", 64),
		"\x01\x00\x00\x00\xff\xff\xff\xffkeyvalue", "\x01\x00\x00\x00\x01\x00\x00\x00k\xff\x00\x00\x00"} {
		if got, err := parseLines([]byte(raw)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v, %v", raw, got, err)
		}
	}
}
