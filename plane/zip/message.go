package zip

import (
	"encoding/binary"
	"fmt"
)

// headerSize is the bytes of a message's header.
const headerSize = 16

const magic = "ZAP\x00"

// MaxFrame is the most bytes one message may have, in a frame or by itself.
const MaxFrame = 64 << 20

var le = binary.LittleEndian

// appendHeader starts a message. Its root and size are patched by endMessage.
func appendHeader(dst []byte, flags uint16) []byte {
	dst = append(dst, magic...)
	dst = le.AppendUint16(dst, 1)
	dst = le.AppendUint16(dst, flags)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

// endMessage patches the header of the message that began at start and now ends
// dst, and whose fixed section is at root, both positions in dst.
func endMessage(dst []byte, start, root int) {
	le.PutUint32(dst[start+8:], uint32(root-start))
	le.PutUint32(dst[start+12:], uint32(len(dst)-start))
}

var zeroes [256]byte

func appendZeroes(dst []byte, n int) []byte {
	for ; n > len(zeroes); n -= len(zeroes) {
		dst = append(dst, zeroes[:]...)
	}
	return append(dst, zeroes[:n]...)
}

// align pads dst so that what follows is 8-aligned within the message that began
// at start.
func align(dst []byte, start int) []byte {
	return append(dst, zeroes[:-(len(dst)-start)&7]...)
}

// putRef points the slot at position slot of dst at position at. The offset is
// from the slot itself, and negative when what it points at was written before.
func putRef(dst []byte, slot, at, n int) {
	le.PutUint32(dst[slot:], uint32(int32(at-slot)))
	le.PutUint32(dst[slot+4:], uint32(n))
}

// appendRef appends text or bytes and points slot at them; empty is null.
func appendRef[T ~string | ~[]byte](dst []byte, slot int, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	at := len(dst)
	dst = append(dst, v...)
	putRef(dst, slot, at, len(v))
	return dst
}

func putScalar(b []byte, k Kind, bits uint64) {
	switch k.width() {
	case 1:
		b[0] = byte(bits)
	case 2:
		le.PutUint16(b, uint16(bits))
	case 4:
		le.PutUint32(b, uint32(bits))
	case 8:
		le.PutUint64(b, bits)
	}
}

// scalar reads a scalar of kind k, signed ones sign-extended, floats as the bits
// of their own width.
func scalar(b []byte, k Kind) uint64 {
	switch k {
	case Bool:
		if b[0] != 0 {
			return 1
		}
		return 0
	case Int8:
		return uint64(int8(b[0]))
	case Uint8:
		return uint64(b[0])
	case Int16:
		return uint64(int16(le.Uint16(b)))
	case Uint16:
		return uint64(le.Uint16(b))
	case Int32:
		return uint64(int32(le.Uint32(b)))
	case Uint32, Float32:
		return uint64(le.Uint32(b))
	}
	return le.Uint64(b)
}

// openMessage checks a message's header and gives the message, less whatever
// follows it, and where its fixed section is.
func openMessage(msg []byte) (trimmed []byte, root int, err error) {
	if len(msg) < headerSize {
		return nil, 0, &FormatError{ErrShort, fmt.Sprintf("a message of %d bytes", len(msg))}
	}
	if string(msg[:4]) != magic {
		return nil, 0, &FormatError{ErrMagic, fmt.Sprintf("it begins %q", msg[:4])}
	}
	if v := le.Uint16(msg[4:]); v != 1 && v != 2 {
		return nil, 0, &FormatError{ErrVersion, fmt.Sprintf("version %d", v)}
	}
	size := uint64(le.Uint32(msg[12:]))
	if size < headerSize {
		return nil, 0, malformed("a message that says it has %d bytes", size)
	}
	if size > uint64(len(msg)) {
		return nil, 0, &FormatError{ErrShort, fmt.Sprintf("%d bytes of a message of %d", len(msg), size)}
	}
	at := uint64(le.Uint32(msg[8:]))
	if at < headerSize || at > size {
		return nil, 0, malformed("a root at %d in a message of %d bytes", at, size)
	}
	return msg[:size], int(at), nil
}
