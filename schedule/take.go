package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"satchel/agent"
	"satchel/store"
)

// maxTakers bounds the agents whose files are read for what is due at a time.
const maxTakers = 4

// retryAfter is how long an agent waits after its file failed.
const retryAfter = 2 * time.Second

// pump starts takers for the agents that wait, and the jobs for which there is
// a slot. The caller holds s.mu.
func (s *Scheduler) pump() {
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	for s.takers < min(maxTakers, len(s.due)) {
		s.takers++
		s.running.Go(s.take)
	}
	s.pumpJobs()
}

// take takes what is due of one agent after the other until none waits.
func (s *Scheduler) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.takers-- }()
	for len(s.due) > 0 && s.ctx.Err() == nil {
		db, ctx, cut := s.due[0], s.ctx, s.cut[s.due[0]]
		s.due = s.due[1:]
		s.mu.Unlock()
		more, err := s.takeFrom(ctx, db, cut)
		s.mu.Lock()
		delete(s.taking, db)
		delete(s.retries, db)
		switch {
		case err == nil:
			if cut {
				delete(s.cut, db)
			}
			if more {
				s.nudge()
			}
		case ctx.Err() != nil || agent.ErrorCode(err) == agent.CodeNotFound || errors.Is(err, store.ErrClosed):
		default:
			s.retries[db] = time.Now().Add(retryAfter)
			s.log.Error("look for what an agent has to start", "agent", db.ID(), "error", err)
		}
		if len(s.due) == 0 {
			s.nudge() // set the timer for what these have next
		}
	}
}

// takeFrom takes what one agent has to start and queues it; with cut also what
// had started before and was cut.
func (s *Scheduler) takeFrom(ctx context.Context, db *store.DB, cut bool) (more bool, err error) {
	if cut {
		if err := s.takeUp(ctx, db); err != nil {
			return false, err
		}
	}
	due, err := db.TakeDue(ctx)
	if err != nil {
		return false, err
	}
	s.queue(db, due)
	return due.More, nil
}

// takeUp queues the runs of an agent that were cut. What ends meanwhile is still
// among those that are read.
func (s *Scheduler) takeUp(ctx context.Context, db *store.DB) error {
	s.mu.Lock()
	ended := map[string]bool{}
	s.ended[db] = ended
	s.mu.Unlock()
	left, err := db.Interrupted(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ended, db)
	left.Runs = slices.DeleteFunc(left.Runs, func(r store.ScheduledRun) bool { return ended[r.Run.ID] })
	left.Tasks = slices.DeleteFunc(left.Tasks, func(t store.StartedTask) bool { return ended[t.Occurrence.ID] })
	s.queueLocked(db, left)
	return err
}

func (s *Scheduler) queue(db *store.DB, due store.DueRuns) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queueLocked(db, due)
}

func (s *Scheduler) queueLocked(db *store.DB, due store.DueRuns) {
	for _, r := range due.Runs {
		most := maxAgentStarting
		if r.Schedule.CallbackType == agent.CallbackWorkflow {
			most = maxAgentWorkflows
		}
		s.enqueue(db, &job{id: r.Run.ID, most: most, do: func(ctx context.Context, began func()) { s.runSchedule(ctx, db, r, began) }})
	}
	for _, t := range due.Tasks {
		s.enqueue(db, &job{id: t.Occurrence.ID, most: maxAgentWorkflows, do: func(ctx context.Context, began func()) { s.runTask(ctx, db, t, began) }})
	}
	s.pump()
}
