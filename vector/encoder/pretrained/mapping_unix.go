//go:build unix

package pretrained

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a file in memory: its pages are the operating system's, which
// reads and drops them as it needs.
type mapping struct {
	data []byte
	next *mapping
}

func mapFile(f *os.File, size int) (*mapping, error) {
	if size == 0 {
		return &mapping{}, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	return &mapping{data: data}, err
}

// release drops the pages that were read; they are read again on use.
func (m *mapping) release() {
	for ; m != nil; m = m.next {
		if len(m.data) > 0 {
			_ = unix.Madvise(m.data, unix.MADV_DONTNEED) // a hint
		}
	}
}

// close unmaps the file, which nothing may use any longer.
func (m *mapping) close() {
	for ; m != nil; m = m.next {
		if len(m.data) > 0 {
			_ = unix.Munmap(m.data) // it was mapped here
		}
	}
}
