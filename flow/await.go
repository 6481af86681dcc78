package flow

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// awaited is an execution that callers wait for. Engine.mu protects it.
type awaited struct {
	done  chan struct{}
	n     int  // number of callers waiting
	run   *run // the run that ended it, nil if it was not running here
	err   error
	ended bool
}

// addWaiter registers a caller that waits for an execution to end.
func (engine *Engine) addWaiter(id string) *awaited {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	w := engine.awaited[id]
	if w == nil {
		w = &awaited{done: make(chan struct{})}
		engine.awaited[id] = w
	}
	w.n++
	return w
}

// removeWaiter undoes addWaiter.
func (engine *Engine) removeWaiter(id string, w *awaited) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	if w.n--; w.n == 0 && engine.awaited[id] == w {
		delete(engine.awaited, id)
	}
}

// wakeWaitersLocked wakes the callers that wait for an execution to end.
func (engine *Engine) wakeWaitersLocked(id string, r *run, err error) {
	w := engine.awaited[id]
	if w == nil || w.ended {
		return
	}
	w.run, w.err, w.ended = r, err, true
	close(w.done)
	delete(engine.awaited, id)
}

// signal delivers the end of a wait to the execution that was waiting, and
// resumes it if it is suspended.
func (engine *Engine) signal(db *store.DB, end store.WaitEnd) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	state := engine.states[db]
	if state == nil {
		engine.agents.Enqueue(db)
		return
	}
	if r := state.runs[end.ExecutionID]; r != nil {
		r.mu.Lock()
		r.inbox = append(r.inbox, end)
		r.mu.Unlock()
		select {
		case r.wakeup <- struct{}{}:
		default:
		}
		return
	}
	engine.publish(end.ExecutionID, Event{Type: EventNodeFinished, Node: &end.Result})
	engine.executions.Enqueue(job{agent: state, id: end.ExecutionID})
}

// cancelled stops the run of an execution that was ended from outside, and
// returns the run, or nil if there is none.
func (engine *Engine) cancelled(db *store.DB, x *agent.Execution) *run {
	engine.publish(x.ID, Event{Type: endEvents[x.Status], Execution: x})
	engine.mu.Lock()
	defer engine.mu.Unlock()
	if a := engine.states[db]; a != nil && a.runs[x.ID] != nil {
		a.runs[x.ID].cancel(errEnded)
		return a.runs[x.ID]
	}
	engine.closeSession(x.ID)
	engine.wakeWaitersLocked(x.ID, nil, nil)
	return nil
}

// suspended removes the run of an execution that only has waits left. It
// returns false if a wait has ended in the meantime.
func (engine *Engine) suspended(r *run) bool {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	r.mu.Lock()
	woken := len(r.inbox) > 0
	r.mu.Unlock()
	if woken {
		return false
	}
	engine.removeLocked(r, work.Next{}, nil)
	return true
}

// released removes a run that has stopped. A nil error or errEnded means that
// the execution has ended, errInterrupted that it resumes later, and any other
// error that it cannot be written now.
func (engine *Engine) released(run *run, why error) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	ended := why == nil ||
		errors.Is(why, errEnded) ||
		errors.Is(why, store.ErrEnded) ||
		agent.ErrorCode(why) == agent.CodeNotFound
	if ended || run.unsaved {
		engine.closeSession(run.id)
	}
	var next work.Next
	var failed error
	switch {
	case run.unsaved: // only callers that wait for it know of it
		engine.wakeWaitersLocked(run.id, run, why)
	case ended:
		engine.wakeWaitersLocked(run.id, run, nil)
	case errors.Is(why, errInterrupted):
		next.Again = true
	default:
		failed = why
	}
	engine.removeLocked(run, next, failed)
}

func (engine *Engine) removeLocked(r *run, next work.Next, err error) {
	r.removed = true
	delete(r.agent.runs, r.id)
	engine.running--
	engine.releaseLocked(r.slot, next, err)
	if engine.stopping && engine.running == 0 {
		closeOnce(engine.drained)
	}
	close(r.done)
}

// Await waits until an execution has ended, or ctx does, and returns it.
func (engine *Engine) Await(ctx context.Context, db *store.DB, id string) (agent.Execution, error) {
	w := engine.addWaiter(id)
	defer engine.removeWaiter(id, w)
	x, _, err := db.Execution(ctx, id)
	if err != nil || x.Status.Ended() {
		return x, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return x, ctx.Err()
	}
	x, _, err = db.Execution(ctx, id)
	return x, err
}
