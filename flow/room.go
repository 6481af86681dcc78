package flow

import (
	"errors"
	"time"

	"satchel/agent"
	"satchel/store"
)

// admission is whether an execution may begin.
type admission int

const (
	refused admission = iota // so many of its workflow are at work, and it is not to queue
	queues
	admitted
	full // the queue is
)

// admit finds a place for a new execution and takes it. It takes e.mu itself.
func (e *Engine) admit(a *agentState, p *program, mayQueue bool) (*line, admission) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := a.line(p.workflow.ID)
	l.limit = p.workflow.Settings.Concurrency
	conflict := l.running >= l.limit || l.queued > 0
	switch {
	case !conflict && e.room(a):
		e.occupy(l)
		return l, admitted
	case conflict && !mayQueue:
		return l, refused
	case l.queued >= maxQueued:
		return l, full
	}
	return l, queues
}

// place finds a place for a new execution: it begins, or queues and is marked
// so. mayQueue says that it may, whatever the workflow's settings say.
func (e *Engine) place(a *agentState, x *agent.Execution, p *program, mayQueue bool) (l *line, begins bool, err error) {
	settings := p.workflow.Settings
	l, verdict := e.admit(a, p, mayQueue || settings.OnConflict == agent.ConflictQueue)
	switch verdict {
	case refused:
		return nil, false, agent.Errorf(agent.CodeAlreadyRunning, "an execution of this workflow is running; its settings allow %d at a time", settings.Concurrency).
			With("workflow_id", x.WorkflowID).With("concurrency", settings.Concurrency)
	case full:
		return nil, false, agent.Errorf(agent.CodeConflict, "%d executions of this workflow wait in the queue already", maxQueued).With("workflow_id", x.WorkflowID)
	case queues:
		x.Status, x.StartedAt = agent.ExecutionQueued, agent.Time{}
	default:
		x.StartedAt = agent.Now() // not before the one ended whose place it takes
	}
	return l, verdict == admitted, nil
}

// giveBack gives back a place that is not needed after all.
func (e *Engine) giveBack(l *line) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vacate(l)
}

// room tells whether one more execution of an agent may be at work. The caller
// holds e.mu, as for all below whose comment does not say otherwise.
func (e *Engine) room(a *agentState) bool {
	return !e.stopping && e.busy < maxBusy && a.busy < maxAgentBusy
}

func (e *Engine) occupy(l *line) {
	l.running++
	l.agent.busy++
	e.busy++
}

func (e *Engine) vacate(l *line) {
	l.running--
	l.agent.busy--
	e.busy--
	if l.running == 0 && l.queued == 0 && !l.listed {
		delete(l.agent.lines, l.workflow)
	}
	e.dispatch()
}

// enqueued notes an execution that was entered as queued. It takes e.mu itself.
func (e *Engine) enqueued(l *line) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := l.agent.line(l.workflow) // another one when l was let go meanwhile
	now.limit = l.limit
	now.queued++
	e.list(now)
	e.dispatch()
}

func (e *Engine) list(l *line) {
	if !l.listed {
		l.listed = true
		e.backlog = append(e.backlog, l)
	}
}

// dispatch begins executions for which there is room: those that were cut or
// woken first, then those in the queue, workflows taking turns.
func (e *Engine) dispatch() {
	if e.stopping {
		if e.busy == 0 {
			closeOnce(e.quiet)
		}
		return
	}
	for range len(e.resuming) {
		if e.busy >= maxBusy {
			return
		}
		next := e.resuming[0]
		e.resuming = e.resuming[1:]
		switch {
		case e.agents[next.agent.db] != next.agent || next.agent.active[next.id] != nil:
		case !e.room(next.agent):
			e.resuming = append(e.resuming, next)
		default:
			e.goOn(next)
		}
	}
	for range len(e.backlog) {
		l := e.backlog[0]
		e.backlog = e.backlog[1:]
		if l.queued > 0 && l.running < l.limit && e.room(l.agent) {
			l.queued--
			e.occupy(l)
			e.running.Go(func() { e.takeNext(l) })
		}
		if l.listed = l.queued > 0; l.listed {
			e.backlog = append(e.backlog, l)
		} else if l.running == 0 {
			delete(l.agent.lines, l.workflow)
		}
		if e.busy >= maxBusy {
			return
		}
	}
}

// goOn takes an execution up from its rows.
func (e *Engine) goOn(x resumable) {
	r := e.newRun(x.agent.db, x.id)
	x.agent.active[x.id] = r
	x.agent.busy++
	e.busy++
	e.running.Go(func() {
		if r.load(x.agent) {
			r.drive()
		}
	})
}

// takeNext begins the execution that has been in a workflow's queue for
// longest, in the place that was taken for it. It takes e.mu itself.
func (e *Engine) takeNext(l *line) {
	var id string
	leave, err := e.turns.take(e.work, l.agent.db)
	if err == nil {
		id, err = l.agent.db.BeginQueued(e.work, l.workflow)
		leave()
	}
	e.mu.Lock()
	if err != nil && e.work.Err() == nil && agent.ErrorCode(err) != agent.CodeNotFound {
		e.log.Error("take an execution from the queue", "agent", l.agent.db.ID(), "error", err)
		l.agent.again = time.Now().Add(sweepEvery)
	}
	if err != nil || id == "" {
		l.queued = 0
		e.vacate(l)
		e.mu.Unlock()
		return
	}
	if e.agents[l.agent.db] != l.agent {
		e.vacate(l)
		e.mu.Unlock()
		return
	}
	r := e.newRun(l.agent.db, id)
	r.line = l
	l.agent.active[id] = r
	e.mu.Unlock()
	if r.load(l.agent) {
		r.drive()
	}
}

// begin puts an execution to work in the place that was taken for it. It takes
// e.mu itself.
func (e *Engine) begin(r *run) {
	e.enlist(r)
	e.running.Go(r.drive)
}

// here is begin for an execution that only computes and whose end is waited
// for: it runs in the caller's goroutine, which saves handing it over and back.
func (e *Engine) here(r *run) {
	e.enlist(r)
	e.running.Add(1)
	defer e.running.Done()
	r.drive()
}

func (e *Engine) enlist(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.line.agent.active[r.id] = r
}

// asleep lets a run go whose execution does nothing but wait. It is false when
// a wait has ended meanwhile. It takes e.mu itself.
func (e *Engine) asleep(r *run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.mu.Lock()
	woken := len(r.inbox) > 0
	r.mu.Unlock()
	if woken {
		return false
	}
	r.gone = true
	delete(r.line.agent.active, r.id)
	e.vacate(r.line)
	close(r.done)
	return true
}

// left lets a run go that has come to its end: nil and errOver say that the
// execution is over, errCut that it goes on later, anything else that it
// cannot be written now. It takes e.mu itself.
func (e *Engine) left(r *run, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.gone = true
	a := r.line.agent
	delete(a.active, r.id)
	over := why == nil || errors.Is(why, errOver) || errors.Is(why, store.ErrEnded) || agent.ErrorCode(why) == agent.CodeNotFound
	if over || r.fresh {
		e.closeSession(r.id)
	}
	switch {
	case r.fresh: // nobody will hear of it but who waits for it
		e.announce(r.id, r, why)
	case over:
		e.announce(r.id, r, nil)
	case !errors.Is(why, errCut):
		a.again = time.Now().Add(2 * sweepEvery)
	}
	e.vacate(r.line)
	close(r.done)
}

// announce tells those that wait for an execution's end.
func (e *Engine) announce(id string, r *run, err error) {
	w := e.awaited[id]
	if w == nil || w.ended {
		return
	}
	w.run, w.err, w.ended = r, err, true
	close(w.done)
	delete(e.awaited, id)
}

// expect registers somebody who waits for an execution's end. It takes e.mu
// itself.
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

// unexpect takes back an expect. It takes e.mu itself.
func (e *Engine) unexpect(id string, w *awaited) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.n--; w.n == 0 && e.awaited[id] == w {
		delete(e.awaited, id)
	}
}

// signal hands the end of a wait to the execution that waited. One that sleeps
// is taken up. It takes e.mu itself.
func (e *Engine) signal(db *store.DB, end store.WaitEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.agents[db]
	if a == nil {
		return // its rows tell, when it is met again
	}
	if r := a.active[end.ExecutionID]; r != nil {
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
	e.resuming = append(e.resuming, resumable{a, end.ExecutionID})
	e.dispatch()
}

// over stops the run of an execution that has ended by another hand, and
// returns the run, nil if there is none. It takes e.mu itself.
func (e *Engine) over(db *store.DB, x *agent.Execution) *run {
	e.publish(x.ID, Event{Type: endEvents[x.Status], Execution: x})
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.agents[db]; a != nil && a.active[x.ID] != nil {
		a.active[x.ID].cancel(errOver)
		return a.active[x.ID]
	}
	e.closeSession(x.ID)
	e.announce(x.ID, nil, nil)
	return nil
}

// entered begins an execution that a node started and that is in the file now.
// It takes e.mu itself.
func (e *Engine) entered(db *store.DB, c *child) {
	if c.admitted == nil {
		e.enqueued(c.queue)
		return
	}
	r := e.newRun(db, c.execution.ID)
	r.line, r.execution, r.program, r.payload = c.admitted, c.execution, c.program, c.payload
	e.begin(r)
}

// release gives back the place of an execution that a node was to start.
func (r *run) release(c *child) {
	if c != nil && c.admitted != nil {
		r.engine.giveBack(c.admitted)
	}
}
