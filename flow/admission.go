package flow

import (
	"context"
	"time"

	"satchel/agent"
	"satchel/agent/work"
)

// workflowSlots counts the executions of a workflow. Engine.mu protects it.
type workflowSlots struct {
	agent   *agentState
	id      string
	limit   int // of running executions
	running int // running now; suspended executions do not count
	queued  int // queued in the file; may include executions that are gone from it
}

// slot is an execution's permission to run. It counts against the limit of its
// workflow and, as a turn of the queue, against the limits of its agent and of
// the whole server.
type slot struct {
	workflow *workflowSlots         // nil until the execution has been read
	end      func(work.Next, error) // ends the turn
}

// job is one turn of the execution queue: either an execution to resume, or the
// next queued execution of a workflow, whose slot has already been acquired.
type job struct {
	agent    *agentState
	id       string
	workflow *workflowSlots
	number   int // distinguishes jobs that have a workflow
}

// Limits on executions that run at the same time, and on the length of a queue.
const (
	maxRunning      = 512
	maxAgentRunning = 128
	maxQueued       = 10_000 // per workflow
)

// limitPolicy specifies what to do with an execution whose workflow has reached its
// limit.
type limitPolicy int

const (
	limitBySettings limitPolicy = iota // what the workflow's settings say
	limitQueue                         // it queues, whatever they say
	limitExceed                        // it starts: what runs waits for it
)

// admit acquires a slot for a new execution. If there is none, it marks the
// execution as queued and returns nil. It waits for executions that are ending or
// being suspended, since clients may already see those as ended or waiting.
func (engine *Engine) admit(
	ctx context.Context,
	state *agentState,
	x *agent.Execution,
	p *program,
	at limitPolicy,
) (*slot, error) {
	for {
		s, ending, err := engine.tryAdmit(state, x, p, at)
		if ending == nil {
			return s, err
		}
		select {
		case <-ending:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryAdmit is admit without waiting. If a run is about to release its slot, it
// returns a channel that is closed when that is decided.
func (engine *Engine) tryAdmit(
	state *agentState,
	execution *agent.Execution,
	program *program,
	at limitPolicy,
) (*slot, <-chan struct{}, error) {
	settings := program.workflow.Settings
	mayQueue := at != limitBySettings || settings.OnConflict == agent.ConflictQueue
	engine.mu.Lock()
	defer engine.mu.Unlock()
	slots := state.workflow(execution.WorkflowID, settings.Concurrency)
	conflict := at != limitExceed && (slots.running >= slots.limit || slots.queued > 0)
	if !conflict {
		if end, ok := engine.executions.TryBegin(job{agent: state, id: execution.ID}); ok {
			slots.running++
			execution.StartedAt = agent.Now() // not before the end of the execution whose slot it takes
			return &slot{slots, end}, nil, nil
		}
	}
	switch {
	case conflict && !mayQueue:
		if ending := state.ending(slots); ending != nil {
			return nil, ending, nil
		}
		return nil, nil, agent.Errorf(
			agent.CodeAlreadyRunning,
			"an execution of this workflow is running; its settings allow %d at a time",
			settings.Concurrency,
		).With("workflow_id", execution.WorkflowID).With("concurrency", settings.Concurrency)
	case slots.queued >= maxQueued:
		return nil, nil, agent.Errorf(
			agent.CodeConflict,
			"the queue of this workflow is full: %d executions are waiting",
			maxQueued,
		).With("workflow_id", execution.WorkflowID)
	}
	execution.Status, execution.StartedAt = agent.ExecutionQueued, agent.Time{}
	return nil, nil, nil
}

// ending returns a channel that is closed once it is decided whether a run
// releases a slot of w, or nil if none is about to. The caller holds Engine.mu.
func (a *agentState) ending(w *workflowSlots) <-chan struct{} {
	if w.queued > 0 {
		return nil
	}
	for _, r := range a.runs {
		if ending := r.ending.Load(); ending != nil && r.slot.workflow == w {
			return *ending
		}
	}
	return nil
}

// workflow returns the slots of a workflow. The caller holds Engine.mu.
func (a *agentState) workflow(id string, limit int) *workflowSlots {
	w := a.workflows[id]
	if w == nil {
		w = &workflowSlots{agent: a, id: id}
		a.workflows[id] = w
	}
	w.limit = limit
	return w
}

// release releases a slot that is not needed after all.
func (engine *Engine) release(s *slot) {
	if s == nil {
		return
	}
	engine.mu.Lock()
	defer engine.mu.Unlock()
	engine.releaseLocked(s, work.Next{}, nil)
}

// releaseChild releases the slot of an execution that a node was about to
// start.
func (run *run) releaseChild(c *child) {
	if c != nil {
		run.engine.release(c.slot)
	}
}

func (engine *Engine) releaseLocked(s *slot, next work.Next, err error) {
	if w := s.workflow; w != nil {
		w.running--
		engine.startQueuedLocked(w)
	}
	s.end(next, err)
}

// queued counts an execution that was inserted as queued.
func (engine *Engine) queued(a *agentState, p *program) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	w := a.workflow(p.workflow.ID, p.workflow.Settings.Concurrency)
	w.queued++
	engine.startQueuedLocked(w)
}

// startQueuedLocked enqueues jobs for a workflow's queued executions, as many
// as there are free slots.
func (engine *Engine) startQueuedLocked(w *workflowSlots) {
	for w.queued > 0 && w.running < w.limit {
		w.queued--
		w.running++
		engine.jobs++
		engine.executions.Enqueue(job{
			agent:    w.agent,
			workflow: w,
			number:   engine.jobs,
		})
	}
	if w.running == 0 && w.queued == 0 && w.agent.workflows[w.id] == w {
		delete(w.agent.workflows, w.id)
	}
}

// runJob is one turn of the execution queue.
func (engine *Engine) runJob(ctx context.Context, job job) (work.Next, error) {
	engine.mu.Lock()
	inactive, stopping := job.agent.inactive, engine.stopping
	if inactive && job.workflow != nil {
		job.workflow.running--
		engine.startQueuedLocked(job.workflow)
	}
	engine.mu.Unlock()
	switch {
	case inactive:
		return work.Next{}, nil
	case stopping: // the next Start runs it
		<-ctx.Done()
		return work.Next{}, ctx.Err()
	case job.workflow != nil:
		return work.Next{}, engine.runQueued(ctx, job)
	}
	return engine.resume(ctx, job.agent, job.id, nil)
}

// runQueued runs the execution that has been in the workflow's queue the
// longest.
func (engine *Engine) runQueued(ctx context.Context, j job) error {
	started, err := engine.awaitStart(ctx, j.agent)
	if err != nil {
		return err
	}
	id, err := j.agent.db.BeginQueued(ctx, j.workflow.id)
	started()
	if err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
		return err // the job keeps its slot
	}
	if err != nil || id == "" {
		engine.release(&slot{j.workflow, func(work.Next, error) {}})
		return nil
	}
	next, err := engine.resume(ctx, j.agent, id, j.workflow)
	if err != nil {
		engine.reportJob(job{agent: j.agent, id: id}, err)
		next.At = time.Now().Add(retryAfter)
	}
	if next.Again {
		next.At = time.Now()
	}
	engine.executions.EnqueueAt(job{agent: j.agent, id: id}, next.At)
	return nil
}

// retryAfter is the delay before an execution whose first turn failed is tried
// again.
const retryAfter = 4 * time.Second

// resume runs an execution from its rows and returns what its queue key needs
// next. If w is not nil, a slot of that workflow has already been acquired.
func (engine *Engine) resume(
	ctx context.Context,
	a *agentState,
	id string,
	w *workflowSlots,
) (next work.Next, err error) {
	r := engine.newRun(a, id)
	r.slot = &slot{w, func(n work.Next, failed error) {
		next, err = n, failed
		work.Release(ctx)
	}}
	switch {
	case !engine.addRun(r): // it is already running
		r.cancel(nil)
		engine.release(r.slot)
	case r.load():
		r.drive()
	}
	return next, err
}

func (engine *Engine) reportJob(j job, err error) {
	engine.log.Error("run execution", "agent", j.agent.db.ID(), "execution", j.id, "error", err)
}

// addRun registers a run as running. It returns false if the execution is
// already running.
func (engine *Engine) addRun(r *run) bool {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	if r.agent.runs[r.id] != nil {
		return false
	}
	r.agent.runs[r.id] = r
	engine.running++
	return true
}

// runAsync runs an execution in its own goroutine.
func (engine *Engine) runAsync(r *run) {
	engine.addRun(r)
	engine.goroutines.Go(r.drive)
}

// runInline runs an execution in the caller's goroutine, which saves two goroutine
// switches. It is for executions of pure nodes whose caller waits for the end.
func (engine *Engine) runInline(r *run) {
	engine.addRun(r)
	r.drive()
}

// startChild starts an execution that a node created and that is now in the
// file.
func (engine *Engine) startChild(a *agentState, c *child) {
	if c.slot == nil {
		engine.queued(a, c.program)
		return
	}
	r := engine.newRun(a, c.execution.ID)
	r.slot, r.execution, r.program, r.payload, r.callers = c.slot, c.execution, c.program, c.payload, c.callers
	engine.runAsync(r)
}
