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
	limit   int // of those at work
	running int // at work: not those suspended
	queued  int // in the file; of those that are gone from it some may be counted
}

// slot is the right of an execution to be at work: it counts for its workflow,
// and for its agent and all of them as a turn of the queue.
type slot struct {
	workflow *workflowSlots         // nil until the execution is read
	end      func(work.Next, error) // ends the turn
}

// job is what a turn of the queue is for: an execution that is to go on, or the
// next one that a workflow has queued, for which a slot of it is taken already.
type job struct {
	agent    *agentState
	id       string
	workflow *workflowSlots
	number   int // of the job, with workflow
}

// Bounds of what is at work at a time, and of what is in the queue.
const (
	maxRunning      = 512
	maxAgentRunning = 128
	maxQueued       = 10_000 // of one workflow
)

// admit acquires a slot for a new execution; without one it is to be queued, and
// marked so. mayQueue says that it may, whatever the workflow's settings say.
func (e *Engine) admit(a *agentState, x *agent.Execution, p *program, mayQueue bool) (*slot, error) {
	settings := p.workflow.Settings
	mayQueue = mayQueue || settings.OnConflict == agent.ConflictQueue
	e.mu.Lock()
	defer e.mu.Unlock()
	w := a.workflow(x.WorkflowID, settings.Concurrency)
	conflict := w.running >= w.limit || w.queued > 0
	if !conflict {
		if end, ok := e.executions.TryBegin(job{agent: a, id: x.ID}); ok {
			w.running++
			x.StartedAt = agent.Now() // not before the one ended whose slot it takes
			return &slot{w, end}, nil
		}
	}
	switch {
	case conflict && !mayQueue:
		return nil, agent.Errorf(agent.CodeAlreadyRunning, "an execution of this workflow is running; its settings allow %d at a time", settings.Concurrency).
			With("workflow_id", x.WorkflowID).With("concurrency", settings.Concurrency)
	case w.queued >= maxQueued:
		return nil, agent.Errorf(agent.CodeConflict, "%d executions of this workflow wait in the queue already", maxQueued).With("workflow_id", x.WorkflowID)
	}
	x.Status, x.StartedAt = agent.ExecutionQueued, agent.Time{}
	return nil, nil
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

// release gives back a slot that is not needed after all.
func (e *Engine) release(s *slot) {
	if s == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.releaseLocked(s, work.Next{}, nil)
}

// releaseChild gives back the slot of an execution that a node was to start.
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

// queued notes an execution that was entered as queued.
func (e *Engine) queued(a *agentState, p *program) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := a.workflow(p.workflow.ID, p.workflow.Settings.Concurrency)
	w.queued++
	e.startQueuedLocked(w)
}

// startQueuedLocked enqueues jobs for queued executions of a workflow, as many as it
// has slots for.
func (e *Engine) startQueuedLocked(w *workflowSlots) {
	for w.queued > 0 && w.running < w.limit {
		w.queued--
		w.running++
		e.jobs++
		e.executions.Enqueue(job{agent: w.agent, workflow: w, number: e.jobs})
	}
	if w.running == 0 && w.queued == 0 && w.agent.workflows[w.id] == w {
		delete(w.agent.workflows, w.id)
	}
}

// runJob is a turn of the queue of executions.
func (e *Engine) runJob(ctx context.Context, j job) (work.Next, error) {
	e.mu.Lock()
	rests, stopping := j.agent.rests, e.stopping
	if rests && j.workflow != nil {
		j.workflow.running--
		e.startQueuedLocked(j.workflow)
	}
	e.mu.Unlock()
	switch {
	case rests:
		return work.Next{}, nil
	case stopping: // the next Start runs it
		<-ctx.Done()
		return work.Next{}, ctx.Err()
	case j.workflow != nil:
		return work.Next{}, e.runQueued(ctx, j)
	}
	return e.resume(ctx, j.agent, j.id, nil)
}

// runQueued runs the execution that a workflow has queued for longest.
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

// retryAfter is when an execution whose first turn failed goes on.
const retryAfter = 4 * time.Second

// resume runs an execution from its rows, and returns what it needs next. With w,
// a slot of its workflow is taken already.
func (e *Engine) resume(ctx context.Context, a *agentState, id string, w *workflowSlots) (next work.Next, err error) {
	r := e.newRun(a, id)
	r.slot = &slot{w, func(n work.Next, failed error) {
		next, err = n, failed
		work.Release(ctx)
	}}
	switch {
	case !e.enlist(r): // it is at work already
		r.cancel(nil)
		e.release(r.slot)
	case r.load():
		r.drive()
	}
	return next, err
}

func (e *Engine) reportJob(j job, err error) {
	e.log.Error("run an execution", "agent", j.agent.db.ID(), "execution", j.id, "error", err)
}

// enlist notes a run as at work. It is false when the execution is already.
func (e *Engine) enlist(r *run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.agent.runs[r.id] != nil {
		return false
	}
	r.agent.runs[r.id] = r
	e.running++
	return true
}

// runAsync runs an execution in a goroutine of its own.
func (e *Engine) runAsync(r *run) {
	e.enlist(r)
	e.goroutines.Go(r.drive)
}

// runInline runs an execution that only computes and whose end is waited for in
// the caller's goroutine, which saves handing it over and back.
func (e *Engine) runInline(r *run) {
	e.enlist(r)
	r.drive()
}

// startChild begins an execution that a node started and that is in the file now.
func (e *Engine) startChild(a *agentState, c *child) {
	if c.slot == nil {
		e.queued(a, c.program)
		return
	}
	r := e.newRun(a, c.execution.ID)
	r.slot, r.execution, r.program, r.payload = c.slot, c.execution, c.program, c.payload
	e.runAsync(r)
}
