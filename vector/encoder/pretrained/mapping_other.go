//go:build !unix

package pretrained

import (
	"io"
	"os"
)

// mapping is a file in memory.
type mapping struct {
	data []byte
	next *mapping
}

func mapFile(f *os.File, size int) (*mapping, error) {
	m := &mapping{data: make([]byte, size)}
	_, err := io.ReadFull(f, m.data)
	return m, err
}

func (*mapping) release() {}

func (*mapping) close() {}
