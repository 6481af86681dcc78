package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"satchel/agent"
	"satchel/store"
)

// TaskCall is an occurrence of a task that starts a workflow.
type TaskCall struct {
	RunID      string // the occurrence's id; the same when a start that was cut is made again
	Task       agent.Task
	Occurrence agent.Occurrence
	Began      func(executionID string) // as for a Callback
}

// Trigger is the payload that the workflow gets, a JSON object.
func (c TaskCall) Trigger() json.RawMessage {
	return object(map[string]any{"task": c.Task, "occurrence": c.Occurrence})
}

// TaskRunner starts the workflow of a task and returns once it has ended, as a
// Runner does.
type TaskRunner func(ctx context.Context, db *store.DB, c TaskCall) (executionID string, err error)

// CheckTask tells whether the Scheduler can start what a task names.
func (s *Scheduler) CheckTask(t *agent.Task) error {
	if t.WorkflowID != "" && s.tasks == nil {
		return agent.Invalid("workflow_id", "workflows are not available in this version")
	}
	return nil
}

// runTask starts the workflow of an occurrence and writes what came of it.
func (s *Scheduler) runTask(ctx context.Context, db *store.DB, t store.StartedTask, began func()) {
	started := time.Now()
	id := t.Occurrence.ID
	note := s.noted(ctx, db, id, began)
	executionID, err := s.callTask(ctx, db, TaskCall{RunID: id, Task: t.Task, Occurrence: t.Occurrence, Began: note.began})
	note.end()
	if ctx.Err() != nil {
		return
	}
	status, problem := agent.TaskCompleted, ""
	if err != nil {
		status, problem = agent.TaskFailed, agent.Clip(agent.Explain(err), 500)
		s.log.Warn("a task of the calendar failed", "agent", db.ID(), "occurrence", id, "error", err)
	}
	duration := time.Since(started).Milliseconds()
	err = persist(ctx, func() error { return db.FinishOccurrence(ctx, id, status, duration, executionID, problem) })
	if err != nil && ctx.Err() == nil {
		s.log.Error("write how a task ended", "agent", db.ID(), "occurrence", id, "error", err)
	}
}

func (s *Scheduler) callTask(ctx context.Context, db *store.DB, c TaskCall) (executionID string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a task: %v\n%s", p, debug.Stack())
		}
	}()
	if err := s.CheckTask(&c.Task); err != nil {
		return "", err
	}
	if ctx, err = s.chained(ctx, db, c.Task.ID); err != nil {
		return "", err
	}
	return s.tasks(ctx, db, c)
}
