package flow

import (
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// load reads an execution to resume. It returns false if there is nothing to
// resume.
func (r *run) load() bool {
	w, err := r.db.WorkingExecution(r.ctx, r.id)
	switch {
	case err != nil && r.ctx.Err() != nil:
		r.engine.released(r, errInterrupted)
		return false
	case err != nil:
		r.engine.released(r, err)
		return false
	case w.Status != agent.ExecutionRunning:
		r.engine.released(r, errEnded)
		return false
	}
	if w.Test == nil {
		r.acquire(&w.Workflow)
	}
	r.execution = &w.Execution
	r.journaled, r.storedWaits = map[instanceKey]agent.NodeResult{}, map[instanceKey]store.Wait{}
	for _, result := range w.Results {
		r.journaled[instanceKey{result.NodeID, result.FullPath()}] = result
	}
	for _, wait := range w.Waits {
		r.storedWaits[instanceKey{wait.NodeID, wait.Path}] = wait
	}
	r.payload, _ = decodeOr(w.Input).(map[string]any)
	if r.program, err = r.engine.programFor(r.db, w, r.payload); err != nil {
		r.failUnrunnable(&w.Workflow, err)
		return false
	}
	return true
}

// programFor returns the program of an execution.
func (e *Engine) programFor(db *store.DB, w store.WorkingExecution, payload map[string]any) (*program, error) {
	if w.Test == nil {
		return e.program(db, w.Workflow)
	}
	var plan testPlan
	if err := json.Unmarshal(w.Test.Plan, &plan); err != nil {
		return nil, err
	}
	return e.testProgram(w.Workflow, plan, payload)
}

// acquire counts an execution that was just read against its workflow's slots,
// ignoring the limit: it started earlier.
func (r *run) acquire(w *agent.Workflow) {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	slots := r.agent.workflow(w.ID, w.Settings.Concurrency)
	if r.slot.workflow == nil {
		slots.running++
		r.slot.workflow = slots
	}
	e.startQueuedLocked(slots)
}

// failUnrunnable ends an execution whose graph cannot run here, such as one
// started by a newer version.
func (r *run) failUnrunnable(w *agent.Workflow, err error) {
	r.program = &program{workflow: *w}
	r.execution.Status, r.execution.CompletedAt, r.execution.Error =
		agent.ExecutionErrored, agent.Now(), r.explain(err, "")
	if r.commit(false) {
		r.publish(Event{Type: EventExecutionErrored, Execution: r.execution})
		r.engine.released(r, nil)
	}
}
