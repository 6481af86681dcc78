package flow

import (
	"maps"
	"slices"

	"satchel/agent"
	"satchel/store"
)

// complete records the result of a node and resolves its outgoing edges.
// recorded means that the result is already in the journal.
func (r *run) complete(in instance, result agent.NodeResult, output any, recorded bool) {
	n := &r.program.nodes[in.node]
	failed := result.Status == agent.NodeFailed
	if failed {
		r.lastError = map[string]any{
			"code":    result.Error.Code,
			"message": result.Error.Message,
			"node_id": result.NodeID,
			"details": result.Error.Details,
		}
		output = map[string]any{"error": maps.Clone(r.lastError)}
	}
	if !recorded {
		r.journal(result)
	}
	s := r.state(in)
	s.waiting = false
	s.output, s.flow = output, output
	if n.kind != nil && n.kind.PassesInput && !failed {
		s.flow = r.inputOf(in)
	}
	if result.Status == agent.NodeSuccess || failed {
		in.scope.output[n.ID] = output
	}
	if n.Type == "webhook-response" && result.Status == agent.NodeSuccess {
		r.mu.Lock()
		if r.response == nil {
			r.response = &result
		}
		r.mu.Unlock()
	}
	switch {
	case failed && n.onError == onErrorStop:
		r.fail(in, result.Error)
		return
	case failed && n.onError == onErrorBranch:
		r.resolveEdges(in, agent.HandleError)
	case failed:
		r.resolveEdges(in, afterFailure[n.Type])
	default:
		r.resolveEdges(in, result.Handle)
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
func (r *run) journal(result agent.NodeResult) {
	r.pending.add(result)
	r.keepResult(result)
}

// keepResult keeps a result for the caller, up to a limit.
func (r *run) keepResult(result agent.NodeResult) {
	if r.keepResults && result.Finished() {
		if r.keepResults = len(r.results) < maxKeptResults; !r.keepResults {
			r.results = nil
			return
		}
		r.results = append(r.results, result)
	}
}

// resolveEdges resolves the outgoing edges of a node. Edges with the handle are
// taken; "" is the handle of a node that has only one.
func (r *run) resolveEdges(in instance, handle string) {
	s := r.state(in)
	n := &r.program.nodes[in.node]
	s.last = true
	for _, i := range r.program.graph.Out[in.node] {
		e := r.program.graph.Edges[i]
		if !r.program.graph.Counts(e) || n.Type == agent.NodeLoop && e.Handle == agent.HandleLoop {
			continue
		}
		taken := e.Handle == handle
		s.last = s.last && !taken
		r.resolveEdge(in.scope, e.Target, taken, input{n.ID, s.flow})
	}
	r.nodeResolved(in.scope)
}

// resolveEdge resolves one edge at its target.
func (r *run) resolveEdge(s *scope, target int, taken bool, in input) {
	t := &s.states[r.program.indexes[target]]
	t.unresolved--
	if taken {
		t.reached = true
		t.sources = append(t.sources, in)
	}
	if t.unresolved == 0 {
		r.ready = append(r.ready, instance{s, target})
	}
}

// nodeResolved counts one more resolved node of a scope.
func (r *run) nodeResolved(s *scope) {
	if s.open--; s.open == 0 && s.loop != nil {
		r.endIteration(s, nil)
	}
}

// skip marks a node that no path reached as skipped, and resolves its outgoing
// edges as not taken. A loop's body is skipped with it.
func (r *run) skip(in instance) {
	r.skipped(in.node, in.scope)
	n := &r.program.nodes[in.node]
	for _, i := range r.program.graph.Out[in.node] {
		e := r.program.graph.Edges[i]
		if r.program.graph.Counts(e) && !(n.Type == agent.NodeLoop && e.Handle == agent.HandleLoop) {
			r.resolveEdge(in.scope, e.Target, false, input{})
		}
	}
	r.nodeResolved(in.scope)
}

func (r *run) skipped(node int, s *scope) {
	result := r.result(instance{s, node}, agent.NodeSkipped)
	if _, known := r.journaled[instanceKey{result.NodeID, s.path}]; !known {
		r.journal(result)
	}
	if r.program.nodes[node].Type == agent.NodeLoop {
		for _, inner := range r.program.regions[node].nodes {
			r.skipped(inner, s)
		}
	}
}

// outputOf returns the output of a scope: that of its one final node, or of
// each final node by id.
func (r *run) outputOf(s *scope) any {
	all := map[string]any{}
	var only any
	for i, node := range s.region.nodes {
		if s.states[i].last {
			only = s.states[i].output
			all[r.program.nodes[node].ID] = only
		}
	}
	if len(all) == 1 && only != nil {
		return only
	}
	return all
}

// fail ends the scope of a node that failed: an iteration, or the execution.
func (r *run) fail(in instance, err *agent.ExecutionError) {
	if in.scope.loop != nil {
		r.abandon(in.scope)
		r.endIteration(in.scope, err)
		return
	}
	r.failure = err
}

// abandon cancels everything in a scope that is running, waiting or ready.
func (r *run) abandon(s *scope) {
	s.abandoned = true
	for f := range r.active {
		if f.in.scope.inside(s) {
			f.cancel()
			r.cancelled(f.in, f.started)
		}
	}
	for at, in := range r.waiting {
		if in.scope.inside(s) {
			delete(r.waiting, at)
			result := r.result(in, agent.NodeCancelled)
			r.waits = slices.DeleteFunc(r.waits, func(w store.Wait) bool {
				return w.NodeID == at.node && w.Path == at.path
			})
			r.waitEnds = append(r.waitEnds, store.WaitEnd{ExecutionID: r.execution.ID, Result: result})
			r.journal(result)
		}
	}
	inside := func(in instance) bool { return in.scope.inside(s) }
	r.ready = slices.DeleteFunc(r.ready, inside)
	r.effects = slices.DeleteFunc(r.effects, inside)
}

func (r *run) cancelled(in instance, started agent.Time) {
	result := r.result(in, agent.NodeCancelled)
	result.DurationMS = float64(result.StartedAt.Sub(started.Time).Milliseconds())
	result.StartedAt = started
	r.journal(result)
}
