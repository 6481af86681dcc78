//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"syscall"
)

func withoutRoot(c *exec.Cmd) {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
}
