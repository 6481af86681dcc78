package store

import (
	"context"
	"fmt"
	"time"

	"satchel/agent"
)

// How long an agent rests before its file is made whole by itself, before its
// connections close, and between two runs of retention.
const (
	settleAfter    = 1500 * time.Millisecond
	closeAfter     = 60 * time.Second
	retentionEvery = time.Hour
)

// Bounds of what grows by itself, beside retention_days.
const (
	maxLogs   = 200_000
	maxEvents = 100_000
	trimBatch = 5_000
)

// tend looks after open files that rest: after settleAfter the -wal is empty
// and a plain copy of the file is complete, after closeAfter it is closed.
func (f *Folder) tend(ctx context.Context, now time.Time) {
	for _, db := range f.openDBs() {
		idle := now.Sub(time.Unix(0, db.lastUse.Load()))
		switch {
		case idle >= closeAfter:
			if _, err := db.closeIdle(); err != nil {
				f.log.Error("close an idle agent", "agent", db.id, "error", err)
			}
		case idle >= settleAfter:
			if err := db.settle(ctx, now); err != nil {
				f.log.Error("settle an idle agent", "agent", db.id, "error", err)
			}
		}
	}
}

// settle applies retention when it is due, gives free pages back, and empties
// the -wal. It does not count as use.
func (db *DB) settle(ctx context.Context, now time.Time) error {
	db.mu.Lock()
	f := db.file
	if f == nil || !f.needsRest() {
		db.mu.Unlock()
		return nil
	}
	db.users++
	due := now.Sub(db.trimmed) >= retentionEvery
	if due {
		db.trimmed = now
	}
	db.mu.Unlock()
	defer func() {
		db.mu.Lock()
		if db.users--; db.users == 0 {
			db.unused.Broadcast()
		}
		db.mu.Unlock()
	}()
	if due {
		if err := f.submit(&job{ctx: ctx, run: func(c *conn) error { return trim(newTx(ctx, c, db)) }}); err != nil {
			return fmt.Errorf("retention: %w", err)
		}
	}
	f.shrink()
	return f.submit(&job{ctx: ctx, alone: true, run: f.rest})
}

func (f *file) needsRest() bool {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	return f.dirty && !f.running
}

// rest gives free pages back and writes the -wal into the file.
func (f *file) rest(c *conn) error {
	var free, pages int
	if err := c.value(&free, "PRAGMA freelist_count"); err != nil {
		return err
	}
	if err := c.value(&pages, "PRAGMA page_count"); err != nil {
		return err
	}
	if free > 64 && free*10 > pages {
		if err := c.script(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", free)); err != nil {
			return fmt.Errorf("give free pages back: %w", err)
		}
	}
	var busy, inWAL, moved int
	row := c.sql.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := row.Scan(&busy, &inWAL, &moved); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if busy == 0 {
		f.queueMu.Lock()
		f.dirty = len(f.queue) > 0
		f.queueMu.Unlock()
	}
	return nil
}

// trim deletes what is older than the agent keeps it, oldest first and in
// bounded steps: what is left over goes next time.
func trim(tx *Tx) error {
	settings, err := tx.settings()
	if err != nil {
		return err
	}
	before := agent.At(tx.Now.AddDate(0, 0, -settings.RetentionDays))
	for _, step := range []struct {
		query string
		args  []any
	}{
		{"DELETE FROM logs WHERE id IN (SELECT id FROM logs WHERE created_at < ? ORDER BY created_at LIMIT ?)", []any{before, trimBatch}},
		{"DELETE FROM logs WHERE id IN (SELECT id FROM logs ORDER BY created_at LIMIT min(?, max(0, (SELECT n FROM _counts WHERE name = 'logs') - ?)))", []any{trimBatch, maxLogs}},
		{"DELETE FROM _events WHERE seq IN (SELECT seq FROM _events WHERE created_at < ? ORDER BY seq LIMIT ?)", []any{before, trimBatch}},
		{"DELETE FROM _events WHERE seq <= (SELECT max(seq) FROM _events) - ?", []any{maxEvents}},
	} {
		if _, err := tx.exec(step.query, step.args...); err != nil {
			return err
		}
	}
	return tx.dropLostUploads()
}
