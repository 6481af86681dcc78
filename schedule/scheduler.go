package schedule

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/work"
	"satchel/store"
)

// Options say for whom a Scheduler works and what it can call.
type Options struct {
	store.Env
	Runners map[string]Runner // by callback_type; webhook is always there
	Tasks   TaskRunner        // starts the workflows of the calendar; nil: there are none
}

// Bounds of the work that is done at a time.
const (
	maxDue       = 4   // agents whose due runs are being taken
	maxRuns      = 256 // calls
	maxAgentRuns = 32  // of them of one agent, so that its slow receivers do not keep the others waiting
	// Agents whose results are being written: when many runs end together they
	// share commits, and clients of the API find a processor free.
	maxWriters = 2
)

// The wait after a failure of the store, which doubles with each in a row.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Scheduler starts what is due for the agents of one data folder. Nothing of an
// agent that is paused or disabled is started.
type Scheduler struct {
	folder  *store.Folder
	runners map[string]Runner
	tasks   TaskRunner
	webhook *webhook
	own     *egress.Own
	log     *slog.Logger
	now     func() time.Time // of the wall clock

	due     *work.Queue[dueKey]
	runs    *work.Queue[*run]
	results *work.Queue[*store.DB] // of runs, that are to be written

	mu        sync.Mutex               // protects underway and unwritten
	underway  map[runKey]*run          // that wait, run, or have an end that is not yet written
	unwritten map[*store.DB]*unwritten // results

	startMu       sync.Mutex // protects clock
	clock         gocron.Scheduler
	clockInterval time.Duration
	clockOffset   time.Duration // that checkClock met last, see measureClock
	epoch         time.Time     // when the Scheduler was made
}

// New makes a Scheduler and subscribes it to what is pending.
func New(o Options) *Scheduler {
	s := &Scheduler{folder: o.Folder, runners: map[string]Runner{}, tasks: o.Tasks, own: o.Own, log: o.Logger(), now: time.Now,
		underway: map[runKey]*run{}, unwritten: map[*store.DB]*unwritten{}, epoch: time.Now(), clockInterval: clockInterval}
	s.webhook = &webhook{client: egress.New(egress.Policy{Allow: o.Allow}), agent: "Satchel/" + o.Version, waits: retryWaits}
	for kind, run := range o.Runners {
		s.runners[kind] = run
	}
	s.runners[agent.CallbackWebhook] = s.webhook.run
	s.makeQueues()
	s.folder.OnPending(s.notify)
	return s
}

func (s *Scheduler) makeQueues() {
	backoff := work.Exponential(firstRetry, lastRetry)
	report := func(failed string) func(*store.DB, error) {
		return func(db *store.DB, err error) { s.log.Error(failed, "agent", db.ID(), "error", err) }
	}
	readFailed := report("read what an agent has to start")
	s.due = work.New(work.Options[dueKey]{Run: s.takeDue, Limit: maxDue, Backoff: backoff,
		Now:     func() time.Time { return s.now() },
		OnError: func(key dueKey, err error) { readFailed(key.db, err) }})
	startFailed := report("start a run")
	s.runs = work.New(work.Options[*run]{Run: s.execute, Limit: maxRuns, Backoff: backoff,
		Group:      func(r *run) any { return r.group },
		GroupLimit: func(any) int { return maxAgentRuns },
		OnError:    func(r *run, err error) { startFailed(r.key.db, err) }})
	s.results = work.New(work.Options[*store.DB]{Run: s.writeResults, Limit: maxWriters, Backoff: backoff,
		OnError: report("write what became of runs")})
}

// notify takes up the work that is announced of an agent.
func (s *Scheduler) notify(db *store.DB, p store.Pending) {
	due, interrupted := dueKey{db: db}, dueKey{db, true}
	if p.Changed {
		s.due.Retry(due)
		s.due.Retry(interrupted)
		return
	}
	s.due.EnqueueAt(due, p.Schedules.Time)
	s.due.EnqueueAt(interrupted, p.Runs.Time)
}

// Start begins to work and returns at once; it may be called twice. The work
// ends with ctx or Stop.
func (s *Scheduler) Start(ctx context.Context) error {
	s.startMu.Lock()
	defer s.startMu.Unlock()
	if s.clock != nil {
		return nil
	}
	if err := s.startClock(); err != nil {
		return err
	}
	s.due.Start(ctx)
	s.runs.Start(ctx)
	s.results.Start(ctx)
	return nil
}

// flushTimeout is how long Stop waits for the results of calls that have ended.
const flushTimeout = 5 * time.Second

// Stop interrupts what runs and waits until nothing does. What was interrupted
// is started again by the next Start, in this process or another.
func (s *Scheduler) Stop() {
	s.startMu.Lock()
	defer s.startMu.Unlock()
	if s.clock == nil {
		return
	}
	s.stopClock()
	s.due.Stop()
	s.runs.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	for _, db := range s.agentsUnwritten() {
		_ = s.results.Wait(ctx, db) // what is not written is called again
	}
	s.results.Stop()
	s.webhook.client.CloseIdleConnections()
}
