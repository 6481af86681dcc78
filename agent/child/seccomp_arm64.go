//go:build linux

package child

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0xffffffff // arm64 has no second ABI
)

var (
	archCalls            []uint32
	archConditionalCalls []conditionalCall
)
