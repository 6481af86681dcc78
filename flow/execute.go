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
	Incoming bool

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
func (engine *Engine) Execute(ctx context.Context, db *store.DB, q Request) (Started, error) {
	q.chain = store.ChainOf(ctx)
	return engine.execute(ctx, db, q)
}

func (engine *Engine) execute(ctx context.Context, db *store.DB, request Request) (Started, error) {
	state, err := engine.ready(ctx, db)
	if err != nil {
		return Started{}, err
	}
	if request.started != nil {
		state.preparing.Lock()
	}
	execution, program, payload, err := engine.prepareExecution(ctx, db, request)
	if request.started != nil {
		state.preparing.Unlock()
	}
	if err != nil || execution == nil {
		return Started{Repeated: execution == nil}, err
	}
	if request.Incoming && !program.responds {
		request.Wait = 0
	}
	if request.started != nil {
		request.Wait = waitForever
	}
	if why := engine.charge(execution); why != nil {
		return Started{}, engine.refuse(ctx, db, execution, program, request.IdempotencyKey, why)
	}
	slot, err := engine.admit(ctx, state, execution, program, request.atLimit())
	if err != nil {
		return Started{}, err
	}
	var w *awaited
	if request.Wait > 0 {
		w = engine.addWaiter(execution.ID)
		defer engine.removeWaiter(execution.ID, w)
	}
	// Until its end, only the waiting caller knows of the execution, so its row
	// is first written together with its results.
	unsaved := slot != nil &&
		(request.Wait > 0 && request.IdempotencyKey == "" && request.Replay == "" || request.started != nil)
	if !unsaved {
		entered, err := db.InsertExecutions(ctx, []store.StartedExecution{{
			Execution:      execution,
			Name:           program.workflow.Name,
			IdempotencyKey: request.IdempotencyKey,
			Replay:         request.Replay,
		}})
		if err != nil || !entered[0] {
			engine.release(slot)
			return Started{Repeated: err == nil}, err
		}
	}
	started := Started{Execution: *execution}
	if slot == nil {
		engine.queued(state, program)
		request.waits()
		return engine.await(ctx, db, request, started, nil, w)
	}
	r := engine.newRun(state, execution.ID)
	r.slot, r.execution, r.program, r.payload, r.key, r.by =
		slot, execution, program, payload, request.IdempotencyKey, store.Actor(ctx)
	r.callers = request.callers
	r.unsaved, r.begin, r.keepResults = unsaved, unsaved, request.Wait > 0 && request.started == nil
	r.written.Store(!unsaved)
	if unsaved && request.started == nil && !program.slow {
		engine.runInline(r)
	} else {
		engine.runAsync(r)
	}
	request.waits()
	return engine.await(ctx, db, request, started, r, w)
}

func (q *Request) waits() {
	if q.Waiting != nil {
		q.Waiting()
	}
}

// prepareExecution builds an execution with its compiled workflow and payload.
// execution is nil if q.filtered is set and the payload does not pass the trigger's
// filter.
func (engine *Engine) prepareExecution(
	ctx context.Context,
	db *store.DB,
	request Request,
) (execution *agent.Execution, program *program, payload map[string]any, err error) {
	if request.Input, err = withoutLinks(db, &request); err != nil {
		return nil, nil, nil, err
	}
	payload, err = readPayload(request.Input)
	if err != nil {
		return nil, nil, nil, err
	}
	contact, _ := payload["contact_id"].(string)
	if _, present := payload["contact"]; present {
		contact = ""
	}
	key := ""
	if request.started != nil {
		key = request.IdempotencyKey
	}
	newExecution, err := db.NewExecution(ctx, request.WorkflowID, contact, key)
	if err != nil || newExecution.Repeated {
		return nil, nil, nil, err
	}
	if err := newExecution.Text.Status.Executable(); err != nil && !request.Incoming {
		return nil, nil, nil, err
	}
	if request.active && newExecution.Text.Status != agent.WorkflowActive {
		return nil, nil, nil, agent.Errorf(
			agent.CodeConflict,
			"the workflow %q is not active",
			newExecution.Text.Name,
		).With("status", newExecution.Text.Status)
	}
	if program, err = engine.programOf(db, newExecution.Text); err != nil {
		return nil, nil, nil, err
	}
	input := request.Input
	if len(payload) == 0 {
		input = json.RawMessage("{}")
	}
	if newExecution.Contact != nil {
		payload["contact"] = decodeOr(newExecution.Contact)
		if input, err = json.Marshal(payload); err != nil {
			return nil, nil, nil, err
		}
	}
	start, named := program.graph.Find(request.node)
	if !named {
		start = program.start(request.Trigger)
	}
	if request.Incoming && !program.acceptsWebhook(start, db, newExecution.Text.Status, request.Trigger) {
		return nil, nil, nil, agent.NotFound("active workflow with a "+request.Trigger+" trigger", request.WorkflowID)
	}
	if request.filtered && (!named || !program.passesFilter(start, db, payload)) {
		return nil, nil, nil, nil
	}
	now := agent.Now()
	id := agent.NewID(agent.KindExecution)
	chain := request.chain.Next(id)
	return &agent.Execution{
		ID:          id,
		WorkflowID:  newExecution.Text.ID,
		Version:     newExecution.Text.Version,
		Status:      agent.ExecutionRunning,
		Trigger:     request.Trigger,
		TriggerNode: program.nodes[start].ID,
		Input:       input,
		RootID:      chain.Root,
		Depth:       chain.Depth,
		CreatedAt:   now,
		StartedAt:   now,
	}, program, payload, nil
}

// acceptsWebhook reports whether a webhook or a form may start the workflow at its
// node start.
func (p *program) acceptsWebhook(start int, db *store.DB, status agent.WorkflowStatus, event string) bool {
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
func (engine *Engine) await(
	ctx context.Context,
	db *store.DB,
	request Request,
	started Started,
	run *run,
	awaited *awaited,
) (Started, error) {
	if awaited == nil {
		return started, nil
	}
	if request.started != nil {
		return engine.awaitIdempotent(ctx, db, request, started, run, awaited)
	}
	timer := time.NewTimer(request.Wait)
	defer timer.Stop()
	var answered chan struct{}
	if request.Incoming && run != nil {
		answered = run.answered
	}
	select {
	case <-awaited.done:
		if awaited.err != nil {
			return Started{}, awaited.err
		}
		if awaited.run != nil && awaited.run == run && run.keepResults {
			return Started{
				Execution: *run.execution,
				Results:   run.results,
				Response:  run.response,
			}, nil
		}
	case <-answered:
		run.mu.Lock()
		defer run.mu.Unlock()
		started.Response = run.response
		return started, nil
	case <-timer.C:
	case <-ctx.Done():
		return started, ctx.Err()
	case <-engine.work.Done():
	}
	x, results, err := engine.Execution(ctx, db, started.Execution.ID)
	if agent.ErrorCode(err) == agent.CodeNotFound && run != nil { // it is running, and nothing had to be written yet
		return started, nil
	}
	started.Execution, started.Results = x, results
	for i := range results {
		if results[i].Type == "webhook-response" && results[i].Status == agent.NodeSuccess && started.Response == nil {
			started.Response = &results[i]
		}
	}
	return started, err
}

// Execution returns an execution with the results of its nodes, including those
// that are running.
func (engine *Engine) Execution(
	ctx context.Context,
	db *store.DB,
	id string,
) (agent.Execution, []agent.NodeResult, error) {
	var now []agent.NodeResult
	engine.mu.Lock()
	if a := engine.states[db]; a != nil && a.runs[id] != nil {
		now = a.runs[id].running()
	}
	engine.mu.Unlock()
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
func (engine *Engine) Terminate(ctx context.Context, db *store.DB, id string) (agent.Execution, error) {
	ended, woken, err := db.Terminate(ctx, id)
	if err != nil {
		return agent.Execution{}, err
	}
	var runs []*run
	for i := range ended {
		if r := engine.cancelled(db, &ended[i]); r != nil {
			runs = append(runs, r)
		}
	}
	for _, end := range woken {
		engine.signal(db, end)
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
