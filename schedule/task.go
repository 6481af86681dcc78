package schedule

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// TaskCall is an occurrence of a task that starts a workflow.
type TaskCall struct {
	RunID      string // the occurrence's id; the same when a start that was cut is made again
	Task       agent.Task
	Occurrence agent.Occurrence
	Started    func(executionID string) // as for a Callback
}

// Trigger is the payload that the workflow gets, a JSON object.
func (c TaskCall) Trigger() json.RawMessage {
	return object(map[string]any{"task": c.Task, "occurrence": c.Occurrence})
}

// TaskRunner starts the workflow of a task and returns once it has ended, as a
// Runner does.
type TaskRunner func(ctx context.Context, db *store.DB, c TaskCall) (executionID string, err error)

// CheckTask reports whether the Scheduler can start what a task names.
func (s *Scheduler) CheckTask(t *agent.Task) error {
	if t.WorkflowID != "" && s.tasks == nil {
		return agent.Invalid("workflow_id", "workflows are not available in this version")
	}
	return nil
}

// newTaskRun returns an occurrence of a task as it is enqueued.
func (s *Scheduler) newTaskRun(db *store.DB, t store.StartedTask) *run {
	return &run{
		row: agent.Run{ID: t.Occurrence.ID}, task: true, group: runGroup{workflows: true},
		call: func(ctx context.Context, started func(string)) (string, error) {
			return s.callTask(ctx, db, TaskCall{RunID: t.Occurrence.ID, Task: t.Task, Occurrence: t.Occurrence, Started: started})
		},
	}
}

func (s *Scheduler) callTask(ctx context.Context, db *store.DB, c TaskCall) (executionID string, err error) {
	if err := s.CheckTask(&c.Task); err != nil {
		return "", err
	}
	if ctx, err = s.chained(ctx, db, c.Task.ID); err != nil {
		return "", err
	}
	return s.tasks(ctx, db, c)
}
