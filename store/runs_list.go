package store

import (
	"context"

	"satchel/agent"
	"satchel/store/sqlite"
)

// LastRuns reads the newest run of each schedule; schedules that have never run are
// absent.
func (db *DB) LastRuns(ctx context.Context, ids []string) (map[string]agent.Run, error) {
	return Read(ctx, db, func(tx *Tx) (map[string]agent.Run, error) {
		last := make(map[string]agent.Run, len(ids))
		for _, id := range ids {
			found, err := all(
				tx,
				scanRun,
				"SELECT "+runColumns+" FROM runs WHERE schedule_id = ? ORDER BY seq DESC LIMIT 1",
				id,
			)
			if err != nil {
				return nil, err
			}
			if len(found) > 0 {
				last[id] = found[0]
			}
		}
		return last, nil
	})
}

// ScheduleDays reads what schedules did on a range of days, and which of them will
// run before the end of the last. days holds the first moment of each day and the
// end of the last; the result has no dates, but one list for each day.
func (db *DB) ScheduleDays(
	ctx context.Context,
	days []agent.Time,
) (past [][]agent.ScheduleDay, coming []agent.Schedule, err error) {
	coming, err = Read(ctx, db, func(tx *Tx) (coming []agent.Schedule, err error) {
		for i := range len(days) - 1 {
			found, err := all(tx, scanScheduleDay, `SELECT r.schedule_id, s.name, min(r.scheduled_for), count(*), sum(r.status = 'error'), sum(r.status = 'missed'), sum(r.status = 'running')
				FROM runs r INDEXED BY runs_scheduled JOIN schedules s ON s.id = r.schedule_id
				WHERE r.scheduled_for >= ? AND r.scheduled_for < ? GROUP BY r.schedule_id`, days[i], days[i+1])
			if err != nil {
				return nil, err
			}
			past = append(past, found)
		}
		return all(
			tx,
			scanSchedule,
			"SELECT "+scheduleColumns+" FROM schedules WHERE status = 'active' AND next_run < ? ORDER BY next_run",
			days[len(days)-1],
		)
	})
	return past, coming, err
}

func scanScheduleDay(rows *sqlite.Rows) (d agent.ScheduleDay, err error) {
	return d, rows.Scan(&d.ScheduleID, &d.Name, &d.First, &d.Runs, &d.Failed, &d.Missed, &d.Running)
}
