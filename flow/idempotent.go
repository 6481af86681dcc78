package flow

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/store"
)

// ExecuteIdempotent executes a workflow and returns once the execution has
// ended; before that it calls began with the id. A second call with the same
// q.IdempotencyKey starts nothing and waits for the existing execution. It
// returns EXECUTION_ERROR if the execution did not complete.
func (engine *Engine) ExecuteIdempotent(
	ctx context.Context,
	db *store.DB,
	request Request,
	began func(executionID string),
) (executionID string, err error) {
	state, err := engine.ready(ctx, db)
	if err != nil {
		return "", err
	}
	done, err := engine.awaitStart(ctx, state)
	if err != nil {
		return "", err
	}
	defer done()
	request.Queue, request.started = true, func(id string) {
		done()
		began(id)
	}
	started, err := engine.Execute(ctx, db, request)
	execution := started.Execution
	if err == nil && started.Repeated {
		if execution.ID, err = db.ExecutionOf(ctx, request.IdempotencyKey, ""); err != nil {
			return "", err
		}
		request.started(execution.ID)
		execution, err = engine.Await(ctx, db, execution.ID)
	}
	switch {
	case err != nil:
		return execution.ID, err
	case execution.Status == agent.ExecutionComplete:
		return execution.ID, nil
	case execution.Error != nil:
		return execution.ID, agent.Errorf(agent.CodeExecution, "the workflow failed: %s", execution.Error.Message)
	}
	return execution.ID, agent.Errorf(agent.CodeExecution, "the workflow was %s", execution.Status)
}

// awaitIdempotent waits for the end of an execution of ExecuteIdempotent, and
// calls q.started as soon as it is in the file. An execution that ends before
// it had anything to write is one commit, and its outcome is not read back.
func (engine *Engine) awaitIdempotent(
	ctx context.Context,
	db *store.DB,
	request Request,
	started Started,
	run *run,
	awaited *awaited,
) (Started, error) {
	if run != nil && !run.written.Load() {
		select {
		case <-run.inserted:
		case <-awaited.done:
		case <-ctx.Done():
			return Started{}, ctx.Err()
		}
		if !run.written.Load() { // it was never written, and will not be here
			switch {
			case errors.Is(awaited.err, store.ErrRepeated):
				return Started{Repeated: true}, nil
			case !errors.Is(awaited.err, errInterrupted):
				return Started{}, awaited.err
			case engine.stopped():
				<-ctx.Done() // the caller stops too, and asks again after the next start
				return Started{}, ctx.Err()
			}
			return Started{}, agent.Errorf(
				agent.CodeConflict,
				"the agent was disabled before the execution started",
			).Because(awaited.err)
		}
	}
	request.started(started.Execution.ID)
	select {
	case <-awaited.done:
	case <-ctx.Done():
		return started, ctx.Err()
	}
	if awaited.run != nil && awaited.run.execution.Status.Ended() {
		started.Execution = *awaited.run.execution
		return started, nil
	}
	x, _, err := db.Execution(ctx, started.Execution.ID)
	if err == nil {
		started.Execution = x
	}
	return started, err
}
