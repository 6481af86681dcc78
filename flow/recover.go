package flow

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// notify enqueues an agent whose executions may have work, or whose status may
// have changed.
func (engine *Engine) notify(db *store.DB, p store.Pending) {
	engine.agents.Notify(db, p.Executions.Time, p.Changed)
}

// maxDueWaits limits how many waits end in one transaction.
const maxDueWaits = 200

// recoverAgent is one turn of an agent: it stops runs whose executions are no
// longer in the file, resumes executions that are not running, and ends the
// waits that are due.
func (engine *Engine) recoverAgent(ctx context.Context, db *store.DB) (work.Next, error) {
	status := db.Agent().Status
	switch {
	case db.Gone():
		engine.forget(db)
		return work.Next{}, nil
	case db.Problem() != nil || status == agent.StatusDisabled:
		engine.suspendAgent(db)
		return work.Next{}, nil
	}
	a, written := engine.activate(db)
	if err := engine.cancelMissing(ctx, a, written); err != nil {
		return work.Next{}, err
	}
	now := agent.Now()
	w, err := db.ExecutionWork(ctx, now, maxDueWaits, status == agent.StatusActive)
	if err != nil {
		return work.Next{}, err
	}
	engine.resumeAll(a, w)
	ends := make([]store.WaitEnd, len(w.Due))
	for i := range w.Due {
		ends[i] = timeoutEnd(&w.Due[i], now)
	}
	return work.Next{At: w.Next.Time}, engine.endWaits(ctx, db, ends)
}

// activate returns the state of an agent that may run executions, and the ids
// of its running executions that are in the file.
func (engine *Engine) activate(db *store.DB) (a *agentState, written []string) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	a = engine.stateLocked(db)
	a.inactive = false
	for id, r := range a.runs {
		if r.written.Load() {
			written = append(written, id)
		}
	}
	return a, written
}

// cancelMissing stops executions that were ended or deleted from outside.
func (engine *Engine) cancelMissing(ctx context.Context, state *agentState, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	running, err := state.db.RunningExecutions(ctx, ids)
	if err != nil {
		return err
	}
	engine.mu.Lock()
	defer engine.mu.Unlock()
	for _, id := range ids {
		if r := state.runs[id]; r != nil && !running[id] {
			r.cancel(errEnded)
		}
	}
	return nil
}

// resumeAll enqueues the executions that an agent must run.
func (engine *Engine) resumeAll(state *agentState, executionWork store.ExecutionWork) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	for _, id := range executionWork.Running {
		if state.runs[id] == nil {
			engine.executions.Enqueue(job{agent: state, id: id})
		}
	}
	for id, n := range executionWork.Queued {
		slots := state.workflows[id]
		if slots == nil {
			slots = state.workflow(id, 1) // until one of them has been read
		}
		slots.queued = max(slots.queued, n)
		engine.startQueuedLocked(slots)
	}
	closeOnce(state.recovered)
}

// suspendAgent interrupts the executions of an agent that is not active. They
// resume when it is.
func (engine *Engine) suspendAgent(db *store.DB) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	if a := engine.states[db]; a != nil {
		a.stopLocked(errInterrupted)
	}
}

// forget ends all work for a deleted agent.
func (engine *Engine) forget(db *store.DB) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	if a := engine.states[db]; a != nil {
		a.stopLocked(errEnded)
		delete(engine.states, db)
	}
}

func (a *agentState) stopLocked(why error) {
	a.inactive = true
	for _, r := range a.runs {
		r.cancel(why)
	}
	for _, w := range a.workflows {
		w.queued = 0
	}
	closeOnce(a.recovered)
	if errors.Is(why, errInterrupted) {
		a.recovered = make(chan struct{})
	}
}

// endWaits ends waits and resumes their executions.
func (engine *Engine) endWaits(ctx context.Context, db *store.DB, ends []store.WaitEnd) error {
	if len(ends) == 0 {
		return nil
	}
	ended, err := db.EndWaits(ctx, ends)
	for _, end := range ended {
		engine.signal(db, end)
	}
	return err
}
