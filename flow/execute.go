package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Request describes an execution to start.
type Request struct {
	WorkflowID     string
	Input          json.RawMessage // an object; nil is an empty one
	Trigger        string          // what starts it: manual, webhook, schedule, calendar, or an event's type
	IdempotencyKey string          // a second request with the same key starts nothing; may be empty
	Replay         string          // a second key, valid for a few minutes; see store.StartedExecution. May be empty
	Queue          bool            // queue the execution whatever the workflow's on_conflict says
	Wait           time.Duration   // how long to wait for the end; 0: do not wait
	Waiting        func()          // called before the wait, when the execution has its input; may be nil
	// only if the workflow is active and has a trigger of this kind, webhook or form; a webhook-response ends the wait
	Hook bool

	node     string                   // id of the trigger node; empty: chosen by Trigger
	chain    agent.Chain              // the executions that caused this one
	active   bool                     // only if the workflow is active
	callers  callers                  // the executions that wait for this one, through tools
	filtered bool                     // only if the payload passes the trigger's filter
	started  func(executionID string) // for ExecuteIdempotent: called with the execution's id once it is in the file
}

func (q *Request) atLimit() limitPolicy {
	switch {
	case q.callers.wait(q.WorkflowID):
		return limitExceed
	case q.Queue:
		return limitQueue
	}
	return limitBySettings
}

// waitForever is longer than any caller waits.
const waitForever = 1 << 62

// Started is an execution that was started or queued. With Request.Wait it is
// in the state it had when it ended or the wait timed out.
type Started struct {
	Execution agent.Execution
	Results   []agent.NodeResult // with Request.Wait; otherwise nil
	Response  *agent.NodeResult  // of the webhook-response node, if one ran
	Repeated  bool               // nothing was started: Request.IdempotencyKey belongs to an earlier execution
}

// Execute starts an execution of a workflow. Its errors are VALIDATION_ERROR if
// the workflow cannot be executed as it is, EXECUTION_ALREADY_RUNNING if the
// concurrency limit is reached and the execution may not queue, and CONFLICT if
// the queue is full.
func (e *Engine) Execute(ctx context.Context, db *store.DB, q Request) (Started, error) {
	q.chain = store.ChainOf(ctx)
	return e.execute(ctx, db, q)
}

func (e *Engine) execute(ctx context.Context, db *store.DB, q Request) (Started, error) {
	a, err := e.ready(ctx, db)
	if err != nil {
		return Started{}, err
	}
	if q.started != nil {
		a.preparing.Lock()
	}
	x, p, payload, err := e.prepareExecution(ctx, db, q)
	if q.started != nil {
		a.preparing.Unlock()
	}
	if err != nil || x == nil {
		return Started{Repeated: x == nil}, err
	}
	if q.Hook && !p.responds {
		q.Wait = 0
	}
	if q.started != nil {
		q.Wait = waitForever
	}
	if why := e.charge(x); why != nil {
		return Started{}, e.refuse(ctx, db, x, p, q.IdempotencyKey, why)
	}
	s, err := e.admit(ctx, a, x, p, q.atLimit())
	if err != nil {
		return Started{}, err
	}
	var w *awaited
	if q.Wait > 0 {
		w = e.addWaiter(x.ID)
		defer e.removeWaiter(x.ID, w)
	}
	// Until its end, only the waiting caller knows of the execution, so its row
	// is first written together with its results.
	unsaved := s != nil && (q.Wait > 0 && q.IdempotencyKey == "" && q.Replay == "" || q.started != nil)
	if !unsaved {
		entered, err := db.InsertExecutions(ctx, []store.StartedExecution{{
			Execution:      x,
			Name:           p.workflow.Name,
			IdempotencyKey: q.IdempotencyKey,
			Replay:         q.Replay,
		}})
		if err != nil || !entered[0] {
			e.release(s)
			return Started{Repeated: err == nil}, err
		}
	}
	started := Started{Execution: *x}
	if s == nil {
		e.queued(a, p)
		q.waits()
		return e.await(ctx, db, q, started, nil, w)
	}
	r := e.newRun(a, x.ID)
	r.slot, r.execution, r.program, r.payload, r.key, r.by = s, x, p, payload, q.IdempotencyKey, store.Actor(ctx)
	r.callers = q.callers
	r.unsaved, r.begin, r.keepResults = unsaved, unsaved, q.Wait > 0 && q.started == nil
	r.written.Store(!unsaved)
	if unsaved && q.started == nil && !p.slow {
		e.runInline(r)
	} else {
		e.runAsync(r)
	}
	q.waits()
	return e.await(ctx, db, q, started, r, w)
}

func (q *Request) waits() {
	if q.Waiting != nil {
		q.Waiting()
	}
}

// prepareExecution builds an execution with its compiled workflow and payload.
// x is nil if q.filtered is set and the payload does not pass the trigger's
// filter.
func (e *Engine) prepareExecution(
	ctx context.Context,
	db *store.DB,
	q Request,
) (x *agent.Execution, p *program, payload map[string]any, err error) {
	if q.Input, err = withoutLinks(db, &q); err != nil {
		return nil, nil, nil, err
	}
	payload, err = readPayload(q.Input)
	if err != nil {
		return nil, nil, nil, err
	}
	contact, _ := payload["contact_id"].(string)
	if _, present := payload["contact"]; present {
		contact = ""
	}
	key := ""
	if q.started != nil {
		key = q.IdempotencyKey
	}
	n, err := db.NewExecution(ctx, q.WorkflowID, contact, key)
	if err != nil || n.Repeated {
		return nil, nil, nil, err
	}
	if err := n.Text.Status.Executable(); err != nil && !q.Hook {
		return nil, nil, nil, err
	}
	if q.active && n.Text.Status != agent.WorkflowActive {
		return nil, nil, nil, agent.Errorf(
			agent.CodeConflict,
			"the workflow %q is not active",
			n.Text.Name,
		).With("status", n.Text.Status)
	}
	if p, err = e.programOf(db, n.Text); err != nil {
		return nil, nil, nil, err
	}
	input := q.Input
	if len(payload) == 0 {
		input = json.RawMessage("{}")
	}
	if n.Contact != nil {
		payload["contact"] = decodeOr(n.Contact)
		if input, err = json.Marshal(payload); err != nil {
			return nil, nil, nil, err
		}
	}
	start, named := p.graph.Find(q.node)
	if !named {
		start = p.start(q.Trigger)
	}
	if q.Hook && !p.acceptsHook(start, db, n.Text.Status, q.Trigger) {
		return nil, nil, nil, agent.NotFound("active workflow with a "+q.Trigger+" trigger", q.WorkflowID)
	}
	if q.filtered && (!named || !p.passesFilter(start, db, payload)) {
		return nil, nil, nil, nil
	}
	now := agent.Now()
	id := agent.NewID(agent.KindExecution)
	chain := q.chain.Next(id)
	return &agent.Execution{
		ID:          id,
		WorkflowID:  n.Text.ID,
		Version:     n.Text.Version,
		Status:      agent.ExecutionRunning,
		Trigger:     q.Trigger,
		TriggerNode: p.nodes[start].ID,
		Input:       input,
		RootID:      chain.Root,
		Depth:       chain.Depth,
		CreatedAt:   now,
		StartedAt:   now,
	}, p, payload, nil
}

// acceptsHook reports whether a webhook or a form may start the workflow at its
// node start.
func (p *program) acceptsHook(start int, db *store.DB, status agent.WorkflowStatus, event string) bool {
	n := &p.nodes[start]
	return status == agent.WorkflowActive &&
		db.Agent().Status == agent.StatusActive &&
		n.Data["event"] == event &&
		!n.disabled
}

// maxInput limits an execution's payload, in bytes.
const maxInput = 5 << 20

// readPayload decodes the input of an execution and checks its size.
func readPayload(raw json.RawMessage) (map[string]any, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	if len(raw) > maxInput {
		return nil, agent.Invalid("input", fmt.Sprintf("must have at most %d MB", maxInput>>20))
	}
	if err := agent.CheckNesting("input", raw); err != nil {
		return nil, err
	}
	v, err := decode(raw)
	payload, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, agent.Invalid("input", "must be an object")
	}
	return payload, nil
}

// await waits for an execution to end, as long as the request asks for.
func (e *Engine) await(
	ctx context.Context,
	db *store.DB,
	q Request,
	s Started,
	r *run,
	w *awaited,
) (Started, error) {
	if w == nil {
		return s, nil
	}
	if q.started != nil {
		return e.awaitIdempotent(ctx, db, q, s, r, w)
	}
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	var answered chan struct{}
	if q.Hook && r != nil {
		answered = r.answered
	}
	select {
	case <-w.done:
		if w.err != nil {
			return Started{}, w.err
		}
		if w.run != nil && w.run == r && r.keepResults {
			return Started{
				Execution: *r.execution,
				Results:   r.results,
				Response:  r.response,
			}, nil
		}
	case <-answered:
		r.mu.Lock()
		defer r.mu.Unlock()
		s.Response = r.response
		return s, nil
	case <-timer.C:
	case <-ctx.Done():
		return s, ctx.Err()
	case <-e.work.Done():
	}
	x, results, err := e.Execution(ctx, db, s.Execution.ID)
	if agent.ErrorCode(err) == agent.CodeNotFound && r != nil { // it is running, and nothing had to be written yet
		return s, nil
	}
	s.Execution, s.Results = x, results
	for i := range results {
		if results[i].Type == "webhook-response" && results[i].Status == agent.NodeSuccess && s.Response == nil {
			s.Response = &results[i]
		}
	}
	return s, err
}

// Execution returns an execution with the results of its nodes, including those
// that are running.
func (e *Engine) Execution(ctx context.Context, db *store.DB, id string) (agent.Execution, []agent.NodeResult, error) {
	var now []agent.NodeResult
	e.mu.Lock()
	if a := e.states[db]; a != nil && a.runs[id] != nil {
		now = a.runs[id].running()
	}
	e.mu.Unlock()
	x, results, err := db.Execution(ctx, id)
	known := map[instanceKey]bool{}
	for _, r := range results {
		known[instanceKey{r.NodeID, r.FullPath()}] = true
	}
	for _, r := range now {
		if !x.Status.Ended() && !known[instanceKey{r.NodeID, r.FullPath()}] {
			results = append(results, r)
		}
	}
	return x, results, err
}

// stopTime is how long Terminate waits for cancelled nodes.
const stopTime = 2 * time.Second

// Terminate ends an execution immediately, with the executions that its nodes
// wait for. It returns CONFLICT if the execution has already ended.
func (e *Engine) Terminate(ctx context.Context, db *store.DB, id string) (agent.Execution, error) {
	ended, woken, err := db.Terminate(ctx, id)
	if err != nil {
		return agent.Execution{}, err
	}
	var runs []*run
	for i := range ended {
		if r := e.cancelled(db, &ended[i]); r != nil {
			runs = append(runs, r)
		}
	}
	for _, end := range woken {
		e.signal(db, end)
	}
	waitStopped(ctx, runs) // so that their slots are free when Terminate returns
	return ended[0], nil
}

// waitStopped waits briefly for cancelled runs.
func waitStopped(ctx context.Context, runs []*run) {
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	for _, r := range runs {
		select {
		case <-r.done:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
