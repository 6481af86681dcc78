package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

const taskColumns = `id, title, description, start_time, end_time, timezone, recurrence, recurrence_days, recurrence_end, recurrence_count,
	exceptions, workflow_id, status, next_run, created_at, updated_at`

// briefTaskColumns are the columns without the description, for reading many.
var briefTaskColumns = strings.Replace(taskColumns, " description,", " '',", 1)

var taskListing = listing[agent.Task]{listed{
	table:   "tasks",
	columns: taskColumns,
	order:   Order{"start_time", false},
	sort: map[string]string{
		"title":      "title COLLATE NOCASE",
		"start_time": "start_time",
		"end_time":   "coalesce(end_time, '')",
		"status":     "status",
		"next_run":   "coalesce(next_run, '')",
		"created_at": "created_at",
		"updated_at": "updated_at",
	},
	search: []string{"title", "description"},
}, scanTask}

// scanTask reads a task. Its days are nil if SQL wrote invalid ones.
func scanTask(rows *sqlite.Rows) (t agent.Task, err error) {
	var days, exceptions rawJSON
	err = rows.Scan(
		&t.ID, &t.Title, &t.Description, &t.StartTime, &t.EndTime, &t.Timezone, &t.Recurrence, &days, &t.RecurrenceEnd,
		&t.RecurrenceCount, &exceptions, &t.WorkflowID, &t.Status, &t.NextRun, &t.CreatedAt, &t.UpdatedAt,
	)
	t.RecurrenceDays, _ = agent.DecodeDays(days)
	if t.RecurrenceDays == nil {
		t.RecurrenceDays = []int{}
	}
	t.Exceptions = agent.DecodeExceptions(exceptions)
	return t, err
}

// Tasks lists the tasks of the calendar, by their start.
func (db *DB) Tasks(ctx context.Context, statuses []string, p Page) ([]agent.Task, int, error) {
	var f filter
	f.in("status", statuses...)
	return listPage(ctx, db, taskListing, f, p)
}

// Task reads one task.
func (db *DB) Task(ctx context.Context, id string) (agent.Task, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Task, error) { return tx.task(id) })
}

func (tx *Tx) task(id string) (agent.Task, error) {
	return one(tx, scanTask, "task", "SELECT "+taskColumns+" FROM tasks WHERE id = ?", id)
}

// EachTask calls yield with every task, in no particular order, reading a few at a
// time so that not all are in memory.
func (db *DB) EachTask(ctx context.Context, yield func(agent.Task) error) error {
	for last := ""; ; {
		some, err := Read(ctx, db, func(tx *Tx) ([]agent.Task, error) {
			return all(tx, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE id > ? ORDER BY id LIMIT 200", last)
		})
		if err != nil || len(some) == 0 {
			return err
		}
		for _, t := range some {
			if err := yield(t); err != nil {
				return err
			}
		}
		last = some[len(some)-1].ID
	}
}

// TasksBetween returns, without their descriptions, the tasks that may have
// occurrences in a range, and the statuses of stored occurrences, by id. A zero from
// or to leaves that end open.
func (db *DB) TasksBetween(
	ctx context.Context,
	from, to agent.Time,
	statuses []string,
	search string,
) (tasks []agent.Task, known map[string]agent.TaskStatus, err error) {
	var f filter
	f.in("status", statuses...)
	f.search(taskListing.search, search)
	if !to.IsZero() {
		f.add("(start_time < ? OR exceptions <> '[]')", to) // one may have been moved to before the first
	}
	if !from.IsZero() {
		f.add("(recurrence <> 'none' OR end_time >= ?)", from)
	}
	known = map[string]agent.TaskStatus{}
	tasks, err = Read(ctx, db, func(tx *Tx) ([]agent.Task, error) {
		where, args := clause(f.where, false)
		tasks, err := all(tx, scanTask, "SELECT "+briefTaskColumns+" FROM tasks"+where, args...)
		if err != nil {
			return nil, err
		}
		type status struct {
			id string
			of agent.TaskStatus
		}
		var past any = "9"
		if !to.IsZero() {
			past = to
		}
		// An occurrence lasts at most a year, so an older one does not reach in.
		written, err := all(
			tx,
			func(rows *sqlite.Rows) (s status, err error) {
				return s, rows.Scan(&s.id, &s.of)
			},
			"SELECT id, status FROM occurrences WHERE start_time >= ? AND start_time < ?",
			agent.At(from.AddDate(-1, 0, -2)).String(),
			past,
		)
		for _, s := range written {
			known[s.id] = s.of
		}
		return tasks, err
	})
	return tasks, known, err
}

// TaskDescriptions reads the descriptions of some tasks, by id.
func (db *DB) TaskDescriptions(ctx context.Context, ids []string) (map[string]string, error) {
	texts := map[string]string{}
	err := db.read(ctx, true, func(tx *Tx) error {
		for _, id := range ids {
			var text string
			err := tx.value(&text, "SELECT description FROM tasks WHERE id = ?", id)
			if err != nil && !errors.Is(err, sqlite.ErrNoRows) {
				return err
			}
			texts[id] = text
		}
		return nil
	})
	return texts, err
}

// CreateTask creates a task that check accepts.
func (db *DB) CreateTask(
	ctx context.Context,
	change agent.TaskChange,
	check func(*agent.Task) error,
) (agent.Task, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Task, error) {
		settings, err := tx.settings()
		if err != nil {
			return agent.Task{}, err
		}
		t := agent.Task{
			ID:        agent.NewID(agent.KindTask),
			CreatedAt: tx.Now,
			UpdatedAt: tx.Now,
		}
		change.Apply(&t, settings.Timezone)
		if err := tx.planTask(&t, nil, check); err != nil {
			return t, err
		}
		if err := tx.insertTask(&t); err != nil {
			return t, err
		}
		return t, tx.audit("task created", map[string]any{"task_id": t.ID, "title": t.Title})
	})
}

func (tx *Tx) insertTask(t *agent.Task) error {
	days, exceptions, err := taskJSON(t)
	if err != nil {
		return err
	}
	_, err = tx.exec(
		"INSERT INTO tasks("+taskColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", t.ID, t.Title, t.Description,
		t.StartTime, t.EndTime, t.Timezone, t.Recurrence, days, t.RecurrenceEnd, t.RecurrenceCount, exceptions,
		t.WorkflowID, t.Status, t.NextRun, t.CreatedAt, t.UpdatedAt,
	)
	return errors.Join(err, tx.planned(t.ID))
}

// planned marks a task that was written as planned.
func (tx *Tx) planned(id string) error {
	_, err := tx.exec("DELETE FROM _replan WHERE id = ?", id)
	return err
}

func taskJSON(t *agent.Task) (days, exceptions string, err error) {
	d, err := json.Marshal(t.RecurrenceDays)
	if err != nil {
		return "", "", err
	}
	e, err := json.Marshal(t.Exceptions)
	return string(d), string(e), err
}

// planTask validates a task and plans its next start. was is nil for a new one.
func (tx *Tx) planTask(t, before *agent.Task, check func(*agent.Task) error) error {
	if err := tx.checkTask(t, before, check); err != nil {
		return err
	}
	if before == nil {
		if err := tx.checkRoom("tasks", agent.MaxTasks); err != nil {
			return err
		}
	}
	return t.Plan(before, tx.Now)
}

// checkTask validates a task, and its workflow if that has changed.
func (tx *Tx) checkTask(t, before *agent.Task, check func(*agent.Task) error) error {
	if err := t.Validate(); err != nil || before != nil && t.WorkflowID == before.WorkflowID {
		return err
	}
	if err := check(t); err != nil {
		return err
	}
	return tx.checkTaskWorkflow(t)
}

func (tx *Tx) checkTaskWorkflow(t *agent.Task) error {
	if t.WorkflowID == "" {
		return nil
	}
	var exists bool
	err := tx.value(&exists, "SELECT EXISTS (SELECT 1 FROM workflows WHERE id = ?)", t.WorkflowID)
	if err == nil && !exists {
		err = agent.Invalid("workflow_id", "does not name a workflow of this agent")
	}
	return err
}

// UpdateTask changes the given fields of a task, if check accepts the result, and
// plans it again if its times or status changed.
func (db *DB) UpdateTask(
	ctx context.Context,
	id string,
	change agent.TaskChange,
	check func(*agent.Task) error,
) (agent.Task, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Task, error) {
		before, err := tx.task(id)
		if err != nil {
			return before, err
		}
		settings, err := tx.settings()
		if err != nil {
			return before, err
		}
		t := before
		t.UpdatedAt = tx.Now
		change.Apply(&t, settings.Timezone)
		if err := tx.planTask(&t, &before, check); err != nil {
			return t, err
		}
		if err := errors.Join(tx.updateTask(&t), tx.planned(id)); err != nil {
			return t, err
		}
		return t, tx.audit("task updated", map[string]any{"task_id": id})
	})
}

func (tx *Tx) updateTask(t *agent.Task) error {
	days, exceptions, err := taskJSON(t)
	if err != nil {
		return err
	}
	_, err = tx.exec(
		`UPDATE tasks SET title = ?, description = ?, start_time = ?, end_time = ?, timezone = ?, recurrence = ?, recurrence_days = ?,
		recurrence_end = ?, recurrence_count = ?, exceptions = ?, workflow_id = ?, status = ?, next_run = ?, updated_at = ? WHERE id = ?`,
		t.Title, t.Description,
		t.StartTime, t.EndTime, t.Timezone, t.Recurrence, days, t.RecurrenceEnd, t.RecurrenceCount, exceptions,
		t.WorkflowID, t.Status, t.NextRun, t.UpdatedAt, t.ID,
	)
	return err
}

// DeleteTask removes a task with its occurrences.
func (db *DB) DeleteTask(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("tasks", "task", id); err != nil {
			return err
		}
		return tx.audit("task deleted", map[string]any{"task_id": id})
	})
}
