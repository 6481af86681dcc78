package chat

import (
	"context"
	"sync"
)

// turns runs the turns of each conversation one at a time.
type turns struct {
	mu      sync.Mutex
	waiting map[turnKey]*turn
}

type turnKey struct{ agent, conversation string }

type turn struct {
	free  chan struct{} // holds a token while no turn is running
	users int
}

// acquire waits for the conversation's turn within ctx and returns the func that
// ends it. For a conversation that does not exist yet, it returns immediately.
func (t *turns) acquire(ctx context.Context, key turnKey) (release func(), err error) {
	if key.conversation == "" {
		return func() {}, nil
	}
	t.mu.Lock()
	one, ok := t.waiting[key]
	if !ok {
		one = &turn{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		t.waiting[key] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.waiting, key)
		}
	}
	select {
	case <-one.free:
		return func() {
			one.free <- struct{}{}
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
