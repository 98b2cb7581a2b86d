//go:build !linux

package host

// image and mapping are what Linux has: elsewhere a snapshot is in Go's heap,
// and all of a memory is compared with it.
type (
	image   struct{ read []byte }
	mapping struct{}
)

func newImage([]byte) *image     { return nil }
func (*image) close()            {}
func newMapping(uint64) *mapping { return nil }

func (*mapping) Reallocate(uint64) []byte                  { return nil }
func (*mapping) Free()                                     {}
func (*mapping) adopt(*image) bool                         { return false }
func (*mapping) written(b []int, _ []uint64) ([]int, bool) { return b, false }
