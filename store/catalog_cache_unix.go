//go:build unix

package store

import (
	"io/fs"
	"syscall"
)

// fileNumber differs for files that have the same name, one after the other.
func fileNumber(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
