//go:build unix

package browser

import (
	"os"
	"syscall"
)

func replaceProcess(program string, args, environment []string) error {
	return syscall.Exec(program, args, environment)
}

// killGroup kills a process and those it started, which the driver puts into a
// separate process group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// kill kills one process.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// running reports whether a process exists.
func running(pid int) bool { return syscall.Kill(pid, 0) == nil }

// lockFolder marks a folder as in use by this process while the file is open.
// ok is false if another process uses it.
func lockFolder(path string) (lock *os.File, ok bool) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		f.Close()
		return nil, false
	}
	return f, true
}
