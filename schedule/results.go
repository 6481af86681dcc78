package schedule

import (
	"context"
	"maps"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// writeStartAfter is how long an execution runs before its id is written to the
// row of its run. For one that ends sooner it is written with the run's end.
const writeStartAfter = 500 * time.Millisecond

// maxWritten limits the run ends written in one transaction, so that other
// writes do not wait long.
const maxWritten = 200

// unwritten holds the results of an agent's runs that are not in its file yet.
type unwritten struct {
	started map[runKey]startedExecution // of runs in progress
	ended   []endedRun
}

type startedExecution struct {
	id  string
	due time.Time // when it is written at the latest
}

type endedRun struct {
	*run
	row agent.Run
}

// started records the execution that a run started.
func (s *Scheduler) started(r *run, executionID string) {
	due := time.Now().Add(writeStartAfter)
	s.mu.Lock()
	s.unwrittenLocked(r.key.db).started[r.key] = startedExecution{executionID, due}
	s.mu.Unlock()
	s.results.EnqueueAt(r.key.db, due)
}

// ended records the end of a run.
func (s *Scheduler) ended(r *run, row agent.Run) {
	s.mu.Lock()
	u := s.unwrittenLocked(r.key.db)
	delete(u.started, r.key)
	u.ended = append(u.ended, endedRun{r, row})
	s.mu.Unlock()
	s.results.Enqueue(r.key.db)
}

func (s *Scheduler) unwrittenLocked(db *store.DB) *unwritten {
	u := s.unwritten[db]
	if u == nil {
		u = &unwritten{started: map[runKey]startedExecution{}}
		s.unwritten[db] = u
	}
	return u
}

// agentsWithEnds returns the agents with unwritten run ends.
func (s *Scheduler) agentsWithEnds() []*store.DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.unwritten))
}

// writeResults writes the results of an agent's runs in one commit, and starts
// the runs that waited for them.
func (s *Scheduler) writeResults(ctx context.Context, db *store.DB) (work.Next, error) {
	changes, ended := s.changes(db, time.Now())
	var next store.DueRuns
	if len(ended) > 0 || len(changes.Started) > 0 {
		var err error
		if next.Runs, err = db.UpdateRuns(ctx, changes); err != nil && !isGone(err) {
			return work.Next{}, err
		}
	}
	due := s.removeWritten(db, changes, ended)
	s.enqueue(dueKey{db: db}, next)
	return work.Next{At: due}, nil
}

// changes returns what must be written about an agent's runs now, and the runs
// whose ends it includes.
func (s *Scheduler) changes(db *store.DB, now time.Time) (changes store.RunChanges, ended []endedRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unwritten := s.unwrittenLocked(db)
	changes.Started = map[string]string{}
	for key, execution := range unwritten.started {
		if !execution.due.After(now) {
			changes.Started[key.id] = execution.id
		}
	}
	ended = unwritten.ended[:min(len(unwritten.ended), maxWritten)]
	for _, r := range ended {
		if r.task {
			changes.Occurrences = append(changes.Occurrences, r.row)
		} else {
			changes.Runs = append(changes.Runs, r.row)
		}
	}
	return changes, ended
}

// removeWritten drops what was written, and returns when the rest is due.
func (s *Scheduler) removeWritten(db *store.DB, changes store.RunChanges, ended []endedRun) (due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unwritten := s.unwrittenLocked(db)
	unwritten.ended = unwritten.ended[len(ended):]
	for _, r := range ended {
		delete(s.active, r.key)
	}
	for key, execution := range unwritten.started {
		if _, done := changes.Started[key.id]; done {
			delete(unwritten.started, key)
		} else if due.IsZero() || execution.due.Before(due) {
			due = execution.due
		}
	}
	if len(unwritten.ended) > 0 {
		return time.Unix(0, 0)
	}
	if len(unwritten.started) == 0 {
		delete(s.unwritten, db)
	}
	return due
}
