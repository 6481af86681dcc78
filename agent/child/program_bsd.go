//go:build unix && !linux

package child

import "syscall"

// groupAttributes put a program into its own process group. It ends when its
// standard input ends.
func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
