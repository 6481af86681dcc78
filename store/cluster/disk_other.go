//go:build !(linux || darwin || freebsd)

package cluster

import "errors"

// freeSpace returns how many bytes can still be written to the disk of a folder.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
