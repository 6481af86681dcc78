package child

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Program is another program, which the operator chose. It is not confined: it
// has the rights of this process.
type Program struct {
	Path   string // of the file
	Args   []string
	Env    []string // all of its environment
	Dir    string
	Stderr io.Writer // receives its standard error
}

// Start starts the program in its own process group (on Windows, a job), which
// EndTree ends as a whole. It inherits no open file. On Linux it dies with the
// thread that calls Start, so the caller must lock its goroutine to a thread
// while the program lives. The caller must call EndTree.
func (p Program) Start() (*Process, error) {
	started := &Process{cmd: exec.Command(p.Path, p.Args...), done: make(chan struct{})}
	started.cmd.Env, started.cmd.Dir, started.cmd.Stderr, started.cmd.SysProcAttr =
		p.Env, p.Dir, p.Stderr, groupAttributes()
	err := started.start()
	if err != nil {
		return nil, err
	}
	if started.tree, err = newTree(started.PID()); err != nil {
		started.Kill()
		go started.wait()
		return nil, errors.Join(fmt.Errorf("child: %w", err), started.Stdout.Close())
	}
	go started.wait()
	return started, nil
}

// EndTree ends a program and everything it started: it closes its standard
// input, asks it to end after grace, and kills it after grace again. It returns
// when the program has ended, and may be called repeatedly.
func (p *Process) EndTree(grace time.Duration) {
	p.Stdin.Close()
	for _, step := range []func(){p.tree.terminate, p.tree.kill} {
		select {
		case <-p.done:
		case <-time.After(grace):
			step()
		}
	}
	<-p.done
	p.treeEnded.Do(func() {
		p.tree.kill() // remaining processes that it started
		p.tree.close()
		p.Stdout.Close()
	})
}

// Ended waits for a program to end and returns how: its exit code or signal.
func (p *Process) Ended() string {
	<-p.done
	return p.cmd.ProcessState.String()
}
