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
func (e *Engine) ExecuteIdempotent(
	ctx context.Context,
	db *store.DB,
	q Request,
	began func(executionID string),
) (executionID string, err error) {
	a, err := e.ready(ctx, db)
	if err != nil {
		return "", err
	}
	done, err := e.awaitStart(ctx, a)
	if err != nil {
		return "", err
	}
	defer done()
	q.Queue, q.started = true, func(id string) {
		done()
		began(id)
	}
	started, err := e.Execute(ctx, db, q)
	x := started.Execution
	if err == nil && started.Repeated {
		if x.ID, err = db.ExecutionOf(ctx, q.IdempotencyKey, ""); err != nil {
			return "", err
		}
		q.started(x.ID)
		x, err = e.Await(ctx, db, x.ID)
	}
	switch {
	case err != nil:
		return x.ID, err
	case x.Status == agent.ExecutionComplete:
		return x.ID, nil
	case x.Error != nil:
		return x.ID, agent.Errorf(agent.CodeExecution, "the workflow failed: %s", x.Error.Message)
	}
	return x.ID, agent.Errorf(agent.CodeExecution, "the workflow was %s", x.Status)
}

// awaitIdempotent waits for the end of an execution of ExecuteIdempotent, and
// calls q.started as soon as it is in the file. An execution that ends before
// it had anything to write is one commit, and its outcome is not read back.
func (e *Engine) awaitIdempotent(
	ctx context.Context,
	db *store.DB,
	q Request,
	s Started,
	r *run,
	w *awaited,
) (Started, error) {
	if r != nil && !r.written.Load() {
		select {
		case <-r.inserted:
		case <-w.done:
		case <-ctx.Done():
			return Started{}, ctx.Err()
		}
		if !r.written.Load() { // it was never written, and will not be here
			switch {
			case errors.Is(w.err, store.ErrRepeated):
				return Started{Repeated: true}, nil
			case !errors.Is(w.err, errInterrupted):
				return Started{}, w.err
			case e.stopped():
				<-ctx.Done() // the caller stops too, and asks again after the next start
				return Started{}, ctx.Err()
			}
			return Started{}, agent.Errorf(
				agent.CodeConflict,
				"the agent was disabled before the execution started",
			).Because(w.err)
		}
	}
	q.started(s.Execution.ID)
	select {
	case <-w.done:
	case <-ctx.Done():
		return s, ctx.Err()
	}
	if w.run != nil && w.run.execution.Status.Ended() {
		s.Execution = *w.run.execution
		return s, nil
	}
	x, _, err := db.Execution(ctx, s.Execution.ID)
	if err == nil {
		s.Execution = x
	}
	return s, err
}
