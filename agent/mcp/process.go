package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/agent/child"
)

// process is one run of a program, from its start to its end.
type process struct {
	programs    *Programs
	key         programKey
	fingerprint [sha256.Size]byte
	secrets     []string
	startedAt   time.Time
	stderr      tail
	ready       chan struct{} // closed once session or err is set
	session     *sdk.ClientSession
	err         error
	child       *child.Process // nil before it was started, and if it could not be
	ended       chan struct{}  // closed when it has ended
	endOnce     sync.Once

	users int       // guarded by mu of programs
	used  time.Time // guarded by mu of programs
}

func (p *process) release() {
	p.programs.mu.Lock()
	defer p.programs.mu.Unlock()
	p.users--
	p.used = p.programs.limits.now()
}

// begin starts the program and its session.
func (p *process) begin(of Program) {
	defer close(p.ready)
	if err := p.start(of); err != nil {
		p.err = fault(true, err, "the MCP server cannot be started: %s", p.quote(err.Error()))
		p.end(0, "", true)
		return
	}
	go p.watch()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	session, err := p.programs.sdk.Connect(
		ctx,
		&sdk.IOTransport{
			Reader:        readLines(p.child.Stdout),
			Writer:        p.child.Stdin,
			MaxLineLength: MaxBytes,
		},
		&sdk.ClientSessionOptions{ProtocolVersion: lastStateful},
	)
	if err == nil {
		p.session = session
		return
	}
	why := "it did not speak MCP"
	if ctx.Err() != nil {
		why = "it did not speak MCP in time"
	}
	p.end(p.programs.limits.grace, why, true)
	p.err = p.programs.lastError(p.key)
}

//lint:ignore ST1005 it begins with a name
var errStopping = errors.New("Satchel is stopping")

// start starts the program on the thread of Programs.runStarter, since on Linux a program
// dies with the thread that started it.
func (p *process) start(of Program) error {
	command := p.programs.options.Commands[of.Command]
	home, err := filepath.Abs(p.programs.programFolder(of))
	if err != nil {
		return err
	}
	temp := filepath.Join(home, "tmp")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return err
	}
	path, err := exec.LookPath(command.Command)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	run := func() {
		var err error
		p.child, err = child.Program{
			Path:   path,
			Args:   command.Args,
			Env:    p.programs.environment(of, home, temp),
			Dir:    home,
			Stderr: &p.stderr,
		}.Start()
		started <- err
	}
	p.programs.mu.Lock()
	life := p.programs.life
	p.programs.mu.Unlock()
	if life == nil {
		return errStopping
	}
	select {
	case p.programs.starts <- run:
		return <-started
	case <-life.Done():
		return errStopping
	}
}

// watch waits for the program to exit.
func (p *process) watch() {
	<-p.child.Done()
	p.end(0, "", true)
}

// end ends the program and waits until it has ended. why is the reason that is
// shown. A program that failed is not restarted at once.
func (p *process) end(grace time.Duration, why string, failed bool) {
	p.endOnce.Do(func() {
		defer close(p.ended)
		if p.child != nil {
			p.child.EndTree(grace)
			// The program's own exit status says more than the reason for
			// ending it.
			if ended := p.child.Ended(); why == "" ||
				strings.HasPrefix(ended, "exit status") && ended != "exit status 0" {
				why = "it ended: " + ended
			}
		}
		p.programs.remove(p, why, failed)
	})
	<-p.ended
}

// remove forgets a process that has ended.
func (ps *Programs) remove(process *process, why string, failed bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.running[process.key] == process {
		delete(ps.running, process.key)
	}
	if !failed {
		return
	}
	f := ps.failed[process.key]
	if ps.limits.now().Sub(process.startedAt) > stableAfter {
		f.times = 0
	}
	wait := min(ps.limits.restart<<min(f.times, 20), maxRestart)
	f.times++
	f.until = ps.limits.now().Add(wait)
	if fault, ok := errors.AsType[*Fault](process.err); ok {
		f.why = fault
	} else {
		f.why = process.fault(why)
	}
	ps.failed[process.key] = f
}

// lastError returns why a program failed last.
func (ps *Programs) lastError(key programKey) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if f := ps.failed[key]; f.why != nil {
		return f.why
	}
	return fault(true, nil, "the MCP server was ended")
}

// fault returns why the program failed, with the end of what it wrote to its
// standard error.
func (p *process) fault(why string) *Fault {
	output := strings.TrimSpace(p.stderr.text())
	if output != "" {
		output = "\n" + p.quote(output)
	}
	return fault(true, nil, "the MCP server's program failed: %s%s", why, output)
}

const maxQuotedStderr = 4000 // characters of a program's standard error that are shown

// quote returns the end of a text of the program, without secrets.
func (p *process) quote(text string) string {
	text = strings.ToValidUTF8(redact(text, p.secrets), "�")
	if runes := []rune(text); len(runes) > maxQuotedStderr {
		return "…" + string(runes[len(runes)-maxQuotedStderr:])
	}
	return text
}

// askProgram is ask for a server that is a program. An error is a *Fault, an
// *agent.Error returned by do, or the context's.
func (c *Client) askProgram(
	ctx context.Context,
	server Server,
	limit time.Duration,
	do func(context.Context, *sdk.ClientSession) error,
) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	process, err := c.options.Programs.use(limited, *server.Program)
	if err != nil {
		return err
	}
	defer process.release()
	if err = do(limited, process.session); err == nil {
		return nil
	}
	var known *agent.Error
	var wire *jsonrpc.Error
	switch {
	case ctx.Err() == context.Canceled:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	case limited.Err() != nil:
		return fault(true, nil, "the MCP server did not answer in time")
	case errors.As(err, &wire):
		f := fault(
			false,
			nil,
			"the MCP server reports: %s (%d)",
			agent.Clip(redact(wire.Message, process.secrets), maxReport),
			wire.Code,
		)
		f.Err = f.Err.With("code", wire.Code)
		return f
	}
	process.end(process.programs.limits.grace, "it broke off the conversation", true)
	return c.options.Programs.lastError(process.key)
}

// memory returns the resident memory of the program and what it started, in
// bytes; 0 if it does not run. Only the thread of programs calls it.
func (p *process) memory() uint64 {
	if p.child == nil {
		return 0
	}
	return p.child.TreeMemory()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write keeps the end of everything that was written.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[max(0, len(b)-maxStderr):]...)
	if extra := len(t.buf) - maxStderr; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
