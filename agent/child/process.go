package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// The exit codes of a child that exits before its work is done.
const (
	ExitOrphaned = 3 // its standard input has ended
	ExitMemory   = 4 // it uses more memory than allowed
)

// HasRole reports whether a process with these arguments, without the program's
// name, was started in a role.
func HasRole(role string, args []string) bool {
	return len(args) == 1 && args[0] == role
}

// Process is a child as seen by its parent.
type Process struct {
	Stdin  *os.File // closed when the child has ended
	Stdout *os.File

	cmd    *exec.Cmd
	stderr head
	done   chan struct{}
	err    error // how it ended; set once done is closed

	tree      tree // of a Program
	treeEnded sync.Once
}

// Start starts a child. On Linux the child dies with the thread that calls
// Start, so the caller must lock its goroutine to a thread while the child
// lives. The caller must call Close.
func Start(role string) (*Process, error) {
	if HasRole(role, os.Args[1:]) {
		return nil, fmt.Errorf("child: this program was started as %q but did not check its role", role)
	}
	p := &Process{cmd: exec.Command(executable(), role), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr, p.cmd.SysProcAttr = []string{}, &p.stderr, attributes()
	if err := p.start(); err != nil {
		return nil, err
	}
	go p.wait()
	return p, nil
}

// start starts the command with pipes as its standard input and output.
func (p *Process) start() error {
	closeOnExec()
	childStdin, stdin, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("child: %w", err)
	}
	defer childStdin.Close()
	stdout, childStdout, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("child: %w", err), stdin.Close())
	}
	defer childStdout.Close()
	p.Stdin, p.Stdout = stdin, stdout
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.WaitDelay = childStdin, childStdout, time.Second
	if err := p.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("child: %w", err), stdin.Close(), stdout.Close())
	}
	return nil
}

// wait returns when the child has ended.
func (p *Process) wait() {
	p.err = p.cmd.Wait()
	p.Stdin.Close()
	close(p.done)
}

// PID returns the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the child is still running.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the child immediately. It may be called repeatedly and from any
// goroutine.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
}

// Close kills the child, waits for it to end, and closes the parent's files.
func (p *Process) Close() {
	p.Kill()
	<-p.done
	p.Stdout.Close()
}

// Err waits for the child to end and returns how it ended, with the start of
// its standard error; nil if it exited with 0.
func (p *Process) Err() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", p.err, bytes.TrimSpace(p.stderr.bytes()))
}

// ProcessorTime waits for the child to end and returns the processor time that it
// used.
func (p *Process) ProcessorTime() time.Duration {
	<-p.done
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// OutOfMemory waits for the child to end and reports whether it needed more
// memory than allowed.
func (p *Process) OutOfMemory() bool {
	<-p.done
	var status *exec.ExitError
	if !errors.As(p.err, &status) {
		return false
	}
	text := string(p.stderr.bytes())
	return status.ExitCode() == ExitMemory || strings.Contains(text, "out of memory") ||
		strings.Contains(text, "cannot allocate memory") || strings.Contains(text, "stack exceeds")
}

// head keeps the start of what is written to it, where the Go runtime reports
// the reason of a crash.
type head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const maxHead = 1 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if space := maxHead - h.buf.Len(); space > 0 {
		h.buf.Write(p[:min(space, len(p))])
	}
	return len(p), nil
}

func (h *head) bytes() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bytes.Clone(h.buf.Bytes())
}
