//go:build !unix

package store

import "io/fs"

// fileNumber is not known here; size and time of change must do.
func fileNumber(fs.FileInfo) uint64 { return 0 }
