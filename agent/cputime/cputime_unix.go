//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time that this process has used, in user mode and in
// the kernel.
func Used() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
