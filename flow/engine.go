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
func New(options Options) *Engine {
	engine := &Engine{
		options: options,
		folder:  options.Folder,
		log:     options.Logger(),
		client: egress.New(egress.Policy{
			Allow:         options.Allow,
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
	engine.kinds = engine.engineKinds()
	engine.agents = work.New(work.Options[*store.DB]{
		Run:   engine.recoverAgent,
		Limit: 2 * work.Processors,
		OnError: func(db *store.DB, err error) {
			engine.log.Error("recover executions", "agent", db.ID(), "error", err)
		},
	})
	engine.executions = work.New(work.Options[job]{
		Run:        engine.runJob,
		Limit:      maxRunning,
		Group:      func(j job) any { return j.agent },
		GroupLimit: func(any) int { return maxAgentRunning },
		OnError:    engine.reportJob,
	})
	engine.starts = work.New(work.Options[*agentState]{Run: engine.start, Limit: startingAgents})
	if options.Folder != nil {
		options.Folder.OnPending(engine.notify)
	}
	return engine
}

// Register adds node types by name. Call it before Start.
func (engine *Engine) Register(kinds map[string]*Kind) {
	for name, kind := range kinds {
		engine.kinds[name] = kind
	}
}

// Start resumes every unfinished execution and begins to accept new ones. It
// returns immediately and may be called twice. The work ends with Stop.
func (engine *Engine) Start(ctx context.Context) error {
	engine.startMu.Lock()
	defer engine.startMu.Unlock()
	if engine.stop != nil {
		return nil
	}
	engine.work, engine.stop = context.WithCancelCause(ctx)
	engine.mu.Lock()
	engine.stopping, engine.drained = false, make(chan struct{})
	engine.mu.Unlock()
	engine.agents.Start(ctx)
	engine.starts.Start(ctx)
	engine.executions.Start(ctx)
	return nil
}

const drainTime = 2 * time.Second

// Stop refuses new executions, gives running ones a moment to finish,
// interrupts the rest and waits until nothing runs. Interrupted executions
// resume with the next Start, in this process or another.
func (engine *Engine) Stop() {
	engine.startMu.Lock()
	defer engine.startMu.Unlock()
	if engine.stop == nil {
		return
	}
	engine.mu.Lock()
	engine.stopping = true
	drained := engine.drained
	if engine.running == 0 {
		closeOnce(drained)
	}
	engine.mu.Unlock()
	engine.agents.Stop()
	timer := time.NewTimer(engine.drain)
	select {
	case <-drained:
	case <-timer.C:
	case <-engine.work.Done():
	}
	timer.Stop()
	engine.stop(errInterrupted)
	engine.executions.Stop()
	engine.starts.Stop()
	engine.goroutines.Wait()
	engine.client.CloseIdleConnections()
	engine.stop = nil
}

// stateLocked returns the state of an agent. On the first call it starts
// looking up the agent's unfinished executions, if there may be any.
func (engine *Engine) stateLocked(db *store.DB) *agentState {
	state := engine.states[db]
	if state != nil {
		return state
	}
	state = &agentState{
		db:        db,
		recovered: make(chan struct{}),
		runs:      map[string]*run{},
		workflows: map[string]*workflowSlots{},
	}
	engine.states[db] = state
	if due := db.Pending().Executions; due.IsZero() || due.After(time.Now()) {
		close(state.recovered)
	} else {
		engine.agents.Enqueue(db)
	}
	return state
}

// ready returns the state of an agent once its unfinished executions are known.
func (engine *Engine) ready(ctx context.Context, db *store.DB) (*agentState, error) {
	if db.Agent().Status == agent.StatusDisabled {
		return nil, agent.Errorf(agent.CodeAgentDisabled, "the agent is disabled")
	}
	engine.mu.Lock()
	if engine.stopping {
		engine.mu.Unlock()
		return nil, errStopped()
	}
	state := engine.stateLocked(db)
	recovered := state.recovered
	engine.mu.Unlock()
	select {
	case <-recovered:
		return state, nil
	default:
	}
	select {
	case <-recovered:
		return state, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-engine.work.Done():
		return nil, errStopped()
	}
}

func errStopped() error {
	return agent.Errorf(
		agent.CodeConflict,
		"the server is stopping and does not start workflows",
	).Because(errors.New("the engine is not running"))
}
