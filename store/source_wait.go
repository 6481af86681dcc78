package store

import (
	"context"
	"sync"

	"satchel/agent"
)

// AwaitSource returns a source once it is ready or has failed. When ctx ends first,
// it returns the source as it is then known, and the cause.
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

// broadcast wakes everyone who waits for the next of something.
type broadcast struct {
	mu      sync.Mutex
	waiting chan struct{} // nil: no one waits
}

// next returns a channel that is closed when it happens next.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

// send wakes those who wait.
func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
