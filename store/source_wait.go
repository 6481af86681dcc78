package store

import (
	"context"
	"sync"

	"satchel/agent"
)

// AwaitSource returns a source once it is ready or has failed. If ctx ends first, it
// returns the source as last known, and the cause.
func (db *DB) AwaitSource(ctx context.Context, id string) (source agent.Source, err error) {
	err = db.awaitSources(ctx, func() (bool, error) {
		var err error
		source, err = db.Source(ctx, id)
		return source.Status == agent.SourceReady || source.Status == agent.SourceFailed, err
	})
	return source, err
}

// WhileUnfinished returns a context that ends with ctx, with the function that it
// returns, or, with NOT_FOUND as its cause, when the source is deleted or its
// processing ends.
func (db *DB) WhileUnfinished(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_ = db.awaitSources(ctx, func() (bool, error) {
			_, err := Read(ctx, db, func(tx *Tx) (struct{}, error) { return struct{}{}, tx.checkUnfinished(id) })
			ended := agent.ErrorCode(err) == agent.CodeNotFound
			if ended {
				cancel(err)
			}
			return ended, nil
		})
	}()
	return ctx, func() { cancel(nil) }
}

// awaitSources calls done, and again after each change of the agent's sources, until it
// returns true or an error. If ctx ends first, the error is the cause.
func (db *DB) awaitSources(ctx context.Context, done func() (bool, error)) error {
	for {
		changed := db.sourceChanges.next()
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
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
