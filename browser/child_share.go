package browser

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"satchel/browser/cdp"
)

// Chromium's pipe, as the driver starts it: commands come on one, answers and
// events go to the other.
const (
	commandsFile = 3
	answersFile  = 4
)

// shareChromium runs Chromium in a child process and shares its pipe between
// the driver, which started this process, and clients at the socket. It exits
// with Chromium.
func shareChromium(pidFile string, config childConfig, args []string) error {
	runtime.LockOSThread() // Chromium is killed when the thread that started it ends
	if err := dieWithParent(); err != nil {
		return err
	}
	listener, err := net.Listen("unix", config.Socket)
	if err != nil {
		return err
	}
	cmd := exec.Command(config.Chromium, args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = config.Environment, os.Stdout, os.Stderr, childAttributes()
	commands, toChromium, err := os.Pipe()
	if err != nil {
		return err
	}
	fromChromium, answers, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{commands, answers}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start Chromium: %w", err)
	}
	if err := errors.Join(
		commands.Close(),
		answers.Close(),
		os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600),
	); err != nil {
		return err
	}
	m := cdp.NewMux(toChromium, os.NewFile(answersFile, "answers"))
	go func() {
		_ = m.FromDriver(os.NewFile(commandsFile, "commands"))
		toChromium.Close() // Chromium exits
	}()
	go func() { _ = m.FromChromium(fromChromium) }() // until Chromium exits
	go func() { _ = m.Serve(listener) }()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	os.Exit(max(cmd.ProcessState.ExitCode(), 0))
	return nil
}
