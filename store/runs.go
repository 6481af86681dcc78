package store

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

const runColumns = "id, scheduled_for, executed_at, status, duration_ms, execution_id, error"

func scanRun(rows *sqlite.Rows) (r agent.Run, err error) {
	return r, rows.Scan(&r.ID, &r.ScheduledFor, &r.ExecutedAt, &r.Status, &r.DurationMS, &r.ExecutionID, &r.Error)
}

// ScheduledRun is a run of a schedule that has to be started; its row is
// already marked as running.
type ScheduledRun struct {
	Schedule agent.Schedule
	Run      agent.Run
}

// DueRuns is what an agent has to start.
type DueRuns struct {
	Runs  []ScheduledRun
	Tasks []StartedTask
	// when something is due next: in the past if there is more than fits into one transaction, zero for never
	Next agent.Time
}

// RunChanges is the outcome of runs of schedules and of occurrences of tasks.
type RunChanges struct {
	Started     map[string]string // executions of those still in progress, by the id of the run or occurrence
	Runs        []agent.Run       // that ended, with their status, duration, execution and error
	Occurrences []agent.Run       // that ended, likewise
}

// dueBatch is how many records one transaction takes, so that other writes do not
// have to wait long.
const dueBatch = 200

// Limits on the runs of one schedule that are in progress or waiting.
const (
	maxRunning = 100
	maxWaiting = 1000
)

// TakeDue takes the due runs: one commit writes their rows and advances the
// schedules to their next run, so that a run is started at most once, and
// Interrupted finds one whose start was interrupted. Schedules that cannot be
// planned are paused with the reason.
func (db *DB) TakeDue(ctx context.Context) (DueRuns, error) {
	return Write(ctx, db, func(tx *Tx) (dueRuns DueRuns, err error) {
		tx.claimWork(workSchedules)
		if err := tx.replan(); err != nil {
			return dueRuns, err
		}
		due, err := all(tx, scanSchedule, "SELECT "+scheduleColumns+` FROM schedules
			WHERE status = 'active' AND next_run <= ? ORDER BY next_run, id LIMIT ?`, tx.Now, dueBatch)
		if err != nil {
			return dueRuns, err
		}
		for i := range due {
			runs, err := tx.fire(&due[i])
			if err != nil {
				return dueRuns, err
			}
			dueRuns.Runs = append(dueRuns.Runs, runs...)
		}
		if dueRuns.Tasks, err = tx.takeDueTasks(); err != nil {
			return dueRuns, err
		}
		return dueRuns, tx.value(&dueRuns.Next, selectNextRun)
	})
}

// fire writes the runs of a schedule that is due and advances it.
func (tx *Tx) fire(schedule *agent.Schedule) ([]ScheduledRun, error) {
	firing, err := schedule.Fire(tx.Now)
	if err != nil {
		return nil, tx.pauseInvalidSchedule(schedule, err)
	}
	runs, err := tx.admit(schedule, firing)
	if err != nil {
		return nil, err
	}
	var missed agent.Run
	for _, at := range firing.Missed {
		missed = agent.Run{
			ID:           agent.NewID(agent.KindRun),
			ScheduledFor: at,
			Status:       agent.RunMissed,
		}
		if err := tx.insertRun(schedule.ID, missed); err != nil {
			return nil, err
		}
	}
	schedule.NextRun = firing.Next
	if len(runs) > 0 {
		schedule.LastRun = tx.Now
	}
	if firing.Next.IsZero() && len(runs) == 0 {
		schedule.Status = agent.ScheduleCompleted
	}
	if _, err := tx.exec(
		"UPDATE schedules SET next_run = ?, last_run = ?, status = ? WHERE id = ?",
		schedule.NextRun, schedule.LastRun, schedule.Status, schedule.ID,
	); err != nil {
		return nil, err
	}
	for i := range runs {
		runs[i].Schedule = *schedule
	}
	if firing.MissedAll > 0 {
		err = tx.emitAbout(schedule.ID, agent.EventScheduleMissed, map[string]any{
			"schedule": schedule,
			"run":      missed,
			"missed":   firing.MissedAll,
		})
	}
	return runs, err
}

// admit writes the rows of the due runs that the schedule's overlap policy allows,
// and returns those to start now.
func (tx *Tx) admit(schedule *agent.Schedule, firing agent.Firing) (start []ScheduledRun, err error) {
	var running int
	if err := tx.value(
		&running,
		"SELECT count(*) FROM runs WHERE schedule_id = ? AND status = 'running'",
		schedule.ID,
	); err != nil {
		return nil, err
	}
	for _, at := range firing.Start {
		run := agent.Run{
			ScheduledFor: at,
			ExecutedAt:   tx.Now,
			Status:       agent.RunRunning,
		}
		queues := schedule.Overlap == agent.OverlapQueue ||
			schedule.Overlap == agent.OverlapSkip && firing.CatchUp && len(firing.Start) > 1
		switch {
		case running == 0, schedule.Overlap == agent.OverlapAllow && running < maxRunning:
		case queues && running < maxWaiting:
			run.ExecutedAt = agent.Time{}
		default:
			run.Status, run.ExecutedAt, run.Error =
				agent.RunSkipped, agent.Time{}, "another run of this schedule was under way"
		}
		run.ID = agent.NewID(agent.KindRun)
		if err := tx.insertRun(schedule.ID, run); err != nil {
			return nil, err
		}
		if run.Status == agent.RunRunning {
			running++
		}
		if !run.ExecutedAt.IsZero() {
			start = append(start, ScheduledRun{Run: run})
		}
	}
	return start, nil
}

func (tx *Tx) insertRun(scheduleID string, r agent.Run) error {
	if r.ID == "" {
		r.ID = agent.NewID(agent.KindRun)
	}
	_, err := tx.exec(
		"INSERT INTO runs(id, schedule_id, scheduled_for, executed_at, status, duration_ms, execution_id, "+
			"error) VALUES (?,?,?,?,?,?,?,?)",
		r.ID, scheduleID, r.ScheduledFor, r.ExecutedAt, r.Status, r.DurationMS, r.ExecutionID, r.Error,
	)
	return err
}

// StartRun writes the row of a run requested by a person, whatever the schedule's
// status, if check allows it; its next run is unaffected. While another run is in
// progress, a schedule that skips returns CONFLICT, and one that queues makes the
// run wait.
func (db *DB) StartRun(ctx context.Context, id string, check func(*agent.Schedule) error) (ScheduledRun, error) {
	return Write(ctx, db, func(tx *Tx) (ScheduledRun, error) {
		tx.claimWork(workSchedules) // the due time does not change
		schedule, err := tx.schedule(id)
		if err != nil {
			return ScheduledRun{}, err
		}
		if err := check(&schedule); err != nil {
			return ScheduledRun{}, err
		}
		run := ScheduledRun{
			Schedule: schedule,
			Run: agent.Run{
				ID:           agent.NewID(agent.KindRun),
				ScheduledFor: tx.Now,
				ExecutedAt:   tx.Now,
				Status:       agent.RunRunning,
			},
		}
		var running int
		if err := tx.value(
			&running,
			"SELECT count(*) FROM runs WHERE schedule_id = ? AND status = 'running'",
			id,
		); err != nil {
			return run, err
		}
		switch {
		case running == 0, schedule.Overlap == agent.OverlapAllow && running < maxRunning:
		case schedule.Overlap == agent.OverlapQueue && running < maxWaiting:
			run.Run.ExecutedAt = agent.Time{}
		default:
			return run, agent.Errorf(agent.CodeConflict, "another run of this schedule is in progress")
		}
		if err := tx.insertRun(id, run.Run); err != nil {
			return run, err
		}
		if _, err := tx.exec("UPDATE schedules SET last_run = ? WHERE id = ?", tx.Now, id); err != nil {
			return run, err
		}
		run.Schedule.LastRun = tx.Now
		return run, tx.audit("schedule run", map[string]any{"schedule_id": id, "run_id": run.Run.ID})
	})
}

// UpdateRuns writes the outcomes of runs, emits the events of their ends, and
// returns the runs of the same schedules that were waiting for them. Runs that no
// longer exist or have ended are ignored.
func (db *DB) UpdateRuns(ctx context.Context, changes RunChanges) (next []ScheduledRun, err error) {
	return Write(ctx, db, func(tx *Tx) (next []ScheduledRun, err error) {
		tx.claimWork(workSchedules) // the due times do not change
		for id, execution := range changes.Started {
			for _, table := range []string{"runs", "occurrences"} {
				if _, err := tx.exec(
					"UPDATE "+table+" SET execution_id = ? WHERE id = ? AND status = 'running'",
					execution,
					id,
				); err != nil {
					return nil, err
				}
			}
		}
		for _, r := range changes.Runs {
			waiting, err := tx.finishRun(r)
			if err != nil {
				return nil, err
			}
			next = append(next, waiting...)
		}
		for _, o := range changes.Occurrences {
			if err := tx.finishOccurrence(o); err != nil {
				return nil, err
			}
		}
		return next, nil
	})
}

func (tx *Tx) finishRun(run agent.Run) (next []ScheduledRun, err error) {
	var scheduleID string
	err = tx.value(&scheduleID, `UPDATE runs SET status = ?, duration_ms = ?, execution_id = ?, error = ?
		WHERE id = ? AND status = 'running' RETURNING schedule_id`, run.Status, run.DurationMS, run.ExecutionID, run.Error, run.ID)
	if errors.Is(err, sqlite.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	waiting, err := all(tx, scanRun, `UPDATE runs SET executed_at = ? WHERE seq = (SELECT min(seq) FROM runs
		WHERE schedule_id = ? AND status = 'running' AND executed_at IS NULL) RETURNING `+runColumns, tx.Now, scheduleID)
	if err != nil {
		return nil, err
	}
	if _, err := tx.exec(`UPDATE schedules SET status = 'completed' WHERE id = ? AND type <> 'cron' AND status = 'active' AND next_run IS NULL
		AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND status = 'running')`, scheduleID); err != nil {
		return nil, err
	}
	s, err := tx.schedule(scheduleID)
	if err != nil {
		return nil, err
	}
	for _, w := range waiting {
		next = append(next, ScheduledRun{Schedule: s, Run: w})
	}
	return next, tx.emitAbout(s.ID, agent.EventScheduleExecuted, map[string]any{"schedule": s, "run": run})
}

// Interrupted returns the runs that have started but not ended: those in
// progress and, after a restart, those that were interrupted. If all runs of a
// schedule are waiting, the first is started.
func (db *DB) Interrupted(ctx context.Context) (DueRuns, error) {
	return Write(ctx, db, func(tx *Tx) (d DueRuns, err error) {
		if _, err := tx.exec(`UPDATE runs SET executed_at = ? WHERE status = 'running' AND executed_at IS NULL AND seq IN
			(SELECT min(seq) FROM runs WHERE status = 'running' GROUP BY schedule_id)`, tx.Now); err != nil {
			return d, err
		}
		if d.Runs, err = tx.startedRuns(); err != nil {
			return d, err
		}
		d.Tasks, err = tx.startedTasks()
		return d, err
	})
}

// RunInProgress reports whether a run or an occurrence is still in progress.
func (db *DB) RunInProgress(ctx context.Context, id string) (bool, error) {
	return Read(ctx, db, func(tx *Tx) (running bool, err error) {
		return running, tx.value(&running, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND status = 'running')
			OR EXISTS (SELECT 1 FROM occurrences WHERE id = ?1 AND status = 'running')`, id)
	})
}

func (tx *Tx) startedRuns() (started []ScheduledRun, err error) {
	type owned struct {
		agent.Run
		schedule string
	}
	runs, err := all(tx, func(rows *sqlite.Rows) (r owned, err error) {
		return r, rows.Scan(
			&r.schedule, &r.ID, &r.ScheduledFor, &r.ExecutedAt, &r.Status, &r.DurationMS, &r.ExecutionID, &r.Error,
		)
	}, "SELECT schedule_id, "+runColumns+" FROM runs WHERE status = 'running' AND executed_at IS NOT NULL ORDER BY seq")
	if err != nil {
		return nil, err
	}
	schedules := map[string]agent.Schedule{}
	for _, r := range runs {
		s, met := schedules[r.schedule]
		if !met {
			if s, err = tx.schedule(r.schedule); err != nil {
				return nil, err
			}
			schedules[r.schedule] = s
		}
		started = append(started, ScheduledRun{Schedule: s, Run: r.Run})
	}
	return started, nil
}
