package flow

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/store"
)

// parallel is how many nodes of one execution run at the same time.
const parallel = 4

// Why a run is cancelled. After errInterrupted it is resumed later.
var (
	errInterrupted = errors.New("interrupted, to be resumed later")
	errEnded       = errors.New("ended from outside")
)

// run is an execution that is running. Its fields belong to the goroutine of
// drive, except those under mu.
type run struct {
	engine    *Engine
	db        *store.DB
	id        string
	agent     *agentState
	slot      *slot
	execution *agent.Execution
	program   *program
	payload   map[string]any
	key, by   string         // its idempotency key and who started it, written with the first commit of a new one
	callers   callers        // the executions that wait for it, through tools
	location  *time.Location // for the date filter, once it was used

	ctx    context.Context
	cancel context.CancelCauseFunc

	top         *scope
	lastError   map[string]any
	journaled   map[instanceKey]agent.NodeResult // from the journal, when the execution is resumed
	storedWaits map[instanceKey]store.Wait       // waits that are already in the file
	waiting     map[instanceKey]instance

	ready          []instance // nodes to resolve
	effects        []instance // nodes with side effects, to start once everything before them is committed
	active         map[*nodeRun]bool
	finished       chan *nodeRun
	commitRequests chan chan struct{} // from running nodes, see nodeRun.beforeEffect
	commitWaiters  []chan struct{}    // to be closed after the next commit

	// What is not committed yet.
	unsaved  bool // the execution has no row yet
	written  atomic.Bool
	begin    bool
	pending  pendingResults
	waits    []store.Wait
	waitEnds []store.WaitEnd
	children []*child

	failure *agent.ExecutionError
	removed bool // the engine has removed the run
	// closed once the run has released its slot, or continues; nil unless its last write, or one that suspends it, has
	// begun
	ending atomic.Pointer[chan struct{}]

	results     []agent.NodeResult // all of them, if the caller wants them
	keepResults bool

	mu           sync.Mutex
	inbox        []store.WaitEnd
	wakeup       chan struct{}
	runningNodes map[*nodeRun]agent.NodeResult
	response     *agent.NodeResult
	answered     chan struct{} // closed when a webhook-response is committed
	inserted     chan struct{} // closed when the execution's row is committed
	done         chan struct{} // closed when the engine has removed the run
}

// maxKeptResults is how many node results a run keeps for its caller.
const maxKeptResults = 200

func (engine *Engine) newRun(state *agentState, id string) *run {
	r := &run{
		engine:         engine,
		db:             state.db,
		agent:          state,
		id:             id,
		waiting:        map[instanceKey]instance{},
		active:         map[*nodeRun]bool{},
		finished:       make(chan *nodeRun, parallel),
		commitRequests: make(chan chan struct{}),
		wakeup:         make(chan struct{}, 1),
		answered:       make(chan struct{}),
		inserted:       make(chan struct{}),
		done:           make(chan struct{}),
	}
	r.written.Store(true)
	r.ctx, r.cancel = context.WithCancelCause(engine.work)
	return r
}

// drive runs the execution until it ends, is suspended or is interrupted.
func (run *run) drive() {
	defer run.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			run.failAfterPanic(p)
		}
	}()
	run.initialize()
	for {
		run.resolveReady()
		switch {
		case run.removed:
			return
		case run.ctx.Err() != nil:
			run.interrupt()
			return
		case run.failure != nil || run.top.open == 0:
			run.endExecution()
			return
		case run.idle():
			if run.suspend() {
				return
			}
			continue
		}
		if !run.commitDue() {
			return
		}
		run.startNodes()
		if !run.removed && len(run.ready) == 0 && len(run.active) > 0 {
			run.await()
		}
	}
}

// failAfterPanic ends an execution that made this program panic, so that it
// does not panic again at every start.
func (run *run) failAfterPanic(value any) {
	run.engine.log.Error(
		"panic while running an execution",
		"agent", run.db.ID(),
		"execution", run.id,
		"error", value,
		"stack", string(debug.Stack()),
	)
	if run.removed {
		return
	}
	defer func() {
		if again := recover(); again != nil && !run.removed {
			run.engine.released(run, fmt.Errorf("end an execution after a panic: %v", again))
		}
	}()
	run.failure = &agent.ExecutionError{
		Code:    string(agent.CodeInternal),
		Message: "the execution failed with an internal error; see the server's log",
	}
	run.endExecution()
}

// initialize makes the trigger, and every other node without incoming edges, ready.
func (run *run) initialize() {
	run.top = run.newScope(nil, nil, 0, -1)
	start, _ := run.program.graph.Find(run.execution.TriggerNode)
	alone := run.program.isolated
	if alone != nil {
		for id, output := range alone.outputs {
			run.top.output[id] = output
		}
	}
	for i, node := range run.top.region.nodes {
		if alone != nil && node != start {
			run.top.open--
			continue
		}
		if run.top.states[i].unresolved == 0 {
			if node == start {
				run.top.states[i].reached = true
				run.top.states[i].sources = []input{{value: run.payload}}
				if alone != nil {
					run.top.states[i].sources = []input{{value: alone.input}}
				}
			}
			run.ready = append(run.ready, instance{run.top, node})
		}
	}
}

// resolveReady resolves ready nodes until only side effects, waits and running
// nodes are left.
func (run *run) resolveReady() {
	for len(run.ready) > 0 && run.failure == nil && run.ctx.Err() == nil {
		in := run.ready[0]
		run.ready = run.ready[1:]
		if !in.scope.ended() {
			run.resolve(in)
		}
		if run.pending.full() && !run.commit(false) {
			return
		}
	}
}

// idle reports whether only waits are left.
func (run *run) idle() bool {
	return len(run.ready) == 0 && len(run.effects) == 0 && len(run.active) == 0
}

// resolve runs or schedules a node whose incoming edges are all resolved.
func (run *run) resolve(in instance) {
	step := &run.program.nodes[in.node]
	at := run.keyOf(in)
	if past, ok := run.journaled[at]; ok && past.Finished() {
		run.replay(in, past)
		return
	}
	if !run.state(in).reached {
		run.skip(in)
		return
	}
	if w, ok := run.storedWaits[at]; ok {
		delete(run.storedWaits, at)
		run.state(in).waiting = true
		run.waiting[instanceKey{w.NodeID, w.Path}] = in
		return
	}
	pin, pinned := run.program.pins[step.ID]
	switch {
	case pinned && !step.disabled:
		run.usePin(in, pin)
	case step.disabled:
		result := run.result(in, agent.NodeSkipped)
		run.complete(in, result, run.inputOf(in), false)
	case step.Type == agent.NodeLoop:
		run.startLoop(in)
	case step.pure && !step.once:
		run.compute(in)
	default:
		run.effects = append(run.effects, in)
	}
}

// result returns a new result for a node.
func (run *run) result(in instance, status agent.NodeStatus) agent.NodeResult {
	n := &run.program.nodes[in.node]
	result := agent.NodeResult{
		NodeID:    n.ID,
		Type:      n.Type,
		Status:    status,
		StartedAt: agent.Now(),
		Attempt:   1,
	}
	result.SetPath(in.scope.path)
	return result
}

// compute runs a pure node in this goroutine.
func (run *run) compute(in instance) {
	result := run.result(in, agent.NodeSuccess)
	began := time.Now()
	f := run.newNodeRun(in)
	if f.err == nil {
		f.attemptOnce(run.ctx)
	}
	result.DurationMS = elapsedMilliseconds(began)
	run.record(f, result)
}

func elapsedMilliseconds(began time.Time) float64 {
	return float64(time.Since(began).Microseconds()) / 1000
}

// startNodes starts nodes with side effects, up to the limit of nodes that run
// at the same time.
func (run *run) startNodes() {
	for len(run.effects) > 0 && len(run.active) < parallel {
		in := run.effects[0]
		run.effects = run.effects[1:]
		if in.scope.ended() {
			continue
		}
		n := &run.program.nodes[in.node]
		if n.once {
			if past, ok := run.journaled[run.keyOf(in)]; ok && past.Status == agent.NodeRunning {
				run.failInterrupted(in)
				continue
			}
			run.pending.add(run.result(in, agent.NodeRunning))
			if !run.commit(false) {
				return
			}
		}
		run.start(in)
	}
}

// failInterrupted fails a node that was interrupted and may run at most once.
func (run *run) failInterrupted(in instance) {
	result := run.result(in, agent.NodeFailed)
	result.Error = &agent.ExecutionError{
		Code:    "INTERRUPTED",
		NodeID:  result.NodeID,
		Message: "the server stopped while the node was running, and the node may run at most once",
	}
	run.complete(in, result, nil, false)
}

// await waits until a node finishes, a wait ends, pending results must be
// committed, or the run is cancelled.
func (run *run) await() {
	var late <-chan time.Time
	if len(run.pending.results) > 0 {
		timer := time.NewTimer(run.untilCommit())
		defer timer.Stop()
		late = timer.C
	}
	select {
	case f := <-run.finished:
		run.join(f)
	case committed := <-run.commitRequests:
		run.commitWaiters = append(run.commitWaiters, committed)
	case <-late:
	case <-run.wakeup:
		run.receive()
	case <-run.ctx.Done():
	}
}

// receive handles the waits that have ended.
func (run *run) receive() {
	run.mu.Lock()
	ends := run.inbox
	run.inbox = nil
	run.mu.Unlock()
	for _, end := range ends {
		at := instanceKey{end.Result.NodeID, end.Result.FullPath()}
		in, ok := run.waiting[at]
		if !ok {
			continue
		}
		delete(run.waiting, at)
		if !in.scope.ended() {
			run.publishFinished(end.Result)
			run.keepResult(end.Result)
			run.complete(in, end.Result, decodeOr(end.Result.Output), true)
		}
	}
}

// replay applies a node's result from the journal.
func (run *run) replay(in instance, past agent.NodeResult) {
	run.keepResult(past)
	switch {
	case past.Status == agent.NodeSkipped && run.state(in).reached: // disabled
		run.complete(in, past, run.inputOf(in), true)
	case past.Status == agent.NodeSkipped:
		run.skip(in)
	case past.Status == agent.NodeCancelled: // its scope was abandoned: the failure is replayed too
		run.state(in).waiting = true
	default:
		run.complete(in, past, decodeOr(past.Output), true)
	}
}
