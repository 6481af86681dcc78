package flow

import (
	"context"

	"satchel/agent"
	"satchel/store"
)

// Retry makes a new execution that repeats one which has ended, by the
// workflow as it is now. It takes over what was done before the node from, or
// before the first node that failed when from is empty, and goes on there.
func (e *Engine) Retry(ctx context.Context, db *store.DB, id, from string) (agent.Execution, error) {
	a, err := e.ready(ctx, db)
	if err != nil {
		return agent.Execution{}, err
	}
	old, results, err := db.Execution(ctx, id)
	if err != nil {
		return old, err
	}
	if old.Trigger == agent.TriggerTest {
		return old, agent.Errorf(agent.CodeConflict, "a test is not retried; test the graph again")
	}
	if !old.Status.Ended() {
		return old, agent.Errorf(agent.CodeConflict, "the execution has not ended yet").With("status", old.Status)
	}
	q := Request{WorkflowID: old.WorkflowID, Input: old.Input, Trigger: "retry", chain: store.ChainOf(ctx)}
	x, p, _, err := e.prepareExecution(ctx, db, q)
	if err != nil {
		return agent.Execution{}, err
	}
	kept, err := carry(p, &old, results, from)
	if err != nil {
		return agent.Execution{}, err
	}
	if why := e.spend(x); why != nil {
		return agent.Execution{}, e.refuse(ctx, db, x, p, "", why)
	}
	x.RetriedFrom = old.ID
	if start, ok := p.graph.Find(old.TriggerNode); ok && p.nodes[start].Type == agent.NodeTrigger {
		x.TriggerNode = old.TriggerNode
	}
	return e.repeat(ctx, a, x, p, kept)
}

// repeat begins an execution with results that it takes over, or queues it.
func (e *Engine) repeat(ctx context.Context, a *agentState, x *agent.Execution, p *program, kept []agent.NodeResult) (agent.Execution, error) {
	s, err := e.admit(a, x, p, false)
	if err != nil {
		return agent.Execution{}, err
	}
	answer := *x
	if err := a.db.RetryExecution(ctx, store.StartedExecution{Execution: x, Name: p.workflow.Name}, kept); err != nil {
		e.release(s)
		return agent.Execution{}, err
	}
	if s == nil {
		e.queued(a, p)
		return answer, nil
	}
	r := e.newRun(a, x.ID)
	r.slot = s
	e.enlist(r)
	e.goroutines.Go(func() {
		if r.load() {
			r.drive()
		}
	})
	return answer, nil
}

// carry picks the results that a repeated execution takes over: those that do
// not depend on a node where it begins again.
func carry(p *program, old *agent.Execution, results []agent.NodeResult, from string) ([]agent.NodeResult, error) {
	again := map[place]bool{} // where it begins again; with every path when from is named
	switch {
	case from != "":
		if _, ok := p.graph.Find(from); !ok {
			return nil, agent.Invalid("from_node", "is no node of the workflow as it is now").With("node_id", from)
		}
	case old.Status == agent.ExecutionComplete:
		return nil, agent.Invalid("from_node", "is required: no node of this execution failed")
	}
	for _, r := range results {
		switch {
		case from != "" && r.NodeID == from, from == "" && r.Status == agent.NodeFailed && old.Error != nil && failedIn(p, r, old.Error.NodeID),
			r.Status == agent.NodeCancelled, r.Status == agent.NodeRunning && r.Items == nil, r.Status == agent.NodeWaiting:
			again[place{r.NodeID, r.At()}] = true
		}
	}
	dropped := map[place]bool{}
	for at := range again {
		p.drop(at.node, at.path, dropped)
	}
	if from != "" {
		p.drop(from, "", dropped)
	}
	var kept []agent.NodeResult
	for _, r := range results {
		at := place{r.NodeID, r.At()}
		i, known := p.graph.Find(r.NodeID)
		if !known || p.nodes[i].Type != r.Type {
			continue
		}
		if dropped[at] || dropped[place{r.NodeID, "*"}] {
			// A loop that began goes on with the items that it had.
			if r.Items == nil || at.node == from {
				continue
			}
			r.Status, r.Output, r.Error = agent.NodeRunning, nil, nil
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// failedIn reports whether a failed result is why its execution failed: the node
// itself, or a loop that failed by it.
func failedIn(p *program, r agent.NodeResult, node string) bool {
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

// drop marks what depends on a node in one iteration: the nodes behind it
// there, the loop around it, and what lies behind that.
func (p *program) drop(node, path string, dropped map[place]bool) {
	i, ok := p.graph.Find(node)
	if !ok {
		return
	}
	p.dropFrom(i, path, dropped)
	for loop := p.graph.Loop[i]; loop >= 0; loop = p.graph.Loop[loop] {
		path = outer(path)
		p.dropFrom(loop, path, dropped)
	}
}

// outer is the path of the loop around an iteration.
func outer(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return ""
}

// dropFrom marks a node and all behind it within its region, bodies of loops
// behind it included.
func (p *program) dropFrom(node int, path string, dropped map[place]bool) {
	at := place{p.nodes[node].ID, path}
	if dropped[at] {
		return
	}
	dropped[at] = true
	for _, i := range p.graph.Out[node] {
		e := p.graph.Edges[i]
		if !p.graph.Counts(e) {
			continue
		}
		if p.nodes[node].Type == agent.NodeLoop && e.Handle == agent.HandleLoop {
			continue
		}
		p.dropFrom(e.Target, path, dropped)
		if p.nodes[e.Target].Type == agent.NodeLoop {
			p.dropBody(e.Target, dropped)
		}
	}
}

// dropBody marks the body of a loop in every iteration.
func (p *program) dropBody(loop int, dropped map[place]bool) {
	dropped[place{p.nodes[loop].ID, "*"}] = true
	for _, inner := range p.regions[loop].nodes {
		dropped[place{p.nodes[inner].ID, "*"}] = true
		if p.nodes[inner].Type == agent.NodeLoop {
			p.dropBody(inner, dropped)
		}
	}
}
