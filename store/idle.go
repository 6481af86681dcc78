package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
)

// How long an agent is idle before its file is checkpointed, and before its
// connections close, and the time between two runs of retention.
const (
	checkpointAfter = 1500 * time.Millisecond
	closeAfter      = 60 * time.Second
	retentionEvery  = time.Hour
	retryAfter      = 30 * time.Second // after a failure, such as a full disk
)

// Limits of growing tables, in addition to retention_days.
const (
	maxLogs       = 200_000
	maxEvents     = 100_000 // delivered or not
	maxDeliveries = 50_000  // ended ones
	maxRuns       = 100_000 // the same number of occurrences
	maxInbound    = 500_000 // ids of platforms' messages
	trimBatch     = 5_000

	trimExecutions = 1_000 // their journals are deleted with them
)

// Limits on the work on an idle file, which must be finished a second later. At most
// idleFreedPages pages are freed at a time.
const (
	idleTrimSteps  = 4
	idleFreedPages = 2_000
)

// retentionsAtOnce limits the files on which one tick begins retention, since it is
// due on all of many files that were opened at the same time.
const retentionsAtOnce = 4

// maintainedAtOnce is how many files are maintained concurrently: if many become idle
// together, all of them must be complete a second later.
const maintainedAtOnce = 8

// maintain looks after open files: once a file has been idle for checkpointAfter,
// its -wal is emptied, so that a plain copy of it is complete; after closeAfter it
// is closed.
func (folder *Folder) maintain(ctx context.Context, now time.Time) {
	var running sync.WaitGroup
	slots := make(chan struct{}, maintainedAtOnce)
	var retentions atomic.Int32
	retentions.Store(retentionsAtOnce)
	for _, db := range folder.openDBs() {
		slots <- struct{}{}
		running.Go(func() {
			if err := db.maintain(ctx, now, &retentions); err != nil && ctx.Err() == nil {
				folder.log.Error("maintain open agent", "agent", db.id, "error", err)
			}
			<-slots
		})
	}
	running.Wait()
}

func (db *DB) maintain(ctx context.Context, now time.Time, retentions *atomic.Int32) error {
	idle := now.Sub(time.Unix(0, db.lastUse.Load()))
	if idle >= closeAfter {
		if closed, err := db.closeIdle(); closed || err != nil {
			return err
		}
	}
	if now.Sub(db.failedAt) < retryAfter {
		return nil
	}
	err := errors.Join(db.createParts(ctx), db.checkpoint(ctx, now, db.isIdle(now), retentions))
	if err != nil {
		db.failedAt = now
	}
	return err
}

// isIdle reports whether no client has used the file for checkpointAfter. If the
// program itself keeps writing, the file is checkpointed once in that time.
func (db *DB) isIdle(now time.Time) bool {
	client := time.Unix(0, db.lastClient.Load())
	return now.Sub(client) >= checkpointAfter &&
		(now.Sub(db.checkpointedAt) >= checkpointAfter || db.checkpointedAt.Before(client))
}

// checkpoint applies retention when it is due and, on an idle file, frees pages and
// empties the -wal. It does not count as use.
func (db *DB) checkpoint(ctx context.Context, now time.Time, rests bool, retentions *atomic.Int32) error {
	db.mu.Lock()
	file := db.file
	due := file != nil &&
		(now.Sub(db.trimmed) >= retentionEvery || now.Before(db.trimmed)) &&
		retentions.Add(-1) >= 0
	rests = rests && file != nil && file.needsCheckpoint()
	if file == nil || !rests && !due {
		db.mu.Unlock()
		return nil
	}
	db.users++
	db.mu.Unlock()
	defer db.leave()
	if due {
		if err := db.applyRetention(ctx, file, now, rests); err != nil {
			return fmt.Errorf("retention: %w", err)
		}
	}
	if !rests {
		return nil
	}
	file.shrink()
	db.checkpointedAt = now
	return file.submit(&job{
		ctx:   ctx,
		alone: true,
		run:   file.finishIdle,
	})
}

// applyRetention deletes what is too old: in one step on a file in use, so that
// writes do not have to wait, and in several on an idle one. The rest is deleted at
// the next tick.
func (db *DB) applyRetention(ctx context.Context, file *file, now time.Time, rests bool) error {
	steps := 1
	if rests {
		steps = idleTrimSteps
	}
	more := true
	for ; more && steps > 0; steps-- {
		err := file.submit(&job{ctx: ctx, run: func(c *conn) (err error) {
			if err := file.passAllUnsubscribed(c); err != nil {
				return err
			}
			more, err = trim(newTx(ctx, c, db))
			return err
		}})
		if err != nil {
			return err
		}
	}
	if !more {
		db.mu.Lock()
		db.trimmed = now
		db.mu.Unlock()
	}
	return nil
}

func (f *file) needsCheckpoint() bool {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	return (f.dirty || f.unsubscribed.isBehind()) && !f.running
}

// finishIdle frees pages and writes the -wal into the file.
func (f *file) finishIdle(conn *conn) error {
	if err := f.passAllUnsubscribed(conn); err != nil {
		return err
	}
	var free, pages int
	if err := conn.value(&free, "PRAGMA freelist_count"); err != nil {
		return err
	}
	if err := conn.value(&pages, "PRAGMA page_count"); err != nil {
		return err
	}
	if free > 64 && free*10 > pages {
		if err := conn.script(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(free, idleFreedPages))); err != nil {
			return fmt.Errorf("free pages: %w", err)
		}
	}
	busy, err := f.emptyWAL(conn)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if !busy {
		f.queueMu.Lock()
		f.dirty = false
		f.queueMu.Unlock()
	}
	return nil
}

// trim deletes what is older than the agent keeps, oldest first, one batch of each
// kind, and reports whether there is more.
func trim(tx *Tx) (more bool, err error) {
	settings, err := tx.settings()
	if err != nil {
		return false, err
	}
	before := agent.At(tx.Now.AddDate(0, 0, -settings.RetentionDays))
	filled, err := tx.tablesWithRows(trimmedTables, 1)
	if err != nil {
		return false, err
	}
	for _, step := range []struct {
		table, query string
		args         []any
	}{
		{
			"logs",
			"DELETE FROM logs WHERE (created_at, id) IN (SELECT created_at, id FROM logs WHERE created_at < ? " +
				"ORDER BY created_at, id LIMIT ?)",
			[]any{before, trimBatch},
		},
		{
			"logs",
			"DELETE FROM logs WHERE (created_at, id) IN (SELECT created_at, id FROM logs ORDER BY created_at, id " +
				"LIMIT min(?, max(0, (SELECT n FROM _counts WHERE name = 'logs') - ?)))",
			[]any{trimBatch, maxLogs},
		},
		{
			"_events",
			"DELETE FROM _events WHERE seq IN (SELECT seq FROM _events WHERE created_at < ? AND seq <= (SELECT " +
				"min(seq) FROM _cursors) AND seq < (SELECT max(seq) FROM _events) ORDER BY seq LIMIT ?)",
			[]any{before, trimBatch},
		},
		{"runs", trimRuns("runs", "scheduled_for"), []any{trimBatch, before, maxRuns}},
		{"occurrences", trimRuns("occurrences", "start_time"), []any{trimBatch, before, maxRuns}},
		{
			"_events",
			"DELETE FROM _events WHERE seq IN (SELECT seq FROM _events WHERE seq <= (SELECT max(seq) " +
				"FROM _events) - ? ORDER BY seq LIMIT ?)",
			[]any{maxEvents, trimBatch},
		},
		{
			"_deliveries",
			"DELETE FROM _deliveries WHERE id IN (SELECT id FROM _deliveries WHERE status <> 'pending' " +
				"AND created_at < ? LIMIT ?)",
			[]any{before, trimBatch},
		},
		{"_deliveries", `DELETE FROM _deliveries WHERE id IN (SELECT id FROM _deliveries WHERE status <> 'pending' ORDER BY created_at
			LIMIT min(?, max(0, (SELECT count(*) FROM _deliveries WHERE status <> 'pending') - ?)))`, []any{trimBatch, maxDeliveries}},
		{
			"_outgoing",
			"DELETE FROM _outgoing WHERE message_id IN (SELECT message_id FROM _outgoing " +
				"WHERE status IN ('sent','failed') AND created_at < ? LIMIT ?)",
			[]any{before, trimBatch},
		},
		{
			"_inbound",
			"DELETE FROM _inbound WHERE (gateway_id, external_id) IN (SELECT gateway_id, external_id FROM _inbound " +
				"WHERE created_at < ? LIMIT ?)",
			[]any{before, trimBatch},
		},
		{"_inbound", `DELETE FROM _inbound WHERE (gateway_id, external_id) IN (SELECT gateway_id, external_id FROM _inbound
			WHERE created_at <= (SELECT created_at FROM _inbound ORDER BY created_at DESC LIMIT 1 OFFSET ?) LIMIT ?)`, []any{maxInbound, trimBatch}},
		{
			"_mail_answers",
			"DELETE FROM _mail_answers WHERE (address, message_id) IN (SELECT address, message_id " +
				"FROM _mail_answers WHERE created_at < ? LIMIT ?)",
			[]any{agent.At(tx.Now.Add(-answersWithin)), trimBatch},
		},
		{
			"downloads",
			"DELETE FROM downloads WHERE id IN (SELECT id FROM downloads WHERE created_at < ? LIMIT ?)",
			[]any{before, trimBatch},
		},
		{
			"_responses",
			"DELETE FROM _responses WHERE id IN (SELECT id FROM _responses WHERE created_at <= ? LIMIT ?)",
			[]any{agent.At(tx.Now.Add(-ResponseLife)), trimBatch},
		},
		{"executions", trimOldExecutions, []any{before, trimExecutions}},
		{"executions", trimManyExecutions, []any{trimExecutions, maxExecutions}},
		{"_workflow_versions", trimVersions, []any{maxVersions, trimExecutions}},
	} {
		if !filled[step.table] { // compiling the statement costs more than running it
			continue
		}
		done, err := tx.sql.ExecOnce(step.query, step.args...)
		if err != nil {
			return false, err
		}
		more = more || done.Changes == trimBatch || done.Changes == trimExecutions
	}
	return more, tx.dropLostUploads()
}

// trimmedTables are the tables that trim deletes from.
var trimmedTables = []string{
	"logs", "_events", "runs", "occurrences", "_deliveries", "_outgoing", "_inbound", "_mail_answers", "downloads",
	"_responses", "executions", "_workflow_versions",
}

// trimRuns returns the SQL that deletes, from a table's oldest rows, those that have
// ended and are too old or too many.
func trimRuns(table, column string) string {
	return fmt.Sprintf(`DELETE FROM %[1]s WHERE seq IN (SELECT seq FROM (SELECT seq, %[2]s AS at, status FROM %[1]s ORDER BY seq LIMIT ?)
		WHERE status <> 'running' AND (at < ? OR seq <= (SELECT max(seq) FROM %[1]s) - ?))`, table, column)
}
