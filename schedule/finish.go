package schedule

import (
	"context"

	"satchel/agent"
	"satchel/store"
)

// maxFinishers bounds the agents for which ends of runs are written at a time:
// when many runs end together they share commits, and clients of the API find
// a processor free.
const maxFinishers = 2

// ending is a run whose end is to be written.
type ending struct {
	run  agent.Run
	done chan error // has room for the outcome
}

// finish writes how a run ended, with others of the same agent, and starts what
// waited for it.
func (s *Scheduler) finish(ctx context.Context, db *store.DB, run agent.Run) error {
	e := ending{run, make(chan error, 1)}
	s.mu.Lock()
	if len(s.endings[db]) == 0 {
		s.toFinish = append(s.toFinish, db)
	}
	s.endings[db] = append(s.endings[db], e)
	if s.finishers < maxFinishers {
		s.finishers++
		s.running.Go(func() { s.finishAll(ctx) })
	}
	s.mu.Unlock()
	return <-e.done
}

// finishAll writes ends of runs, one agent after the other, until none waits.
func (s *Scheduler) finishAll(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.toFinish) > 0 {
		db := s.toFinish[0]
		endings := s.endings[db]
		s.toFinish = s.toFinish[1:]
		delete(s.endings, db)
		s.mu.Unlock()
		runs := make([]agent.Run, len(endings))
		for i, e := range endings {
			runs[i] = e.run
		}
		next, err := db.FinishRuns(ctx, runs)
		s.queue(db, store.DueRuns{Runs: next})
		for _, e := range endings {
			e.done <- err
		}
		s.mu.Lock()
	}
	s.finishers--
}
