package flow

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/script"
	"satchel/store"
	"satchel/vector"
)

// Options say what an Engine works on.
type Options struct {
	Folder  *store.Folder
	Index   *vector.Index  // for search nodes; may be nil
	Scripts *script.Pool   // for JavaScript; may be nil
	Allow   []netip.Prefix // private ranges that the operator opened
	Own     *egress.Own    // what this server is called; may be nil
	Version string         // of the program, for the User-Agent
	Log     *slog.Logger   // may be nil
}

// Engine executes the workflows of the agents of one data folder.
type Engine struct {
	options  Options
	folder   *store.Folder
	log      *slog.Logger
	client   *egress.Client
	kinds    map[string]*Kind
	browsing *browsing // nil: no nodes drive a browser
	programs programs
	turns    turns
	budget   budget
	drain    time.Duration // how long Stop lets executions come to their end by themselves
	hold     time.Duration // how long the results of nodes without effects wait for a commit

	mu       sync.Mutex
	agents   map[*store.DB]*agentState
	busy     int         // executions at work
	backlog  []*line     // workflows with executions in the queue
	resuming []resumable // executions that are to go on
	awaited  map[string]*awaited
	stopping bool
	quiet    chan struct{} // closed when stopping and nothing is at work

	watchMu  sync.Mutex
	watchers map[string]map[chan Event]bool
	watching atomic.Int64

	alarm chan struct{} // an earlier wait than known before

	startMu sync.Mutex
	work    context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup
}

// agentState is what the engine knows of one agent.
type agentState struct {
	db     *store.DB
	status agent.Status  // when it was last looked at
	taken  chan struct{} // closed once its unfinished executions are known
	busy   int
	active map[string]*run
	lines  map[string]*line
	due    time.Time // when its first wait ends; zero: none
	firing bool
	again  time.Time // when to look again, after a failure

	drawing sync.Mutex // held by one of those that start by Once while it reads
}

// line is what a workflow has at work and in the queue.
type line struct {
	agent    *agentState
	workflow string
	limit    int // that may be at work
	running  int // without those asleep
	queued   int
	listed   bool // in the backlog
}

// resumable is an execution that is to go on once there is room.
type resumable struct {
	agent *agentState
	id    string
}

// awaited is an execution whose end somebody waits for.
type awaited struct {
	done  chan struct{}
	n     int  // who wait
	run   *run // that ended it, if it was at work here
	err   error
	ended bool
}

// Bounds of what is at work at a time, and of what is in the queue.
const (
	maxBusy      = 512
	maxAgentBusy = 128
	maxQueued    = 10_000 // of one workflow
)

// New makes an Engine; it does nothing until Start.
func New(o Options) *Engine {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	e := &Engine{
		options: o, folder: o.Folder, log: o.Log, client: egress.New(egress.Policy{Allow: o.Allow, MaxResponse: maxBody, HeaderTimeout: time.Hour}),
		programs: programs{kept: map[programKey]*program{}}, agents: map[*store.DB]*agentState{}, awaited: map[string]*awaited{},
		watchers: map[string]map[chan Event]bool{}, drain: drainTime, hold: holdTime, turns: turns{agents: map[*store.DB]*turn{}}, budget: newBudget(), alarm: make(chan struct{}, 1), stopping: true,
	}
	e.kinds = e.ownKinds()
	return e
}

// Register enters kinds of nodes by their names, before Start.
func (e *Engine) Register(kinds map[string]*Kind) {
	for name, kind := range kinds {
		e.kinds[name] = kind
	}
}

// Start takes up every execution that was left unfinished, and begins to take
// new ones. It returns at once and may be called twice. The work ends with
// Stop.
func (e *Engine) Start(ctx context.Context) error {
	e.startMu.Lock()
	defer e.startMu.Unlock()
	if e.stop != nil {
		return nil
	}
	e.work, e.stop = context.WithCancelCause(ctx)
	e.mu.Lock()
	e.stopping, e.quiet = false, make(chan struct{})
	e.agents, e.backlog, e.resuming, e.busy = map[*store.DB]*agentState{}, nil, nil, 0
	e.mu.Unlock()
	e.sweep(time.Now())
	e.running.Go(e.clock)
	return nil
}

const drainTime = 2 * time.Second

// Stop takes no new executions, gives those at work a moment, cuts the rest
// and waits until nothing runs. What was cut goes on with the next Start, in
// this process or another.
func (e *Engine) Stop() {
	e.startMu.Lock()
	defer e.startMu.Unlock()
	if e.stop == nil {
		return
	}
	e.mu.Lock()
	e.stopping = true
	quiet := e.quiet
	if e.busy == 0 {
		closeOnce(quiet)
	}
	e.mu.Unlock()
	timer := time.NewTimer(e.drain)
	select {
	case <-quiet:
	case <-timer.C:
	case <-e.work.Done():
	}
	timer.Stop()
	e.stop(errCut)
	e.running.Wait()
	e.client.CloseIdleConnections()
	e.stop = nil
}

// meet returns what is known of an agent, and takes up its unfinished
// executions the first time.
func (e *Engine) meet(db *store.DB) *agentState {
	if a := e.agents[db]; a != nil {
		return a
	}
	a := &agentState{db: db, status: db.Agent().Status, taken: make(chan struct{}), active: map[string]*run{}, lines: map[string]*line{}}
	e.agents[db] = a
	awake, due := db.ExecutionsLeft()
	if !due.IsZero() {
		a.due = due.Time
		e.ringSoon()
	}
	if awake {
		e.takeUp(a)
	} else {
		close(a.taken)
	}
	return a
}

// takeUp reads what an agent's executions have left to do, in the background.
func (e *Engine) takeUp(a *agentState) {
	if e.stopping {
		return
	}
	e.running.Go(func() {
		u, err := a.db.UnfinishedExecutions(e.work, a.status == agent.StatusActive)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.agents[a.db] != a {
			return
		}
		if err != nil {
			e.log.Error("take up an agent's executions", "agent", a.db.ID(), "error", err)
			a.again = time.Now().Add(2 * sweepEvery)
			return
		}
		for _, x := range u.Running {
			if a.active[x.ID] == nil {
				e.resuming = append(e.resuming, resumable{a, x.ID})
			}
		}
		for workflow, n := range u.Queued {
			l := a.line(workflow)
			l.queued = n
			e.list(l)
		}
		a.remind(u.Due.Time)
		closeOnce(a.taken)
		e.ringSoon()
		e.dispatch()
	})
}

func (a *agentState) line(workflow string) *line {
	l := a.lines[workflow]
	if l == nil {
		l = &line{agent: a, workflow: workflow, limit: 1}
		a.lines[workflow] = l
	}
	return l
}

// ready waits until an agent's unfinished executions are known. It takes e.mu
// itself.
func (e *Engine) ready(ctx context.Context, db *store.DB) (*agentState, error) {
	e.mu.Lock()
	if e.stopping {
		e.mu.Unlock()
		return nil, errStopped()
	}
	a := e.meet(db)
	e.mu.Unlock()
	select {
	case <-a.taken:
		return a, nil
	default:
	}
	select {
	case <-a.taken:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.work.Done():
		return nil, errStopped()
	}
}

func errStopped() error {
	return agent.Errorf(agent.CodeConflict, "the server is about to stop and starts no workflows any more").Because(errors.New("the engine is not running"))
}
