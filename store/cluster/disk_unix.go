//go:build linux || darwin || freebsd

package cluster

import "syscall"

// freeSpace returns how many bytes can still be written to the disk of a folder.
func freeSpace(folder string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
