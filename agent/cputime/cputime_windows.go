package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time that this process has used, in user mode and in
// the kernel.
func Used() (time.Duration, error) {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &ended, &kernel, &user); err != nil {
		return 0, err
	}
	return duration(kernel) + duration(user), nil
}

// duration returns a time that Windows counts in units of 100 ns.
func duration(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
