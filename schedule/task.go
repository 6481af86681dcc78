package schedule

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// TaskCall is an occurrence of a task that starts a workflow.
type TaskCall struct {
	RunID      string // the occurrence's id; the same when an interrupted start is repeated
	Task       agent.Task
	Occurrence agent.Occurrence
	Started    func(executionID string) // as for a Callback
}

// Trigger returns the payload for the workflow, a JSON object.
func (c TaskCall) Trigger() json.RawMessage {
	return object(map[string]any{"task": c.Task, "occurrence": c.Occurrence})
}

// TaskRunner starts the workflow of a task and returns when it has ended, like
// a Runner.
type TaskRunner func(ctx context.Context, db *store.DB, c TaskCall) (executionID string, err error)

// CheckTask returns an error if the Scheduler cannot start what a task refers
// to.
func (s *Scheduler) CheckTask(t *agent.Task) error {
	if t.WorkflowID != "" && s.tasks == nil {
		return agent.Invalid("workflow_id", "workflows are not available in this version")
	}
	return nil
}

// newTaskRun returns an occurrence of a task for the queue.
func (s *Scheduler) newTaskRun(db *store.DB, t store.StartedTask) *run {
	return &run{
		row:   agent.Run{ID: t.Occurrence.ID},
		task:  true,
		group: runGroup{workflows: true},
		call: func(ctx context.Context, started func(string)) (string, error) {
			return s.callTask(ctx, db, TaskCall{
				RunID:      t.Occurrence.ID,
				Task:       t.Task,
				Occurrence: t.Occurrence,
				Started:    started,
			})
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
