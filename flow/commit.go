package flow

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"satchel/agent"
	"satchel/store"
)

// commit writes what is pending. It returns false if that stopped the run: the
// execution was ended from outside, or the file cannot be written.
func (r *run) commit(suspended bool) bool {
	over := r.execution.Status.Ended()
	if len(r.pending.results) == 0 &&
		len(r.waits) == 0 &&
		len(r.waitEnds) == 0 &&
		len(r.children) == 0 &&
		!r.begin &&
		!suspended &&
		!over {
		return true
	}
	p := store.ExecutionStep{
		Execution:      r.execution,
		Name:           r.program.workflow.Name,
		New:            r.unsaved,
		IdempotencyKey: r.key,
		Begin:          r.begin,
		Results:        r.pending.results,
		Waits:          r.waits,
		EndedWaits:     r.waitEnds,
		Suspended:      suspended,
		Waiting:        len(r.waiting),
	}
	for _, c := range r.children {
		p.Children = append(p.Children, store.StartedExecution{Execution: c.execution, Name: c.program.workflow.Name})
	}
	// The outcome of a write must become known once it has started, so the end
	// of r.ctx does not interrupt it.
	ctx := context.WithoutCancel(r.ctx)
	if r.unsaved {
		ctx = store.WithActor(ctx, r.by)
	}
	ended, err := r.db.CommitExecution(ctx, p)
	if err != nil {
		r.abandonRun(err)
		return false
	}
	r.committed(suspended)
	for _, end := range ended {
		r.engine.signal(r.db, end)
	}
	return true
}

// committed publishes what was written, and starts the child executions.
func (r *run) committed(suspended bool) {
	r.written.Store(true)
	if r.unsaved {
		close(r.inserted)
	}
	r.unsaved, r.begin = false, false
	for _, result := range r.pending.results {
		if result.Finished() {
			r.publishFinished(result)
		}
	}
	for _, w := range r.waits {
		r.engine.agents.EnqueueAt(r.db, w.DueAt.Time)
		waiting := w.Result()
		r.publish(Event{Type: EventNodeStarted, Node: &waiting})
	}
	for _, c := range r.children {
		r.engine.startChild(r.agent, c)
	}
	r.pending, r.waits, r.waitEnds, r.children = pendingResults{}, nil, nil, nil
	r.mu.Lock()
	answered := r.response != nil
	r.mu.Unlock()
	if answered {
		closeOnce(r.answered)
	}
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// abandonRun stops the run because nothing can be written. Uncommitted work did
// not happen; unless the execution has ended, it is resumed later.
func (r *run) abandonRun(err error) {
	for _, c := range r.children {
		r.releaseChild(c)
	}
	if errors.Is(err, store.ErrEnded) || agent.ErrorCode(err) == agent.CodeNotFound {
		r.cancel(errEnded)
	} else {
		r.cancel(errInterrupted)
	}
	r.cancelNodes()
	r.engine.released(r, err)
}

// cancelNodes cancels the nodes that are running and waits for them.
func (r *run) cancelNodes() {
	for f := range r.active {
		f.cancel()
	}
	for range len(r.active) {
		f := <-r.finished
		delete(r.active, f)
		r.releaseChild(f.outcome.child)
	}
}

// interrupt stops a cancelled run. If the execution will be resumed, the
// results of its nodes so far are committed.
func (r *run) interrupt() {
	ended := errors.Is(context.Cause(r.ctx), errEnded)
	for f := range r.active {
		f.cancel()
	}
	for len(r.active) > 0 {
		f := <-r.finished
		if ended {
			delete(r.active, f)
			r.releaseChild(f.outcome.child)
		} else {
			r.join(f)
		}
	}
	if ended ||
		r.failure != nil ||
		r.top.open == 0 ||
		!r.commit(false) {
		if !ended && (r.failure != nil || r.top.open == 0) {
			r.endExecution()
			return
		}
		if ended {
			r.engine.released(r, errEnded)
		}
		return
	}
	r.engine.released(r, errInterrupted)
}

// endExecution ends the execution.
func (r *run) endExecution() {
	for f := range r.active {
		f.cancel()
		r.cancelled(f.in, f.started)
	}
	for at, in := range r.waiting {
		delete(r.waiting, at)
		r.journal(r.result(in, agent.NodeCancelled))
	}
	r.waits, r.waitEnds = nil, nil
	e := r.execution
	e.Status, e.CompletedAt = agent.ExecutionComplete, agent.Now()
	if r.failure != nil {
		e.Status, e.Error = agent.ExecutionErrored, r.failure
	} else if raw, err := encode(r.outputOf(r.top)); err != nil {
		e.Status, e.Error = agent.ExecutionErrored, r.explain(err, "")
	} else {
		e.Output = raw
	}
	r.ending.Store(&r.done)
	if !r.commit(false) {
		return
	}
	r.publish(Event{Type: endEvents[e.Status], Execution: e})
	r.cancelNodes()
	r.engine.released(r, nil)
}

// suspend stops a run that only has waits left. It returns false if a wait has
// ended, possibly because of what was just written.
func (r *run) suspend() bool {
	if !r.processInbox() {
		return false
	}
	decided := make(chan struct{})
	defer close(decided)
	r.ending.Store(&decided)
	if !r.commit(true) {
		return true
	}
	suspended := r.processInbox() && r.engine.suspended(r)
	if !suspended {
		r.ending.Store(nil)
	}
	return suspended
}

// processInbox processes the inbox. It returns false if the inbox was not empty.
func (r *run) processInbox() bool {
	r.mu.Lock()
	empty := len(r.inbox) == 0
	r.mu.Unlock()
	if !empty {
		r.receive()
	}
	return empty
}

// addWait adds a wait to the next commit.
func (r *run) addWait(f *nodeRun) {
	w := *f.outcome.wait
	w.ExecutionID, w.NodeID, w.Path, w.Type, w.StartedAt =
		r.execution.ID, f.call.Node.ID, f.in.scope.path, f.call.Node.Type, f.started
	r.state(f.in).waiting = true
	r.waiting[instanceKey{w.NodeID, w.Path}] = f.in
	r.waits = append(r.waits, w)
	if c := f.outcome.child; c != nil {
		r.children = append(r.children, c)
	}
}

// timeoutEnd returns the end of a wait whose time is up.
func timeoutEnd(w *store.Wait, now agent.Time) store.WaitEnd {
	result := w.Result()
	result.Status, result.DurationMS = agent.NodeSuccess, float64(now.Sub(w.StartedAt.Time).Milliseconds())
	switch w.Kind {
	case store.WaitApproval:
		result.Handle = "timeout"
		result.Output = encodeObject(map[string]any{
			"decision": "timeout",
			"comment":  "",
			"by":       "",
		})
	case store.WaitEvent:
		result.Output = encodeObject(map[string]any{"resumed_by": "timeout", "data": nil})
	default:
		result.Output = encodeObject(map[string]any{"resumed_by": "timer", "data": nil})
	}
	return store.WaitEnd{ExecutionID: w.ExecutionID, Result: result}
}

// resumed returns the end of a wait that an event, a caller or another
// execution ended.
func resumed(w *store.Wait, by string, data any, now agent.Time) store.WaitEnd {
	result := w.Result()
	result.Status, result.DurationMS = agent.NodeSuccess, float64(now.Sub(w.StartedAt.Time).Milliseconds())
	result.Output = encodeObject(map[string]any{"resumed_by": by, "data": data})
	return store.WaitEnd{ExecutionID: w.ExecutionID, Result: result}
}

// encodeObject encodes values that are known to be JSON.
func encodeObject(v map[string]any) json.RawMessage {
	raw, err := encode(v)
	if err != nil {
		raw, _ = encode(map[string]any{"resumed_by": v["resumed_by"], "data": nil})
	}
	return raw
}

// Types of the live events of an execution.
const (
	EventNodeStarted         = "node.started"
	EventNodeFinished        = "node.finished"
	EventExecutionComplete   = "execution.complete"
	EventExecutionErrored    = "execution.errored"
	EventExecutionTerminated = "execution.terminated"
)

var endEvents = map[agent.ExecutionStatus]string{
	agent.ExecutionComplete:   EventExecutionComplete,
	agent.ExecutionErrored:    EventExecutionErrored,
	agent.ExecutionTerminated: EventExecutionTerminated,
}

// Event is a live event of an execution.
type Event struct {
	Type      string
	Node      *agent.NodeResult // of node.started and node.finished
	Execution *agent.Execution  // of the others
}

func (r *run) publishFinished(result agent.NodeResult) {
	r.publish(Event{Type: EventNodeFinished, Node: &result})
}

func (r *run) publish(ev Event) {
	r.engine.publish(r.id, ev)
}

// running returns the nodes that are running, ordered by start.
func (r *run) running() []agent.NodeResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Collect(maps.Values(r.runningNodes))
	agent.Sort(list, func(a, b agent.NodeResult) int {
		return a.StartedAt.Compare(b.StartedAt.Time)
	})
	for i := range list {
		list[i].DurationMS = float64(time.Since(list[i].StartedAt.Time).Milliseconds())
	}
	return list
}
