package store

import (
	"context"
	"errors"

	"satchel/agent"
)

// UpdateOccurrence changes one occurrence of a recurring task, which then takes
// place even if it was cancelled. start is its start according to the recurrence. An
// occurrence that has started cannot be moved.
func (db *DB) UpdateOccurrence(
	ctx context.Context,
	id string,
	start agent.Time,
	change agent.TaskChange,
) (agent.Task, error) {
	return db.changeOccurrence(ctx, id, start, func(tx *Tx, task *agent.Task) error {
		before, err := task.Occurrence(start)
		if err == nil {
			err = task.ChangeOccurrence(start, change)
		}
		if err != nil {
			return err
		}
		if after, err := task.Occurrence(start); err != nil || after == before {
			return err
		}
		// A missed occurrence can be moved to a later time and then starts after
		// all.
		if _, err := tx.exec("DELETE FROM occurrences WHERE id = ? AND executed_at IS NULL", before.ID); err != nil {
			return err
		}
		return tx.checkOccurrence(before.ID, "true", "has started and cannot be moved")
	})
}

// CancelOccurrence cancels one occurrence of a recurring task. One that is running
// cannot be cancelled.
func (db *DB) CancelOccurrence(ctx context.Context, id string, start agent.Time) error {
	_, err := db.changeOccurrence(ctx, id, start, func(tx *Tx, t *agent.Task) error {
		o, err := t.Occurrence(start)
		if err != nil {
			return err
		}
		return errors.Join(
			t.CancelOccurrence(start),
			tx.checkOccurrence(o.ID, "status = 'running'", "is running and cannot be cancelled"),
		)
	})
	return err
}

// checkOccurrence returns CONFLICT if the row of an occurrence meets a condition.
func (tx *Tx) checkOccurrence(id, where, problem string) error {
	var exists bool
	err := tx.value(&exists, "SELECT EXISTS (SELECT 1 FROM occurrences WHERE id = ? AND "+where+")", id)
	if err == nil && exists {
		err = agent.Errorf(agent.CodeConflict, "the occurrence %s", problem).With("id", id)
	}
	return err
}

func (db *DB) changeOccurrence(
	ctx context.Context,
	id string,
	start agent.Time,
	change func(*Tx, *agent.Task) error,
) (agent.Task, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Task, error) {
		before, err := tx.task(id)
		if err != nil {
			return before, err
		}
		t := before
		if err := change(tx, &t); err != nil {
			return before, err
		}
		if err := t.Validate(); err != nil {
			return before, err
		}
		t.UpdatedAt = tx.Now
		t.PlanFurther(&before, tx.Now)
		if err := errors.Join(tx.updateTask(&t), tx.planned(id)); err != nil {
			return t, err
		}
		return t, tx.audit("task updated", map[string]any{"task_id": id, "occurrence": start})
	})
}

// UpdateFollowing changes an occurrence of a recurring task and all later ones, and
// returns the task that has them: a new one, or the same if it was the first.
func (db *DB) UpdateFollowing(
	ctx context.Context,
	id string,
	start agent.Time,
	change agent.TaskChange,
	check func(*agent.Task) error,
) (agent.Task, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Task, error) {
		original, err := tx.task(id)
		if err != nil {
			return original, err
		}
		if change.Exceptions.Given {
			return original, agent.Invalid("exceptions", "cannot be set for a part of the occurrences")
		}
		before := original
		rest, whole, err := before.Split(start)
		if err != nil {
			return rest, err
		}
		settings, err := tx.settings()
		if err != nil {
			return rest, err
		}
		change.Apply(&rest, settings.Timezone)
		rest.UpdatedAt = tx.Now
		if err := tx.checkTask(&rest, &original, check); err != nil {
			return rest, err
		}
		rest.PlanFurther(&original, tx.Now)
		if whole {
			err = errors.Join(tx.updateTask(&rest), tx.planned(id))
		} else {
			err = tx.splitTask(&before, &original, &rest)
		}
		if err != nil {
			return rest, err
		}
		return rest, tx.audit("task updated", map[string]any{
			"task_id":     id,
			"from":        start,
			"new_task_id": rest.ID,
		})
	})
}

// splitTask ends a task and stores the rest of it as a new one.
func (tx *Tx) splitTask(t, before, rest *agent.Task) error {
	if err := tx.checkRoom("tasks", agent.MaxTasks); err != nil {
		return err
	}
	rest.ID, rest.CreatedAt = agent.NewID(agent.KindTask), tx.Now
	if err := errors.Join(tx.endTask(t, before), tx.insertTask(rest)); err != nil {
		return err
	}
	_, err := tx.exec("INSERT OR IGNORE INTO _chains(id, root) SELECT ?, root FROM _chains WHERE id = ?", rest.ID, t.ID)
	return err
}

// endTask stores a task that now ends earlier.
func (tx *Tx) endTask(t, before *agent.Task) error {
	t.UpdatedAt = tx.Now
	t.PlanFurther(before, tx.Now)
	return errors.Join(tx.updateTask(t), tx.planned(t.ID))
}

// DeleteFollowing removes an occurrence of a recurring task and all later ones.
// The task itself is removed if none are left.
func (db *DB) DeleteFollowing(ctx context.Context, id string, start agent.Time) error {
	return db.Do(ctx, func(tx *Tx) error {
		before, err := tx.task(id)
		if err != nil {
			return err
		}
		t := before
		_, whole, err := t.Split(start)
		switch {
		case err != nil:
			return err
		case whole:
			err = tx.deleteRow("tasks", "task", id)
		default:
			err = tx.endTask(&t, &before)
		}
		if err != nil {
			return err
		}
		return tx.audit("task deleted", map[string]any{"task_id": id, "from": start})
	})
}
