package store

import (
	"errors"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// StartedTask is an occurrence of a task whose workflow has to be started; its
// row is already marked as running.
type StartedTask struct {
	Task       agent.Task
	Occurrence agent.Occurrence
}

// maxDueOccurrences limits how many occurrences of a task are considered if it has
// been due for a long time; older ones leave no row.
const maxDueOccurrences = 100

// takeDueTasks takes the tasks that are due, emits the events of the occurrences that
// have not ended, and returns those that start a workflow.
func (tx *Tx) takeDueTasks() (start []StartedTask, err error) {
	due, err := all(
		tx,
		scanTask,
		"SELECT "+taskColumns+" FROM tasks WHERE next_run <= ? ORDER BY next_run, id LIMIT ?",
		tx.Now,
		dueBatch,
	)
	if err != nil {
		return nil, err
	}
	for i := range due {
		started, err := tx.fireTask(&due[i])
		if err != nil {
			return nil, err
		}
		start = append(start, started...)
	}
	return start, nil
}

func (tx *Tx) fireTask(task *agent.Task) (start []StartedTask, err error) {
	if err := task.Validate(); err != nil {
		return nil, tx.failInvalidTask(task, err)
	}
	list := task.Occurrences(task.NextRun, agent.At(tx.Now.Add(time.Millisecond)), 20*maxDueOccurrences)
	for _, o := range list[max(0, len(list)-maxDueOccurrences):] {
		if o.StartTime.Before(task.NextRun.Time) || o.StartTime.After(tx.Now.Time) {
			continue // it began earlier
		}
		started, err := tx.startOccurrence(task, o)
		if err != nil {
			return nil, err
		}
		if started {
			start = append(start, StartedTask{Task: task.WithOccurrence(o), Occurrence: o})
		}
	}
	if task.NextRun = task.NextStart(tx.Now); task.Recurrence == agent.RecurNone {
		task.NextRun = agent.Time{}
	}
	_, err = tx.exec("UPDATE tasks SET next_run = ?, status = ? WHERE id = ?", task.NextRun, task.Status, task.ID)
	return start, err
}

// startOccurrence records that an occurrence is due and reports whether its workflow
// has to be started. One that has already ended by then has failed.
func (tx *Tx) startOccurrence(task *agent.Task, occurrence agent.Occurrence) (start bool, err error) {
	missed := occurrence.EndTime.Before(tx.Now.Time) && occurrence.StartTime.Before(tx.Now.Add(-agent.MaxLateness))
	if missed && task.WorkflowID == "" {
		return false, nil
	}
	if task.WorkflowID != "" {
		status, executed, problem := agent.TaskRunning, tx.Now, ""
		if missed {
			status, executed, problem = agent.TaskFailed, agent.Time{}, "missed: nobody was there to start it"
		}
		done, err := tx.exec(
			"INSERT OR IGNORE INTO occurrences(id, task_id, start_time, status, executed_at, "+
				"error) VALUES (?,?,?,?,?,?)",
			occurrence.ID, task.ID, occurrence.StartTime, status, executed, problem,
		)
		if err != nil {
			return false, err
		}
		if done.Changes == 0 {
			return false, err // it has already taken place
		}
		if task.Recurrence == agent.RecurNone {
			task.Status = status
		}
	}
	if missed {
		return false, nil
	}
	return task.WorkflowID != "", tx.emitAbout(task.ID, agent.EventCalendarDue, map[string]any{
		"task":       task.WithOccurrence(occurrence),
		"occurrence": occurrence,
	})
}

// failInvalidTask ends a task that SQL made invalid.
func (tx *Tx) failInvalidTask(t *agent.Task, why error) error {
	if _, err := tx.exec("UPDATE tasks SET next_run = NULL, status = 'failed' WHERE id = ?", t.ID); err != nil {
		return err
	}
	return tx.log(agent.LevelError, "schedule", "a task cannot be planned and has failed", map[string]any{
		"task_id": t.ID,
		"error":   agent.Explain(why),
	})
}

func (tx *Tx) replanTask(r replanned, zone string) error {
	found, err := all(tx, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE id = ?", r.id)
	if err != nil || len(found) == 0 {
		return err
	}
	t := found[0]
	t.Fill(zone)
	t.AlignExceptions()
	if err := t.Validate(); err != nil {
		return tx.failInvalidTask(&t, err)
	}
	t.Replan(r.keep, tx.Now)
	return tx.updateTask(&t)
}

// occurrenceStatus maps the outcome of a run to the status of its occurrence.
var occurrenceStatus = map[agent.RunStatus]agent.TaskStatus{
	agent.RunSuccess: agent.TaskCompleted,
	agent.RunError:   agent.TaskFailed,
}

func (tx *Tx) finishOccurrence(o agent.Run) error {
	var taskID string
	status := occurrenceStatus[o.Status]
	err := tx.value(&taskID, `UPDATE occurrences SET status = ?1, duration_ms = ?2, execution_id = iif(?3 = '', execution_id, ?3), error = ?4
		WHERE id = ?5 AND status = 'running' RETURNING task_id`, status, o.DurationMS, o.ExecutionID, o.Error, o.ID)
	if errors.Is(err, sqlite.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = tx.exec(
			"UPDATE tasks SET status = ? WHERE id = ? AND recurrence = 'none' AND status = 'running'",
			status, taskID,
		)
	}
	return err
}

// startedTasks returns the occurrences that have started but not ended.
func (tx *Tx) startedTasks() (started []StartedTask, err error) {
	type owned struct {
		id, task string
		start    agent.Time
	}
	rows, err := all(
		tx,
		func(rows *sqlite.Rows) (o owned, err error) {
			return o, rows.Scan(&o.id, &o.task, &o.start)
		},
		"SELECT id, task_id, start_time FROM occurrences WHERE status = 'running' ORDER BY seq",
	)
	if err != nil {
		return nil, err
	}
	for _, o := range rows {
		t, err := tx.task(o.task)
		if err != nil {
			return nil, err
		}
		occurrence := startedOccurrence(&t, o.id, o.start)
		started = append(started, StartedTask{Task: t.WithOccurrence(occurrence), Occurrence: occurrence})
	}
	return started, nil
}

// startedOccurrence returns the occurrence of a row. If the task's times have
// changed so that it has none at that time, its length is that of the others.
func startedOccurrence(t *agent.Task, id string, start agent.Time) agent.Occurrence {
	_, text, _ := strings.Cut(id, "@")
	if original, err := agent.ParseOccurrenceStart(text); err == nil {
		if o, err := t.Occurrence(original); err == nil && o.StartTime == start {
			return o
		}
	}
	return agent.Occurrence{
		ID:            id,
		OriginalStart: start,
		StartTime:     start,
		EndTime:       agent.At(start.Add(t.EndTime.Sub(t.StartTime.Time))),
	}
}
