package flow

import (
	"context"
	"slices"
	"sync"

	"satchel/agent/work"
)

// Limits on starting executions. ExecuteIdempotent and queued executions take
// turns, so that the starts of one agent share commits, and so that other
// requests still get processor and disk when thousands of executions are due at
// once.
const (
	startingAgents = 8
	startsInTurn   = 128 // of one agent, before the next agent's turn
)

// startTurn is an agent's turn to start executions. Engine.mu protects it.
type startTurn struct {
	remaining int           // how many more may start
	starting  int           // how many are starting
	done      chan struct{} // closed when nothing is starting any more
}

// awaitStart waits until an agent may start an execution. The caller must call
// started, once or more, when it has.
func (e *Engine) awaitStart(ctx context.Context, a *agentState) (started func(), err error) {
	e.mu.Lock()
	if t := a.turn; t != nil && t.remaining > 0 {
		defer e.mu.Unlock()
		t.remaining--
		t.starting++
		return sync.OnceFunc(func() { e.started(a, t) }), nil
	}
	admitted := make(chan *startTurn, 1)
	a.waitingStarts = append(a.waitingStarts, admitted)
	e.mu.Unlock()
	e.starts.Enqueue(a)
	select {
	case t := <-admitted:
		return sync.OnceFunc(func() { e.started(a, t) }), nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	a.waitingStarts = slices.DeleteFunc(a.waitingStarts, func(c chan *startTurn) bool { return c == admitted })
	e.mu.Unlock()
	select {
	case t := <-admitted:
		e.started(a, t)
	default:
	}
	return nil, ctx.Err()
}

// start is one turn of an agent that has executions to start.
func (e *Engine) start(ctx context.Context, a *agentState) (work.Next, error) {
	e.mu.Lock()
	n := min(len(a.waitingStarts), startsInTurn)
	if n == 0 {
		e.mu.Unlock()
		return work.Next{}, nil
	}
	t := &startTurn{
		remaining: startsInTurn - n,
		starting:  n,
		done:      make(chan struct{}),
	}
	a.turn = t
	for _, admitted := range a.waitingStarts[:n] {
		admitted <- t
	}
	a.waitingStarts = slices.Delete(a.waitingStarts, 0, n)
	e.mu.Unlock()
	select {
	case <-t.done:
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return work.Next{Again: len(a.waitingStarts) > 0}, nil
}

// started counts one completed start.
func (e *Engine) started(a *agentState, t *startTurn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.starting--; t.starting > 0 {
		return
	}
	close(t.done)
	if a.turn == t {
		a.turn = nil
	}
}
