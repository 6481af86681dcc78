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

// parallel is how many nodes of one execution run at a time.
const parallel = 4

// Why a run is cut short. After errCut it goes on another time.
var (
	errCut  = errors.New("cut, to go on later")
	errOver = errors.New("ended by another hand")
)

// run is an execution at work. Its fields belong to the goroutine of drive,
// but those under mu.
type run struct {
	engine    *Engine
	db        *store.DB
	id        string
	agent     *agentState
	slot      *slot
	execution *agent.Execution
	program   *program
	payload   map[string]any
	key, by   string         // its idempotency key and who started it; they go with the first commit of a fresh one
	location  *time.Location // of the filter date, once it was used

	ctx    context.Context
	cancel context.CancelCauseFunc

	top        *scope
	lastError  map[string]any
	past       map[place]agent.NodeResult // of the journal, when it goes on
	knownWaits map[place]store.Wait       // waits that were entered before
	waiting    map[place]instance

	ready    []instance // to be resolved
	effects  []instance // to be begun once what came before is committed
	active   map[*nodeRun]bool
	finished chan *nodeRun
	needs    chan chan struct{} // of nodes that run, see nodeRun.beforeEffect
	needed   []chan struct{}    // to be closed by the next commit

	// What is not committed yet.
	fresh    bool // the execution's row is not there
	written  atomic.Bool
	begin    bool
	held     held
	waits    []store.Wait
	unwaits  []store.WaitEnd
	children []*child

	failure *agent.ExecutionError
	gone    bool // the engine has let it go

	results []agent.NodeResult // all of them, when the caller wants them
	keep    bool

	mu       sync.Mutex
	inbox    []store.WaitEnd
	knock    chan struct{}
	now      map[*nodeRun]agent.NodeResult
	response *agent.NodeResult
	answered chan struct{} // a webhook-response is committed
	entered  chan struct{} // the execution's row is committed
	done     chan struct{} // the engine has let it go
}

// keptResults is how many node results a run keeps for its caller.
const keptResults = 200

func (e *Engine) newRun(a *agentState, id string) *run {
	r := &run{
		engine: e, db: a.db, agent: a, id: id,
		waiting: map[place]instance{}, active: map[*nodeRun]bool{}, finished: make(chan *nodeRun, parallel), needs: make(chan chan struct{}),
		knock: make(chan struct{}, 1), answered: make(chan struct{}), entered: make(chan struct{}), done: make(chan struct{}),
	}
	r.written.Store(true)
	r.ctx, r.cancel = context.WithCancelCause(e.work)
	return r
}

// drive runs the execution until it ends, sleeps or is cut.
func (r *run) drive() {
	defer r.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			r.broken(p)
		}
	}()
	r.open()
	for {
		r.settle()
		switch {
		case r.gone:
			return
		case r.ctx.Err() != nil:
			r.stopped()
			return
		case r.failure != nil || r.top.open == 0:
			r.finishAll()
			return
		case r.idle():
			if r.sleep() {
				return
			}
			continue
		}
		if !r.commitDue() {
			return
		}
		r.depart()
		if !r.gone && len(r.ready) == 0 && len(r.active) > 0 {
			r.await()
		}
	}
}

// broken ends an execution on which this program itself has failed, so that it
// does not fail on it at every start.
func (r *run) broken(p any) {
	r.engine.log.Error("an execution broke", "agent", r.db.ID(), "execution", r.id, "error", p, "stack", string(debug.Stack()))
	if r.gone {
		return
	}
	defer func() {
		if again := recover(); again != nil && !r.gone {
			r.engine.released(r, fmt.Errorf("end an execution that broke: %v", again))
		}
	}()
	r.failure = &agent.ExecutionError{Code: string(agent.CodeInternal), Message: "the execution failed for a reason that only the server's log tells"}
	r.finishAll()
}

// open begins with the trigger, and with all nodes that nothing leads to.
func (r *run) open() {
	r.top = r.newScope(nil, nil, 0, -1)
	start, _ := r.program.graph.Find(r.execution.TriggerNode)
	alone := r.program.alone
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
		if r.top.states[i].left == 0 {
			if node == start {
				r.top.states[i].live = true
				r.top.states[i].sources = []input{{value: r.payload}}
				if alone != nil {
					r.top.states[i].sources = []input{{value: alone.input}}
				}
			}
			r.ready = append(r.ready, instance{r.top, node})
		}
	}
}

// settle resolves what is ready until only nodes with effects, waits, and
// nodes that run are left.
func (r *run) settle() {
	for len(r.ready) > 0 && r.failure == nil && r.ctx.Err() == nil {
		in := r.ready[0]
		r.ready = r.ready[1:]
		if !in.scope.dead() {
			r.resolve(in)
		}
		if r.held.full() && !r.commit(false) {
			return
		}
	}
}

// idle reports whether nothing but waits is left.
func (r *run) idle() bool {
	return len(r.ready) == 0 && len(r.effects) == 0 && len(r.active) == 0
}

// resolve runs a node, or says that it is to run, once all edges that lead to
// it are resolved.
func (r *run) resolve(in instance) {
	n := &r.program.nodes[in.node]
	at := r.placeOf(in)
	if past, ok := r.past[at]; ok && past.Finished() {
		r.replay(in, past)
		return
	}
	if !r.state(in).live {
		r.skip(in)
		return
	}
	if w, ok := r.knownWaits[at]; ok {
		delete(r.knownWaits, at)
		r.state(in).waiting = true
		r.waiting[place{w.NodeID, w.Path}] = in
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

// result begins the result of a node.
func (r *run) result(in instance, status agent.NodeStatus) agent.NodeResult {
	n := &r.program.nodes[in.node]
	result := agent.NodeResult{NodeID: n.ID, Type: n.Type, Status: status, StartedAt: agent.Now(), Attempt: 1}
	result.SetPath(in.scope.path)
	return result
}

// compute runs a node without effects on the spot.
func (r *run) compute(in instance) {
	result := r.result(in, agent.NodeSuccess)
	began := time.Now()
	f := r.newNodeRun(in)
	if f.err == nil {
		f.attemptOnce(r.ctx)
	}
	result.DurationMS = since(began)
	r.record(f, result)
}

func since(began time.Time) float64 { return float64(time.Since(began).Microseconds()) / 1000 }

// depart begins nodes with effects, as many as may run at a time.
func (r *run) depart() {
	for len(r.effects) > 0 && len(r.active) < parallel {
		in := r.effects[0]
		r.effects = r.effects[1:]
		if in.scope.dead() {
			continue
		}
		n := &r.program.nodes[in.node]
		if n.once {
			if past, ok := r.past[r.placeOf(in)]; ok && past.Status == agent.NodeRunning {
				r.interrupted(in)
				continue
			}
			r.held.add(r.result(in, agent.NodeRunning))
			if !r.commit(false) {
				return
			}
		}
		r.start(in)
	}
}

// interrupted ends a node that was cut and may run at most once.
func (r *run) interrupted(in instance) {
	result := r.result(in, agent.NodeFailed)
	result.Error = &agent.ExecutionError{Code: "INTERRUPTED", NodeID: result.NodeID,
		Message: "the node was cut by a stop of the server, and it may run at most once"}
	r.complete(in, result, nil, false)
}

// await waits for a node that runs, for the end of a wait, until the results at
// hand are to be committed, or for the end.
func (r *run) await() {
	var late <-chan time.Time
	if len(r.held.results) > 0 {
		timer := time.NewTimer(r.left())
		defer timer.Stop()
		late = timer.C
	}
	select {
	case f := <-r.finished:
		r.join(f)
	case committed := <-r.needs:
		r.needed = append(r.needed, committed)
	case <-late:
	case <-r.knock:
		r.receive()
	case <-r.ctx.Done():
	}
}

// receive takes in the waits that have ended.
func (r *run) receive() {
	r.mu.Lock()
	ends := r.inbox
	r.inbox = nil
	r.mu.Unlock()
	for _, end := range ends {
		at := place{end.Result.NodeID, end.Result.At()}
		in, ok := r.waiting[at]
		if !ok {
			continue
		}
		delete(r.waiting, at)
		if !in.scope.dead() {
			r.publishFinished(end.Result)
			r.remember(end.Result)
			r.complete(in, end.Result, decodeOr(end.Result.Output), true)
		}
	}
}

// replay takes a node's result out of the journal.
func (r *run) replay(in instance, past agent.NodeResult) {
	r.remember(past)
	switch {
	case past.Status == agent.NodeSkipped && r.state(in).live: // disabled
		r.complete(in, past, r.inputOf(in), true)
	case past.Status == agent.NodeSkipped:
		r.skip(in)
	case past.Status == agent.NodeCancelled: // its scope was given up: the failure is replayed too
		r.state(in).waiting = true
	default:
		r.complete(in, past, decodeOr(past.Output), true)
	}
}
