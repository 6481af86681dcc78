package store

import (
	"context"
	"database/sql"
	"errors"

	"satchel/agent"
)

// plans is what the schedules and tasks of a file come to.
type plans struct {
	next agent.Time // when the next of them is due; zero: never
	cut  bool       // runs were cut, or the timing was changed from outside
}

const selectPlans = `SELECT (SELECT min(t) FROM (
		SELECT min(next_run) AS t FROM schedules WHERE status = 'active' AND next_run IS NOT NULL
		UNION ALL SELECT min(next_run) FROM tasks WHERE next_run IS NOT NULL)),
	EXISTS (SELECT 1 FROM runs WHERE status = 'running') OR EXISTS (SELECT 1 FROM occurrences WHERE status = 'running')
		OR EXISTS (SELECT 1 FROM _replan)`

func (c *conn) plans() (p plans, err error) {
	s, err := c.prepare(selectPlans)
	if err != nil {
		return p, err
	}
	return p, s.QueryRow().Scan(&p.next, &p.cut)
}

// NextDue is when a schedule or task of the agent is due next, as far as its
// file was read; the zero Time means never. It does not open the file.
func (db *DB) NextDue() agent.Time {
	db.planMu.Lock()
	defer db.planMu.Unlock()
	return db.next
}

// MayBeCut tells whether the agent may have runs that Interrupted would find:
// when its file was loaded, or last opened, some had not ended. Those under way
// in this process count as well.
func (db *DB) MayBeCut() bool { return db.cut.Load() }

// OnPlans has notify called whenever the next due time of an agent may have
// changed. It must return at once. Set it before Start.
func (f *Folder) OnPlans(notify func(*DB)) { f.planned.Store(&notify) }

// learn takes over what was read from the agent's file while nobody wrote it.
func (db *DB) learn(p plans) {
	if p.cut {
		db.cut.Store(true)
	}
	db.setNext(p.next, db.planSeq.Add(1))
}

// setNext takes the next due time that the write with this number saw; those
// of earlier writes come too late.
func (db *DB) setNext(next agent.Time, seq uint64) {
	db.planMu.Lock()
	if seq > db.nextSeq {
		db.next, db.nextSeq = next, seq
	}
	db.planMu.Unlock()
	if notify := db.folder.planned.Load(); notify != nil {
		(*notify)(db)
	}
}

// writePlans is Write for what may change when something is due.
func writePlans[T any](ctx context.Context, db *DB, fn func(*Tx) (T, error)) (T, error) {
	var p plans
	var seq uint64
	result, err := Write(ctx, db, func(tx *Tx) (result T, err error) {
		if result, err = fn(tx); err != nil {
			return result, err
		}
		p, err = tx.plans()
		seq = db.planSeq.Add(1) // the writer has its turn: numbers go with commits
		return result, err
	})
	if err == nil {
		db.setNext(p.next, seq)
	}
	return result, err
}

// replanned is a record whose timing SQL changed.
type replanned struct {
	id   string
	keep bool // its next run was written, or does not depend on what changed
}

// replan plans the schedules and tasks whose timing SQL changed. What is not
// valid is paused and says why.
func (tx *Tx) replan() error {
	changed, err := all(tx, func(rows *sql.Rows) (r replanned, err error) { return r, rows.Scan(&r.id, &r.keep) }, "SELECT id, keep FROM _replan")
	if err != nil || len(changed) == 0 {
		return err
	}
	settings, err := tx.settings()
	if err != nil {
		return err
	}
	for _, r := range changed {
		if err := errors.Join(tx.replanSchedule(r, settings.Timezone), tx.replanTask(r, settings.Timezone)); err != nil {
			return err
		}
	}
	_, err = tx.exec("DELETE FROM _replan")
	return err
}

func (tx *Tx) replanSchedule(r replanned, zone string) error {
	found, err := all(tx, scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE id = ?", r.id)
	if err != nil || len(found) == 0 {
		return err
	}
	s := found[0]
	s.Fill(zone)
	err = s.Validate()
	if err == nil {
		err = tx.checkCallback(&s)
	}
	if err == nil {
		err = s.Replan(r.keep, tx.Now)
	}
	if err != nil {
		return tx.pauseBroken(&s, err)
	}
	return tx.updateSchedule(&s)
}

// pauseBroken pauses a schedule that cannot be planned and says why in its
// runs and in the log.
func (tx *Tx) pauseBroken(s *agent.Schedule, why error) error {
	if agent.ErrorCode(why) != agent.CodeValidation {
		return why
	}
	s.Status, s.NextRun = agent.SchedulePaused, agent.Time{}
	if _, err := tx.exec("UPDATE schedules SET status = ?, next_run = NULL WHERE id = ?", s.Status, s.ID); err != nil {
		return err
	}
	reason := "paused: " + agent.Explain(why)
	if err := tx.insertRun(s.ID, agent.Run{ScheduledFor: tx.Now, Status: agent.RunError, Error: reason}); err != nil {
		return err
	}
	return tx.log(agent.LevelError, "schedule", "a schedule cannot be planned and was paused", map[string]any{"schedule_id": s.ID, "error": reason})
}

// planChanges plans what a statement of the SQL door changed, in the same turn
// of the writer. The statement stands, so a failure is made good by the next
// look at what is due.
func (db *DB) planChanges(ctx context.Context, c *conn) {
	var p plans
	err := c.script("BEGIN IMMEDIATE")
	if err == nil {
		err = newTx(context.WithoutCancel(ctx), c, db).replan()
	}
	if err == nil {
		p, err = c.plans()
	}
	if err == nil {
		err = c.script("COMMIT")
	}
	if err != nil {
		_ = c.script("ROLLBACK") // fails when SQLite has rolled back already
		db.folder.log.Error("plan what SQL changed", "agent", db.id, "error", err)
		p = plans{next: agent.Now()}
	}
	db.setNext(p.next, db.planSeq.Add(1))
}

// leavePlans leaves to the original of a copied file what was due or under way
// when it was copied: it is not to happen twice.
func (tx *Tx) leavePlans() error {
	for _, statement := range []string{
		"UPDATE runs SET status = 'error', error = 'cut: the file was copied' WHERE status = 'running' AND ?1 = ?1",
		"UPDATE occurrences SET status = 'failed', error = 'cut: the file was copied' WHERE status = 'running' AND ?1 = ?1",
		`INSERT INTO runs(id, schedule_id, scheduled_for, status) SELECT 'run-' || lower(hex(randomblob(10))), id, next_run, 'missed'
			FROM schedules WHERE status = 'active' AND type <> 'cron' AND next_run <= ?1`,
		"UPDATE schedules SET status = 'completed', next_run = NULL WHERE status = 'active' AND type <> 'cron' AND coalesce(next_run, '') <= ?1",
		"INSERT OR REPLACE INTO _replan SELECT id, 0 FROM schedules WHERE status = 'active' AND type = 'cron' AND ?1 = ?1",
		"INSERT OR REPLACE INTO _replan SELECT id, 0 FROM tasks WHERE ?1 = ?1",
	} {
		if _, err := tx.exec(statement, tx.Now); err != nil {
			return err
		}
	}
	return tx.replan()
}
