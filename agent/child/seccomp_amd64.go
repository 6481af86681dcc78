//go:build linux

package child

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32Bit    = 0x40000000 // marks the system call numbers of the x32 ABI
)

// archCalls are system calls that other architectures do not have.
var archCalls = []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_TIME}

const archSetFS = 0x1002 // sets the base of thread-local storage

var archConditionalCalls = []conditionalCall{{unix.SYS_ARCH_PRCTL, []condition{{0, allBits, archSetFS}}}}
