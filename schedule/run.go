package schedule

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// runKey identifies a run of a schedule, or an occurrence of a task.
type runKey struct {
	db *store.DB
	id string
}

// runGroup is a set of an agent's runs that share a limit: runs that start
// workflows do not wait for others, whose calls take time.
type runGroup struct {
	db        *store.DB
	workflows bool
}

// run is a run of a schedule, or an occurrence of a task, to be started.
type run struct {
	key         runKey
	group       runGroup
	row         agent.Run // for an occurrence, the fields it shares with a run
	task        bool      // it is an occurrence
	interrupted bool      // it was started before
	call        func(ctx context.Context, started func(executionID string)) (executionID string, err error)
}

// execute makes the call of a run and records its result. A run interrupted by
// Stop stays as it is.
func (s *Scheduler) execute(ctx context.Context, run *run) (work.Next, error) {
	if run.interrupted {
		underWay, err := run.key.db.RunInProgress(ctx, run.key.id)
		if err != nil && !isGone(err) {
			return work.Next{}, err
		}
		if !underWay { // it ended while it was being read
			s.drop(run)
			return work.Next{}, nil
		}
	}
	began := time.Now()
	executionID, err := run.callSafely(ctx, func(executionID string) {
		s.started(run, executionID)
	})
	if ctx.Err() != nil {
		return work.Next{}, ctx.Err()
	}
	row := run.row
	row.Status, row.DurationMS = agent.RunSuccess, time.Since(began).Milliseconds()
	if executionID != "" {
		row.ExecutionID = executionID
	}
	if err != nil {
		row.Status, row.Error = agent.RunError, agent.Clip(agent.Explain(err), 500)
		s.log.Warn(
			"run schedule or task",
			"agent", run.key.db.ID(),
			"run", run.key.id,
			"error", err,
		)
	}
	s.ended(run, row)
	return work.Next{}, nil
}

// callSafely makes the call. A panic becomes an error.
func (r *run) callSafely(ctx context.Context, started func(string)) (executionID string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a call: %v\n%s", p, debug.Stack())
		}
	}()
	return r.call(ctx, started)
}

func (s *Scheduler) drop(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, r.key)
}
