//go:build unix

package store

import "syscall"

// descriptorLimit returns how many files the process may have open; 0 if unknown.
func descriptorLimit() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int64(min(uint64(limit.Cur), 1<<30)) // "unlimited" does not fit into an int64
}
