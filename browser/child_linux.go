package browser

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill this process when its parent ends, even
// after it has become another program.
func dieWithParent() error {
	runtime.LockOSThread() // the setting applies to the thread, and the thread that calls exec survives it
	parent := os.Getppid()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != parent {
		return errors.New("the parent has ended")
	}
	return nil
}

// childAttributes puts a child into its own process group, and makes the kernel
// kill it when the thread that started it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
