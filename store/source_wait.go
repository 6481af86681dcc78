package store

import (
	"context"
	"encoding/json"
	"sync"

	"satchel/agent"
	"satchel/store/sqlite"
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

// PendingSources returns the newest sources, up to limit, whose text is still being
// read: of those with the ids, or of all without ids. A source that is refreshed is not
// among them while its earlier text can be found.
func (db *DB) PendingSources(ctx context.Context, ids []string, limit int) ([]agent.PendingSource, error) {
	wanted, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	return Read(ctx, db, func(tx *Tx) ([]agent.PendingSource, error) {
		return all(tx, func(rows *sqlite.Rows) (s agent.PendingSource, err error) {
			return s, rows.Scan(&s.ID, &s.Name, &s.Status)
		}, `SELECT id, name, status FROM sources
			WHERE status NOT IN ('ready','error') AND (status IN ('processing','crawling') OR status = 'updating' AND chunks = 0)
				AND (?1 = 0 OR id IN (SELECT value FROM json_each(?2)))
			ORDER BY created_at DESC, id DESC LIMIT ?3`, len(ids), string(wanted), limit)
	})
}

// AwaitRead returns once none of the sources is pending, or with the cause when ctx ends.
func (db *DB) AwaitRead(ctx context.Context, ids []string) error {
	return db.awaitSources(ctx, func() (bool, error) {
		pending, err := db.PendingSources(ctx, ids, 1)
		return len(pending) == 0, err
	})
}

// WhileUnfinished returns a context that ends with ctx, with the function that it
// returns, or, with NOT_FOUND as its cause, when the source is deleted or its
// processing ends.
func (db *DB) WhileUnfinished(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_ = db.awaitSources(ctx, func() (bool, error) {
			err := db.read(ctx, true, func(tx *Tx) error {
				return tx.checkUnfinished(id)
			})
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
