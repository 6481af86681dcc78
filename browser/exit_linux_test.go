package browser

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// waitExit waits until a process has exited, whether or not its parent has
// waited for it.
func waitExit(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatal(err)
		case n == 0:
			t.Fatalf("process %d is still running after a minute", pid)
		default:
			return
		}
	}
}
