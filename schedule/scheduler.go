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

// Options configure a Scheduler.
type Options struct {
	store.Env
	Runners map[string]Runner // by callback_type; webhook always exists
	Tasks   TaskRunner        // starts the workflows of the calendar; nil: none
}

// Limits of concurrent work.
const (
	maxDue       = 4   // agents whose due runs are being taken
	maxRuns      = 256 // calls
	maxAgentRuns = 32  // calls of one agent, so that its slow receivers do not block those of others
	// Agents whose results are being written. When many runs end together they
	// share commits, and API requests find a processor free.
	maxWriters = 2
)

// The delay after a failure of the store, doubled with each consecutive one.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Scheduler starts what is due for the agents of one data folder. Nothing is
// started for agents that are paused or disabled.
type Scheduler struct {
	folder  *store.Folder
	runners map[string]Runner
	tasks   TaskRunner
	webhook *webhook
	own     *egress.OwnHosts
	log     *slog.Logger
	now     func() time.Time // the wall clock

	due     *work.Queue[dueKey]
	runs    *work.Queue[*run]
	results *work.Queue[*store.DB] // agents with results to write

	mu        sync.Mutex               // protects active and unwritten
	active    map[runKey]*run          // waiting or running runs, and runs whose end is not yet written
	unwritten map[*store.DB]*unwritten // results

	startMu       sync.Mutex // protects clock
	clock         gocron.Scheduler
	clockInterval time.Duration
	clockOffset   time.Duration // as of the last checkClock, see measureClock
	epoch         time.Time     // when the Scheduler was created
}

// New returns a Scheduler and subscribes it to pending work.
func New(options Options) *Scheduler {
	scheduler := &Scheduler{
		folder:        options.Folder,
		runners:       map[string]Runner{},
		tasks:         options.Tasks,
		own:           options.Own,
		log:           options.Logger(),
		now:           time.Now,
		active:        map[runKey]*run{},
		unwritten:     map[*store.DB]*unwritten{},
		epoch:         time.Now(),
		clockInterval: clockInterval,
	}
	scheduler.webhook = &webhook{
		client: egress.New(egress.Policy{Allow: options.Allow}),
		agent:  "Satchel/" + options.Version,
		waits:  retryWaits,
	}
	for kind, run := range options.Runners {
		scheduler.runners[kind] = run
	}
	scheduler.runners[agent.CallbackWebhook] = scheduler.webhook.run
	scheduler.makeQueues()
	scheduler.folder.OnPending(scheduler.notify)
	return scheduler
}

func (s *Scheduler) makeQueues() {
	backoff := work.Exponential(firstRetry, lastRetry)
	report := func(failed string) func(*store.DB, error) {
		return func(db *store.DB, err error) {
			s.log.Error(failed, "agent", db.ID(), "error", err)
		}
	}
	readFailed := report("read due runs")
	s.due = work.New(work.Options[dueKey]{
		Run:     s.takeDue,
		Limit:   maxDue,
		Backoff: backoff,
		Now:     func() time.Time { return s.now() },
		OnError: func(key dueKey, err error) { readFailed(key.db, err) },
	})
	startFailed := report("start a run")
	s.runs = work.New(work.Options[*run]{
		Run:        s.execute,
		Limit:      maxRuns,
		Backoff:    backoff,
		Group:      func(r *run) any { return r.group },
		GroupLimit: func(any) int { return maxAgentRuns },
		OnError: func(r *run, err error) {
			startFailed(r.key.db, err)
		},
	})
	s.results = work.New(work.Options[*store.DB]{
		Run:     s.writeResults,
		Limit:   maxWriters,
		Backoff: backoff,
		OnError: report("write the results of runs"),
	})
}

// notify handles a notification of pending work of an agent.
func (s *Scheduler) notify(db *store.DB, p store.Pending) {
	s.due.Notify(dueKey{db: db}, p.Schedules.Time, p.Changed)
	s.due.Notify(dueKey{db, true}, p.Runs.Time, p.Changed)
}

// Start begins to work and returns immediately. It may be called twice. The
// work ends with ctx or Stop.
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

// Stop interrupts running calls and waits until nothing runs. Interrupted calls
// are made again by the next Start, in this process or another.
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
	for _, db := range s.agentsWithEnds() {
		_ = s.results.Wait(ctx, db) // calls whose result is not written are made again
	}
	s.results.Stop()
	s.webhook.client.CloseIdleConnections()
}
