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
func (e *Engine) addWaiter(id string) *awaited {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.awaited[id]
	if w == nil {
		w = &awaited{done: make(chan struct{})}
		e.awaited[id] = w
	}
	w.n++
	return w
}

// removeWaiter undoes addWaiter.
func (e *Engine) removeWaiter(id string, w *awaited) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.n--; w.n == 0 && e.awaited[id] == w {
		delete(e.awaited, id)
	}
}

// wakeWaitersLocked wakes the callers that wait for an execution to end.
func (e *Engine) wakeWaitersLocked(id string, r *run, err error) {
	w := e.awaited[id]
	if w == nil || w.ended {
		return
	}
	w.run, w.err, w.ended = r, err, true
	close(w.done)
	delete(e.awaited, id)
}

// signal delivers the end of a wait to the execution that was waiting, and
// resumes it if it is suspended.
func (e *Engine) signal(db *store.DB, end store.WaitEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.states[db]
	if a == nil {
		e.agents.Enqueue(db)
		return
	}
	if r := a.runs[end.ExecutionID]; r != nil {
		r.mu.Lock()
		r.inbox = append(r.inbox, end)
		r.mu.Unlock()
		select {
		case r.wakeup <- struct{}{}:
		default:
		}
		return
	}
	e.publish(end.ExecutionID, Event{Type: EventNodeFinished, Node: &end.Result})
	e.executions.Enqueue(job{agent: a, id: end.ExecutionID})
}

// cancelled stops the run of an execution that was ended from outside, and
// returns the run, or nil if there is none.
func (e *Engine) cancelled(db *store.DB, x *agent.Execution) *run {
	e.publish(x.ID, Event{Type: endEvents[x.Status], Execution: x})
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.states[db]; a != nil && a.runs[x.ID] != nil {
		a.runs[x.ID].cancel(errEnded)
		return a.runs[x.ID]
	}
	e.closeSession(x.ID)
	e.wakeWaitersLocked(x.ID, nil, nil)
	return nil
}

// suspended removes the run of an execution that only has waits left. It
// returns false if a wait has ended in the meantime.
func (e *Engine) suspended(r *run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.mu.Lock()
	woken := len(r.inbox) > 0
	r.mu.Unlock()
	if woken {
		return false
	}
	e.removeLocked(r, work.Next{}, nil)
	return true
}

// released removes a run that has stopped. A nil error or errEnded means that
// the execution has ended, errInterrupted that it resumes later, and any other
// error that it cannot be written now.
func (e *Engine) released(r *run, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ended := why == nil ||
		errors.Is(why, errEnded) ||
		errors.Is(why, store.ErrEnded) ||
		agent.ErrorCode(why) == agent.CodeNotFound
	if ended || r.unsaved {
		e.closeSession(r.id)
	}
	var next work.Next
	var failed error
	switch {
	case r.unsaved: // only callers that wait for it know of it
		e.wakeWaitersLocked(r.id, r, why)
	case ended:
		e.wakeWaitersLocked(r.id, r, nil)
	case errors.Is(why, errInterrupted):
		next.Again = true
	default:
		failed = why
	}
	e.removeLocked(r, next, failed)
}

func (e *Engine) removeLocked(r *run, next work.Next, err error) {
	r.removed = true
	delete(r.agent.runs, r.id)
	e.running--
	e.releaseLocked(r.slot, next, err)
	if e.stopping && e.running == 0 {
		closeOnce(e.drained)
	}
	close(r.done)
}

// Await waits until an execution has ended, or ctx does, and returns it.
func (e *Engine) Await(ctx context.Context, db *store.DB, id string) (agent.Execution, error) {
	w := e.addWaiter(id)
	defer e.removeWaiter(id, w)
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
