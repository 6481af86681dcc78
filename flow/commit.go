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
func (run *run) commit(suspended bool) bool {
	over := run.execution.Status.Ended()
	if len(run.pending.results) == 0 &&
		len(run.waits) == 0 &&
		len(run.waitEnds) == 0 &&
		len(run.children) == 0 &&
		!run.begin &&
		!suspended &&
		!over {
		return true
	}
	step := store.ExecutionStep{
		Execution:      run.execution,
		Name:           run.program.workflow.Name,
		New:            run.unsaved,
		IdempotencyKey: run.key,
		Begin:          run.begin,
		Results:        run.pending.results,
		Waits:          run.waits,
		EndedWaits:     run.waitEnds,
		Suspended:      suspended,
		Waiting:        len(run.waiting),
	}
	for _, c := range run.children {
		step.Children = append(step.Children, store.StartedExecution{
			Execution: c.execution,
			Name:      c.program.workflow.Name,
		})
	}
	// The outcome of a write must become known once it has started, so the end
	// of r.ctx does not interrupt it.
	ctx := context.WithoutCancel(run.ctx)
	if run.unsaved {
		ctx = store.WithActor(ctx, run.by)
	}
	ended, err := run.db.CommitExecution(ctx, step)
	if err != nil {
		run.abandonRun(err)
		return false
	}
	run.committed(suspended)
	for _, end := range ended {
		run.engine.signal(run.db, end)
	}
	return true
}

// committed publishes what was written, and starts the child executions.
func (run *run) committed(suspended bool) {
	run.written.Store(true)
	if run.unsaved {
		close(run.inserted)
	}
	run.unsaved, run.begin = false, false
	for _, result := range run.pending.results {
		if result.Finished() {
			run.publishFinished(result)
		}
	}
	for _, w := range run.waits {
		run.engine.agents.EnqueueAt(run.db, w.DueAt.Time)
		waiting := w.Result()
		run.publish(Event{Type: EventNodeStarted, Node: &waiting})
	}
	for _, c := range run.children {
		run.engine.startChild(run.agent, c)
	}
	run.pending, run.waits, run.waitEnds, run.children = pendingResults{}, nil, nil, nil
	run.mu.Lock()
	answered := run.response != nil
	run.mu.Unlock()
	if answered {
		closeOnce(run.answered)
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
func (run *run) abandonRun(err error) {
	for _, c := range run.children {
		run.releaseChild(c)
	}
	if errors.Is(err, store.ErrEnded) || agent.ErrorCode(err) == agent.CodeNotFound {
		run.cancel(errEnded)
	} else {
		run.cancel(errInterrupted)
	}
	run.cancelNodes()
	run.engine.released(run, err)
}

// cancelNodes cancels the nodes that are running and waits for them.
func (run *run) cancelNodes() {
	for f := range run.active {
		f.cancel()
	}
	for range len(run.active) {
		f := <-run.finished
		delete(run.active, f)
		run.releaseChild(f.outcome.child)
	}
}

// interrupt stops a cancelled run. If the execution will be resumed, the
// results of its nodes so far are committed.
func (run *run) interrupt() {
	ended := errors.Is(context.Cause(run.ctx), errEnded)
	for f := range run.active {
		f.cancel()
	}
	for len(run.active) > 0 {
		f := <-run.finished
		if ended {
			delete(run.active, f)
			run.releaseChild(f.outcome.child)
		} else {
			run.join(f)
		}
	}
	if ended ||
		run.failure != nil ||
		run.top.open == 0 ||
		!run.commit(false) {
		if !ended && (run.failure != nil || run.top.open == 0) {
			run.endExecution()
			return
		}
		if ended {
			run.engine.released(run, errEnded)
		}
		return
	}
	run.engine.released(run, errInterrupted)
}

// endExecution ends the execution.
func (run *run) endExecution() {
	for f := range run.active {
		f.cancel()
		run.cancelled(f.in, f.started)
	}
	for at, in := range run.waiting {
		delete(run.waiting, at)
		run.journal(run.result(in, agent.NodeCancelled))
	}
	run.waits, run.waitEnds = nil, nil
	execution := run.execution
	execution.Status, execution.CompletedAt = agent.ExecutionComplete, agent.Now()
	if run.failure != nil {
		execution.Status, execution.Error = agent.ExecutionErrored, run.failure
	} else if raw, err := encode(run.outputOf(run.top)); err != nil {
		execution.Status, execution.Error = agent.ExecutionErrored, run.explain(err, "")
	} else {
		execution.Output = raw
	}
	run.ending.Store(&run.done)
	if !run.commit(false) {
		return
	}
	run.publish(Event{Type: endEvents[execution.Status], Execution: execution})
	run.cancelNodes()
	run.engine.released(run, nil)
}

// suspend stops a run that only has waits left. It returns false if a wait has
// ended, possibly because of what was just written.
func (run *run) suspend() bool {
	if !run.processInbox() {
		return false
	}
	decided := make(chan struct{})
	defer close(decided)
	run.ending.Store(&decided)
	if !run.commit(true) {
		return true
	}
	suspended := run.processInbox() && run.engine.suspended(run)
	if !suspended {
		run.ending.Store(nil)
	}
	return suspended
}

// processInbox processes the inbox. It returns false if the inbox was not empty.
func (run *run) processInbox() bool {
	run.mu.Lock()
	empty := len(run.inbox) == 0
	run.mu.Unlock()
	if !empty {
		run.receive()
	}
	return empty
}

// addWait adds a wait to the next commit.
func (run *run) addWait(f *nodeRun) {
	w := *f.outcome.wait
	w.ExecutionID, w.NodeID, w.Path, w.Type, w.StartedAt =
		run.execution.ID, f.call.Node.ID, f.in.scope.path, f.call.Node.Type, f.started
	run.state(f.in).waiting = true
	run.waiting[instanceKey{w.NodeID, w.Path}] = f.in
	run.waits = append(run.waits, w)
	if c := f.outcome.child; c != nil {
		run.children = append(run.children, c)
	}
}

// timeoutEnd returns the end of a wait whose time is up.
func timeoutEnd(wait *store.Wait, now agent.Time) store.WaitEnd {
	result := wait.Result()
	result.Status, result.DurationMS = agent.NodeSuccess, float64(now.Sub(wait.StartedAt.Time).Milliseconds())
	switch wait.Kind {
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
	return store.WaitEnd{ExecutionID: wait.ExecutionID, Result: result}
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

func (run *run) publishFinished(result agent.NodeResult) {
	run.publish(Event{Type: EventNodeFinished, Node: &result})
}

func (run *run) publish(ev Event) {
	run.engine.publish(run.id, ev)
}

// running returns the nodes that are running, ordered by start.
func (run *run) running() []agent.NodeResult {
	run.mu.Lock()
	defer run.mu.Unlock()
	list := slices.Collect(maps.Values(run.runningNodes))
	agent.Sort(list, func(a, b agent.NodeResult) int {
		return a.StartedAt.Compare(b.StartedAt.Time)
	})
	for i := range list {
		list[i].DurationMS = float64(time.Since(list[i].StartedAt.Time).Milliseconds())
	}
	return list
}
