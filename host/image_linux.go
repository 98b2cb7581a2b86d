package host

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// image is a snapshot's memory as a file in RAM, which instances map copy on
// write: a page that no call has written is shared by all of them, takes no
// memory of theirs, and need not be restored.
type image struct {
	fd   int
	size int
	read []byte // the file, mapped to be read
}

// newImage is the image of a memory, nil where there can be none. What is zero
// is left out of the file.
func newImage(view []byte) *image {
	if len(view) == 0 {
		return nil
	}
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil
	}
	m := &image{fd: fd, size: len(view)}
	if err := m.fill(view); err != nil {
		m.close()
		return nil
	}
	return m
}

func (m *image) fill(view []byte) (err error) {
	if err := unix.Ftruncate(m.fd, int64(m.size)); err != nil {
		return err
	}
	for at := 0; at < m.size; at += blockSize {
		block := view[at : at+blockSize]
		if isZero(block) {
			continue
		}
		if n, err := unix.Pwrite(m.fd, block, int64(at)); err != nil || n != blockSize {
			return fmt.Errorf("the image: %d bytes written: %w", n, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(m.fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		return err
	}
	m.read, err = unix.Mmap(m.fd, 0, m.size, unix.PROT_READ, unix.MAP_SHARED)
	return err
}

// close frees the image. Instances that map it may go on.
func (m *image) close() {
	if m == nil {
		return
	}
	if m.read != nil {
		_ = unix.Munmap(m.read)
	}
	_ = unix.Close(m.fd)
}

// mapping is a guest's memory in pages of its own, outside of Go's heap. Its
// address is reserved up to its maximum and never changes.
type mapping struct {
	region []byte // reserved, nil once freed
	size   int    // of it, in use
	mapped int    // of it, from an image
}

// newMapping reserves a memory of at most max bytes, or answers nil.
func newMapping(max uint64) *mapping {
	if osPage%blockSize != 0 || max%uint64(osPage) != 0 || pagemap() == nil {
		return nil
	}
	region, err := unix.Mmap(-1, 0, int(max), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return &mapping{region: region}
}

// Reallocate makes the memory size bytes large. It is part of wazero's
// LinearMemory.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.region)) {
		return nil
	}
	if size > uint64(m.size) {
		if err := unix.Mprotect(m.region[m.size:size], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil
		}
		m.size = int(size)
	}
	return m.region[:size:size]
}

// Free gives the memory back. It is part of wazero's LinearMemory.
func (m *mapping) Free() {
	if m.region != nil {
		_ = unix.Munmap(m.region)
		m.region = nil
	}
}

// adopt makes the memory that of an image of the same size: what was written to
// it is gone, and its pages are the image's until they are written again.
func (m *mapping) adopt(from *image) bool {
	if m == nil || from == nil || m.size != from.size {
		return false
	}
	_, err := unix.MmapPtr(from.fd, 0, unsafe.Pointer(unsafe.SliceData(m.region)), uintptr(m.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err == nil {
		m.mapped = m.size
	}
	return err == nil
}

// osPage is the size of a page of the machine, in bytes.
var osPage = os.Getpagesize()

// pagemap is the kernel's table of this process's pages, nil where it cannot be
// read.
var pagemap = sync.OnceValue(func() *os.File {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	return f
})

// The bits of a page in the pagemap: whether it is in memory, or swapped out,
// and whether it is still a file's.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// written appends to blocks the blocks of the memory that may differ from the
// image: those of pages that are the instance's own. ok is false where that
// cannot be told.
func (m *mapping) written(blocks []int, entries []uint64) (_ []int, ok bool) {
	if m == nil || m.mapped == 0 || m.mapped != m.size {
		return blocks, false
	}
	pages := m.size / osPage
	if len(entries) < pages {
		return blocks, false
	}
	entries = entries[:pages]
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(entries))), 8*pages)
	first := int64(uintptr(unsafe.Pointer(unsafe.SliceData(m.region)))) / int64(osPage)
	if n, err := pagemap().ReadAt(raw, 8*first); err != nil || n != len(raw) {
		return blocks, false
	}
	each := osPage / blockSize
	for page, entry := range entries {
		if entry&pageSwapped != 0 || entry&pagePresent != 0 && entry&pageOfFile == 0 {
			for b := range each {
				blocks = append(blocks, page*each+b)
			}
		}
	}
	return blocks, true
}
