package flow

import (
	"context"
	"errors"
	"slices"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/store"
)

// callers are the workflows whose executions wait for another one through a tool,
// the outermost first. Unlike an execution that waits in a workflow node, they are
// not suspended, so the execution that they wait for must not wait for their slots.
type callers []string

type callersKey struct{}

// withCaller returns a context for a node of a workflow, whose callers are c followed by
// that workflow.
func (c callers) withCaller(ctx context.Context, workflowID string) context.Context {
	return context.WithValue(ctx, callersKey{}, append(slices.Clip(c), workflowID))
}

// callersOf returns the callers of an execution that a node starts; the node's own
// workflow is the last.
func callersOf(ctx context.Context) callers {
	c, _ := ctx.Value(callersKey{}).(callers)
	return c
}

// outer returns the callers without the innermost.
func (c callers) outer() callers {
	return c[:max(len(c)-1, 0)]
}

// wait reports whether a workflow is among the callers.
func (c callers) wait(workflowID string) bool {
	return slices.Contains(c, workflowID)
}

// RunTool runs an active workflow for a tool and returns its output. An
// execution that has not ended by the deadline of ctx is terminated; one that
// has not ended by run.Deadline continues, and a chat.RunningWorkflow is
// returned. A second call with the same key, unless it is empty, starts nothing
// and waits for the execution of the first.
func (engine *Engine) RunTool(ctx context.Context, db *store.DB, run chat.WorkflowRun) (any, error) {
	key, own := run.Key, ctx
	if !run.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, run.Deadline)
		defer cancel()
	}
	request := Request{
		WorkflowID:     run.WorkflowID,
		Input:          run.Input,
		Trigger:        "workflow",
		IdempotencyKey: key,
		Queue:          true,
		Wait:           waitForever,
		active:         true,
		chain:          store.ChainOf(ctx),
		callers:        callersOf(ctx),
	}
	started, err := engine.execute(ctx, db, request)
	execution := started.Execution
	if err == nil && started.Repeated {
		if execution.ID, err = db.ExecutionOf(ctx, key, ""); err == nil {
			execution, err = engine.Await(ctx, db, execution.ID)
		}
	}
	switch {
	case ctx.Err() != nil &&
		own.Err() == nil &&
		!run.Deadline.IsZero() &&
		execution.ID != "" &&
		!execution.Status.Ended():
		return chat.RunningWorkflow{
			Status:      "running",
			ExecutionID: execution.ID,
			Message:     "The workflow is still running. Its result is not known yet.",
		}, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && !execution.Status.Ended():
		return nil, engine.terminateLate(context.WithoutCancel(ctx), db, execution.ID)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case execution.Status == agent.ExecutionComplete:
		return decodeOr(execution.Output), nil
	case execution.Error != nil:
		return nil, agent.Errorf(
			agent.CodeExecution,
			"the workflow failed: %s",
			execution.Error.Message,
		).With("execution_id", execution.ID)
	}
	return nil, agent.Errorf(
		agent.CodeExecution,
		"the workflow was %s",
		execution.Status,
	).With("execution_id", execution.ID)
}

// terminateLate ends an execution that exceeded the time limit of its tool, and
// returns the tool's error.
func (engine *Engine) terminateLate(ctx context.Context, db *store.DB, id string) error {
	late := agent.Errorf(
		agent.CodeUpstream,
		"the workflow did not end within the tool's time limit",
	).With("execution_id", id)
	if id == "" {
		return late
	}
	_, err := engine.Terminate(ctx, db, id)
	// it has ended, or left nothing
	if code := agent.ErrorCode(err); err == nil || code == agent.CodeNotFound || code == agent.CodeConflict {
		return late
	}
	return errors.Join(late, err)
}
