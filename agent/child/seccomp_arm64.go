//go:build linux

package child

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0xffffffff // there is no other way to call
)

var (
	archCalls            []uint32
	archConditionalCalls []conditionalCall
)
