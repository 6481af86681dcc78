package flow

import (
	"context"

	"satchel/agent"
	"satchel/store"
)

// load reads an execution that goes on. It is false when there is nothing to
// go on with.
func (r *run) load(a *agentState) bool {
	w, err := r.db.WorkingExecution(r.ctx, r.id)
	r.claim(a, &w)
	switch {
	case err != nil && agent.ErrorCode(err) == agent.CodeNotFound:
		r.engine.left(r, errOver)
		return false
	case err != nil && r.ctx.Err() != nil:
		r.engine.left(r, errCut)
		return false
	case err != nil:
		r.engine.log.Error("read an execution that is to go on", "agent", r.db.ID(), "execution", r.id, "error", err)
		r.engine.left(r, err)
		return false
	case w.Status != agent.ExecutionRunning:
		r.engine.left(r, errOver)
		return false
	}
	r.execution = &w.Execution
	r.past, r.asleep = map[place]agent.NodeResult{}, map[place]store.Wait{}
	for _, result := range w.Results {
		r.past[place{result.NodeID, result.At()}] = result
	}
	for _, wait := range w.Waits {
		r.asleep[place{wait.NodeID, wait.Path}] = wait
	}
	r.payload, _ = decodeOr(w.Input).(map[string]any)
	if r.program, err = r.engine.program(r.db, w.Workflow); err != nil {
		r.unable(&w.Workflow, err)
		return false
	}
	return true
}

// claim counts a loaded execution with its workflow.
func (r *run) claim(a *agentState, w *store.WorkingExecution) {
	if r.line != nil {
		r.engine.mu.Lock()
		defer r.engine.mu.Unlock()
		if w.WorkflowID != "" {
			r.line.limit = w.Workflow.Settings.Concurrency
			r.engine.dispatch()
		}
		return
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.line = a.line(w.WorkflowID)
	if w.WorkflowID != "" {
		r.line.limit = w.Workflow.Settings.Concurrency
	}
	r.line.running++
}

// unable ends an execution whose graph cannot be run here, such as one that a
// newer version began.
func (r *run) unable(w *agent.Workflow, err error) {
	r.program = &program{workflow: *w}
	r.execution.Status, r.execution.CompletedAt, r.execution.Error = agent.ExecutionErrored, agent.Now(), r.explain(err, "")
	if r.commit(false) {
		r.tell(Event{Type: EventExecutionErrored, Execution: r.execution})
		r.engine.left(r, nil)
	}
}

// Look ends the work on executions that are not in the file any more, after
// workflows or executions were deleted.
func (e *Engine) Look(ctx context.Context, db *store.DB) error {
	e.mu.Lock()
	var ids []string
	if a := e.agents[db]; a != nil {
		for id, r := range a.active {
			if r.written.Load() {
				ids = append(ids, id)
			}
		}
	}
	e.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	left, err := db.RunningExecutions(ctx, ids)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		if a := e.agents[db]; a != nil && a.active[id] != nil && !left[id] {
			a.active[id].cancel(errOver)
		}
	}
	return nil
}
