//go:build !linux

package browser

import "syscall"

// dieWithParent does nothing: only Linux supports it. Elsewhere Chromium ends
// when its pipe to the driver closes, and the driver when its input ends.
func dieWithParent() error { return nil }

// childAttributes has a child end with the pipe to it.
func childAttributes() *syscall.SysProcAttr { return nil }
