package flow

import (
	"context"
	"runtime"
	"time"

	"satchel/agent"
	"satchel/store"
)

// sweepEvery is how often the engine looks for agents that appeared, were
// paused, disabled or deleted, and tries again what failed.
const sweepEvery = 2 * time.Second

// clock ends waits that are due, and sweeps now and then.
func (e *Engine) clock() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		// Never longer than a sweep, so that a clock that was set is noticed.
		timer := time.NewTimer(e.ring(time.Now()))
		select {
		case <-e.work.Done():
			timer.Stop()
			return
		case <-e.alarm:
		case <-timer.C:
		case now := <-ticker.C:
			e.sweep(now)
		}
		timer.Stop()
	}
}

// sweep brings what is known of agents into step with the folder.
func (e *Engine) sweep(now time.Time) {
	e.budget.sweep()
	present := map[*store.DB]bool{}
	for _, db := range e.folder.Agents() {
		present[db] = true
		e.mu.Lock()
		e.follow(db, now)
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for db, a := range e.agents {
		if !present[db] {
			e.forget(a, errOver)
		}
	}
}

// follow brings what is known of an agent into step with its status. The
// caller holds e.mu.
func (e *Engine) follow(db *store.DB, now time.Time) {
	a, status := e.agents[db], db.Agent().Status
	switch {
	case db.Problem() != nil || status == agent.StatusDisabled:
		if a != nil {
			e.forget(a, errCut)
		}
	case a == nil:
		e.meet(db)
	case a.status != status:
		a.status = status
		if status == agent.StatusActive {
			e.takeUp(a)
		}
	case !a.again.IsZero() && !now.Before(a.again):
		a.again = time.Time{}
		e.takeUp(a)
	}
}

// Follow acts at once on a change of an agent's status, or on its deletion,
// which a sweep would find within two seconds. It waits a moment for nodes that
// were told to stop.
func (e *Engine) Follow(ctx context.Context, db *store.DB, deleted bool) {
	e.mu.Lock()
	var cut []*run
	if a := e.agents[db]; a != nil {
		for _, r := range a.active {
			cut = append(cut, r)
		}
		if deleted {
			e.forget(a, errOver)
		}
	}
	if !deleted && !e.stopping {
		e.follow(db, time.Now())
	}
	if e.agents[db] != nil {
		cut = nil
	}
	e.mu.Unlock()
	settled(ctx, cut)
}

// forget ends all work of an agent. The caller holds e.mu, as for all below
// whose comment does not say otherwise.
func (e *Engine) forget(a *agentState, why error) {
	for _, r := range a.active {
		r.cancel(why)
	}
	delete(e.agents, a.db)
	a.due = time.Time{}
	for _, l := range a.lines {
		l.queued = 0
	}
}

// remind notes when a wait of the agent ends.
func (a *agentState) remind(due time.Time) {
	if !due.IsZero() && (a.due.IsZero() || due.Before(a.due)) {
		a.due = due
	}
}

// remind is agentState.remind for others. It takes e.mu itself.
func (e *Engine) remind(db *store.DB, due time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.agents[db]; a != nil {
		a.remind(due)
		e.ringSoon()
	}
}

func (e *Engine) ringSoon() {
	select {
	case e.alarm <- struct{}{}:
	default:
	}
}

// ring ends the waits that are due and returns when to look again. It takes
// e.mu itself.
func (e *Engine) ring(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := sweepEvery
	firing := 0
	for _, a := range e.agents {
		if a.firing {
			firing++
		}
	}
	for _, a := range e.agents {
		switch {
		case a.due.IsZero() || a.firing || e.stopping:
		case a.due.After(now):
			next = min(next, a.due.Sub(now))
		case firing < 2*runtime.GOMAXPROCS(0):
			firing++
			a.firing, a.due = true, time.Time{}
			e.running.Go(func() { e.fire(a) })
		}
	}
	return max(next, time.Millisecond)
}

// dueAtOnce is how many waits end in one transaction.
const dueAtOnce = 200

// fire ends the waits of an agent that are due. It takes e.mu itself.
func (e *Engine) fire(a *agentState) {
	due, err := e.endDue(a)
	e.mu.Lock()
	defer e.mu.Unlock()
	a.firing = false
	if err != nil && e.work.Err() == nil {
		e.log.Error("end the waits of an agent", "agent", a.db.ID(), "error", err)
		due = time.Now().Add(sweepEvery)
	}
	a.remind(due)
	e.ringSoon()
}

// endDue ends waits and returns when the next is due. It takes no lock.
func (e *Engine) endDue(a *agentState) (time.Time, error) {
	now := agent.Now()
	waits, err := a.db.DueWaits(e.work, now, dueAtOnce)
	if err != nil {
		return time.Time{}, err
	}
	ends := make([]store.WaitEnd, len(waits))
	for i := range waits {
		ends[i] = timedOut(&waits[i], now)
	}
	if err := e.endWaits(e.work, a.db, ends); err != nil {
		return time.Time{}, err
	}
	due, err := a.db.NextWait(e.work)
	return due.Time, err
}

// endWaits ends waits and takes their executions up again. It takes no lock.
func (e *Engine) endWaits(ctx context.Context, db *store.DB, ends []store.WaitEnd) error {
	if len(ends) == 0 {
		return nil
	}
	ended, err := db.EndWaits(ctx, ends)
	for _, end := range ended {
		e.signal(db, end)
	}
	return err
}
