package flow

import (
	"maps"
	"slices"

	"satchel/agent"
	"satchel/store"
)

// complete records the result of a node and resolves its outgoing edges.
// recorded means that the result is already in the journal.
func (run *run) complete(in instance, result agent.NodeResult, output any, recorded bool) {
	step := &run.program.nodes[in.node]
	failed := result.Status == agent.NodeFailed
	if failed {
		run.lastError = map[string]any{
			"code":    result.Error.Code,
			"message": result.Error.Message,
			"node_id": result.NodeID,
			"details": result.Error.Details,
		}
		output = map[string]any{"error": maps.Clone(run.lastError)}
	}
	if !recorded {
		run.journal(result)
	}
	state := run.state(in)
	state.waiting = false
	state.output, state.flow = output, output
	if step.kind != nil && step.kind.PassesInput && !failed {
		state.flow = run.inputOf(in)
	}
	if result.Status == agent.NodeSuccess || failed {
		in.scope.output[step.ID] = output
	}
	if step.Type == "webhook-response" && result.Status == agent.NodeSuccess {
		run.mu.Lock()
		if run.response == nil {
			run.response = &result
		}
		run.mu.Unlock()
	}
	switch {
	case failed && step.onError == onErrorStop:
		run.fail(in, result.Error)
		return
	case failed && step.onError == onErrorBranch:
		run.resolveEdges(in, agent.HandleError)
	case failed:
		run.resolveEdges(in, afterFailure[step.Type])
	default:
		run.resolveEdges(in, result.Handle)
	}
}

// afterFailure is the handle by which a node that failed leaves if on_error is
// continue.
var afterFailure = map[string]string{
	agent.NodeIfElse:   "false",
	agent.NodeSwitch:   "default",
	agent.NodeLoop:     agent.HandleDone,
	agent.NodeApproval: "rejected",
}

// journal adds a result to the next commit.
func (run *run) journal(result agent.NodeResult) {
	run.pending.add(result)
	run.keepResult(result)
}

// keepResult keeps a result for the caller, up to a limit.
func (run *run) keepResult(result agent.NodeResult) {
	if run.keepResults && result.Finished() {
		if run.keepResults = len(run.results) < maxKeptResults; !run.keepResults {
			run.results = nil
			return
		}
		run.results = append(run.results, result)
	}
}

// resolveEdges resolves the outgoing edges of a node. Edges with the handle are
// taken; "" is the handle of a node that has only one.
func (run *run) resolveEdges(in instance, handle string) {
	s := run.state(in)
	n := &run.program.nodes[in.node]
	s.last = true
	for _, i := range run.program.graph.Out[in.node] {
		e := run.program.graph.Edges[i]
		if !run.program.graph.Counts(e) || n.Type == agent.NodeLoop && e.Handle == agent.HandleLoop {
			continue
		}
		taken := e.Handle == handle
		s.last = s.last && !taken
		run.resolveEdge(in.scope, e.Target, taken, input{n.ID, s.flow})
	}
	run.nodeResolved(in.scope)
}

// resolveEdge resolves one edge at its target.
func (run *run) resolveEdge(s *scope, target int, taken bool, in input) {
	t := &s.states[run.program.indexes[target]]
	t.unresolved--
	if taken {
		t.reached = true
		t.sources = append(t.sources, in)
	}
	if t.unresolved == 0 {
		run.ready = append(run.ready, instance{s, target})
	}
}

// nodeResolved counts one more resolved node of a scope.
func (run *run) nodeResolved(s *scope) {
	if s.open--; s.open == 0 && s.loop != nil {
		run.endIteration(s, nil)
	}
}

// skip marks a node that no path reached as skipped, and resolves its outgoing
// edges as not taken. A loop's body is skipped with it.
func (run *run) skip(in instance) {
	run.skipped(in.node, in.scope)
	n := &run.program.nodes[in.node]
	for _, i := range run.program.graph.Out[in.node] {
		e := run.program.graph.Edges[i]
		if run.program.graph.Counts(e) && !(n.Type == agent.NodeLoop && e.Handle == agent.HandleLoop) {
			run.resolveEdge(in.scope, e.Target, false, input{})
		}
	}
	run.nodeResolved(in.scope)
}

func (run *run) skipped(node int, s *scope) {
	result := run.result(instance{s, node}, agent.NodeSkipped)
	if _, known := run.journaled[instanceKey{result.NodeID, s.path}]; !known {
		run.journal(result)
	}
	if run.program.nodes[node].Type == agent.NodeLoop {
		for _, inner := range run.program.regions[node].nodes {
			run.skipped(inner, s)
		}
	}
}

// outputOf returns the output of a scope: that of its one final node, or of
// each final node by id.
func (run *run) outputOf(s *scope) any {
	all := map[string]any{}
	var only any
	for i, node := range s.region.nodes {
		if s.states[i].last {
			only = s.states[i].output
			all[run.program.nodes[node].ID] = only
		}
	}
	if len(all) == 1 && only != nil {
		return only
	}
	return all
}

// fail ends the scope of a node that failed: an iteration, or the execution.
func (run *run) fail(in instance, err *agent.ExecutionError) {
	if in.scope.loop != nil {
		run.abandon(in.scope)
		run.endIteration(in.scope, err)
		return
	}
	run.failure = err
}

// abandon cancels everything in a scope that is running, waiting or ready.
func (run *run) abandon(scope *scope) {
	scope.abandoned = true
	for f := range run.active {
		if f.in.scope.inside(scope) {
			f.cancel()
			run.cancelled(f.in, f.started)
		}
	}
	for at, in := range run.waiting {
		if in.scope.inside(scope) {
			delete(run.waiting, at)
			result := run.result(in, agent.NodeCancelled)
			run.waits = slices.DeleteFunc(run.waits, func(w store.Wait) bool {
				return w.NodeID == at.node && w.Path == at.path
			})
			run.waitEnds = append(run.waitEnds, store.WaitEnd{ExecutionID: run.execution.ID, Result: result})
			run.journal(result)
		}
	}
	inside := func(in instance) bool { return in.scope.inside(scope) }
	run.ready = slices.DeleteFunc(run.ready, inside)
	run.effects = slices.DeleteFunc(run.effects, inside)
}

func (run *run) cancelled(in instance, started agent.Time) {
	result := run.result(in, agent.NodeCancelled)
	result.DurationMS = float64(result.StartedAt.Sub(started.Time).Milliseconds())
	result.StartedAt = started
	run.journal(result)
}
