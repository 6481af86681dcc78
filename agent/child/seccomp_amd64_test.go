//go:build linux

package child

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/agent/testenv"
)

func init() {
	roles["test-x32"] = func() {
		limitTest()
		_, _, errno := syscall.RawSyscall(unix.SYS_GETPID|x32Bit, 0, 0, 0)
		fmt.Println(errno)
	}
}

// A system call with the number of another architecture kills the child.
func TestForeignSystemCallsEndTheChild(t *testing.T) {
	if !SupportedConfinement().Seccomp {
		testenv.Need(t, "a kernel with seccomp", errors.ErrUnsupported)
	}
	p := start(t, "test-x32")
	var status *exec.ExitError
	if err := p.Err(); !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
		t.Errorf("got %v", err)
	}
}
