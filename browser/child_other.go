//go:build !linux

package browser

import "syscall"

// dieWithParent does nothing: only Linux supports it. Elsewhere Chromium ends
// when its pipe to the driver closes, and the driver when its input ends.
func dieWithParent() error { return nil }

// childAttributes returns nil: a child ends when the pipe to it closes.
func childAttributes() *syscall.SysProcAttr { return nil }
