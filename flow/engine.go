package flow

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
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

// Options say what an Engine works on.
type Options struct {
	store.Env
	Index   *vector.Index // for search nodes; may be nil
	Scripts *script.Pool  // for JavaScript; may be nil
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
	budget   budget
	drain    time.Duration // how long Stop lets executions come to their end by themselves
	hold     time.Duration // how long the results of nodes without effects wait for a commit

	agents     *work.Queue[*store.DB] // whose executions are to be looked up
	executions *work.Queue[job]       // that are to be run; those that run by themselves count in it

	starts *work.Queue[*agentState] // of executions, see awaitStart

	mu       sync.Mutex // protects everything up to the next empty line
	states   map[*store.DB]*agentState
	running  int // executions at work
	jobs     int // that were made for queued executions
	awaited  map[string]*awaited
	stopping bool
	quiet    chan struct{} // closed when stopping and nothing is at work

	watchMu  sync.Mutex // protects watchers
	watchers map[string]map[chan Event]bool
	watching atomic.Int64

	startMu    sync.Mutex // held by Start and Stop
	work       context.Context
	stop       context.CancelCauseFunc
	goroutines sync.WaitGroup
}

// agentState is what the engine knows of one agent. Engine.mu protects it.
type agentState struct {
	db        *store.DB
	recovered chan struct{} // closed once its unfinished executions are known
	rests     bool          // it is disabled or gone
	runs      map[string]*run
	workflows map[string]*workflowSlots
	turn      *startTurn
	starting  []chan *startTurn // that wait for a turn

	preparing sync.Mutex // held by one of those that start by ExecuteIdempotent while it reads: many start together and share a connection
}

// New makes an Engine; it does nothing until Start.
func New(o Options) *Engine {
	e := &Engine{
		options: o, folder: o.Folder, log: o.Logger(), client: egress.New(egress.Policy{Allow: o.Allow, MaxResponse: maxBody, HeaderTimeout: time.Hour}),
		programs: programs{kept: map[programKey]*program{}}, states: map[*store.DB]*agentState{}, awaited: map[string]*awaited{},
		watchers: map[string]map[chan Event]bool{}, drain: drainTime, hold: holdTime, budget: newBudget(), stopping: true,
	}
	e.kinds = e.ownKinds()
	e.agents = work.New(work.Options[*store.DB]{Run: e.recoverAgent, Limit: 2 * runtime.GOMAXPROCS(0),
		OnError: func(db *store.DB, err error) {
			e.log.Error("look up the executions of an agent", "agent", db.ID(), "error", err)
		}})
	e.executions = work.New(work.Options[job]{Run: e.runJob, Limit: maxRunning, Group: func(j job) any { return j.agent },
		GroupLimit: func(any) int { return maxAgentRunning }, OnError: e.reportJob})
	e.starts = work.New(work.Options[*agentState]{Run: e.start, Limit: startingAgents})
	if o.Folder != nil {
		o.Folder.OnPending(e.notify)
	}
	return e
}

// Register enters kinds of nodes by their names, before Start.
func (e *Engine) Register(kinds map[string]*Kind) {
	for name, kind := range kinds {
		e.kinds[name] = kind
	}
}

// Start resumes every execution that was left unfinished, and begins to take
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
	e.mu.Unlock()
	e.agents.Start(ctx)
	e.starts.Start(ctx)
	e.executions.Start(ctx)
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
	if e.running == 0 {
		closeOnce(quiet)
	}
	e.mu.Unlock()
	e.agents.Stop()
	timer := time.NewTimer(e.drain)
	select {
	case <-quiet:
	case <-timer.C:
	case <-e.work.Done():
	}
	timer.Stop()
	e.stop(errCut)
	e.executions.Stop()
	e.starts.Stop()
	e.goroutines.Wait()
	e.client.CloseIdleConnections()
	e.stop = nil
}

// stateLocked returns what is known of an agent. The first time its unfinished
// executions are looked up, if it may have some.
func (e *Engine) stateLocked(db *store.DB) *agentState {
	a := e.states[db]
	if a != nil {
		return a
	}
	a = &agentState{db: db, recovered: make(chan struct{}), runs: map[string]*run{}, workflows: map[string]*workflowSlots{}}
	e.states[db] = a
	if due := db.Pending().Executions; due.IsZero() || due.After(time.Now()) {
		close(a.recovered)
	} else {
		e.agents.Enqueue(db)
	}
	return a
}

// ready returns what is known of an agent once its unfinished executions are.
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
	return agent.Errorf(agent.CodeConflict, "the server is about to stop and starts no workflows any more").Because(errors.New("the engine is not running"))
}
