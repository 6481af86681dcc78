package callbacks

import (
	"context"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/schedule"
	"satchel/store"
)

// sourceTime is how long a run waits for a source.
const sourceTime = 6 * time.Hour

// source crawls or reads a source again and waits until it is ready or has
// failed. If that is already in progress, it only waits.
func (cb Callbacks) source(ctx context.Context, db *store.DB, callback schedule.Callback) (string, error) {
	id := callback.Schedule.CallbackID
	if _, err := db.RestartSource(ctx, id, agent.SourceUpdating); err != nil &&
		agent.ErrorCode(err) != agent.CodeConflict {
		return "", err
	}
	work.Release(ctx) // sources have their own limits
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		sourceTime,
		agent.Errorf(agent.CodeUpstream, "the source was not ready within %s", sourceTime),
	)
	defer cancel()
	s, err := db.AwaitSource(ctx, id)
	switch {
	case err != nil:
		return "", timeoutCause(ctx, err)
	case s.Status == agent.SourceFailed && s.Error != nil:
		return "", agent.Errorf(agent.CodeExecution, "the source failed: %s", s.Error.Message)
	case s.Status == agent.SourceFailed:
		return "", agent.Errorf(agent.CodeExecution, "the source failed")
	}
	return "", nil
}
