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

func (e *Engine) newRun(a *agentState, id string) *run {
	r := &run{
		engine:         e,
		db:             a.db,
		agent:          a,
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
	r.ctx, r.cancel = context.WithCancelCause(e.work)
	return r
}

// drive runs the execution until it ends, is suspended or is interrupted.
func (r *run) drive() {
	defer r.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			r.failAfterPanic(p)
		}
	}()
	r.initialize()
	for {
		r.resolveReady()
		switch {
		case r.removed:
			return
		case r.ctx.Err() != nil:
			r.interrupt()
			return
		case r.failure != nil || r.top.open == 0:
			r.endExecution()
			return
		case r.idle():
			if r.suspend() {
				return
			}
			continue
		}
		if !r.commitDue() {
			return
		}
		r.startNodes()
		if !r.removed && len(r.ready) == 0 && len(r.active) > 0 {
			r.await()
		}
	}
}

// failAfterPanic ends an execution that made this program panic, so that it
// does not panic again at every start.
func (r *run) failAfterPanic(p any) {
	r.engine.log.Error(
		"panic while running an execution",
		"agent", r.db.ID(),
		"execution", r.id,
		"error", p,
		"stack", string(debug.Stack()),
	)
	if r.removed {
		return
	}
	defer func() {
		if again := recover(); again != nil && !r.removed {
			r.engine.released(r, fmt.Errorf("end an execution after a panic: %v", again))
		}
	}()
	r.failure = &agent.ExecutionError{
		Code:    string(agent.CodeInternal),
		Message: "the execution failed with an internal error; see the server's log",
	}
	r.endExecution()
}

// initialize makes the trigger, and every other node without incoming edges, ready.
func (r *run) initialize() {
	r.top = r.newScope(nil, nil, 0, -1)
	start, _ := r.program.graph.Find(r.execution.TriggerNode)
	alone := r.program.isolated
	if alone != nil {
		for id, output := range alone.outputs {
			r.top.output[id] = output
		}
	}
	for i, node := range r.top.region.nodes {
		if alone != nil && node != start {
			r.top.open--
			continue
		}
		if r.top.states[i].unresolved == 0 {
			if node == start {
				r.top.states[i].reached = true
				r.top.states[i].sources = []input{{value: r.payload}}
				if alone != nil {
					r.top.states[i].sources = []input{{value: alone.input}}
				}
			}
			r.ready = append(r.ready, instance{r.top, node})
		}
	}
}

// resolveReady resolves ready nodes until only side effects, waits and running
// nodes are left.
func (r *run) resolveReady() {
	for len(r.ready) > 0 && r.failure == nil && r.ctx.Err() == nil {
		in := r.ready[0]
		r.ready = r.ready[1:]
		if !in.scope.ended() {
			r.resolve(in)
		}
		if r.pending.full() && !r.commit(false) {
			return
		}
	}
}

// idle reports whether only waits are left.
func (r *run) idle() bool {
	return len(r.ready) == 0 && len(r.effects) == 0 && len(r.active) == 0
}

// resolve runs or schedules a node whose incoming edges are all resolved.
func (r *run) resolve(in instance) {
	n := &r.program.nodes[in.node]
	at := r.keyOf(in)
	if past, ok := r.journaled[at]; ok && past.Finished() {
		r.replay(in, past)
		return
	}
	if !r.state(in).reached {
		r.skip(in)
		return
	}
	if w, ok := r.storedWaits[at]; ok {
		delete(r.storedWaits, at)
		r.state(in).waiting = true
		r.waiting[instanceKey{w.NodeID, w.Path}] = in
		return
	}
	pin, pinned := r.program.pins[n.ID]
	switch {
	case pinned && !n.disabled:
		r.usePin(in, pin)
	case n.disabled:
		result := r.result(in, agent.NodeSkipped)
		r.complete(in, result, r.inputOf(in), false)
	case n.Type == agent.NodeLoop:
		r.startLoop(in)
	case n.pure && !n.once:
		r.compute(in)
	default:
		r.effects = append(r.effects, in)
	}
}

// result returns a new result for a node.
func (r *run) result(in instance, status agent.NodeStatus) agent.NodeResult {
	n := &r.program.nodes[in.node]
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
func (r *run) compute(in instance) {
	result := r.result(in, agent.NodeSuccess)
	began := time.Now()
	f := r.newNodeRun(in)
	if f.err == nil {
		f.attemptOnce(r.ctx)
	}
	result.DurationMS = elapsedMilliseconds(began)
	r.record(f, result)
}

func elapsedMilliseconds(began time.Time) float64 {
	return float64(time.Since(began).Microseconds()) / 1000
}

// startNodes starts nodes with side effects, up to the limit of nodes that run
// at the same time.
func (r *run) startNodes() {
	for len(r.effects) > 0 && len(r.active) < parallel {
		in := r.effects[0]
		r.effects = r.effects[1:]
		if in.scope.ended() {
			continue
		}
		n := &r.program.nodes[in.node]
		if n.once {
			if past, ok := r.journaled[r.keyOf(in)]; ok && past.Status == agent.NodeRunning {
				r.failInterrupted(in)
				continue
			}
			r.pending.add(r.result(in, agent.NodeRunning))
			if !r.commit(false) {
				return
			}
		}
		r.start(in)
	}
}

// failInterrupted fails a node that was interrupted and may run at most once.
func (r *run) failInterrupted(in instance) {
	result := r.result(in, agent.NodeFailed)
	result.Error = &agent.ExecutionError{
		Code:    "INTERRUPTED",
		NodeID:  result.NodeID,
		Message: "the server stopped while the node was running, and the node may run at most once",
	}
	r.complete(in, result, nil, false)
}

// await waits until a node finishes, a wait ends, pending results must be
// committed, or the run is cancelled.
func (r *run) await() {
	var late <-chan time.Time
	if len(r.pending.results) > 0 {
		timer := time.NewTimer(r.untilCommit())
		defer timer.Stop()
		late = timer.C
	}
	select {
	case f := <-r.finished:
		r.join(f)
	case committed := <-r.commitRequests:
		r.commitWaiters = append(r.commitWaiters, committed)
	case <-late:
	case <-r.wakeup:
		r.receive()
	case <-r.ctx.Done():
	}
}

// receive handles the waits that have ended.
func (r *run) receive() {
	r.mu.Lock()
	ends := r.inbox
	r.inbox = nil
	r.mu.Unlock()
	for _, end := range ends {
		at := instanceKey{end.Result.NodeID, end.Result.FullPath()}
		in, ok := r.waiting[at]
		if !ok {
			continue
		}
		delete(r.waiting, at)
		if !in.scope.ended() {
			r.publishFinished(end.Result)
			r.keepResult(end.Result)
			r.complete(in, end.Result, decodeOr(end.Result.Output), true)
		}
	}
}

// replay applies a node's result from the journal.
func (r *run) replay(in instance, past agent.NodeResult) {
	r.keepResult(past)
	switch {
	case past.Status == agent.NodeSkipped && r.state(in).reached: // disabled
		r.complete(in, past, r.inputOf(in), true)
	case past.Status == agent.NodeSkipped:
		r.skip(in)
	case past.Status == agent.NodeCancelled: // its scope was abandoned: the failure is replayed too
		r.state(in).waiting = true
	default:
		r.complete(in, past, decodeOr(past.Output), true)
	}
}
