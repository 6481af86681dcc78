package flow

import (
	"context"
	"slices"
	"sync"

	"satchel/agent/work"
)

// Bounds of the executions that ExecuteIdempotent and queues are starting at a time. What one
// agent starts together shares commits, and when thousands are due at the same
// moment other requests still find a processor and the disk free.
const (
	startingAgents = 8
	startsInTurn   = 128 // of one agent before another has its turn
)

// startTurn is the turn of an agent to start executions. Engine.mu protects it.
type startTurn struct {
	left   int           // that may still start
	inside int           // that are starting
	over   chan struct{} // closed when nothing is starting any more
}

// awaitStart waits until something of an agent may start, and returns what is to
// be called when it has, once or more.
func (e *Engine) awaitStart(ctx context.Context, a *agentState) (started func(), err error) {
	e.mu.Lock()
	if t := a.turn; t != nil && t.left > 0 {
		defer e.mu.Unlock()
		t.left--
		t.inside++
		return sync.OnceFunc(func() { e.started(a, t) }), nil
	}
	admitted := make(chan *startTurn, 1)
	a.starting = append(a.starting, admitted)
	e.mu.Unlock()
	e.starts.Enqueue(a)
	select {
	case t := <-admitted:
		return sync.OnceFunc(func() { e.started(a, t) }), nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	a.starting = slices.DeleteFunc(a.starting, func(c chan *startTurn) bool { return c == admitted })
	e.mu.Unlock()
	select {
	case t := <-admitted:
		e.started(a, t)
	default:
	}
	return nil, ctx.Err()
}

// start is a turn of an agent that has something to start.
func (e *Engine) start(ctx context.Context, a *agentState) (work.Next, error) {
	e.mu.Lock()
	n := min(len(a.starting), startsInTurn)
	if n == 0 {
		e.mu.Unlock()
		return work.Next{}, nil
	}
	t := &startTurn{left: startsInTurn - n, inside: n, over: make(chan struct{})}
	a.turn = t
	for _, admitted := range a.starting[:n] {
		admitted <- t
	}
	a.starting = slices.Delete(a.starting, 0, n)
	e.mu.Unlock()
	select {
	case <-t.over:
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return work.Next{Again: len(a.starting) > 0}, nil
}

// started notes that one has started.
func (e *Engine) started(a *agentState, t *startTurn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.inside--; t.inside > 0 {
		return
	}
	close(t.over)
	if a.turn == t {
		a.turn = nil
	}
}
