package script

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
)

// grace is how long after its time a script may live, for its engine to stop
// by itself and say what it has logged.
const grace = 200 * time.Millisecond

// startTime bounds the wait for a child to become ready.
const startTime = 10 * time.Second

// process is a child, seen by its parent. One goroutine uses it at a time.
type process struct {
	cmd    *exec.Cmd
	in     frameWriter
	stdin  *os.File
	stdout *os.File
	out    *bufio.Reader
	stderr words
	idle   time.Time // since when it has had nothing to do

	exited chan struct{}
	exit   error // once exited is closed
}

// spawn starts a child. On Linux the child dies with the thread that calls
// spawn.
func spawn() (*process, error) {
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), stdin.Close())
	}
	p := &process{stdin: stdin, stdout: stdout, out: bufio.NewReaderSize(stdout, 16<<10), exited: make(chan struct{})}
	p.in.out = stdin
	p.cmd = exec.Command(childExecutable(), childArg)
	p.cmd.Env = []string{}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirIn, theirOut, &p.stderr
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = time.Second
	err = p.cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("script: start a child: %w", err), stdin.Close(), stdout.Close())
	}
	return p, nil
}

// wait waits for the child's end; it is the body of a goroutine.
func (p *process) wait() {
	p.exit = p.cmd.Wait()
	p.stdin.Close()
	close(p.exited)
}

// alive tells whether the child has not ended yet.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the child at once. It may be called again, and from anywhere.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end kills the child, waits for it, and frees what it held.
func (p *process) end() {
	p.kill()
	<-p.exited
	p.stdout.Close()
}

// ready waits until the child has an engine for the next script.
func (p *process) ready() error {
	_ = p.stdout.SetReadDeadline(time.Now().Add(startTime)) // pipes have deadlines
	kind, _, err := readFrame(p.out, 0)
	if err == nil && kind != frameReady {
		err = errors.New("script: a child does not get ready")
	}
	_ = p.stdout.SetReadDeadline(time.Time{})
	return err
}

// exchange is one script's run in a child.
type exchange struct {
	process *process
	order   order
	over    atomic.Bool // its time and the grace are over
	serving serving
}

// run sends the script and serves it until it has ended. last tells that the
// child cannot be used again.
func (p *process) run(ctx context.Context, o order, values []byte, fetch func(*http.Request) (*http.Response, error)) (r Result, last bool, err error) {
	x := &exchange{process: p, order: o, serving: serving{fetch: fetch, to: &p.in}}
	timer := time.AfterFunc(o.Timeout+grace, func() { x.over.Store(true); p.kill() })
	unwatch := context.AfterFunc(ctx, p.kill)
	fetching, cancel := context.WithTimeout(ctx, o.Timeout+grace)
	end, result, err := x.converse(fetching, values)
	cancel()
	// Where a kill is on its way, the child has run its last script.
	last = !timer.Stop()
	last = !unwatch() || last || end.Last || err != nil
	if last {
		p.end()
	}
	x.serving.work.Wait()
	if err != nil {
		return Result{}, last, x.verdict(ctx, err)
	}
	r.Logs = end.Logs
	if end.Code != "" {
		e := agent.Errorf(end.Code, "%s", end.Message)
		if end.Line > 0 {
			e = e.With("line", end.Line)
		}
		return r, last, e
	}
	if err := json.Unmarshal(result, &r.Value); err != nil {
		return r, last, agent.Errorf(CodeResult, "the result is not JSON, or nested too deep")
	}
	return r, last, nil
}

// converse goes on until the child tells how the script ended, or an error.
func (x *exchange) converse(ctx context.Context, values []byte) (end ending, result []byte, err error) {
	p := x.process
	if err := p.in.sendJSON(frameOrder, x.order, frameValues, values); err != nil {
		return end, nil, err
	}
	for {
		kind, payload, err := readFrame(p.out, MaxResult+8*MaxFetchBody)
		switch {
		case err != nil:
			return end, nil, err
		case kind == frameFetch:
			err = x.serving.start(ctx, payload)
		case kind == frameEnd:
			if err = readJSON(payload, &end); err == nil && end.Code != "" {
				return end, nil, nil
			}
		case kind == frameResult:
			return end, payload, nil
		default:
			err = errors.New("script: a child sends what it should not")
		}
		if err != nil {
			return end, nil, err
		}
	}
}

// verdict is the error for a script whose child ended before the script did.
func (x *exchange) verdict(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if x.over.Load() {
		return agent.Errorf(CodeTimeout, "the script ran longer than %s", x.order.Timeout)
	}
	text := x.process.stderr.String()
	var status *exec.ExitError
	if errors.As(x.process.exit, &status) && status.ExitCode() == exitMemory || tookTooMuch(text) {
		return agent.Errorf(CodeMemory, "the script needs more than %d MB of memory", x.order.Memory>>20)
	}
	if x.serving.total == 0 {
		cause = errors.Join(cause, errUntouched)
	}
	return agent.Errorf(CodeKilled, "the process that ran the script ended").
		Because(fmt.Errorf("%w: %v: %s", cause, x.process.exit, text))
}

// errUntouched is a cause of the error of a script that has had no effect on
// anything outside of its process, which may have been dead before: it can run
// again.
var errUntouched = errors.New("script: nothing was done yet")

// tookTooMuch reads the last words of a child that the Go runtime has ended.
func tookTooMuch(words string) bool {
	for _, sign := range []string{"out of memory", "cannot allocate memory", "stack exceeds"} {
		if strings.Contains(words, sign) {
			return true
		}
	}
	return false
}

func readJSON(payload []byte, into any) error {
	if err := json.Unmarshal(payload, into); err != nil {
		return fmt.Errorf("script: a child sends broken JSON: %w", err)
	}
	return nil
}

// words keeps the beginning of what a child says before it dies, where the Go
// runtime names the reason.
type words struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *words) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 1<<10 - t.buf.Len(); room > 0 {
		t.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *words) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
