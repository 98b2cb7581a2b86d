package host

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reference splits a protobuf list as client-go would: it decodes all of it and
// encodes each item again.
func reference(body []byte) (items [][]byte, version, next string, ok bool) {
	if !isProtobuf(body) {
		return nil, "", "", false
	}
	var u runtime.Unknown
	if u.Unmarshal(body[len(magic):]) != nil || u.ContentEncoding != "" || u.Raw == nil {
		return nil, "", "", false
	}
	var list corev1.PodList
	if list.Unmarshal(u.Raw) != nil {
		return nil, "", "", false
	}
	for i := range list.Items {
		b, err := list.Items[i].Marshal()
		if err != nil {
			return nil, "", "", false
		}
		items = append(items, b)
	}
	return items, list.ResourceVersion, list.Continue, true
}

// again decodes one item and encodes it, which drops what a Pod has no field for.
func again(item []byte) []byte {
	var p corev1.Pod
	if p.Unmarshal(item) != nil {
		return nil
	}
	b, _ := p.Marshal()
	return b
}

func differential(t *testing.T, body []byte) {
	want, version, next, ok := reference(body)
	p := &page{body: body}
	err := p.splitProtobuf()
	if !ok {
		return // what is wrong inside an item is for the guest to find
	}
	if err != nil {
		t.Fatalf("the API's own types read it, the splitter does not: %v", err)
	}
	if len(p.items) != len(want) || p.version != version || p.next != next {
		t.Fatalf("%d items %q %q, want %d %q %q", len(p.items), p.version, p.next, len(want), version, next)
	}
	for i, s := range p.items {
		if got := again(body[s.start:s.end]); !bytes.Equal(got, want[i]) {
			t.Fatalf("item %d differs", i)
		}
	}
}

func podList(n int) []byte {
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "more", RemainingItemCount: new(int64)}}
	for i := range n {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), Namespace: "ns", Labels: map[string]string{"a": "b"}}})
	}
	return protobuf("v1", "PodList", &list)
}

func TestSplitProtobuf(t *testing.T) {
	for _, n := range []int{0, 1, 2, 500} {
		differential(t, podList(n))
	}
	body := podList(3)
	for i := range body[:len(body)-4] { // the last four bytes are an empty encoding and type
		p := &page{body: body[:i]}
		err := p.splitProtobuf()
		if err == nil {
			t.Errorf("cut at %d of %d it passes", i, len(body))
		} else if i >= len(magic) && !errors.Is(err, errCut) && !errors.Is(err, errShape) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	two := append(bytes.Clone(body), 0x1a, 1, 'x') // a content encoding
	if err := (&page{body: two}).splitProtobuf(); err == nil {
		t.Error("a compressed message passes")
	}
}

func TestNameOf(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "ns"}}
	b, _ := pod.Marshal()
	ns, n := nameOfProtobuf(b)
	if diff := cmp.Diff([]string{"ns", "n"}, []string{string(ns), string(n)}); diff != "" {
		t.Error(diff)
	}
	ns, n = nameOfJSON([]byte(`{"a":{"metadata":{"name":"no"}},"metadata":{"name":"n","namespace":"ns"}}`))
	if diff := cmp.Diff([]string{"ns", "n"}, []string{string(ns), string(n)}); diff != "" {
		t.Error(diff)
	}
}

func FuzzSplitProtobuf(f *testing.F) {
	f.Add(podList(0))
	f.Add(podList(3))
	f.Add([]byte(magic))
	f.Add([]byte("k8s\x00\x12\x02\x12\x00"))
	f.Add([]byte("k8s\x00\x12\x00\x1a\x010\x1a\x00")) // two encodings: the last counts
	f.Fuzz(func(t *testing.T, body []byte) { differential(t, body) })
}
