package store

import (
	"context"
	"sync"

	"satchel/agent"
)

// AwaitSource returns a source once it is ready or has failed. If ctx ends first, it
// returns the source as last known, and the cause.
func (db *DB) AwaitSource(ctx context.Context, id string) (agent.Source, error) {
	for {
		changed := db.sourceChanges.next()
		source, err := db.Source(ctx, id)
		if err != nil || source.Status == agent.SourceReady || source.Status == agent.SourceFailed {
			return source, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return source, context.Cause(ctx)
		}
	}
}

// broadcast wakes everyone who is waiting for the next event of some kind.
type broadcast struct {
	mu      sync.Mutex
	waiting chan struct{} // nil: no one is waiting
}

// next returns a channel that is closed at the next event.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

// send wakes everyone who is waiting.
func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
