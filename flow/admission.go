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
func (e *Engine) admit(
	ctx context.Context,
	a *agentState,
	x *agent.Execution,
	p *program,
	at limitPolicy,
) (*slot, error) {
	for {
		s, ending, err := e.tryAdmit(a, x, p, at)
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
func (e *Engine) tryAdmit(
	a *agentState,
	x *agent.Execution,
	p *program,
	at limitPolicy,
) (*slot, <-chan struct{}, error) {
	settings := p.workflow.Settings
	mayQueue := at != limitBySettings || settings.OnConflict == agent.ConflictQueue
	e.mu.Lock()
	defer e.mu.Unlock()
	w := a.workflow(x.WorkflowID, settings.Concurrency)
	conflict := at != limitExceed && (w.running >= w.limit || w.queued > 0)
	if !conflict {
		if end, ok := e.executions.TryBegin(job{agent: a, id: x.ID}); ok {
			w.running++
			x.StartedAt = agent.Now() // not before the end of the execution whose slot it takes
			return &slot{w, end}, nil, nil
		}
	}
	switch {
	case conflict && !mayQueue:
		if ending := a.ending(w); ending != nil {
			return nil, ending, nil
		}
		return nil, nil, agent.Errorf(
			agent.CodeAlreadyRunning,
			"an execution of this workflow is running; its settings allow %d at a time",
			settings.Concurrency,
		).With("workflow_id", x.WorkflowID).With("concurrency", settings.Concurrency)
	case w.queued >= maxQueued:
		return nil, nil, agent.Errorf(
			agent.CodeConflict,
			"the queue of this workflow is full: %d executions are waiting",
			maxQueued,
		).With("workflow_id", x.WorkflowID)
	}
	x.Status, x.StartedAt = agent.ExecutionQueued, agent.Time{}
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
func (e *Engine) release(s *slot) {
	if s == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.releaseLocked(s, work.Next{}, nil)
}

// releaseChild releases the slot of an execution that a node was about to
// start.
func (r *run) releaseChild(c *child) {
	if c != nil {
		r.engine.release(c.slot)
	}
}

func (e *Engine) releaseLocked(s *slot, next work.Next, err error) {
	if w := s.workflow; w != nil {
		w.running--
		e.startQueuedLocked(w)
	}
	s.end(next, err)
}

// queued counts an execution that was inserted as queued.
func (e *Engine) queued(a *agentState, p *program) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := a.workflow(p.workflow.ID, p.workflow.Settings.Concurrency)
	w.queued++
	e.startQueuedLocked(w)
}

// startQueuedLocked enqueues jobs for a workflow's queued executions, as many
// as there are free slots.
func (e *Engine) startQueuedLocked(w *workflowSlots) {
	for w.queued > 0 && w.running < w.limit {
		w.queued--
		w.running++
		e.jobs++
		e.executions.Enqueue(job{
			agent:    w.agent,
			workflow: w,
			number:   e.jobs,
		})
	}
	if w.running == 0 && w.queued == 0 && w.agent.workflows[w.id] == w {
		delete(w.agent.workflows, w.id)
	}
}

// runJob is one turn of the execution queue.
func (e *Engine) runJob(ctx context.Context, j job) (work.Next, error) {
	e.mu.Lock()
	inactive, stopping := j.agent.inactive, e.stopping
	if inactive && j.workflow != nil {
		j.workflow.running--
		e.startQueuedLocked(j.workflow)
	}
	e.mu.Unlock()
	switch {
	case inactive:
		return work.Next{}, nil
	case stopping: // the next Start runs it
		<-ctx.Done()
		return work.Next{}, ctx.Err()
	case j.workflow != nil:
		return work.Next{}, e.runQueued(ctx, j)
	}
	return e.resume(ctx, j.agent, j.id, nil)
}

// runQueued runs the execution that has been in the workflow's queue the
// longest.
func (e *Engine) runQueued(ctx context.Context, j job) error {
	started, err := e.awaitStart(ctx, j.agent)
	if err != nil {
		return err
	}
	id, err := j.agent.db.BeginQueued(ctx, j.workflow.id)
	started()
	if err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
		return err // the job keeps its slot
	}
	if err != nil || id == "" {
		e.release(&slot{j.workflow, func(work.Next, error) {}})
		return nil
	}
	next, err := e.resume(ctx, j.agent, id, j.workflow)
	if err != nil {
		e.reportJob(job{agent: j.agent, id: id}, err)
		next.At = time.Now().Add(retryAfter)
	}
	if next.Again {
		next.At = time.Now()
	}
	e.executions.EnqueueAt(job{agent: j.agent, id: id}, next.At)
	return nil
}

// retryAfter is the delay before an execution whose first turn failed is tried
// again.
const retryAfter = 4 * time.Second

// resume runs an execution from its rows and returns what its queue key needs
// next. If w is not nil, a slot of that workflow has already been acquired.
func (e *Engine) resume(ctx context.Context, a *agentState, id string, w *workflowSlots) (next work.Next, err error) {
	r := e.newRun(a, id)
	r.slot = &slot{w, func(n work.Next, failed error) {
		next, err = n, failed
		work.Release(ctx)
	}}
	switch {
	case !e.addRun(r): // it is already running
		r.cancel(nil)
		e.release(r.slot)
	case r.load():
		r.drive()
	}
	return next, err
}

func (e *Engine) reportJob(j job, err error) {
	e.log.Error("run execution", "agent", j.agent.db.ID(), "execution", j.id, "error", err)
}

// addRun registers a run as running. It returns false if the execution is
// already running.
func (e *Engine) addRun(r *run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.agent.runs[r.id] != nil {
		return false
	}
	r.agent.runs[r.id] = r
	e.running++
	return true
}

// runAsync runs an execution in its own goroutine.
func (e *Engine) runAsync(r *run) {
	e.addRun(r)
	e.goroutines.Go(r.drive)
}

// runInline runs an execution in the caller's goroutine, which saves two goroutine
// switches. It is for executions of pure nodes whose caller waits for the end.
func (e *Engine) runInline(r *run) {
	e.addRun(r)
	r.drive()
}

// startChild starts an execution that a node created and that is now in the
// file.
func (e *Engine) startChild(a *agentState, c *child) {
	if c.slot == nil {
		e.queued(a, c.program)
		return
	}
	r := e.newRun(a, c.execution.ID)
	r.slot, r.execution, r.program, r.payload, r.callers = c.slot, c.execution, c.program, c.payload, c.callers
	e.runAsync(r)
}
