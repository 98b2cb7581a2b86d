package rewrite

import "unicode/utf8"

// reader reads a part of a module, and knows its offset in the whole.
type reader struct {
	b      []byte
	i, end int
}

// open checks the preamble.
func open(wasm []byte) *reader {
	if len(wasm) > MaxSize {
		fail(0, "the module is larger than %d bytes", MaxSize)
	}
	if len(wasm) < 8 || string(wasm[:4]) != "\x00asm" {
		fail(0, "not a WebAssembly module")
	}
	if v := string(wasm[4:8]); v != "\x01\x00\x00\x00" {
		if v == "\x0d\x00\x01\x00" {
			unsupported(4, "the component model")
		}
		fail(4, "not version 1 of the binary format")
	}
	return &reader{b: wasm, i: 8, end: len(wasm)}
}

func (r *reader) offset() int { return r.i }
func (r *reader) empty() bool { return r.i >= r.end }
func (r *reader) left() int   { return r.end - r.i }

func (r *reader) byte() byte {
	if r.i >= r.end {
		fail(r.i, "unexpected end")
	}
	c := r.b[r.i]
	r.i++
	return c
}

func (r *reader) skip(n int) {
	if n > r.left() {
		fail(r.i, "unexpected end")
	}
	r.i += n
}

// sub takes the next n bytes as a reader of their own.
func (r *reader) sub(n uint32) *reader {
	if uint64(n) > uint64(r.left()) {
		fail(r.i, "%d bytes announced, %d left", n, r.left())
	}
	s := &reader{b: r.b, i: r.i, end: r.i + int(n)}
	r.i = s.end
	return s
}

func (r *reader) section() (id byte, content *reader) {
	id = r.byte()
	return id, r.sub(r.u32())
}

// done checks that the reader was read to its end.
func (r *reader) done() {
	if !r.empty() {
		fail(r.i, "%d bytes too many", r.left())
	}
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	at := r.i
	var v uint32
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if shift == 28 && c > 0x0f {
			fail(at, "an integer of more than 32 bits")
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

// skipLEB passes a LEB128 of at most max bytes.
func (r *reader) skipLEB(max int) {
	at := r.i
	for range max {
		if r.byte() < 0x80 {
			return
		}
	}
	fail(at, "an integer of more than %d bytes", max)
}

// i32 reads a signed LEB128 of at most 32 bits.
func (r *reader) i32() int32 {
	at := r.i
	var v int64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			if shift == 28 {
				fail(at, "an integer of more than 32 bits")
			}
			continue
		}
		v = v << (64 - shift - 7) >> (64 - shift - 7)
		if int64(int32(v)) != v {
			fail(at, "an integer of more than 32 bits")
		}
		return int32(v)
	}
}

// count reads the length of a vector whose elements take at least one byte.
func (r *reader) count(what string, max int) int {
	at := r.i
	n := r.u32()
	if uint64(n) > uint64(r.left()) {
		fail(at, "%d %s announced in %d bytes", n, what, r.left())
	}
	if int(n) > max {
		fail(at, "more than %d %s", max, what)
	}
	return int(n)
}

func (r *reader) name() string {
	at := r.i
	s := r.sub(r.u32())
	b := s.b[s.i:s.end]
	if !utf8.Valid(b) {
		fail(at, "a name that is not UTF-8")
	}
	return string(b)
}

func (r *reader) valueType() ValueType {
	at := r.i
	switch t := ValueType(r.byte()); t {
	case I32, I64, F32, F64, FuncRef, ExternRef:
		return t
	case 0x7b:
		unsupported(at, "SIMD")
	case 0x69, 0x68, 0x74:
		unsupported(at, "exception handling")
	case 0x63, 0x64:
		unsupported(at, "typed function references")
	case 0x71, 0x72, 0x73, 0x6e, 0x6d, 0x6c, 0x6b, 0x6a:
		unsupported(at, "garbage collection")
	default:
		fail(at, "%#x is no value type", byte(t))
	}
	return 0
}

func (r *reader) refType() ValueType {
	at := r.i
	t := r.valueType()
	if t != FuncRef && t != ExternRef {
		fail(at, "%#x is no reference type", byte(t))
	}
	return t
}

// limits are a table's or a memory's.
type limits struct {
	min, max uint32
	bounded  bool // max is set
}

func (r *reader) limits() limits {
	at := r.i
	var l limits
	switch flag := r.byte(); flag {
	case 0:
		l.min = r.u32()
	case 1:
		l.min, l.max, l.bounded = r.u32(), r.u32(), true
		if l.max < l.min {
			fail(at, "a maximum below the minimum")
		}
	case 2, 3:
		unsupported(at, "threads")
	case 4, 5, 6, 7:
		unsupported(at, "64-bit memory")
	default:
		fail(at, "limits of kind %#x", flag)
	}
	return l
}

// constant passes a constant expression of one instruction, and gives the value
// of an i32.const.
func (r *reader) constant(globals int) (v int32, isI32 bool) {
	at := r.i
	switch op := r.byte(); op {
	case 0x41:
		v, isI32 = r.i32(), true
	case 0x42:
		r.skipLEB(10)
	case 0x43:
		r.skip(4)
	case 0x44:
		r.skip(8)
	case 0x23:
		if g := r.u32(); int64(g) >= int64(globals) {
			fail(at, "no global %d", g)
		}
	case 0xd0:
		r.refType()
	case 0xd2:
		r.u32()
	case 0xfd:
		unsupported(at, "SIMD")
	default:
		fail(at, "%#x in a constant expression", op)
	}
	if at := r.i; r.byte() != 0x0b {
		unsupported(at, "extended constant expressions")
	}
	return v, isI32
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendI64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte {
	b = appendU32(b, uint32(len(s)))
	return append(b, s...)
}

func appendSection(b []byte, id byte, body []byte) []byte {
	b = append(b, id)
	b = appendU32(b, uint32(len(body)))
	return append(b, body...)
}

func appendLimits(b []byte, l limits) []byte {
	if !l.bounded {
		return appendU32(append(b, 0), l.min)
	}
	b = appendU32(append(b, 1), l.min)
	return appendU32(b, l.max)
}
