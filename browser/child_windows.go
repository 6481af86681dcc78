package browser

import (
	"errors"
	"os"
	"os/exec"
)

// replaceProcess runs the program in a child process and exits with it.
func replaceProcess(program string, args, environment []string) error {
	cmd := exec.Command(program, args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		os.Exit(cmd.ProcessState.ExitCode())
	}
	return err
}

func killGroup(pid int) { kill(pid) }

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func running(pid int) bool {
	_, err := os.FindProcess(pid)
	return err == nil
}

// lockFolder relies on Windows, which does not remove open files.
func lockFolder(path string) (lock *os.File, ok bool) {
	_ = os.Remove(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	return f, err == nil
}
