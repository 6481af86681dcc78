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
func (engine *Engine) awaitStart(ctx context.Context, state *agentState) (started func(), err error) {
	engine.mu.Lock()
	if t := state.turn; t != nil && t.remaining > 0 {
		defer engine.mu.Unlock()
		t.remaining--
		t.starting++
		return sync.OnceFunc(func() { engine.started(state, t) }), nil
	}
	admitted := make(chan *startTurn, 1)
	state.waitingStarts = append(state.waitingStarts, admitted)
	engine.mu.Unlock()
	engine.starts.Enqueue(state)
	select {
	case t := <-admitted:
		return sync.OnceFunc(func() { engine.started(state, t) }), nil
	case <-ctx.Done():
	}
	engine.mu.Lock()
	state.waitingStarts = slices.DeleteFunc(state.waitingStarts, func(c chan *startTurn) bool { return c == admitted })
	engine.mu.Unlock()
	select {
	case t := <-admitted:
		engine.started(state, t)
	default:
	}
	return nil, ctx.Err()
}

// start is one turn of an agent that has executions to start.
func (engine *Engine) start(ctx context.Context, state *agentState) (work.Next, error) {
	engine.mu.Lock()
	count := min(len(state.waitingStarts), startsInTurn)
	if count == 0 {
		engine.mu.Unlock()
		return work.Next{}, nil
	}
	turn := &startTurn{
		remaining: startsInTurn - count,
		starting:  count,
		done:      make(chan struct{}),
	}
	state.turn = turn
	for _, admitted := range state.waitingStarts[:count] {
		admitted <- turn
	}
	state.waitingStarts = slices.Delete(state.waitingStarts, 0, count)
	engine.mu.Unlock()
	select {
	case <-turn.done:
	case <-ctx.Done():
	}
	engine.mu.Lock()
	defer engine.mu.Unlock()
	return work.Next{Again: len(state.waitingStarts) > 0}, nil
}

// started counts one completed start.
func (engine *Engine) started(a *agentState, t *startTurn) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	if t.starting--; t.starting > 0 {
		return
	}
	close(t.done)
	if a.turn == t {
		a.turn = nil
	}
}
