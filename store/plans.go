package store

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

// replanned is a record whose timing SQL changed.
type replanned struct {
	id   string
	keep bool // its next run was written, or does not depend on what changed
}

// replan plans the schedules and tasks whose timing SQL changed. Invalid ones are
// paused with the reason.
func (tx *Tx) replan() error {
	changed, err := all(
		tx,
		func(rows *sqlite.Rows) (r replanned, err error) {
			return r, rows.Scan(&r.id, &r.keep)
		},
		"SELECT id, keep FROM _replan",
	)
	if err != nil || len(changed) == 0 {
		return err
	}
	settings, err := tx.settings()
	if err != nil {
		return err
	}
	for _, r := range changed {
		if err := errors.Join(
			tx.replanSchedule(r, settings.Timezone),
			tx.replanTask(r, settings.Timezone),
		); err != nil {
			return err
		}
	}
	_, err = tx.exec("DELETE FROM _replan")
	return err
}

func (tx *Tx) replanSchedule(replanned replanned, zone string) error {
	found, err := all(tx, scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE id = ?", replanned.id)
	if err != nil || len(found) == 0 {
		return err
	}
	s := found[0]
	s.Fill(zone)
	err = s.Validate()
	if err == nil {
		err = tx.checkCallback(&s, agent.ScheduleChange{})
	}
	if err == nil {
		err = s.Replan(replanned.keep, tx.Now)
	}
	if err != nil {
		return tx.pauseInvalidSchedule(&s, err)
	}
	return tx.updateSchedule(&s)
}

// pauseInvalidSchedule pauses a schedule that cannot be planned and gives the reason in its
// runs and in the log.
func (tx *Tx) pauseInvalidSchedule(schedule *agent.Schedule, why error) error {
	if agent.ErrorCode(why) != agent.CodeValidation {
		return why
	}
	schedule.Status, schedule.NextRun = agent.SchedulePaused, agent.Time{}
	if _, err := tx.exec(
		"UPDATE schedules SET status = ?, next_run = NULL WHERE id = ?",
		schedule.Status, schedule.ID,
	); err != nil {
		return err
	}
	reason := "paused: " + agent.Explain(why)
	if err := tx.insertRun(schedule.ID, agent.Run{
		ScheduledFor: tx.Now,
		Status:       agent.RunError,
		Error:        reason,
	}); err != nil {
		return err
	}
	return tx.log(agent.LevelError, "schedule", "a schedule cannot be planned and was paused", map[string]any{
		"schedule_id": schedule.ID,
		"error":       reason,
	})
}

// planChanges plans what a statement of the SQL sandbox changed, in the same turn of
// the writer. The statement itself has been committed, so after a failure the
// planning is repeated when the schedules are next checked, which the statement
// announces.
func (db *DB) planChanges(ctx context.Context, c *conn) {
	err := c.script("BEGIN IMMEDIATE")
	if err == nil {
		err = newTx(context.WithoutCancel(ctx), c, db).replan()
	}
	if err == nil {
		err = c.script("COMMIT")
	}
	if err != nil {
		_ = c.script("ROLLBACK") // fails when SQLite has rolled back already
		db.folder.log.Error("update pending work after SQL", "agent", db.id, "error", err)
	}
}

// dropPlans leaves what was due or running in a copied file to the original, so
// that it does not happen twice.
func (tx *Tx) dropPlans() error {
	for _, statement := range []string{
		"UPDATE runs SET status = 'error', error = 'cut: the file was copied' WHERE status = 'running' AND ?1 = ?1",
		"UPDATE occurrences SET status = 'failed', error = 'cut: the file was copied' " +
			"WHERE status = 'running' AND ?1 = ?1",
		`INSERT INTO runs(id, schedule_id, scheduled_for, status) SELECT 'run-' || lower(hex(randomblob(10))), id, next_run, 'missed'
			FROM schedules WHERE status = 'active' AND type <> 'cron' AND next_run <= ?1`,
		"UPDATE schedules SET status = 'completed', next_run = NULL WHERE status = 'active' AND type <> 'cron' " +
			"AND coalesce(next_run, '') <= ?1",
		"INSERT OR REPLACE INTO _replan SELECT id, 0 FROM schedules WHERE status = 'active' " +
			"AND type = 'cron' AND ?1 = ?1",
		"INSERT OR REPLACE INTO _replan SELECT id, 0 FROM tasks WHERE ?1 = ?1",
	} {
		if _, err := tx.exec(statement, tx.Now); err != nil {
			return err
		}
	}
	return tx.replan()
}
