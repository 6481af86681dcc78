package schedule

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// dueKey identifies an agent whose due runs, or whose interrupted runs, are to
// be taken.
type dueKey struct {
	db          *store.DB
	interrupted bool
}

// takeDue takes in one write what an agent has to start, and enqueues it.
func (s *Scheduler) takeDue(ctx context.Context, key dueKey) (work.Next, error) {
	switch {
	case key.db.Gone():
		s.forget(key.db)
		return work.Next{}, nil
	case key.db.Problem() != nil || key.db.Agent().Status != agent.StatusActive:
		return work.Next{}, nil
	}
	take := key.db.TakeDue
	if key.interrupted {
		take = key.db.Interrupted
	}
	due, err := take(ctx)
	if isGone(err) {
		return work.Next{}, nil
	}
	if err == nil {
		s.enqueue(key, due)
	}
	return work.Next{At: due.Next.Time}, err
}

// enqueue enqueues due runs, except those in progress.
func (s *Scheduler) enqueue(key dueKey, due store.DueRuns) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(r *run) {
		r.key, r.group.db, r.interrupted = runKey{key.db, r.row.ID}, key.db, key.interrupted
		if s.active[r.key] == nil {
			s.active[r.key] = r
			s.runs.Enqueue(r)
		}
	}
	for _, r := range due.Runs {
		add(s.newRun(key.db, r))
	}
	for _, t := range due.Tasks {
		add(s.newTaskRun(key.db, t))
	}
}

// isGone reports whether an error means that the agent no longer exists or is
// closed.
func isGone(err error) bool {
	return agent.ErrorCode(err) == agent.CodeNotFound || errors.Is(err, store.ErrClosed)
}

// forget drops the runs of a deleted agent.
func (s *Scheduler) forget(db *store.DB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, workflows := range []bool{false, true} {
		for _, r := range s.runs.Keys(runGroup{db, workflows}) {
			s.runs.Forget(r)
			delete(s.active, r.key)
		}
	}
}
