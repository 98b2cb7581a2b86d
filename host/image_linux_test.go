package host

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImage checks that a memory becomes an image's, that what is written to it
// is told and nothing else, and that the image stays as it was.
func TestImage(t *testing.T) {
	const size = 4 << 16
	view := make([]byte, size)
	copy(view[3*osPage:], "of the snapshot")
	m := newImage(view)
	if m == nil {
		t.Fatal("there is no image")
	}
	defer m.close()
	if !bytes.Equal(m.read, view) {
		t.Error("the image is not the memory")
	}
	var memories [2]*mapping
	for n := range memories {
		p := newMapping(2 * size)
		if p == nil {
			t.Fatal("there is no mapping")
		}
		defer p.Free()
		memories[n] = p
		b := p.Reallocate(size)
		copy(b[size-5:], "mine")
		if _, known := p.written(nil, make([]uint64, size/osPage)); known {
			t.Error("a memory of no image tells what differs from it")
		}
		if !p.adopt(m) {
			t.Fatal("the image is not taken")
		}
		if !bytes.Equal(b, view) {
			t.Error("the memory is not the image")
		}
	}
	mine := memories[0].region[:size]
	each := osPage / blockSize
	var want []int
	for _, page := range []int{1, 3, size/osPage - 1} {
		mine[page*osPage+7]++
		for b := range each {
			want = append(want, page*each+b)
		}
	}
	sum := 0
	for _, b := range mine { // reading is no writing
		sum += int(b)
	}
	got, known := memories[0].written(nil, make([]uint64, size/osPage))
	if diff := cmp.Diff(want, got); diff != "" || !known || sum == 0 {
		t.Errorf("known %t (-want +got):\n%s", known, diff)
	}
	if got, known := memories[1].written(nil, make([]uint64, size/osPage)); len(got) > 0 || !known {
		t.Errorf("of the other memory: %v, %t", got, known)
	}
	if !bytes.Equal(memories[1].region[:size], view) || !bytes.Equal(m.read, view) {
		t.Error("a write to one memory is seen in another, or in the image")
	}
	memories[0].Reallocate(size + 1<<16)
	if _, known := memories[0].written(nil, make([]uint64, 2*size/osPage)); known {
		t.Error("a memory that outgrew its image tells what differs from it")
	}
	if memories[0].adopt(m) || memories[1].Reallocate(3*size) != nil {
		t.Error("an image of another size is taken, or a memory outgrows its maximum")
	}
}
