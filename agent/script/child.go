package script

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/child"
)

// role is the role of a script child.
const role = "run-scripts"

// longRun is how long a script runs before it is given lower priority. Its
// child then runs no other script.
const longRun = time.Second

// A child exits after this many scripts, or once it has grown by this many
// bytes or used this much processor time, so that nothing accumulates in it.
const (
	maxRuns   = 4000
	maxGrowth = 32 << 20
	maxCPU    = 5 * time.Minute
)

// RunChild does a child's work and returns true if this process was started as
// a child of a Pool; otherwise it returns false immediately.
func RunChild(args []string) bool {
	if !child.HasRole(role, args) {
		return false
	}
	runtime.GOMAXPROCS(2) // one for the engine, one to monitor it
	debug.SetMemoryLimit(64 << 20)
	if err := limitAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// limitAndServe applies the limits to this process and runs scripts.
func limitAndServe() error {
	c := &worker{frames: make(chan frame, 16)}
	var err error
	if c.engine, err = newEngine(c); err != nil {
		return err
	}
	if err := (child.Limits{Memory: 2 * MaxMemory, CPU: 2 * maxCPU}).Apply(); err != nil {
		return err
	}
	child.LowerPriority(5)
	return c.serve()
}

// worker is the state of a child, in the child itself.
type worker struct {
	out    frameWriter
	frames chan frame
	base   uint64 // resident memory in bytes before the first script
	limit  atomic.Uint64

	engine *engine

	// The current script.
	end      *ending
	result   string
	logBytes int
	logs     []Log
	fetches  fetches
	deferred []frame // fetch frames that arrived while the script waited for a variable
}

type frame struct {
	kind    byte
	payload []byte
}

// serve runs one script after another until the input ends.
func (c *worker) serve() error {
	c.out.out = os.Stdout
	c.base = child.Memory()
	go c.read()
	go child.WatchMemory(c.limit.Load) // 0 between scripts
	if err := c.out.send(frameReady); err != nil {
		return err
	}
	for runs := 1; ; runs++ {
		c.end, c.result, c.logBytes, c.logs, c.fetches, c.deferred = nil, "", 0, nil, fetches{}, nil
		order, values, err := c.nextOrder()
		if err != nil {
			return err
		}
		c.limit.Store(c.base + uint64(order.Memory) + memorySlack)
		slow := time.AfterFunc(longRun, func() { child.LowerPriority(15) })
		c.run(order, values)
		c.limit.Store(0)
		c.end.Last = !slow.Stop() ||
			runs >= maxRuns ||
			child.Memory() > c.base+maxGrowth ||
			child.ProcessorTime() > maxCPU
		if err := c.finish(); err != nil || c.end.Last {
			return err
		}
		if err := c.engine.reset(); err != nil {
			return err
		}
	}
}

// read forwards what the parent sends. At the end of the input the parent is
// gone, and the child exits whatever the engine is doing.
func (c *worker) read() {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		kind, payload, err := readFrame(in, MaxVariables+8*MaxCode)
		if err != nil {
			os.Exit(child.ExitOrphaned)
		}
		c.frames <- frame{kind, payload}
	}
}

// memorySlack is how much memory a process may use beyond the engine's own
// limit, in bytes: the engine checks its limit only after allocating a block,
// and Go holds copies of input and output.
const memorySlack = 64 << 20

// nextOrder waits for a script. It drops frames of fetches that the last script
// did not wait for.
func (c *worker) nextOrder() (o order, values []byte, err error) {
	for f := range c.frames {
		if f.kind != frameOrder {
			continue
		}
		if err := json.Unmarshal(f.payload, &o); err != nil {
			return o, nil, err
		}
		return o, (<-c.frames).payload, nil
	}
	return o, nil, errors.New("script: no more orders")
}

// run runs one script until c.end is set.
func (c *worker) run(order order, values []byte) {
	c.fetches.allowed = order.Fetch
	err := c.engine.start(order, values)
	if err == nil && order.Check {
		c.done("null")
	}
	for err == nil && c.end == nil {
		if err = c.engine.jobs(); err != nil || c.end != nil {
			break
		}
		if c.fetches.inProgress == 0 {
			c.end = &ending{Code: CodeStalled, Message: "the script is waiting for a promise that never settles"}
			break
		}
		err = c.wait()
	}
	if c.end == nil {
		c.end = endingOf(err, order)
	}
	if c.end.Code == CodeMemory {
		c.end.Message = fmt.Sprintf("the script needs more than %d MB of memory", order.Memory>>20)
	}
}

// endingOf returns the ending for a script that failed with err.
func endingOf(err error, order order) *ending {
	var e *jsError
	switch {
	case errors.Is(err, errMemory):
		return &ending{Code: CodeMemory}
	case errors.As(err, &e):
		// What the wrapper adds does not count as a line.
		at := min(max(e.Line, line(e.Stack)), strings.Count(order.Code, "\n")+1)
		return &ending{
			Code:    CodeSyntax,
			Message: "the code is not valid JavaScript: " + agent.Clip(e.Message, maxMessage),
			Line:    at,
		}
	case errors.Is(err, errTime):
		return &ending{Code: CodeTimeout, Message: fmt.Sprintf("the script ran longer than %s", order.Timeout)}
	}
	return &ending{Code: CodeKilled, Message: "the engine cannot run the script"}
}

// wait waits for the next piece of a fetch, and passes the response to the
// script once it is complete.
func (c *worker) wait() error {
	if len(c.deferred) > 0 {
		f := c.deferred[0]
		c.deferred = c.deferred[1:]
		return c.fetched(f)
	}
	timer := time.NewTimer(time.Until(c.engine.deadline))
	defer timer.Stop()
	select {
	case <-timer.C:
		return errTime
	case f := <-c.frames:
		return c.fetched(f)
	}
}

// fetched handles a frame about a fetch.
func (c *worker) fetched(f frame) error {
	head, body, complete := c.fetches.take(f)
	if !complete {
		return nil
	}
	if next, ok := c.fetches.next(); ok {
		if err := c.out.sendJSON(frameFetch, next, 0, nil); err != nil {
			os.Exit(child.ExitOrphaned)
		}
	}
	return c.engine.answer(head, body)
}

// variable requests a part of a variable from the parent. The script is blocked
// until it arrives, and does not continue once its time is up.
func (c *worker) variable(request readRequest) string {
	if len(request.Key) > maxKey {
		return `{"values":[],"large":[]}`
	}
	if err := c.out.sendJSON(frameRead, request, 0, nil); err != nil {
		os.Exit(child.ExitOrphaned)
	}
	timer := time.NewTimer(time.Until(c.engine.deadline))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return ""
		case f := <-c.frames:
			if f.kind == frameValues {
				return string(f.payload)
			}
			c.deferred = append(c.deferred, f)
		}
	}
}

// finish reports to the parent how the script ended.
func (c *worker) finish() error {
	c.end.Logs = c.logs
	if c.end.Code != "" {
		return c.out.sendJSON(frameEnd, c.end, 0, nil)
	}
	return c.out.sendJSON(frameEnd, c.end, frameResult, []byte(c.result))
}

// log keeps a console line while there is room.
func (c *worker) log(level, message string) (room bool) {
	if c.logBytes += len(message); len(c.logs) >= maxLogLines || c.logBytes > maxLogBytes {
		c.logs = append(c.logs, Log{Level: "warn", Message: "further lines were dropped"})
		return false
	}
	c.logs = append(c.logs, Log{Level: level, Message: message})
	return true
}

func (c *worker) fetch(r fetchRequest) (problem string) {
	now, problem := c.fetches.add(r)
	if now {
		if err := c.out.sendJSON(frameFetch, r, 0, nil); err != nil {
			os.Exit(child.ExitOrphaned)
		}
	}
	return problem
}

// done and fail end the script. Only the first call counts.
func (c *worker) done(result string) {
	if c.end != nil {
		return
	}
	if len(result) > MaxResult {
		c.fail("size", "", "", "")
		return
	}
	c.result, c.end = result, &ending{}
}

func (c *worker) fail(kind, name, message, stack string) {
	if c.end != nil {
		return
	}
	if name != "" && name != "Error" {
		message = name + ": " + message
	}
	e := &ending{Code: CodeThrown, Message: message, Line: line(stack)}
	switch {
	case message == "InternalError: "+outOfMemory:
		e.Code = CodeMemory
	case kind == "size":
		e = &ending{Code: CodeResult, Message: fmt.Sprintf("the result is larger than %d MB as JSON", MaxResult>>20)}
	case kind == "result":
		e = &ending{Code: CodeResult, Message: "the result cannot be encoded as JSON: " + message}
	case message == "":
		e.Message = "the script threw an error without a message"
	}
	c.end = e
}
