package schedule

import (
	"context"

	"satchel/store"
)

// Bounds of the calls that are being started at a time. A workflow counts until
// its execution exists, everything else until it ends. One agent cannot take
// all, so that its slow receivers do not keep the others waiting.
const (
	maxStarting       = 256
	maxAgentStarting  = 32
	maxAgentWorkflows = 128 // that one agent starts at a time: they take moments, and together share commits
)

// job is a run that waits for a slot or has one.
type job struct {
	id string
	do func(ctx context.Context, began func()) // began gives the slot free, once

	most int // of its agent that may be starting
}

// lane is the queue of one agent.
type lane struct {
	db       *store.DB
	jobs     []*job
	starting int
	all      int  // jobs that wait or run
	listed   bool // in ready
}

// enqueue adds a job unless one of its id is there. The caller holds s.mu, as
// for all below.
func (s *Scheduler) enqueue(db *store.DB, j *job) {
	if s.underway[j.id] {
		return
	}
	s.underway[j.id] = true
	l := s.lanes[db]
	if l == nil {
		l = &lane{db: db}
		s.lanes[db] = l
	}
	l.jobs = append(l.jobs, j)
	l.all++
	s.list(l)
}

// free tells whether a lane has a job that it may start.
func (l *lane) free() bool { return len(l.jobs) > 0 && l.starting < l.jobs[0].most }

// list puts a lane in line when it has a job that it may start.
func (s *Scheduler) list(l *lane) {
	if !l.listed && l.free() {
		l.listed = true
		s.ready = append(s.ready, l)
	}
}

// pumpJobs starts jobs, some of each agent in turn, while there are slots. What
// starts together shares commits.
func (s *Scheduler) pumpJobs() {
	for s.starting < maxStarting && len(s.ready) > 0 {
		l := s.ready[0]
		s.ready = s.ready[1:]
		l.listed = false
		for s.starting < maxStarting && l.free() {
			j, ctx := l.jobs[0], s.ctx
			l.jobs = l.jobs[1:]
			l.starting++
			s.starting++
			s.running.Go(func() { s.run(ctx, l, j) })
		}
		s.list(l)
	}
}

// run does one job to its end. It takes s.mu itself.
func (s *Scheduler) run(ctx context.Context, l *lane, j *job) {
	held := true
	free := func() { // the caller holds s.mu
		if !held {
			return
		}
		held = false
		l.starting--
		s.starting--
		s.list(l)
		s.pump()
	}
	j.do(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		free()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	free()
	if ctx.Err() != nil {
		return // the lane goes with Stop, which notes what was cut
	}
	delete(s.underway, j.id)
	if ended := s.ended[l.db]; ended != nil {
		ended[j.id] = true
	}
	if l.all--; l.all == 0 {
		delete(s.lanes, l.db)
	}
}
