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

// commit writes what is pending. It is false when the run has come to its end
// by that: the execution ended by another hand, or the file cannot be written.
func (r *run) commit(suspended bool) bool {
	over := r.execution.Status.Ended()
	if len(r.held.results) == 0 && len(r.waits) == 0 && len(r.unwaits) == 0 && len(r.children) == 0 && !r.begin && !suspended && !over {
		return true
	}
	p := store.ExecutionStep{Execution: r.execution, Name: r.program.workflow.Name, New: r.fresh, IdempotencyKey: r.key, Begin: r.begin, Results: r.held.results,
		Waits: r.waits, Unwaits: r.unwaits, Suspended: suspended, Waiting: len(r.waiting)}
	for _, c := range r.children {
		p.Children = append(p.Children, store.StartedExecution{Execution: c.execution, Name: c.program.workflow.Name})
	}
	// The outcome of a write that was begun is always told, so that it is not
	// cut short by the end of r.ctx.
	ctx := context.WithoutCancel(r.ctx)
	if r.fresh {
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

// committed tells of what was written, and begins the executions that it
// started.
func (r *run) committed(suspended bool) {
	r.written.Store(true)
	if r.fresh {
		close(r.entered)
	}
	r.fresh, r.begin = false, false
	for _, result := range r.held.results {
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
	r.held, r.waits, r.unwaits, r.children = held{}, nil, nil, nil
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

// abandonRun gives the run up because nothing can be written. What was not committed
// did not happen; the execution goes on another time, unless it is over.
func (r *run) abandonRun(err error) {
	for _, c := range r.children {
		r.releaseChild(c)
	}
	if errors.Is(err, store.ErrEnded) || agent.ErrorCode(err) == agent.CodeNotFound {
		r.cancel(errOver)
	} else {
		r.cancel(errCut)
	}
	r.cancelNodes()
	r.engine.released(r, err)
}

// cancelNodes waits for the nodes that run, which were told to stop.
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

// stopped ends a run that was told to stop. When it is to go on later, what
// its nodes have done until now is kept.
func (r *run) stopped() {
	over := errors.Is(context.Cause(r.ctx), errOver)
	for f := range r.active {
		f.cancel()
	}
	for len(r.active) > 0 {
		f := <-r.finished
		if over {
			delete(r.active, f)
			r.releaseChild(f.outcome.child)
		} else {
			r.join(f)
		}
	}
	if over || r.failure != nil || r.top.open == 0 || !r.commit(false) {
		if !over && (r.failure != nil || r.top.open == 0) {
			r.finishAll()
			return
		}
		if over {
			r.engine.released(r, errOver)
		}
		return
	}
	r.engine.released(r, errCut)
}

// finishAll ends the execution.
func (r *run) finishAll() {
	for f := range r.active {
		f.cancel()
		r.cancelled(f.in, f.started)
	}
	for at, in := range r.waiting {
		delete(r.waiting, at)
		r.journal(r.result(in, agent.NodeCancelled))
	}
	r.waits, r.unwaits = nil, nil
	e := r.execution
	e.Status, e.CompletedAt = agent.ExecutionComplete, agent.Now()
	if r.failure != nil {
		e.Status, e.Error = agent.ExecutionErrored, r.failure
	} else if raw, err := encode(r.outputOf(r.top)); err != nil {
		e.Status, e.Error = agent.ExecutionErrored, r.explain(err, "")
	} else {
		e.Output = raw
	}
	if !r.commit(false) {
		return
	}
	r.publish(Event{Type: endEvents[e.Status], Execution: e})
	r.cancelNodes()
	r.engine.released(r, nil)
}

// sleep ends a run in which nothing but waits is left. It is false when a wait
// ended meanwhile, or waits end by what was just written.
func (r *run) sleep() bool {
	if !r.takeInbox() {
		return false
	}
	if !r.commit(true) {
		return true
	}
	if !r.takeInbox() {
		return false
	}
	return r.engine.suspended(r)
}

// takeInbox is false when there was something in it.
func (r *run) takeInbox() bool {
	r.mu.Lock()
	empty := len(r.inbox) == 0
	r.mu.Unlock()
	if !empty {
		r.receive()
	}
	return empty
}

// enterWait keeps a wait for the next commit.
func (r *run) enterWait(f *nodeRun) {
	w := *f.outcome.wait
	w.ExecutionID, w.NodeID, w.Path, w.Type, w.StartedAt = r.execution.ID, f.call.Node.ID, f.in.scope.path, f.call.Node.Type, f.started
	r.state(f.in).waiting = true
	r.waiting[place{w.NodeID, w.Path}] = f.in
	r.waits = append(r.waits, w)
	if c := f.outcome.child; c != nil {
		r.children = append(r.children, c)
	}
}

// timedOut is the result of a wait that came to its end by itself.
func timedOut(w *store.Wait, now agent.Time) store.WaitEnd {
	result := w.Result()
	result.Status, result.DurationMS = agent.NodeSuccess, float64(now.Sub(w.StartedAt.Time).Milliseconds())
	switch w.Kind {
	case store.WaitApproval:
		result.Handle = "timeout"
		result.Output = mustEncode(map[string]any{"decision": "timeout", "comment": "", "by": ""})
	case store.WaitEvent:
		result.Output = mustEncode(map[string]any{"resumed_by": "timeout", "data": nil})
	default:
		result.Output = mustEncode(map[string]any{"resumed_by": "timer", "data": nil})
	}
	return store.WaitEnd{ExecutionID: w.ExecutionID, Result: result}
}

// resumed is the result of a wait that was ended by somebody or something.
func resumed(w *store.Wait, by string, data any, now agent.Time) store.WaitEnd {
	result := w.Result()
	result.Status, result.DurationMS = agent.NodeSuccess, float64(now.Sub(w.StartedAt.Time).Milliseconds())
	result.Output = mustEncode(map[string]any{"resumed_by": by, "data": data})
	return store.WaitEnd{ExecutionID: w.ExecutionID, Result: result}
}

// mustEncode is encode of values that come from JSON.
func mustEncode(v map[string]any) json.RawMessage {
	raw, err := encode(v)
	if err != nil {
		raw, _ = encode(map[string]any{"resumed_by": v["resumed_by"], "data": nil})
	}
	return raw
}

// Live events of an execution.
const (
	EventNodeStarted         = "node.started"
	EventNodeFinished        = "node.finished"
	EventExecutionComplete   = "execution.complete"
	EventExecutionErrored    = "execution.errored"
	EventExecutionTerminated = "execution.terminated"
)

var endEvents = map[agent.ExecutionStatus]string{
	agent.ExecutionComplete: EventExecutionComplete, agent.ExecutionErrored: EventExecutionErrored,
	agent.ExecutionTerminated: EventExecutionTerminated,
}

// Event is something that happened in an execution.
type Event struct {
	Type      string
	Node      *agent.NodeResult // of node.started and node.finished
	Execution *agent.Execution  // of the others
}

func (r *run) publishFinished(result agent.NodeResult) {
	r.publish(Event{Type: EventNodeFinished, Node: &result})
}

func (r *run) publish(ev Event) { r.engine.publish(r.id, ev) }

// running lists the nodes that run now, by their start.
func (r *run) running() []agent.NodeResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Collect(maps.Values(r.now))
	slices.SortFunc(list, func(a, b agent.NodeResult) int { return a.StartedAt.Compare(b.StartedAt.Time) })
	for i := range list {
		list[i].DurationMS = float64(time.Since(list[i].StartedAt.Time).Milliseconds())
	}
	return list
}
