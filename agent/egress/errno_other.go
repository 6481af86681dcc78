//go:build !windows

package egress

import "syscall"

const (
	connectionRefused = syscall.ECONNREFUSED
	connectionReset   = syscall.ECONNRESET
	connectionAborted = syscall.EPIPE
)
