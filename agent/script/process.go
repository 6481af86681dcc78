package script

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/child"
)

// grace is how long a script may exceed its time limit, so that its engine can
// stop on its own and report what was logged.
const grace = 200 * time.Millisecond

// startTime limits how long a child may take to become ready.
const startTime = 10 * time.Second

// process is a child as seen by its parent. One goroutine uses it at a time.
type process struct {
	*child.Process
	in   frameWriter
	out  *bufio.Reader
	idle time.Time // since when it has been idle

	isReady bool // see ready
}

// spawn starts a child. On Linux the child dies with the thread that calls
// spawn.
func spawn() (*process, error) {
	c, err := child.Start(role)
	if err != nil {
		return nil, err
	}
	p := &process{Process: c, out: bufio.NewReaderSize(c.Stdout, 16<<10)}
	p.in.out = c.Stdin
	return p, nil
}

// ready waits until the child accepts orders.
func (p *process) ready() error {
	if p.isReady {
		return nil
	}
	_ = p.Stdout.SetReadDeadline(time.Now().Add(startTime)) // pipes have deadlines
	kind, _, err := readFrame(p.out, 0)
	if err == nil && kind != frameReady {
		err = errors.New("script: a child does not get ready")
	}
	_ = p.Stdout.SetReadDeadline(time.Time{})
	p.isReady = err == nil
	return err
}

// exchange is the run of one script in a child.
type exchange struct {
	process *process
	order   order
	expired atomic.Bool // the time limit and the grace period are over
	serving fetchServer
}

// run sends the script and serves it until it has ended. last reports that the
// child cannot be reused.
func (p *process) run(
	ctx context.Context,
	order order,
	values *variables,
	fetch fetcher,
) (r Result, last bool, err error) {
	x := &exchange{
		process: p,
		order:   order,
		serving: fetchServer{fetch: fetch, to: &p.in},
	}
	timer := time.AfterFunc(order.Timeout+grace, func() {
		x.expired.Store(true)
		p.Kill()
	})
	unwatch := context.AfterFunc(ctx, p.Kill)
	fetching, cancel := context.WithTimeout(ctx, order.Timeout+grace)
	end, result, err := x.serve(fetching, values)
	r.Sent = values.sent
	cancel()
	// If a kill is in progress, the child has run its last script.
	last = !timer.Stop()
	last = !unwatch() || last || end.Last || err != nil
	if last {
		p.Close()
	}
	x.serving.work.Wait()
	if err != nil {
		return Result{}, last, x.endError(ctx, err)
	}
	r.Logs = end.Logs
	if values.warning != "" {
		r.Logs = append([]Log{{Level: "warn", Message: values.warning}}, r.Logs...)
	}
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

// serve serves the child until the script ends or fails.
func (x *exchange) serve(ctx context.Context, values *variables) (end ending, result []byte, err error) {
	process := x.process
	if err := process.in.sendJSON(frameOrder, x.order, frameValues, values.first); err != nil {
		return end, nil, err
	}
	for {
		kind, payload, err := readFrame(process.out, MaxResult+8*MaxFetchBody)
		switch {
		case err != nil:
			return end, nil, err
		case kind == frameFetch:
			err = x.serving.start(ctx, payload)
		case kind == frameRead:
			var part []byte
			if part, err = values.read(payload); err == nil {
				err = process.in.send(frameValues, part)
			}
		case kind == frameEnd:
			if err = readJSON(payload, &end); err == nil && end.Code != "" {
				return end, nil, nil
			}
		case kind == frameResult:
			return end, payload, nil
		default:
			err = errors.New("script: a child sends an unexpected message")
		}
		if err != nil {
			return end, nil, err
		}
	}
}

// endError returns the error for a script whose child ended before the script
// did.
func (x *exchange) endError(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if x.expired.Load() {
		return agent.Errorf(CodeTimeout, "the script ran longer than %s", x.order.Timeout)
	}
	if x.process.OutOfMemory() {
		return agent.Errorf(CodeMemory, "the script needs more than %d MB of memory", x.order.Memory>>20)
	}
	if x.serving.total == 0 {
		cause = errors.Join(cause, errNotStarted)
	}
	return agent.Errorf(CodeKilled, "the process that ran the script ended").
		Because(errors.Join(cause, x.process.Err()))
}

// errNotStarted is a cause of the error of a script that has had no outside
// effects; its process may have died before. It can run again.
var errNotStarted = errors.New("script: nothing was done yet")

func readJSON(payload []byte, into any) error {
	if err := json.Unmarshal(payload, into); err != nil {
		return fmt.Errorf("script: a child sends broken JSON: %w", err)
	}
	return nil
}
