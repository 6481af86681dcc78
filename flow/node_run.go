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
func (r *run) newNodeRun(in instance) *nodeRun {
	n := &r.program.nodes[in.node]
	f := &nodeRun{
		run:     r,
		in:      in,
		began:   time.Now(),
		started: agent.Now(),
		attempt: 1,
	}
	view := names{r, in.scope, r.inputOf(in)}
	path := in.scope.path
	if path == "" {
		path = "0"
	}
	f.call = Call{
		DB:          r.db,
		ExecutionID: r.execution.ID,
		Chain:       r.execution.Chain(),
		Node:        n.Node,
		Path:        in.scope.path,
		Input:       view.input,
		Key:         r.execution.ID + ":" + n.ID + ":" + path,
		Timeout:     n.timeout,
		Program:     &r.program.workflow,
		engine:      r.engine,
		execution:   r.execution,
	}
	f.fill(n, view, r.program.workflow.Settings.StrictTemplates)
	if !n.pure && f.err == nil {
		f.call.Names = view.snapshot()
		f.call.Record = f.record
		f.call.BeforeEffect = f.beforeEffect
	}
	return f
}

// fill fills the templates in a node's data.
func (f *nodeRun) fill(n *step, view template.Scope, strict bool) {
	filled, warnings, err := n.data.Render(view, template.Options{
		Strict:      strict,
		NullMissing: n.kind.NullMissing,
		Zone:        f.run.zone,
	})
	if err != nil {
		f.err = err
		return
	}
	f.warnings = warnings
	f.call.Data, _ = filled.(map[string]any)
	if n.coded {
		f.call.Values, _ = f.call.Data[n.kind.Code].([]any)
	}
	if len(n.raw) > 0 {
		data := make(map[string]any, len(f.call.Data)+len(n.raw))
		for key, v := range f.call.Data {
			data[key] = v
		}
		for key, v := range n.raw {
			data[key] = v
		}
		f.call.Data = data
	}
	if n.kind.Escape == nil {
		return
	}
	f.call.Data = maps.Clone(f.call.Data) // it may be the graph's own map
	for key, v := range n.Data {
		escape := n.kind.Escape(f.call.Data, key)
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
func (r *run) start(in instance) {
	f := r.newNodeRun(in)
	ctx, cancel := context.WithCancel(r.callers.withCaller(
		r.engine.withChain(r.ctx, r.execution.Chain()),
		r.execution.WorkflowID,
	))
	f.cancel = cancel
	f.effect.Store(!r.program.nodes[in.node].repeatable)
	r.active[f] = true
	running := r.result(in, agent.NodeRunning)
	r.mu.Lock()
	if r.runningNodes == nil {
		r.runningNodes = map[*nodeRun]agent.NodeResult{}
	}
	r.runningNodes[f] = running
	r.mu.Unlock()
	r.publish(Event{Type: EventNodeStarted, Node: &running})
	r.engine.goroutines.Go(func() {
		f.execute(ctx)
		r.finished <- f
	})
}

// execute attempts a node until it succeeds or no attempts are left.
func (f *nodeRun) execute(ctx context.Context) {
	n := &f.run.program.nodes[f.in.node]
	if f.err != nil {
		return
	}
	for {
		f.attemptOnce(ctx)
		if f.err == nil ||
			f.attempt >= n.retry.attempts ||
			ctx.Err() != nil ||
			isPermanent(f.err) {
			return
		}
		timer := time.NewTimer(n.retry.pause(f.attempt))
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
	n := &f.run.program.nodes[f.in.node]
	if !n.pure {
		limited, cancel := context.WithTimeout(ctx, n.timeout)
		defer cancel()
		ctx = limited
	}
	f.outcome, f.err = f.guarded(ctx, n)
	if f.err == nil && f.outcome.wait == nil && !f.outcome.Recorded {
		f.raw, f.err = encode(f.outcome.Output)
		f.raw = f.call.DB.HideLinksIn(f.raw)
	}
	if errors.Is(f.err, context.DeadlineExceeded) && ctx.Err() != nil {
		f.err = agent.Errorf(CodeTimeout, "the node took longer than %s", n.timeout).
			With("timeout_ms", n.timeout.Milliseconds()).
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
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
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
func (r *run) join(f *nodeRun) {
	delete(r.active, f)
	f.cancel()
	r.mu.Lock()
	delete(r.runningNodes, f)
	r.mu.Unlock()
	if f.in.scope.ended() {
		r.releaseChild(f.outcome.child)
		return
	}
	if r.ctx.Err() != nil && f.err != nil {
		return // interrupted: it runs again
	}
	r.pending.urgent = r.pending.urgent || f.effect.Load()
	r.record(f, f.result())
}

// record handles the outcome of a node.
func (r *run) record(f *nodeRun, result agent.NodeResult) {
	result.Warnings = append(f.warnings, f.outcome.Warnings...)
	result.Logs, result.Handle = f.outcome.Logs, f.outcome.Handle
	switch {
	case f.err != nil:
		result.Status, result.Error = agent.NodeFailed, r.explain(f.err, result.NodeID)
		r.complete(f.in, result, nil, false)
	case f.outcome.wait != nil:
		r.addWait(f)
	default:
		result.Output = f.raw
		if c := f.outcome.child; c != nil {
			r.children = append(r.children, c)
		}
		value, plain := f.outcome.Output.(map[string]any)
		if !plain || !r.program.nodes[f.in.node].pure {
			value, _ = decodeOr(f.raw).(map[string]any)
		}
		if f.outcome.Recorded {
			r.publishFinished(result)
			r.keepResult(result)
		}
		r.complete(f.in, result, value, f.outcome.Recorded)
	}
}

// explain converts any error to the error that an execution shows.
func (r *run) explain(err error, node string) *agent.ExecutionError {
	var known *agent.Error
	if errors.As(err, &known) {
		return &agent.ExecutionError{
			Code:    string(known.Code),
			Message: known.Message,
			NodeID:  node,
			Details: known.Details,
		}
	}
	r.engine.log.Error(
		"run node",
		"agent", r.db.ID(),
		"execution", r.execution.ID,
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
