package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// Options say for whom a Scheduler works and what it can call.
type Options struct {
	Folder  *store.Folder
	Runners map[string]Runner // by callback_type; webhook is always there
	Tasks   TaskRunner        // starts the workflows of the calendar; nil: there are none
	Allow   []netip.Prefix    // private addresses that webhooks may reach
	Own     *egress.Own       // what this server is called; may be nil
	Version string
	Log     *slog.Logger // nil: slog.Default()
}

// Scheduler starts what is due for the agents of one data folder. Nothing of an
// agent that is paused or disabled is started.
type Scheduler struct {
	folder  *store.Folder
	runners map[string]Runner
	tasks   TaskRunner
	webhook *webhook
	own     *egress.Own
	sweep   time.Duration
	log     *slog.Logger

	wake     chan struct{} // look again
	looking  atomic.Bool   // around, and then the timer will be set
	earliest atomic.Int64  // when something is due next, in Unix nanoseconds

	mu       sync.Mutex
	ctx      context.Context // of the work; nil while stopped
	taking   map[*store.DB]bool
	due      []*store.DB // agents in taking that no taker has yet
	takers   int
	cut      map[*store.DB]bool            // whose interrupted runs are to be found
	ended    map[*store.DB]map[string]bool // runs that end while those are looked for
	retries  map[*store.DB]time.Time       // when to try again after a failure
	lanes    map[*store.DB]*lane
	ready    []*lane // lanes that have a job and may start it
	starting int
	underway map[string]bool // ids of runs that wait for a slot or run

	endings   map[*store.DB][]ending
	toFinish  []*store.DB // agents in endings that no finisher has yet
	finishers int

	startMu sync.Mutex
	stop    context.CancelFunc
	timer   gocron.Scheduler
	alarm   gocron.Job // the timer's, for the earliest due time; nil without one
	running sync.WaitGroup
}

// New makes a Scheduler and has it told of changed plans.
func New(o Options) *Scheduler {
	s := &Scheduler{
		folder: o.Folder, runners: map[string]Runner{}, tasks: o.Tasks, own: o.Own, sweep: sweepEvery, log: o.Log, wake: make(chan struct{}, 1),
		taking: map[*store.DB]bool{}, cut: map[*store.DB]bool{}, ended: map[*store.DB]map[string]bool{}, retries: map[*store.DB]time.Time{},
		lanes: map[*store.DB]*lane{}, underway: map[string]bool{}, endings: map[*store.DB][]ending{},
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.webhook = &webhook{client: egress.New(egress.Policy{Allow: o.Allow, MaxResponse: maxAnswer}), agent: "Satchel/" + o.Version, waits: retryWaits}
	for kind, run := range o.Runners {
		s.runners[kind] = run
	}
	s.runners[agent.CallbackWebhook] = s.webhook.run
	s.earliest.Store(never)
	s.folder.OnPlans(s.planned)
	return s
}

// sweepEvery is how often the Scheduler looks around by itself: for agents that
// appeared or became active, after failures, and because the clock may have
// been set, which no timer notices.
const sweepEvery = 2 * time.Second

// Start begins to work and returns at once; it may be called twice. The work
// ends with ctx or Stop.
func (s *Scheduler) Start(ctx context.Context) error {
	s.startMu.Lock()
	defer s.startMu.Unlock()
	if s.stop != nil {
		return nil
	}
	timer, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		return fmt.Errorf("start the timer of schedules: %w", err)
	}
	if _, err := timer.NewJob(gocron.DurationJob(s.sweep), gocron.NewTask(s.nudge)); err != nil {
		return errors.Join(fmt.Errorf("start the timer of schedules: %w", err), timer.Shutdown())
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.timer = timer
	timer.Start()
	s.mu.Lock()
	s.ctx = ctx
	s.pump()
	s.mu.Unlock()
	s.running.Go(func() { s.serve(ctx) })
	return nil
}

// Stop cuts what runs and waits until nothing does. What was cut is started
// again by the next Start, in this process or another.
func (s *Scheduler) Stop() {
	s.startMu.Lock()
	defer s.startMu.Unlock()
	if s.stop == nil {
		return
	}
	s.stop()
	if err := s.timer.Shutdown(); err != nil {
		s.log.Error("stop the timer of schedules", "error", err)
	}
	s.running.Wait()
	s.webhook.client.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.stop = nil, nil
	for db := range s.lanes {
		s.cut[db] = true
	}
	clear(s.lanes)
	clear(s.underway)
	clear(s.taking)
	clear(s.ended)
	s.ready, s.due, s.starting = nil, nil, 0
}

// nudge has the Scheduler look around soon.
func (s *Scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// never is later than any time that can be written.
const never = math.MaxInt64

// planned hears that an agent's next due time changed.
func (s *Scheduler) planned(db *store.DB) {
	if s.advance(db.NextDue().Time) && !s.looking.Load() {
		s.nudge()
	}
}

// advance takes a time for the earliest, if it is, and tells whether it was.
func (s *Scheduler) advance(at time.Time) bool {
	if at.IsZero() {
		return false
	}
	for nanos := at.UnixNano(); ; {
		known := s.earliest.Load()
		if nanos >= known {
			return false
		}
		if s.earliest.CompareAndSwap(known, nanos) {
			return true
		}
	}
}

// serve looks for what is due whenever it is woken.
func (s *Scheduler) serve(ctx context.Context) {
	for {
		s.runOnce(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
	}
}

// runOnce hands the agents that have something due to the takers, and sets the
// timer for the next that will.
func (s *Scheduler) runOnce(now time.Time) {
	s.looking.Store(true)
	s.earliest.Store(never)
	agents := s.folder.Agents()
	s.mu.Lock()
	for _, db := range agents {
		at := s.dueAt(db)
		switch {
		case at.IsZero() || s.taking[db]:
		case !at.After(now):
			s.taking[db] = true
			s.due = append(s.due, db)
		default:
			s.advance(at)
		}
	}
	s.pump()
	s.mu.Unlock()
	s.looking.Store(false) // what changes from now on wakes us
	s.arm(s.earliest.Load())
}

// dueAt is when an agent has something to start; zero for never.
func (s *Scheduler) dueAt(db *store.DB) time.Time {
	if db.Problem() != nil || db.Agent().Status != agent.StatusActive {
		return time.Time{}
	}
	if retry, failed := s.retries[db]; failed {
		return retry
	}
	if s.cut[db] || db.MayBeCut() {
		s.cut[db] = true
		return time.Unix(0, 0)
	}
	return db.NextDue().Time
}

// arm sets the timer. The caller is serve.
func (s *Scheduler) arm(nanos int64) {
	if s.alarm != nil {
		_ = s.timer.RemoveJob(s.alarm.ID()) // it is gone when it has run
		s.alarm = nil
	}
	if nanos == never {
		return
	}
	wait := time.Until(time.Unix(0, nanos))
	if wait <= 0 {
		s.nudge()
		return
	}
	// Not a OneTimeJob: in gocron 2.21 one whose time passes while it is made
	// keeps the whole timer busy for ever.
	job, err := s.timer.NewJob(gocron.DurationJob(max(wait, time.Millisecond)), gocron.NewTask(s.nudge), gocron.WithLimitedRuns(1))
	if err != nil {
		s.log.Error("set the timer of schedules", "error", err) // the next sweep looks again
		return
	}
	s.alarm = job
}
