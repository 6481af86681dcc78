package flow

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// awaited is an execution whose end somebody waits for. Engine.mu protects it.
type awaited struct {
	done  chan struct{}
	n     int  // who wait
	run   *run // that ended it, if it was at work here
	err   error
	ended bool
}

// expect registers somebody who waits for an execution's end.
func (e *Engine) expect(id string) *awaited {
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

// unexpect takes back an expect.
func (e *Engine) unexpect(id string, w *awaited) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.n--; w.n == 0 && e.awaited[id] == w {
		delete(e.awaited, id)
	}
}

// announceLocked tells those that wait for an execution's end.
func (e *Engine) announceLocked(id string, r *run, err error) {
	w := e.awaited[id]
	if w == nil || w.ended {
		return
	}
	w.run, w.err, w.ended = r, err, true
	close(w.done)
	delete(e.awaited, id)
}

// signal hands the end of a wait to the execution that waited. One that is
// suspended is resumed.
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
		case r.knock <- struct{}{}:
		default:
		}
		return
	}
	e.publish(end.ExecutionID, Event{Type: EventNodeFinished, Node: &end.Result})
	e.executions.Enqueue(job{agent: a, id: end.ExecutionID})
}

// cancelled stops the run of an execution that has ended by another hand, and
// returns the run, nil if there is none.
func (e *Engine) cancelled(db *store.DB, x *agent.Execution) *run {
	e.publish(x.ID, Event{Type: endEvents[x.Status], Execution: x})
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.states[db]; a != nil && a.runs[x.ID] != nil {
		a.runs[x.ID].cancel(errOver)
		return a.runs[x.ID]
	}
	e.closeSession(x.ID)
	e.announceLocked(x.ID, nil, nil)
	return nil
}

// suspended lets a run go whose execution does nothing but wait. It is false when
// a wait has ended meanwhile.
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

// released lets a run go that has come to its end: nil and errOver say that the
// execution is over, errCut that it goes on later, anything else that it cannot
// be written now.
func (e *Engine) released(r *run, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	over := why == nil || errors.Is(why, errOver) || errors.Is(why, store.ErrEnded) || agent.ErrorCode(why) == agent.CodeNotFound
	if over || r.fresh {
		e.closeSession(r.id)
	}
	var next work.Next
	var failed error
	switch {
	case r.fresh: // nobody will hear of it but who waits for it
		e.announceLocked(r.id, r, why)
	case over:
		e.announceLocked(r.id, r, nil)
	case errors.Is(why, errCut):
		next.Again = true
	default:
		failed = why
	}
	e.removeLocked(r, next, failed)
}

func (e *Engine) removeLocked(r *run, next work.Next, err error) {
	r.gone = true
	delete(r.agent.runs, r.id)
	e.running--
	e.releaseLocked(r.slot, next, err)
	if e.stopping && e.running == 0 {
		closeOnce(e.quiet)
	}
	close(r.done)
}

// Await waits until an execution has ended, or ctx does, and returns it.
func (e *Engine) Await(ctx context.Context, db *store.DB, id string) (agent.Execution, error) {
	w := e.expect(id)
	defer e.unexpect(id, w)
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
