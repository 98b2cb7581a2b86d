package rewrite

import (
	"bytes"
	"cmp"
	"slices"
)

// maxGap is the largest run of zeroes put between two data segments to make them
// one. A segment costs the runtime an evaluation and an allocation at every
// instantiation; a Go module has thousands.
const maxGap = 256

// segment is a data segment. offset is set for an active one whose place is
// known; raw is the whole segment as it came.
type segment struct {
	placed bool
	offset uint32
	init   []byte
	raw    []byte
}

func (m *module) readData(r *reader) {
	for range r.count("data segments", MaxSegments) {
		start := r.i
		var s segment
		switch kind := r.u32(); kind {
		case 0, 2:
			if kind == 2 {
				if at := r.offset(); r.u32() != 0 {
					unsupported(at, "more than one memory")
				}
			}
			v, ok := r.constant(m.globals)
			s.placed, s.offset = ok, uint32(v)
		case 1:
		default:
			fail(start, "a data segment of kind %d", kind)
		}
		c := r.sub(r.u32())
		s.init = c.b[c.i:c.end]
		s.raw = r.b[start:r.i]
		m.data = append(m.data, s)
	}
}

// merged gives the module's data segments, joined where that changes nothing:
// no code names a segment, all are placed inside the memory's first pages, and
// none overlaps another, so that their order is of no account. (Instantiation
// writes them one by one and stops at the first that does not fit, so one that
// might not stays as it is.)
func (m *module) merged() []segment {
	if m.segUse || len(m.memories) != 1 {
		return m.data
	}
	sorted := slices.Clone(m.data)
	slices.SortStableFunc(sorted, func(a, b segment) int { return cmp.Compare(a.offset, b.offset) })
	size := uint64(m.memories[0].min) << 16
	var end uint64
	for _, s := range sorted {
		if !s.placed || uint64(s.offset) < end && len(s.init) > 0 {
			return m.data
		}
		if end = max(end, uint64(s.offset)+uint64(len(s.init))); end > size {
			return m.data
		}
	}
	var out []segment
	for _, s := range sorted {
		if len(s.init) == 0 {
			continue
		}
		if n := len(out); n > 0 {
			last := &out[n-1]
			gap := int(s.offset) - int(last.offset) - len(last.init)
			if gap <= maxGap {
				last.init = append(append(last.init, make([]byte, gap)...), s.init...)
				continue
			}
		}
		out = append(out, segment{placed: true, offset: s.offset, init: bytes.Clone(s.init)})
	}
	return out
}

func encodeData(segments []segment) []byte {
	b := appendU32(nil, uint32(len(segments)))
	for _, s := range segments {
		if s.raw != nil {
			b = append(b, s.raw...)
			continue
		}
		b = append(b, 0, 0x41)
		b = appendI64(b, int64(int32(s.offset)))
		b = append(b, 0x0b)
		b = appendU32(b, uint32(len(s.init)))
		b = append(b, s.init...)
	}
	return b
}
