package zip

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// pair and kinds are the structs of the vectors' "Kinds" rows.
type pair struct{ Key, Value string }

type kinds struct {
	B   bool
	I8  int8
	I16 int16
	I32 int32
	I64 int64
	U8  uint8
	U16 uint16
	U32 uint32
	U64 uint64
	F32 float32
	F64 float64
	S   string
	Raw []byte
	N   pair
	P   *pair
	PI  *int32
	Ss  []string
	Is  []int32
	Bs  []bool
	Ns  []pair
	Bb  [][]byte
}

type vectors struct {
	Frames []struct {
		Name, Kind, Method, Target     string
		Status                         int
		Headers                        map[string][]string
		BodyHex, Hex, WithLengthPrefix string
	}
	Objects []struct {
		Name   string
		Layout []string
		Value  json.RawMessage
		Hex    string
	}
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Frames) == 0 || len(v.Objects) == 0 {
		t.Fatalf("%d frames and %d objects in the vectors", len(v.Frames), len(v.Objects))
	}
	return v
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// vectorTypes are the Go types of the vectors' rows, as the reference declares
// them.
var vectorTypes = map[string]any{
	"PodsIn":   struct{ Cluster, Namespace, LabelSelector, NodeName string }{},
	"Pods":     struct{ Pods []pair }{},
	"Deleted":  struct{ Removed bool }{},
	"Expanded": struct{ Gi int }{},
	"Fault":    Fault{},
	"Kinds":    kinds{},
}

func TestObjectsAreTheReferencesBytes(t *testing.T) {
	for _, o := range readVectors(t).Objects {
		t.Run(o.Name, func(t *testing.T) {
			typ, ok := vectorTypes[strings.Fields(o.Name)[0]]
			if !ok {
				t.Fatalf("no type for %q", o.Name)
			}
			want := reflect.New(reflect.TypeOf(typ))
			if err := json.Unmarshal(o.Value, want.Interface()); err != nil {
				t.Fatal(err)
			}
			if n := want.Elem().NumField(); n != len(o.Layout) {
				t.Fatalf("the type has %d fields, the vector %d", n, len(o.Layout))
			}
			msg, err := Marshal(want.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(msg); got != o.Hex {
				t.Errorf("encoded\n got %s\nwant %s", got, o.Hex)
			}
			for _, version := range []byte{1, 2} {
				msg := unhex(t, o.Hex)
				msg[4] = version
				got := reflect.New(reflect.TypeOf(typ))
				if err := Unmarshal(msg, got.Interface()); err != nil {
					t.Fatalf("version %d: %v", version, err)
				}
				if d := cmp.Diff(want.Interface(), got.Interface(), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("version %d decoded, -want +got:\n%s", version, d)
				}
			}
			// The same value by its schema alone.
			lay, err := LayoutOf(reflect.TypeOf(typ))
			if err != nil {
				t.Fatal(err)
			}
			if got := transcode(t, lay, unhex(t, o.Hex)); !bytes.Equal(got, msg) {
				t.Errorf("by its layout\n got %x\nwant %s", got, o.Hex)
			}
		})
	}
}

// transcode reads a message with a View and writes it with a Builder.
func transcode(t testing.TB, lay *Layout, msg []byte) []byte {
	t.Helper()
	v, err := lay.View(msg)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(lay)
	for i := range lay.Len() {
		f := v.Field(i)
		switch k := f.Kind; {
		case k == Bool:
			b.SetBool(i, f.Bool())
		case k <= Int64:
			b.SetInt(i, f.Int())
		case k <= Uint64:
			b.SetUint(i, f.Uint())
		case k <= Float64:
			b.SetFloat(i, f.Float())
		case k == Text:
			b.SetText(i, string(f.Bytes()))
		case k == Bytes:
			b.SetBytes(i, f.Bytes())
		case k == Struct:
			if !f.Null() {
				b.SetBytes(i, transcode(t, lay.Elem(i), f.Bytes()))
			}
		case k == List:
			b.BeginList(i)
			for f.Len() > 0 {
				e, err := f.Next()
				if err != nil {
					t.Fatal(err)
				}
				switch k := e.Kind; {
				case k == Bool:
					b.AppendBool(e.Bool())
				case k <= Int64:
					b.AppendInt(e.Int())
				case k <= Uint64:
					b.AppendUint(e.Uint())
				case k <= Float64:
					b.AppendFloat(e.Float())
				case k == Text:
					b.AppendText(string(e.Bytes()))
				case k == Bytes:
					b.Append(e.Bytes())
				case k == Struct:
					b.Append(transcode(t, lay.Elem(i), e.Bytes()))
				}
			}
			b.EndList()
		}
	}
	out, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
