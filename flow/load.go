package flow

import (
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// load reads an execution that goes on. It is false when there is nothing to
// go on with.
func (r *run) load() bool {
	w, err := r.db.WorkingExecution(r.ctx, r.id)
	switch {
	case err != nil && r.ctx.Err() != nil:
		r.engine.released(r, errCut)
		return false
	case err != nil:
		r.engine.released(r, err)
		return false
	case w.Status != agent.ExecutionRunning:
		r.engine.released(r, errOver)
		return false
	}
	if w.Test == nil {
		r.acquire(&w.Workflow)
	}
	r.execution = &w.Execution
	r.past, r.knownWaits = map[place]agent.NodeResult{}, map[place]store.Wait{}
	for _, result := range w.Results {
		r.past[place{result.NodeID, result.At()}] = result
	}
	for _, wait := range w.Waits {
		r.knownWaits[place{wait.NodeID, wait.Path}] = wait
	}
	r.payload, _ = decodeOr(w.Input).(map[string]any)
	if r.program, err = r.engine.programFor(r.db, w, r.payload); err != nil {
		r.unable(&w.Workflow, err)
		return false
	}
	return true
}

// programFor returns what an execution runs.
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

// acquire counts an execution that was read with its workflow, whatever the
// workflow's limit: it began before.
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

// unable ends an execution whose graph cannot be run here, such as one that a
// newer version began.
func (r *run) unable(w *agent.Workflow, err error) {
	r.program = &program{workflow: *w}
	r.execution.Status, r.execution.CompletedAt, r.execution.Error = agent.ExecutionErrored, agent.Now(), r.explain(err, "")
	if r.commit(false) {
		r.publish(Event{Type: EventExecutionErrored, Execution: r.execution})
		r.engine.released(r, nil)
	}
}
