package flow

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/script"
	"satchel/agent/work"
	"satchel/store"
	"satchel/vector"
)

// Options configure an Engine.
type Options struct {
	store.Env
	Index   *vector.Index // for search nodes; may be nil
	Scripts *script.Pool  // for JavaScript; may be nil
}

// Engine executes the workflows of the agents of one data folder.
type Engine struct {
	options        Options
	folder         *store.Folder
	log            *slog.Logger
	client         *egress.Client
	kinds          map[string]*Kind
	browsing       *browsing // nil: no node types that drive a browser
	programs       programs
	budget         budget
	drain          time.Duration // how long Stop lets running executions finish
	commitInterval time.Duration // how long results of pure nodes may wait for a commit

	agents     *work.Queue[*store.DB] // agents whose executions must be looked up
	executions *work.Queue[job]       // executions to run; those started directly also count against its limits

	starts *work.Queue[*agentState] // turns to start executions, see awaitStart

	mu       sync.Mutex // protects the fields up to the next blank line
	states   map[*store.DB]*agentState
	running  int // number of running executions
	jobs     int // number of jobs created for queued executions
	awaited  map[string]*awaited
	stopping bool
	drained  chan struct{} // closed when the engine is stopping and nothing is running

	watchMu  sync.Mutex // protects watchers
	watchers map[string]map[chan Event]bool
	watching atomic.Int64

	startMu    sync.Mutex // held by Start and Stop
	work       context.Context
	stop       context.CancelCauseFunc
	goroutines sync.WaitGroup
}

// agentState is the engine's state for one agent. Engine.mu protects it.
type agentState struct {
	db            *store.DB
	recovered     chan struct{} // closed once its unfinished executions are known
	inactive      bool          // the agent is disabled or deleted
	runs          map[string]*run
	workflows     map[string]*workflowSlots
	turn          *startTurn
	waitingStarts []chan *startTurn // waiting for a turn

	// serializes the reads of ExecuteIdempotent: many starts arrive together and share a connection
	preparing sync.Mutex
}

// New returns an Engine. It does nothing until Start.
func New(o Options) *Engine {
	e := &Engine{
		options: o,
		folder:  o.Folder,
		log:     o.Logger(),
		client: egress.New(egress.Policy{
			Allow:         o.Allow,
			MaxResponse:   maxBody,
			HeaderTimeout: time.Hour,
		}),
		programs:       programs{entries: map[programKey]*program{}},
		states:         map[*store.DB]*agentState{},
		awaited:        map[string]*awaited{},
		watchers:       map[string]map[chan Event]bool{},
		drain:          drainTime,
		commitInterval: commitInterval,
		budget:         newBudget(),
		stopping:       true,
	}
	e.kinds = e.engineKinds()
	e.agents = work.New(work.Options[*store.DB]{
		Run:   e.recoverAgent,
		Limit: 2 * work.Processors,
		OnError: func(db *store.DB, err error) {
			e.log.Error("recover executions", "agent", db.ID(), "error", err)
		},
	})
	e.executions = work.New(work.Options[job]{
		Run:        e.runJob,
		Limit:      maxRunning,
		Group:      func(j job) any { return j.agent },
		GroupLimit: func(any) int { return maxAgentRunning },
		OnError:    e.reportJob,
	})
	e.starts = work.New(work.Options[*agentState]{Run: e.start, Limit: startingAgents})
	if o.Folder != nil {
		o.Folder.OnPending(e.notify)
	}
	return e
}

// Register adds node types by name. Call it before Start.
func (e *Engine) Register(kinds map[string]*Kind) {
	for name, kind := range kinds {
		e.kinds[name] = kind
	}
}

// Start resumes every unfinished execution and begins to accept new ones. It
// returns immediately and may be called twice. The work ends with Stop.
func (e *Engine) Start(ctx context.Context) error {
	e.startMu.Lock()
	defer e.startMu.Unlock()
	if e.stop != nil {
		return nil
	}
	e.work, e.stop = context.WithCancelCause(ctx)
	e.mu.Lock()
	e.stopping, e.drained = false, make(chan struct{})
	e.mu.Unlock()
	e.agents.Start(ctx)
	e.starts.Start(ctx)
	e.executions.Start(ctx)
	return nil
}

const drainTime = 2 * time.Second

// Stop refuses new executions, gives running ones a moment to finish,
// interrupts the rest and waits until nothing runs. Interrupted executions
// resume with the next Start, in this process or another.
func (e *Engine) Stop() {
	e.startMu.Lock()
	defer e.startMu.Unlock()
	if e.stop == nil {
		return
	}
	e.mu.Lock()
	e.stopping = true
	drained := e.drained
	if e.running == 0 {
		closeOnce(drained)
	}
	e.mu.Unlock()
	e.agents.Stop()
	timer := time.NewTimer(e.drain)
	select {
	case <-drained:
	case <-timer.C:
	case <-e.work.Done():
	}
	timer.Stop()
	e.stop(errInterrupted)
	e.executions.Stop()
	e.starts.Stop()
	e.goroutines.Wait()
	e.client.CloseIdleConnections()
	e.stop = nil
}

// stateLocked returns the state of an agent. On the first call it starts
// looking up the agent's unfinished executions, if there may be any.
func (e *Engine) stateLocked(db *store.DB) *agentState {
	a := e.states[db]
	if a != nil {
		return a
	}
	a = &agentState{
		db:        db,
		recovered: make(chan struct{}),
		runs:      map[string]*run{},
		workflows: map[string]*workflowSlots{},
	}
	e.states[db] = a
	if due := db.Pending().Executions; due.IsZero() || due.After(time.Now()) {
		close(a.recovered)
	} else {
		e.agents.Enqueue(db)
	}
	return a
}

// ready returns the state of an agent once its unfinished executions are known.
func (e *Engine) ready(ctx context.Context, db *store.DB) (*agentState, error) {
	if db.Agent().Status == agent.StatusDisabled {
		return nil, agent.Errorf(agent.CodeAgentDisabled, "the agent is disabled")
	}
	e.mu.Lock()
	if e.stopping {
		e.mu.Unlock()
		return nil, errStopped()
	}
	a := e.stateLocked(db)
	recovered := a.recovered
	e.mu.Unlock()
	select {
	case <-recovered:
		return a, nil
	default:
	}
	select {
	case <-recovered:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.work.Done():
		return nil, errStopped()
	}
}

func errStopped() error {
	return agent.Errorf(
		agent.CodeConflict,
		"the server is stopping and does not start workflows",
	).Because(errors.New("the engine is not running"))
}
