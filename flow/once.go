package flow

import (
	"context"

	"satchel/agent"
	"satchel/store"
)

// Once executes a workflow for a cause, which q.Cause names, and returns once
// the execution has ended; began is told its id before. The same cause again
// starts nothing and waits for the execution that is there. One that did not
// complete is an EXECUTION_ERROR.
func (e *Engine) Once(ctx context.Context, db *store.DB, q Request, began func(executionID string)) (executionID string, err error) {
	q.Queue, q.Wait = true, 0
	started, err := e.Execute(ctx, db, q)
	if err != nil {
		return "", err
	}
	if started.Repeated {
		if executionID, err = db.ExecutionOf(ctx, q.Cause); err != nil {
			return "", err
		}
	} else {
		executionID = started.Execution.ID
	}
	began(executionID)
	x, err := e.Await(ctx, db, executionID)
	if err != nil {
		return executionID, err
	}
	switch {
	case x.Status == agent.ExecutionComplete:
		return executionID, nil
	case x.Error != nil:
		return executionID, agent.Errorf(agent.CodeExecution, "the workflow failed: %s", x.Error.Message)
	}
	return executionID, agent.Errorf(agent.CodeExecution, "the workflow was %s", x.Status)
}
