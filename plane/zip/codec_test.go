package zip

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hanzoai/k8s/plane"
)

// fill sets every field of v to something that is not zero, n telling values
// apart.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strings.Repeat("é", *n%40) + string(rune('a'+*n%26)))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(-int64(*n % 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n%100) + 1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	}
}

func TestEveryPlaneTypeCrosses(t *testing.T) {
	examined := 0
	for _, op := range plane.Table() {
		for _, zero := range []any{op.In, op.Out} {
			if zero == nil {
				continue
			}
			examined++
			typ := reflect.TypeOf(zero)
			for _, full := range []bool{false, true} {
				want := reflect.New(typ)
				if full {
					fill(want.Elem(), new(int))
				}
				msg, err := Marshal(want.Interface())
				if err != nil {
					t.Errorf("%v: %v", typ, err)
					continue
				}
				got := reflect.New(typ)
				if err := Unmarshal(msg, got.Interface()); err != nil {
					t.Errorf("%v: %v", typ, err)
				}
				if d := cmp.Diff(want.Interface(), got.Interface()); d != "" {
					t.Errorf("%v, -sent +arrived:\n%s", typ, d)
				}
				lay, err := LayoutOf(typ)
				if err != nil {
					t.Fatal(err)
				}
				if again := transcode(t, lay, msg); !bytes.Equal(again, msg) {
					t.Errorf("%v: a builder writes other bytes\n got %x\nwant %x", typ, again, msg)
				}
			}
		}
	}
	if examined != 71 {
		t.Errorf("%d types examined, want 71: two for each of 36 operations, less one without an input", examined)
	}
}

// An old peer's object ends where its text begins. Read with more fields, the
// text must not become a number.
func TestFieldsAreAppendedSafely(t *testing.T) {
	type old struct {
		Cluster string
		Gone    bool
		Names   []string
	}
	type with struct {
		Cluster  string
		Gone     bool
		Names    []string
		Limit    int
		Continue string
		More     []string
		Nested   pair
		Flag     bool
	}
	for _, o := range []old{
		{},
		{Cluster: "prod"},
		{Cluster: strings.Repeat("a cluster with a long name ", 20), Gone: true},
		{Names: []string{"a", strings.Repeat("b", 100)}},
		{Cluster: strings.Repeat("\x08\x00\x00\x00", 40), Names: []string{"n"}},
	} {
		msg, err := Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		got := with{Limit: 7, Continue: "left over", Flag: true}
		if err := Unmarshal(msg, &got); err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		if d := cmp.Diff(with{Cluster: o.Cluster, Gone: o.Gone, Names: o.Names}, got); d != "" {
			t.Errorf("an old peer's object, -want +got:\n%s", d)
		}
		// And the other way: an old reader of a new object.
		w := with{Cluster: o.Cluster, Gone: o.Gone, Names: o.Names, Limit: -1, Continue: "x", More: []string{"y"}, Flag: true}
		if msg, err = Marshal(&w); err != nil {
			t.Fatal(err)
		}
		var back old
		if err := Unmarshal(msg, &back); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(o, back); d != "" {
			t.Errorf("a new peer's object, -want +got:\n%s", d)
		}
	}
}

type loop struct{ Next *loop }
type loops struct{ All []loops }

func TestWhatCannotCross(t *testing.T) {
	for _, c := range []struct {
		v    any
		path string
	}{
		{struct{ A struct{ M map[string]string } }{}, ".A.M"},
		{struct{ I any }{}, ".I"},
		{struct{ C chan int }{}, ".C"},
		{struct{ F func() }{}, ".F"},
		{struct{ L [][]string }{}, ".L"},
		{struct{ L [][][]byte }{}, ".L"},
		{struct{ A [4]byte }{}, ".A"},
		{struct{ P **int }{}, ".P"},
		{struct{ C complex128 }{}, ".C"},
		{struct{ U uintptr }{}, ".U"},
		{struct{ L []struct{ E error } }{}, ".L.E"},
		{loop{}, "loop.Next"},
		{loops{}, "loops.All"},
		{42, ""},
		{"text", "string"},
		{nil, "nil"},
	} {
		_, err := Marshal(c.v)
		var te *TypeError
		if !errors.As(err, &te) || !strings.Contains(te.Path, c.path) {
			t.Errorf("Marshal(%T) = %v, want a TypeError at %q", c.v, err, c.path)
		}
	}
	if err := Unmarshal([]byte("ZAP"), pair{}); err == nil {
		t.Error("a message was read into a struct that is no pointer")
	}
}

func TestNilIsNoBody(t *testing.T) {
	msg, err := Marshal((*pair)(nil))
	if msg != nil || err != nil {
		t.Errorf("Marshal(nil) = %x, %v", msg, err)
	}
	p := pair{Key: "kept"}
	if err := Unmarshal(nil, &p); err != nil || p.Key != "kept" {
		t.Errorf("no body: %v, %v", p, err)
	}
}

func TestHostileMessages(t *testing.T) {
	good, err := Marshal(kinds{S: "text", Ss: []string{"a", "b"}, Ns: []pair{{"k", "v"}}})
	if err != nil {
		t.Fatal(err)
	}
	edit := func(at int, v uint32) []byte {
		m := bytes.Clone(good)
		le.PutUint32(m[at:], v)
		return m
	}
	root := int(le.Uint32(good[8:]))
	for _, c := range []struct {
		name string
		msg  []byte
		want error
	}{
		{"short header", good[:15], ErrShort},
		{"cut", good[:len(good)-1], ErrShort},
		{"magic", append([]byte("ZAQ\x00"), good[4:]...), ErrMagic},
		{"version 0", edit(4, 0), ErrVersion},
		{"version 3", edit(4, 3), ErrVersion},
		{"root in the header", edit(8, 15), ErrMalformed},
		{"root past the end", edit(8, uint32(len(good)+1)), ErrMalformed},
		{"root huge", edit(8, 1<<31), ErrMalformed},
		{"size under the header", edit(12, 15), ErrMalformed},
		{"size huge", edit(12, 1<<32-1), ErrShort},
		{"count huge", edit(root+88+4, 1<<32-1), ErrMalformed},
		{"count one over", edit(root+88+4, 40), ErrMalformed},
		{"element over the end", edit(16, 1<<31), ErrMalformed},
		{"structs that are none", edit(root+112, uint32(int32(16-root-112))), ErrShort},
	} {
		var k kinds
		if err := Unmarshal(c.msg, &k); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for name, rel := range map[string]int32{
		"into the header":   int32(8 - root - 48),
		"before everything": -1 << 31,
		"at the end":        int32(len(good) - root - 48),
		"past the end":      1<<31 - 1,
	} {
		k := kinds{S: "left over"}
		if err := Unmarshal(edit(root+48, uint32(rel)), &k); err != nil || k.S != "" {
			t.Errorf("text %s: %q, %v, want null", name, k.S, err)
		}
	}
}

// A message must not decode to more than it holds: not by a count, and not by
// slots that share their bytes.
func TestDecodingIsBoundedByTheMessage(t *testing.T) {
	type wide struct{ A, B, C, D, E, F, G, H []byte }
	msg, err := Marshal(wide{A: make([]byte, 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		putRef(msg, 16+8*i, 80, 1<<20)
	}
	if err := Unmarshal(msg, &wide{}); !errors.Is(err, ErrMalformed) {
		t.Errorf("slots that share a megabyte: %v", err)
	}

	type many struct{ Pods []plane.Pod }
	msg, err = Marshal(many{Pods: []plane.Pod{{}}})
	if err != nil {
		t.Fatal(err)
	}
	msg = append(msg, make([]byte, 4<<20)...)
	le.PutUint32(msg[12:], uint32(len(msg)))
	root := int(le.Uint32(msg[8:]))
	putRef(msg, root, root+8, 1<<20) // a million elements of no bytes
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = Unmarshal(msg, &many{})
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrMalformed) || grown > 1<<20 {
		t.Errorf("a million empty elements: %v, after allocating %d bytes", err, grown)
	}
}

func TestNothingAliasesTheMessage(t *testing.T) {
	want := kinds{S: "text", Raw: []byte("raw"), Ss: []string{"a"}, Bb: [][]byte{[]byte("b")}, P: &pair{"k", "v"}}
	msg, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got kinds
	if err := Unmarshal(msg, &got); err != nil {
		t.Fatal(err)
	}
	for i := range msg {
		msg[i] = 'X'
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBuilderRefuses(t *testing.T) {
	lay, err := NewLayout(Field{Name: "n", Kind: Int8}, Field{Name: "u", Kind: Uint16}, Field{Name: "s", Kind: Text},
		Field{Name: "l", Kind: List, Elem: Int32}, Field{Name: "m", Kind: List, Elem: Text})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(*Builder){
		"no such field":       func(b *Builder) { b.SetText(9, "") },
		"another kind":        func(b *Builder) { b.SetInt(2, 1) },
		"overflow":            func(b *Builder) { b.SetInt(0, 128) },
		"unsigned overflow":   func(b *Builder) { b.SetUint(1, 1<<16) },
		"element overflow":    func(b *Builder) { b.BeginList(3); b.AppendInt(1 << 31); b.EndList() },
		"another element":     func(b *Builder) { b.BeginList(3); b.AppendText("a"); b.EndList() },
		"element outside":     func(b *Builder) { b.AppendText("a") },
		"list within list":    func(b *Builder) { b.BeginList(3); b.BeginList(4); b.EndList() },
		"list twice":          func(b *Builder) { b.BeginList(3); b.EndList(); b.BeginList(3); b.EndList() },
		"list left open":      func(b *Builder) { b.BeginList(3) },
		"end without a begin": func(b *Builder) { b.EndList() },
	} {
		b := NewBuilder(lay)
		f(b)
		if msg, err := b.Finish(); err == nil {
			t.Errorf("%s: made %x", name, msg)
		}
	}
	for _, bad := range [][]Field{{{Kind: Invalid}}, {{Kind: List, Elem: List}}, {{Kind: List}}, {{Kind: 99}}} {
		if _, err := NewLayout(bad...); err == nil {
			t.Errorf("%+v has a layout", bad)
		}
	}
	deep := Field{Kind: Bool}
	for range maxDepth + 2 {
		deep = Field{Name: "x", Kind: Struct, Fields: []Field{deep}}
	}
	if _, err := NewLayout(deep); err == nil {
		t.Error("a schema without a bottom has a layout")
	}
}

func TestScalarsDoNotAllocate(t *testing.T) {
	type scalars struct {
		A bool
		B int
		C int8
		D uint32
		E float32
		F float64
	}
	in := &scalars{true, 1, 2, 3, 4, 5}
	buf := make([]byte, 0, 256)
	var out scalars
	if n := testing.AllocsPerRun(100, func() {
		var err error
		if buf, err = Append(buf[:0], in); err != nil {
			t.Fatal(err)
		}
		if err := Unmarshal(buf, &out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if out != *in {
		t.Errorf("got %+v", out)
	}
}
