package flow

import (
	"context"

	"satchel/agent"
	"satchel/store"
)

// Retry starts a new execution that repeats one which has ended, using the
// current version of the workflow. It reuses the results before the node from,
// or before the first failed node if from is empty, and continues there.
func (engine *Engine) Retry(ctx context.Context, db *store.DB, id, from string) (agent.Execution, error) {
	state, err := engine.ready(ctx, db)
	if err != nil {
		return agent.Execution{}, err
	}
	old, results, err := db.Execution(ctx, id)
	if err != nil {
		return old, err
	}
	if old.Trigger == agent.TriggerTest {
		return old, agent.Errorf(agent.CodeConflict, "a test cannot be retried; run the test again")
	}
	if !old.Status.Ended() {
		return old, agent.Errorf(agent.CodeConflict, "the execution has not ended yet").With("status", old.Status)
	}
	request := Request{
		WorkflowID: old.WorkflowID,
		Input:      old.Input,
		Trigger:    "retry",
		chain:      store.ChainOf(ctx),
	}
	execution, program, _, err := engine.prepareExecution(ctx, db, request)
	if err != nil {
		return agent.Execution{}, err
	}
	kept, err := reusableResults(program, &old, results, from)
	if err != nil {
		return agent.Execution{}, err
	}
	if why := engine.charge(execution); why != nil {
		return agent.Execution{}, engine.refuse(ctx, db, execution, program, "", why)
	}
	execution.RetriedFrom = old.ID
	if start, ok := program.graph.Find(old.TriggerNode); ok && program.nodes[start].Type == agent.NodeTrigger {
		execution.TriggerNode = old.TriggerNode
	}
	return engine.startRetry(ctx, state, execution, program, kept)
}

// startRetry starts an execution with reused results, or queues it.
func (engine *Engine) startRetry(
	ctx context.Context,
	state *agentState,
	execution *agent.Execution,
	program *program,
	kept []agent.NodeResult,
) (agent.Execution, error) {
	slot, err := engine.admit(ctx, state, execution, program, limitBySettings)
	if err != nil {
		return agent.Execution{}, err
	}
	answer := *execution
	if err := state.db.RetryExecution(
		ctx,
		store.StartedExecution{Execution: execution, Name: program.workflow.Name},
		kept,
	); err != nil {
		engine.release(slot)
		return agent.Execution{}, err
	}
	if slot == nil {
		engine.queued(state, program)
		return answer, nil
	}
	r := engine.newRun(state, execution.ID)
	r.slot = slot
	engine.addRun(r)
	engine.goroutines.Go(func() {
		if r.load() {
			r.drive()
		}
	})
	return answer, nil
}

// reusableResults returns the results that a repeated execution reuses: those
// that do not depend on a node that runs again.
func reusableResults(
	program *program,
	old *agent.Execution,
	results []agent.NodeResult,
	from string,
) ([]agent.NodeResult, error) {
	again := map[instanceKey]bool{} // nodes that run again; with every path if from is set
	switch {
	case from != "":
		if _, ok := program.graph.Find(from); !ok {
			return nil, agent.Invalid(
				"from_node",
				"is not a node of the current version of the workflow",
			).With("node_id", from)
		}
	case old.Status == agent.ExecutionComplete:
		return nil, agent.Invalid("from_node", "is required: no node of this execution failed")
	}
	for _, r := range results {
		switch {
		case from != "" && r.NodeID == from,
			from == "" &&
				r.Status == agent.NodeFailed &&
				old.Error != nil &&
				causedFailure(program, r, old.Error.NodeID),
			r.Status == agent.NodeCancelled, r.Status == agent.NodeRunning && r.Items == nil,
			r.Status == agent.NodeWaiting:
			again[instanceKey{r.NodeID, r.FullPath()}] = true
		}
	}
	invalidated := map[instanceKey]bool{}
	for at := range again {
		program.invalidate(at.node, at.path, invalidated)
	}
	if from != "" {
		program.invalidate(from, "", invalidated)
	}
	var kept []agent.NodeResult
	for _, r := range results {
		at := instanceKey{r.NodeID, r.FullPath()}
		i, known := program.graph.Find(r.NodeID)
		if !known || program.nodes[i].Type != r.Type {
			continue
		}
		if invalidated[at] || invalidated[instanceKey{r.NodeID, "*"}] {
			// A loop that had started continues with the same items.
			if r.Items == nil || at.node == from {
				continue
			}
			r.Status, r.Output, r.Error = agent.NodeRunning, nil, nil
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// causedFailure reports whether a failed result is why its execution failed: it is
// of the node itself, or of a loop that failed because of it.
func causedFailure(p *program, r agent.NodeResult, node string) bool {
	if r.NodeID == node {
		return true
	}
	i, ok := p.graph.Find(node)
	for ok && p.graph.Loop[i] >= 0 {
		if i = p.graph.Loop[i]; p.nodes[i].ID == r.NodeID {
			return true
		}
	}
	return false
}

// invalidate marks what depends on a node in one iteration: the nodes after it,
// the surrounding loop, and what follows that.
func (p *program) invalidate(node, path string, invalidated map[instanceKey]bool) {
	i, ok := p.graph.Find(node)
	if !ok {
		return
	}
	p.invalidateFrom(i, path, invalidated)
	for loop := p.graph.Loop[i]; loop >= 0; loop = p.graph.Loop[loop] {
		path = outerPath(path)
		p.invalidateFrom(loop, path, invalidated)
	}
}

// outerPath returns the path of the loop around an iteration.
func outerPath(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return ""
}

// invalidateFrom marks a node and everything after it within its region,
// including the bodies of loops.
func (p *program) invalidateFrom(node int, path string, invalidated map[instanceKey]bool) {
	at := instanceKey{p.nodes[node].ID, path}
	if invalidated[at] {
		return
	}
	invalidated[at] = true
	for _, i := range p.graph.Out[node] {
		e := p.graph.Edges[i]
		if !p.graph.Counts(e) {
			continue
		}
		if p.nodes[node].Type == agent.NodeLoop && e.Handle == agent.HandleLoop {
			continue
		}
		p.invalidateFrom(e.Target, path, invalidated)
		if p.nodes[e.Target].Type == agent.NodeLoop {
			p.invalidateBody(e.Target, invalidated)
		}
	}
}

// invalidateBody marks the body of a loop in every iteration.
func (p *program) invalidateBody(loop int, invalidated map[instanceKey]bool) {
	invalidated[instanceKey{p.nodes[loop].ID, "*"}] = true
	for _, inner := range p.regions[loop].nodes {
		invalidated[instanceKey{p.nodes[inner].ID, "*"}] = true
		if p.nodes[inner].Type == agent.NodeLoop {
			p.invalidateBody(inner, invalidated)
		}
	}
}
