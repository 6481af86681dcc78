package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

const scheduleColumns = `id, name, type, cron_expression, next_run, last_run, delay_seconds, callback_type, callback_id, payload,
	timezone, misfire_policy, overlap, status, created_at, updated_at`

var scheduleListing = listing[agent.Schedule]{listed{
	table:   "schedules",
	columns: scheduleColumns,
	order:   Order{"created_at", true},
	sort: map[string]string{
		"name":       "name COLLATE NOCASE",
		"created_at": "created_at",
		"updated_at": "updated_at",
		"next_run":   "coalesce(next_run, '')",
		"last_run":   "coalesce(last_run, '')",
		"status":     "status",
		"type":       "type",
	},
	search: []string{"name"},
}, scanSchedule}

func scanSchedule(rows *sqlite.Rows) (s agent.Schedule, err error) {
	return s, rows.Scan(
		&s.ID, &s.Name, &s.Type, &s.CronExpression, &s.NextRun, &s.LastRun, &s.DelaySeconds,
		&s.CallbackType, &s.CallbackID, (*rawJSON)(&s.Payload), &s.Timezone, &s.MisfirePolicy, &s.Overlap, &s.Status,
		&s.CreatedAt, &s.UpdatedAt,
	)
}

// ScheduleFilter selects schedules with any of the given values.
type ScheduleFilter struct {
	Statuses []string
	Types    []string
}

// Schedules lists schedules, newest first.
func (db *DB) Schedules(ctx context.Context, sf ScheduleFilter, p Page) ([]agent.Schedule, int, error) {
	var f filter
	f.in("status", sf.Statuses...)
	f.in("type", sf.Types...)
	return listPage(ctx, db, scheduleListing, f, p)
}

// Schedule reads one schedule with its newest runs, newest first.
func (db *DB) Schedule(ctx context.Context, id string, newest int) (agent.Schedule, []agent.Run, error) {
	var s agent.Schedule
	runs, err := Read(ctx, db, func(tx *Tx) (runs []agent.Run, err error) {
		if s, err = tx.schedule(id); err != nil {
			return nil, err
		}
		return all(
			tx,
			scanRun,
			"SELECT "+runColumns+" FROM runs WHERE schedule_id = ? ORDER BY seq DESC LIMIT ?",
			id,
			newest,
		)
	})
	return s, runs, err
}

func (tx *Tx) schedule(id string) (agent.Schedule, error) {
	return one(tx, scanSchedule, "schedule", "SELECT "+scheduleColumns+" FROM schedules WHERE id = ?", id)
}

// CreateSchedule creates a schedule that check accepts and plans its first run. The
// secret, if there is one, is encrypted.
func (db *DB) CreateSchedule(
	ctx context.Context,
	change agent.ScheduleChange,
	check func(*agent.Schedule) error,
) (agent.Schedule, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Schedule, error) {
		return tx.insertSchedule(change, check)
	})
}

func (tx *Tx) insertSchedule(change agent.ScheduleChange, check func(*agent.Schedule) error) (agent.Schedule, error) {
	settings, err := tx.settings()
	if err != nil {
		return agent.Schedule{}, err
	}
	schedule := agent.Schedule{
		ID:        agent.NewID(agent.KindSchedule),
		CreatedAt: tx.Now,
		UpdatedAt: tx.Now,
	}
	change.Apply(&schedule, settings.Timezone)
	if err := tx.planSchedule(&schedule, nil, change, check); err != nil {
		return schedule, err
	}
	_, err = tx.exec(
		"INSERT INTO schedules("+scheduleColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		schedule.ID, schedule.Name, schedule.Type, schedule.CronExpression, schedule.NextRun, schedule.LastRun,
		schedule.DelaySeconds, schedule.CallbackType, schedule.CallbackID, string(schedule.Payload), schedule.Timezone,
		schedule.MisfirePolicy, schedule.Overlap, schedule.Status, schedule.CreatedAt, schedule.UpdatedAt,
	)
	if err != nil {
		return schedule, err
	}
	if err := tx.scheduleWritten(schedule.ID, change); err != nil {
		return schedule, err
	}
	return schedule, tx.audit("schedule created", map[string]any{"schedule_id": schedule.ID, "name": schedule.Name})
}

// planSchedule validates a schedule and plans its next run. was is nil for a new
// one.
func (tx *Tx) planSchedule(
	schedule, before *agent.Schedule,
	change agent.ScheduleChange,
	check func(*agent.Schedule) error,
) error {
	if err := schedule.Validate(); err != nil {
		return err
	}
	if err := check(schedule); err != nil {
		return err
	}
	if err := tx.checkCallback(schedule, change); err != nil {
		return err
	}
	if before == nil {
		if err := tx.checkRoom("schedules", agent.MaxSchedules); err != nil {
			return err
		}
	}
	return schedule.Plan(before, change.Times(schedule.Type), tx.Now)
}

// checkRoom refuses a new record if the agent already has the maximum.
func (tx *Tx) checkRoom(table string, most int) error {
	var count int
	if err := tx.value(&count, "SELECT n FROM _counts WHERE name = ?", table); err != nil {
		return err
	}
	if count >= most {
		return tooMany(table, most)
	}
	return nil
}

func tooMany(table string, most int) error {
	return agent.Errorf(agent.CodeConflict, "an agent may have at most %d %s", most, table).With("limit", most)
}

// checkCallback refuses a schedule that calls a record which the agent does not have, and a
// new payload that names a conversation which it does not have.
func (tx *Tx) checkCallback(s *agent.Schedule, change agent.ScheduleChange) error {
	switch s.CallbackType {
	case agent.CallbackWorkflow, agent.CallbackSource, agent.CallbackTool:
		return tx.checkReference("callback_id", s.CallbackType, s.CallbackID)
	case agent.CallbackAgent:
		var payload struct {
			ConversationID string `json:"conversation_id"`
		}
		if change.Payload.Given && json.Unmarshal(s.Payload, &payload) == nil {
			return tx.checkReference("payload.conversation_id", "conversation", payload.ConversationID)
		}
	}
	return nil
}

// scheduleWritten completes a write of a schedule through the API: it marks the
// schedule as planned and encrypts its secret.
func (tx *Tx) scheduleWritten(id string, change agent.ScheduleChange) error {
	if change.Secret.Given {
		if err := tx.putSecret(id, secretField, change.Secret.Value); err != nil {
			return err
		}
	}
	_, err := tx.exec("DELETE FROM _replan WHERE id = ?", id)
	return err
}

// UpdateSchedule changes the given fields of a schedule, if check accepts the
// result, and plans it again if its timing or status changed.
func (db *DB) UpdateSchedule(
	ctx context.Context,
	id string,
	change agent.ScheduleChange,
	check func(*agent.Schedule) error,
) (agent.Schedule, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Schedule, error) {
		before, err := tx.schedule(id)
		if err != nil {
			return before, err
		}
		settings, err := tx.settings()
		if err != nil {
			return before, err
		}
		s := before
		s.UpdatedAt = tx.Now
		change.Apply(&s, settings.Timezone)
		if err := tx.planSchedule(&s, &before, change, check); err != nil {
			return s, err
		}
		if err := tx.updateSchedule(&s); err != nil {
			return s, err
		}
		if err := tx.scheduleWritten(id, change); err != nil {
			return s, err
		}
		return s, tx.audit("schedule updated", map[string]any{"schedule_id": id})
	})
}

func (tx *Tx) updateSchedule(s *agent.Schedule) error {
	_, err := tx.exec(
		`UPDATE schedules SET name = ?, type = ?, cron_expression = ?, next_run = ?, delay_seconds = ?, callback_type = ?,
		callback_id = ?, payload = ?, timezone = ?, misfire_policy = ?, overlap = ?, status = ?, updated_at = ? WHERE id = ?`,
		s.Name, s.Type, s.CronExpression, s.NextRun, s.DelaySeconds, s.CallbackType, s.CallbackID,
		string(s.Payload),
		s.Timezone,
		s.MisfirePolicy,
		s.Overlap,
		s.Status,
		s.UpdatedAt,
		s.ID,
	)
	return err
}

// DeleteSchedule deletes a schedule with its runs. A run in progress continues, but
// stores nothing.
func (db *DB) DeleteSchedule(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("schedules", "schedule", id); err != nil {
			return err
		}
		return tx.audit("schedule deleted", map[string]any{"schedule_id": id})
	})
}

// ScheduleSecret decrypts the secret that signs a schedule's webhook; "" if it has
// none.
func (db *DB) ScheduleSecret(ctx context.Context, id string) (string, error) {
	secret, err := Read(ctx, db, func(tx *Tx) (string, error) {
		return tx.secret(id, secretField)
	})
	if errors.Is(err, errLocked) {
		err = agent.Errorf(
			agent.CodeConflict,
			"secret is locked: it was encrypted with another master key; set it again",
		).Because(err)
	}
	return secret, err
}

// SetScheduleSecret encrypts and stores the secret of a schedule.
func (db *DB) SetScheduleSecret(ctx context.Context, id, secret string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if _, err := tx.schedule(id); err != nil {
			return err
		}
		return tx.putSecret(id, secretField, secret)
	})
}
