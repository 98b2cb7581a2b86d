package lens

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func encode(num, wire int, body ...byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(num<<3|wire)), body...)
}

func str(num int, s string) []byte {
	return append(binary.AppendUvarint(encode(num, 2), uint64(len(s))), s...)
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, nil},
		{"a string", str(1, "a"), nil},
		{"a tag without a value", encode(1, 0), ErrTruncated},
		{"a varint that goes on", encode(1, 0, 0x80), ErrTruncated},
		{"a varint of 11 bytes", encode(2, 0, bytes.Repeat([]byte{0x80}, 11)...), ErrVarint},
		{"a length past the end", encode(1, 2, 5, 'a'), ErrTruncated},
		{"a length of 2^63", encode(1, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), ErrTruncated},
		{"4 bytes that are 3", encode(9, 5, 1, 2, 3), ErrTruncated},
		{"8 bytes that are 7", encode(9, 1, 1, 2, 3, 4, 5, 6, 7), ErrTruncated},
		{"8 bytes", encode(9, 1, 1, 2, 3, 4, 5, 6, 7, 8), nil},
		{"field 0", encode(0, 0, 1), ErrTag},
		{"a group", encode(3, 3), ErrTag},
		{"wire type 7", encode(3, 7), ErrTag},
		{"a field number of 2^61", append(bytes.Repeat([]byte{0xf8}, 9), 1, 1), ErrTag},
		{"a number where text should be", encode(1, 0, 1), ErrWireType},
		{"a fault behind what is read", append(str(1, "a"), encode(1, 2, 9)...), ErrTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f Fault
			Protobuf(tt.data, &f).Str(1)
			if !errors.Is(f.Err(), tt.want) {
				t.Errorf("got %v, want %v", f.Err(), tt.want)
			}
		})
	}
}

func TestTheLastOfSeveralCountsAndMessagesMerge(t *testing.T) {
	var f Fault
	m := Protobuf(bytes.Join([][]byte{str(1, "first"), str(1, "last"), encode(2, 0, 1), encode(2, 0, 7),
		str(3, string(str(1, "a"))), str(3, string(str(2, "b"))), str(3, string(str(1, "c")))}, nil), &f)
	if got := m.Str(1); got != "last" {
		t.Errorf("a string: got %q", got)
	}
	if got := m.Int(2); got != 7 {
		t.Errorf("an integer: got %d", got)
	}
	if a, b := m.Sub(3).Str(1), m.Sub(3).Str(2); a != "c" || b != "b" {
		t.Errorf("a message: got %q and %q, want c and b", a, b)
	}
	if n := 0; true {
		for e := m.Each(3); e.Next(); {
			n++
		}
		if n != 3 {
			t.Errorf("as a repeated field: got %d of 3", n)
		}
	}
	if f.Err() != nil {
		t.Error(f.Err())
	}
}

func TestIntegers(t *testing.T) {
	minus := binary.AppendUvarint(nil, ^uint64(4)) // -5
	var f Fault
	m := Protobuf(append(encode(1, 0, minus...), encode(2, 0, 0xff, 0xff, 0xff, 0xff, 0x1f)...), &f)
	if m.Int(1) != -5 || m.Int32(1) != -5 || m.Int32(2) != -1 || !m.Bool(1) || m.Bool(3) {
		t.Errorf("got %d, %d, %d", m.Int(1), m.Int32(1), m.Int32(2))
	}
}

func TestMap(t *testing.T) {
	entry := func(key, value string) []byte { return str(11, string(append(str(1, key), str(2, value)...))) }
	var f Fault
	m := Protobuf(append(append(entry("a", "1"), entry("b", "2")...), entry("a", "3")...), &f)
	if v, ok := m.Key(11, "a"); v != "3" || !ok {
		t.Errorf("of a key that comes twice: got %q", v)
	}
	if v, ok := m.Key(11, "c"); v != "" || ok {
		t.Errorf("of a key that is not there: got %q, %v", v, ok)
	}
	for range Protobuf(entry("\xff", ""), &f).Map(11) {
	}
	if !errors.Is(f.Err(), ErrKey) {
		t.Errorf("of a key that is not UTF-8: got %v", f.Err())
	}
}

// A value's tag with another wire type turns what follows into another key.
func TestMapEntryWhoseFaultMovesItsKey(t *testing.T) {
	entry := str(2, string(append(str(1, "memory"), append(encode(2, 0, 3), str(1, "1")...)...)))
	for name, read := range map[string]func(Message){
		"Key":      func(m Message) { m.Key(2, "memory") },
		"Quantity": func(m Message) { m.Quantity(2, "memory") },
		"Map": func(m Message) {
			for range m.Map(2) {
			}
		},
	} {
		var f Fault
		if read(Protobuf(entry, &f)); !errors.Is(f.Err(), ErrWireType) {
			t.Errorf("%s: got %v, want %v", name, f.Err(), ErrWireType)
		}
	}
}

func TestMicroTime(t *testing.T) {
	minus := binary.AppendUvarint(nil, ^uint64(1_500_000_000-1)) // -1.5 s
	for _, tt := range []struct {
		name  string
		nanos []byte
		want  int64
	}{
		{"within the second", binary.AppendUvarint(nil, 999_999_999), 100},
		{"a second and more", binary.AppendUvarint(nil, 2_000_000_000), 102},
		{"before it", minus, 98},
		{"less than a microsecond before it", binary.AppendUvarint(nil, ^uint64(998)), 100},
	} {
		raw := str(10, string(append(encode(1, 0, 100), encode(2, 0, tt.nanos...)...)))
		var e corev1.Event
		if err := e.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		got, set := Protobuf(raw, new(Fault)).MicroTime(10)
		if !set || got != tt.want || got != e.EventTime.Unix() {
			t.Errorf("%s: got %d, want %d; the typed object has %d", tt.name, got, tt.want, e.EventTime.Unix())
		}
	}
}

func TestIntOrString(t *testing.T) {
	const probeHandler, httpGet, port = 1, 2, 2
	for _, want := range []intstr.IntOrString{intstr.FromInt32(8080), intstr.FromInt32(-1), intstr.FromString("http"), {}} {
		raw, err := (&corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: want}}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, number := Protobuf(raw, new(Fault)).Sub(probeHandler).Sub(httpGet).IntOrString(port)
		if got != want.String() || number != (want.Type == intstr.Int) {
			t.Errorf("got %q, %v; want %v", got, number, want)
		}
	}
}

func TestTime(t *testing.T) {
	for _, want := range []metav1.Time{{}, metav1.Unix(0, 0), metav1.Unix(1767366245, 0), metav1.Unix(-62135596799, 0)} {
		raw, err := (&metav1.ObjectMeta{CreationTimestamp: want}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, set := Protobuf(raw, new(Fault)).Time(MetaCreationTimestamp)
		if set == want.IsZero() || set && got != want.Unix() {
			t.Errorf("got %d, %v; want %v", got, set, want)
		}
	}
}

func TestMetaOwner(t *testing.T) {
	yes, no := true, false
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u", OwnerReferences: []metav1.OwnerReference{
		{Kind: "A", Name: "a"}, {Kind: "B", Name: "b", Controller: &no}, {Kind: "C", Name: "c", APIVersion: "v1", Controller: &yes}}}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	meta := Protobuf(raw, new(Fault)).Meta()
	owner, _ := meta.Owner()
	if meta.Controller() != "C/c" || owner.Str(OwnerAPIVersion) != "v1" || meta.Name() != "p" || meta.Namespace() != "n" || meta.UID() != "u" || meta.Terminating() {
		t.Errorf("got %q, %q", meta.Controller(), owner.Str(OwnerAPIVersion))
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": strings.Repeat("x", 100)}}}
	pod.Spec.Containers = []corev1.Container{{Name: "a", Image: "b"}, {Name: "c"}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var f Fault
	n := 0
	allocs := testing.AllocsPerRun(100, func() {
		m := Protobuf(raw, &f)
		meta := m.Meta()
		_, _ = meta.Annotation("b")
		n += len(meta.Name()) + len(meta.Controller())
		for image := m.Sub(Spec).Texts(PodContainers, ContainerImage); image.Next(); {
			n += len(image.Text)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
