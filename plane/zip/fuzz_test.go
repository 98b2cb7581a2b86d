package zip

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hanzoai/k8s/plane"
)

// FuzzUnmarshal holds a hostile message to reading without a panic, to values
// that are written again as they were read, and to the View agreeing.
func FuzzUnmarshal(f *testing.F) {
	for _, o := range readVectors(f).Objects {
		f.Add(unhex(f, o.Hex))
	}
	msg, err := Marshal(plane.Pods{Pods: []plane.Pod{{Name: "a", Images: []string{"x", "y"}}, {Restarts: 3}}, Continue: "c"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(msg)
	f.Fuzz(func(t *testing.T, msg []byte) {
		again[kinds](t, msg)
		again[plane.Pods](t, msg)
		again[plane.Resources](t, msg)
	})
}

func again[T any](t *testing.T, msg []byte) {
	t.Helper()
	if len(msg) == 0 {
		return
	}
	var first, second T
	guarded := bytes.Clone(msg)
	err := Unmarshal(guarded, &first)
	if !bytes.Equal(guarded, msg) {
		t.Fatal("reading changed the message")
	}
	if err != nil {
		var fe *FormatError
		if !errors.As(err, &fe) {
			t.Fatalf("%T: %v", err, err)
		}
		return
	}
	wrote, err := Marshal(&first)
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal(wrote, &second); err != nil {
		t.Fatalf("what was written cannot be read: %v", err)
	}
	// By their bytes: NaN is not equal to itself.
	if wroteAgain, err := Marshal(&second); err != nil || !bytes.Equal(wrote, wroteAgain) {
		t.Fatalf("%v, -first +second:\n%s", err, cmp.Diff(first, second))
	}
}

// FuzzFrame reads a hostile stream of frames.
func FuzzFrame(f *testing.F) {
	for _, v := range readVectors(f).Frames {
		whole := unhex(f, v.WithLengthPrefix+v.Hex)
		f.Add(whole)
		f.Add(whole[:len(whole)/2])
	}
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		for {
			msg, err := ReadFrame(r, nil)
			if err != nil {
				var fe *FormatError
				if err != io.EOF && !errors.As(err, &fe) {
					t.Fatalf("%T: %v", err, err)
				}
				return
			}
			if cap(msg) > max(2*len(stream), firstRead) {
				t.Fatalf("%d bytes of memory for a stream of %d", cap(msg), len(stream))
			}
			if req, err := ParseRequest(msg); err == nil {
				back, err := ParseRequest(AppendRequest(nil, &req))
				if err != nil {
					t.Fatal(err)
				}
				if req.Proto == "" {
					req.Proto = proto
				}
				req.Header, req.Trailer = travels(req.Header), travels(req.Trailer)
				if d := cmp.Diff(req, back); d != "" {
					t.Fatal(d)
				}
			}
			if res, err := ParseResponse(msg); err == nil {
				res.Reason, res.Proto = "why", "p"
				back, err := ParseResponse(AppendResponse(nil, &res))
				if err != nil {
					t.Fatal(err)
				}
				res.Header, res.Trailer = travels(res.Header), travels(res.Trailer)
				if d := cmp.Diff(res, back); d != "" {
					t.Fatal(d)
				}
			}
			ParseData(msg)
		}
	})
}

// travels is all but what the frame itself says.
func travels(all []Line) []Line {
	var out []Line
	for _, l := range all {
		if !bytes.EqualFold([]byte(l.Key), []byte("Content-Length")) {
			out = append(out, l)
		}
	}
	return out
}

// FuzzRoundTrip sends a struct of all kinds.
func FuzzRoundTrip(f *testing.F) {
	f.Add(true, int64(-1), uint64(1), 1.5, "text", []byte{0, 1}, "key", 3)
	f.Add(false, int64(0), uint64(0), 0.0, "", []byte(nil), "", 0)
	f.Add(true, int64(math.MinInt64), uint64(math.MaxUint64), math.Inf(-1), "héllo\x00w", bytes.Repeat([]byte{7}, 3000), "k", 70)
	f.Fuzz(func(t *testing.T, b bool, i int64, u uint64, fl float64, s string, raw []byte, key string, n int) {
		if fl != fl {
			return
		}
		want := kinds{B: b, I8: int8(i), I16: int16(i), I32: int32(i), I64: i, U8: uint8(u), U16: uint16(u),
			U32: uint32(u), U64: u, F32: float32(fl), F64: fl, S: s, N: pair{key, s}}
		if len(raw) > 0 {
			want.Raw = raw
		}
		if b {
			want.P = &pair{Value: key}
		}
		if v := int32(i); v != 0 {
			want.PI = &v
		}
		for range uint(n) % 100 {
			want.Ss = append(want.Ss, s)
			want.Is = append(want.Is, int32(i))
			want.Bs = append(want.Bs, b)
			want.Ns = append(want.Ns, pair{s, key})
			want.Bb = append(want.Bb, bytes.Clone(raw))
		}
		msg, err := Marshal(&want)
		if err != nil {
			t.Fatal(err)
		}
		var got kinds
		if err := Unmarshal(msg, &got); err != nil {
			t.Fatal(err)
		}
		for i := range got.Bb { // an empty element of bytes is nil or not
			if len(got.Bb[i]) == 0 {
				got.Bb[i], want.Bb[i] = nil, nil
			}
		}
		if !reflect.DeepEqual(want, got) { // much faster than a diff of bytes
			t.Fatal(cmp.Diff(want, got))
		}
	})
}
