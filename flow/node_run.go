package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/template"
)

// nodeRun is a node that is running.
type nodeRun struct {
	run     *run
	in      instance
	began   time.Time
	started agent.Time
	attempt int
	call    Call
	cancel  context.CancelFunc
	effect  atomic.Bool // the node has side effects

	outcome  Outcome
	raw      json.RawMessage // the encoded output
	err      error
	warnings []string
}

// maxOutput limits a node's output, in bytes of JSON.
const maxOutput = 16 << 20

// newNodeRun prepares the run of a node. It fills the templates, so that the
// node's data does not change while it runs.
func (run *run) newNodeRun(in instance) *nodeRun {
	step := &run.program.nodes[in.node]
	f := &nodeRun{
		run:     run,
		in:      in,
		began:   time.Now(),
		started: agent.Now(),
		attempt: 1,
	}
	view := names{run, in.scope, run.inputOf(in)}
	path := in.scope.path
	if path == "" {
		path = "0"
	}
	f.call = Call{
		DB:          run.db,
		ExecutionID: run.execution.ID,
		Chain:       run.execution.Chain(),
		Node:        step.Node,
		Path:        in.scope.path,
		Input:       view.input,
		Key:         run.execution.ID + ":" + step.ID + ":" + path,
		Timeout:     step.timeout,
		Program:     &run.program.workflow,
		engine:      run.engine,
		execution:   run.execution,
	}
	f.fill(step, view, run.program.workflow.Settings.StrictTemplates)
	if !step.pure && f.err == nil {
		f.call.Names = view.snapshot()
		f.call.Record = f.record
		f.call.BeforeEffect = f.beforeEffect
	}
	return f
}

// fill fills the templates in a node's data.
func (f *nodeRun) fill(step *step, view template.Scope, strict bool) {
	filled, warnings, err := step.data.Render(view, template.Options{
		Strict:      strict,
		NullMissing: step.kind.NullMissing,
		Zone:        f.run.zone,
	})
	if err != nil {
		f.err = err
		return
	}
	f.warnings = warnings
	f.call.Data, _ = filled.(map[string]any)
	if step.coded {
		f.call.Values, _ = f.call.Data[step.kind.Code].([]any)
	}
	if len(step.raw) > 0 {
		data := make(map[string]any, len(f.call.Data)+len(step.raw))
		for key, v := range f.call.Data {
			data[key] = v
		}
		for key, v := range step.raw {
			data[key] = v
		}
		f.call.Data = data
	}
	if step.kind.Escape == nil {
		return
	}
	f.call.Data = maps.Clone(f.call.Data) // it may be the graph's own map
	for key, v := range step.Data {
		escape := step.kind.Escape(f.call.Data, key)
		if escape == nil {
			continue
		}
		safe, _, err := template.Render(v, view, template.Options{
			Strict: strict,
			Escape: escape,
			Zone:   f.run.zone,
		})
		if err != nil {
			f.err = err
			return
		}
		f.call.Data[key] = safe
	}
}

// start runs a node in its own goroutine.
func (run *run) start(in instance) {
	f := run.newNodeRun(in)
	ctx, cancel := context.WithCancel(run.callers.withCaller(
		run.engine.withChain(run.ctx, run.execution.Chain()),
		run.execution.WorkflowID,
	))
	f.cancel = cancel
	f.effect.Store(!run.program.nodes[in.node].repeatable)
	run.active[f] = true
	running := run.result(in, agent.NodeRunning)
	run.mu.Lock()
	if run.runningNodes == nil {
		run.runningNodes = map[*nodeRun]agent.NodeResult{}
	}
	run.runningNodes[f] = running
	run.mu.Unlock()
	run.publish(Event{Type: EventNodeStarted, Node: &running})
	run.engine.goroutines.Go(func() {
		f.execute(ctx)
		run.finished <- f
	})
}

// execute attempts a node until it succeeds or no attempts are left.
func (f *nodeRun) execute(ctx context.Context) {
	step := &f.run.program.nodes[f.in.node]
	if f.err != nil {
		return
	}
	for {
		f.attemptOnce(ctx)
		if f.err == nil ||
			f.attempt >= step.retry.attempts ||
			ctx.Err() != nil ||
			isPermanent(f.err) {
			return
		}
		timer := time.NewTimer(step.retry.pause(f.attempt))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		f.attempt++
	}
}

// attemptOnce makes one attempt.
func (f *nodeRun) attemptOnce(ctx context.Context) {
	step := &f.run.program.nodes[f.in.node]
	if !step.pure {
		limited, cancel := context.WithTimeout(ctx, step.timeout)
		defer cancel()
		ctx = limited
	}
	f.outcome, f.err = f.guarded(ctx, step)
	if f.err == nil && f.outcome.wait == nil && !f.outcome.Recorded {
		f.raw, f.err = encode(f.outcome.Output)
		f.raw = f.call.DB.HideLinksIn(f.raw)
	}
	if errors.Is(f.err, context.DeadlineExceeded) && ctx.Err() != nil {
		f.err = agent.Errorf(CodeTimeout, "the node took longer than %s", step.timeout).
			With("timeout_ms", step.timeout.Milliseconds()).
			Because(f.err)
	}
}

// CodeTimeout is the code of a node that exceeded its time limit.
const CodeTimeout agent.Code = "ACTION_TIMEOUT"

// guarded calls the kind's Run. A panic becomes an error of the node.
func (f *nodeRun) guarded(ctx context.Context, n *step) (o Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a node of type %s: %v\n%s", n.Type, p, debug.Stack())
		}
	}()
	return n.kind.Run(ctx, &f.call)
}

// encode encodes an output as JSON. A value that is not an object becomes
// {result}.
func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, agent.Errorf(agent.CodeExecution, "the output cannot be encoded as JSON").Because(err)
	}
	raw := bytes.TrimSpace(out.Bytes())
	if len(raw) == 0 || raw[0] != '{' {
		raw = append(append([]byte(`{"result":`), raw...), '}')
	}
	if len(raw) > maxOutput {
		return nil, agent.Errorf(
			agent.CodeExecution,
			"the output is larger than %d MB",
			maxOutput>>20,
		).With("limit_bytes", maxOutput)
	}
	return raw, nil
}

// decode decodes JSON. Numbers keep all their digits.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// decodeOr decodes JSON that this program wrote; anything else is null.
func decodeOr(raw []byte) any {
	v, err := decode(raw)
	if err != nil {
		return nil
	}
	return v
}

// record implements Call.Record.
func (f *nodeRun) record(output any) (string, agent.NodeResult, error) {
	result := f.result()
	var err error
	f.raw, err = encode(output)
	f.raw = f.call.DB.HideLinksIn(f.raw)
	result.Output = f.raw
	return f.run.execution.ID, result, err
}

// beforeEffect implements Call.BeforeEffect. From then on the node's result is
// committed as soon as it finishes.
func (f *nodeRun) beforeEffect(ctx context.Context) error {
	f.effect.Store(true)
	committed := make(chan struct{})
	select {
	case f.run.commitRequests <- committed:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-committed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// result returns the node's result as far as the node run knows it.
func (f *nodeRun) result() agent.NodeResult {
	result := f.run.result(f.in, agent.NodeSuccess)
	result.StartedAt, result.DurationMS, result.Attempt = f.started, elapsedMilliseconds(f.began), f.attempt
	return result
}

// join handles a node that finished in its own goroutine.
func (run *run) join(f *nodeRun) {
	delete(run.active, f)
	f.cancel()
	run.mu.Lock()
	delete(run.runningNodes, f)
	run.mu.Unlock()
	if f.in.scope.ended() {
		run.releaseChild(f.outcome.child)
		return
	}
	if run.ctx.Err() != nil && f.err != nil {
		return // interrupted: it runs again
	}
	run.pending.urgent = run.pending.urgent || f.effect.Load()
	run.record(f, f.result())
}

// record handles the outcome of a node.
func (run *run) record(nodeRun *nodeRun, result agent.NodeResult) {
	result.Warnings = append(nodeRun.warnings, nodeRun.outcome.Warnings...)
	result.Logs, result.Handle = nodeRun.outcome.Logs, nodeRun.outcome.Handle
	switch {
	case nodeRun.err != nil:
		result.Status, result.Error = agent.NodeFailed, run.explain(nodeRun.err, result.NodeID)
		run.complete(nodeRun.in, result, nil, false)
	case nodeRun.outcome.wait != nil:
		run.addWait(nodeRun)
	default:
		result.Output = nodeRun.raw
		if c := nodeRun.outcome.child; c != nil {
			run.children = append(run.children, c)
		}
		value, plain := nodeRun.outcome.Output.(map[string]any)
		if !plain || !run.program.nodes[nodeRun.in.node].pure {
			value, _ = decodeOr(nodeRun.raw).(map[string]any)
		}
		if nodeRun.outcome.Recorded {
			run.publishFinished(result)
			run.keepResult(result)
		}
		run.complete(nodeRun.in, result, value, nodeRun.outcome.Recorded)
	}
}

// explain converts any error to the error that an execution shows.
func (run *run) explain(err error, node string) *agent.ExecutionError {
	var known *agent.Error
	if errors.As(err, &known) {
		return &agent.ExecutionError{
			Code:    string(known.Code),
			Message: known.Message,
			NodeID:  node,
			Details: known.Details,
		}
	}
	run.engine.log.Error(
		"run node",
		"agent", run.db.ID(),
		"execution", run.execution.ID,
		"node", node,
		"error", err,
	)
	return &agent.ExecutionError{
		Code:    string(agent.CodeInternal),
		Message: "the node failed with an internal error; see the server's log",
		NodeID:  node,
	}
}

// isPermanent reports whether another attempt would fail the same.
func isPermanent(err error) bool {
	switch agent.ErrorCode(err) {
	case agent.CodeValidation, agent.CodeCredentialLogin, egress.CodeCredentialHost:
		return true
	}
	return false
}
