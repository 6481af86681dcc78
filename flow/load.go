package flow

import (
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// load reads an execution to resume. It returns false if there is nothing to
// resume.
func (run *run) load() bool {
	execution, err := run.db.WorkingExecution(run.ctx, run.id)
	switch {
	case err != nil && run.ctx.Err() != nil:
		run.engine.released(run, errInterrupted)
		return false
	case err != nil:
		run.engine.released(run, err)
		return false
	case execution.Status != agent.ExecutionRunning:
		run.engine.released(run, errEnded)
		return false
	}
	if execution.Test == nil {
		run.acquire(&execution.Workflow)
	}
	run.execution = &execution.Execution
	run.journaled, run.storedWaits = map[instanceKey]agent.NodeResult{}, map[instanceKey]store.Wait{}
	for _, result := range execution.Results {
		run.journaled[instanceKey{result.NodeID, result.FullPath()}] = result
	}
	for _, wait := range execution.Waits {
		run.storedWaits[instanceKey{wait.NodeID, wait.Path}] = wait
	}
	run.payload, _ = decodeOr(execution.Input).(map[string]any)
	if run.program, err = run.engine.programFor(run.db, execution, run.payload); err != nil {
		run.failUnrunnable(&execution.Workflow, err)
		return false
	}
	return true
}

// programFor returns the program of an execution.
func (engine *Engine) programFor(db *store.DB, w store.WorkingExecution, payload map[string]any) (*program, error) {
	if w.Test == nil {
		return engine.program(db, w.Workflow)
	}
	var plan testPlan
	if err := json.Unmarshal(w.Test.Plan, &plan); err != nil {
		return nil, err
	}
	return engine.testProgram(w.Workflow, plan, payload)
}

// acquire counts an execution that was just read against its workflow's slots,
// ignoring the limit: it started earlier.
func (run *run) acquire(w *agent.Workflow) {
	e := run.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	slots := run.agent.workflow(w.ID, w.Settings.Concurrency)
	if run.slot.workflow == nil {
		slots.running++
		run.slot.workflow = slots
	}
	e.startQueuedLocked(slots)
}

// failUnrunnable ends an execution whose graph cannot run here, such as one
// started by a newer version.
func (run *run) failUnrunnable(w *agent.Workflow, err error) {
	run.program = &program{workflow: *w}
	run.execution.Status, run.execution.CompletedAt, run.execution.Error =
		agent.ExecutionErrored, agent.Now(), run.explain(err, "")
	if run.commit(false) {
		run.publish(Event{Type: EventExecutionErrored, Execution: run.execution})
		run.engine.released(run, nil)
	}
}
