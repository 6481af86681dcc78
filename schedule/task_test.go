package schedule

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"satchel/agent"
	"satchel/store"
)

func (c *calls) runTask(ctx context.Context, _ *store.DB, call TaskCall) (string, error) {
	c.mu.Lock()
	c.tasks = append(c.tasks, call)
	c.at = append(c.at, time.Now().UTC())
	do := c.do
	c.mu.Unlock()
	call.Started("execution-1")
	if do == nil {
		return "execution-1", nil
	}
	return "", do(ctx, Callback{RunID: call.RunID})
}

// task creates a task from JSON, which starts a workflow.
func (h *fixture) task(t *testing.T, body string) agent.Task {
	t.Helper()
	h.sql(t, "INSERT OR IGNORE INTO workflows(id, name) VALUES ('workflow-1', 'w')")
	var c agent.TaskChange
	for _, b := range []string{`{"title":"t","workflow_id":"workflow-1"}`, body} {
		if err := json.Unmarshal([]byte(b), &c); err != nil {
			t.Fatal(err)
		}
	}
	task, err := h.db.CreateTask(t.Context(), c, h.CheckTask)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func (h *fixture) status(t *testing.T, id string) (agent.TaskStatus, agent.Time) {
	t.Helper()
	task, err := h.db.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task.Status, task.NextRun
}

// occurrences returns the statuses of stored occurrences by id.
func (h *fixture) occurrences(t *testing.T) map[string]agent.TaskStatus {
	t.Helper()
	_, known, err := h.db.TasksBetween(t.Context(), agent.Time{}, agent.Time{}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func TestTaskStartsItsWorkflow(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		release := make(chan error)
		h.calls.onCall(func(context.Context, Callback) error { return <-release })
		task := h.task(t, `{"start_time":"2000-01-01T10:00:00Z"}`)
		pass(10 * time.Hour)
		want(t, "calls", h.calls.times(), "10:00:00")
		call := h.calls.tasks[0]
		want(t, "occurrence", call.Occurrence, agent.Occurrence{
			ID:            task.ID + "@20000101T100000Z",
			OriginalStart: task.StartTime,
			StartTime:     task.StartTime,
			EndTime:       task.EndTime,
		})
		var trigger struct {
			Task       agent.Task
			Occurrence agent.Occurrence
		}
		if err := json.Unmarshal(call.Trigger(), &trigger); err != nil ||
			trigger.Task.Title != "t" ||
			trigger.Occurrence != call.Occurrence {
			t.Errorf("got %s, %v", call.Trigger(), err)
		}
		status, next := h.status(t, task.ID)
		want(t, "status while running", []any{status, next}, "[running ]")
		want(t, "due events", len(h.events(t, agent.EventCalendarDue)), 1)
		release <- nil
		synctest.Wait()
		status, _ = h.status(t, task.ID)
		want(t, "status after running", status, "completed")
		pass(48 * time.Hour)
		want(t, "calls", h.calls.times(), "10:00:00")

		failing := h.task(t, `{"start_time":"2000-01-05T10:00:00Z"}`)
		pass(48 * time.Hour)
		release <- agent.Errorf(agent.CodeUpstream, "it failed")
		synctest.Wait()
		status, _ = h.status(t, failing.ID)
		want(t, "status after a failure", status, "failed")
	})
}

func TestRecurringTask(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		task := h.task(t, `{"start_time":"2000-01-01T10:00:00Z","recurrence":"daily","recurrence_count":3}`)
		quiet := h.task(t, `{"start_time":"2000-01-01T11:00:00Z","workflow_id":""}`)
		cancelled := h.task(t, `{"start_time":"2000-01-01T11:00:00Z","status":"cancelled"}`)
		h.calls.onCall(func(_ context.Context, c Callback) error {
			if c.RunID == task.ID+"@20000102T100000Z" {
				return agent.Errorf(agent.CodeUpstream, "it failed")
			}
			return nil
		})
		pass(240 * time.Hour)
		want(t, "calls", h.calls.times(), "10:00:00 10:00:00 10:00:00")
		want(t, "occurrences", h.occurrences(t), map[string]agent.TaskStatus{
			task.ID + "@20000101T100000Z": "completed",
			task.ID + "@20000102T100000Z": "failed",
			task.ID + "@20000103T100000Z": "completed",
		})
		status, next := h.status(t, task.ID)
		want(t, "the recurring task", []any{status, next}, "[pending ]")
		status, _ = h.status(t, quiet.ID)
		want(t, "a task without a workflow", status, "pending")
		status, _ = h.status(t, cancelled.ID)
		want(t, "a cancelled task", status, "cancelled")
		want(t, "due events", len(h.events(t, agent.EventCalendarDue)), 4)
	})
}

// TestTasksAfterDowntime: tasks that have not passed are started, the others fail.
func TestTasksAfterDowntime(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, path)
		daily := h.task(
			t,
			`{"start_time":"2000-01-01T10:00:00Z","end_time":"2000-01-01T14:00:00Z","recurrence":"daily"}`,
		)
		passed := h.task(t, `{"start_time":"2000-01-01T10:00:00Z"}`)
		h.close(t)
		time.Sleep(60 * time.Hour) // until noon of the third day
		h = open(t, path)
		synctest.Wait()
		want(t, "calls", h.calls.times(), "12:00:00")
		want(t, "occurrences", h.occurrences(t), map[string]agent.TaskStatus{
			daily.ID + "@20000101T100000Z":  "failed",
			daily.ID + "@20000102T100000Z":  "failed",
			daily.ID + "@20000103T100000Z":  "completed",
			passed.ID + "@20000101T100000Z": "failed",
		})
		status, next := h.status(t, passed.ID)
		want(t, "a task that has passed", []any{status, next}, "[failed ]")
		h.close(t)
	})
}

// TestInterruptedTask stops the server while a task is running.
func TestInterruptedTask(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, path)
		h.calls.onCall(func(ctx context.Context, _ Callback) error {
			<-ctx.Done()
			return ctx.Err()
		})
		task := h.task(t, `{"start_time":"2000-01-01T10:00:00Z"}`)
		pass(11 * time.Hour)
		h.close(t)
		h = open(t, path)
		synctest.Wait()
		want(t, "calls of the next server", len(h.calls.tasks), 1)
		want(t, "occurrence", h.calls.tasks[0].RunID, task.ID+"@20000101T100000Z")
		status, _ := h.status(t, task.ID)
		want(t, "status", status, "completed")
		h.close(t)
	})
}

func TestTasksBySQL(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		task := h.task(t, `{"start_time":"2000-01-01T10:00:00Z","recurrence":"daily"}`)
		h.sql(t, "UPDATE tasks SET start_time = '2000-01-01T09:00:00.000Z', end_time = '2000-01-01T09:30:00.000Z'")
		pass(24 * time.Hour)
		want(t, "calls at another time", h.calls.times(), "09:00:00")
		h.sql(t, "UPDATE tasks SET status = 'cancelled'")
		pass(24 * time.Hour)
		want(t, "calls after cancelling", h.calls.times(), "09:00:00")
		h.sql(t, "UPDATE tasks SET status = 'pending'")
		pass(24 * time.Hour)
		want(t, "calls after setting it to pending", h.calls.times(), "09:00:00 09:00:00")
		h.sql(t, "INSERT INTO tasks(title, start_time) VALUES ('by SQL', '2000-01-04T12:00:00.000Z')")
		h.sql(t, "UPDATE tasks SET recurrence_days = '[\"x\"]', timezone = 'Nowhere' WHERE id = ?", task.ID)
		status, next := h.status(t, task.ID)
		want(t, "an invalid task", []any{status, next}, "[failed ]")
		pass(24 * time.Hour)
		want(t, "due events of tasks created by SQL", len(h.events(t, agent.EventCalendarDue)), 3)
	})
}
