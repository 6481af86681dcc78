package flow

import (
	"context"
	"slices"
	"sync"

	"satchel/store"
)

// Bounds of the executions that Once and queues are starting at a time.
const (
	maxTurns = 8   // agents
	perTurn  = 128 // of one agent before another has its turn
)

// turns lets a few agents at a time start executions, each of them many: what
// one agent starts together shares commits, and when thousands are due at the
// same moment other requests still find a processor and the disk free.
type turns struct {
	mu     sync.Mutex
	open   int
	agents map[*store.DB]*turn
	line   []*turn // that have something to start and no turn
}

// turn is one agent's.
type turn struct {
	db      *store.DB
	open    bool
	listed  bool // in the line
	left    int  // that may still begin in this turn
	inside  int
	waiting []chan struct{}
}

// take waits until something of an agent may start, and returns what is to be
// called, once, when it has.
func (t *turns) take(ctx context.Context, db *store.DB) (leave func(), err error) {
	admitted := make(chan struct{})
	t.mu.Lock()
	one := t.agents[db]
	if one == nil {
		one = &turn{db: db}
		t.agents[db] = one
	}
	if !one.open && !one.listed {
		t.list(one)
	}
	one.waiting = append(one.waiting, admitted)
	if one.open {
		one.admit()
	}
	t.pump()
	t.mu.Unlock()
	leave = func() { t.leave(one) }
	select {
	case <-admitted:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(one.waiting, admitted)
	if i >= 0 {
		one.waiting = slices.Delete(one.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it was admitted meanwhile
		leave()
	}
	return nil, ctx.Err()
}

// admit lets in those that wait, as far as the turn goes. The caller holds the
// lock, as for pump and list.
func (one *turn) admit() {
	for one.left > 0 && len(one.waiting) > 0 {
		one.left--
		one.inside++
		close(one.waiting[0])
		one.waiting = one.waiting[1:]
	}
}

// pump gives turns to the agents that have waited longest.
func (t *turns) pump() {
	for t.open < maxTurns && len(t.line) > 0 {
		one := t.line[0]
		t.line = t.line[1:]
		one.listed = false
		if len(one.waiting) == 0 { // all have gone away
			delete(t.agents, one.db)
			continue
		}
		t.open++
		one.open, one.left = true, perTurn
		one.admit()
	}
}

func (t *turns) list(one *turn) {
	one.listed = true
	t.line = append(t.line, one)
}

func (t *turns) leave(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.inside--; one.inside > 0 {
		return
	}
	one.open = false
	t.open--
	if len(one.waiting) > 0 {
		t.list(one)
	} else {
		delete(t.agents, one.db)
	}
	t.pump()
}
