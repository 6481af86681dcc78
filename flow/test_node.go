package flow

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/flow/graph"
	"satchel/store"
)

// NodeTest is the result of running a node on its own.
type NodeTest struct {
	Status     agent.NodeStatus      `json:"status" enum:"success,error" example:"success"`
	Output     json.RawMessage       `json:"output,omitempty"`
	Error      *agent.ExecutionError `json:"error,omitempty"`
	Logs       []agent.LogLine       `json:"logs"`
	Warnings   []string              `json:"warnings,omitempty"`
	DurationMS float64               `json:"duration_ms" example:"1.5"`
}

// TestNode runs one node of a workflow on its own, with real effects. The input
// is both what flows into the node and the trigger's payload. Nodes that wait,
// and loops, cannot be run this way.
func (e *Engine) TestNode(
	ctx context.Context,
	db *store.DB,
	workflowID, nodeID string,
	given json.RawMessage,
) (NodeTest, error) {
	payload, err := readPayload(db.HideLinksIn(given))
	if err != nil {
		return NodeTest{}, err
	}
	w, err := db.Workflow(ctx, workflowID)
	if err != nil {
		return NodeTest{}, err
	}
	g, err := graph.Parse(w.Nodes, w.Edges, false)
	if err != nil {
		return NodeTest{}, err
	}
	i, ok := g.Find(nodeID)
	if !ok {
		return NodeTest{}, agent.Invalid("node_id", "is not a node of this workflow")
	}
	switch g.Nodes[i].Type {
	case agent.NodeLoop, agent.NodeWait, agent.NodeApproval, "workflow":
		return NodeTest{}, agent.Invalid(
			"node_id",
			"is a node of type "+g.Nodes[i].Type+", which cannot be tested on its own",
		)
	}
	p := &program{
		workflow: w,
		graph:    g,
		nodes:    make([]step, len(g.Nodes)),
		indexes:  make([]int, len(g.Nodes)),
		regions:  map[int]*region{-1: {nodes: []int{i}, unresolved: []int{0}}},
	}
	if err := g.CheckNode(i); err != nil {
		return NodeTest{}, err
	}
	if err := e.prepare(p, i); err != nil {
		return NodeTest{}, err
	}
	r := &run{
		engine:  e,
		db:      db,
		id:      "test",
		program: p,
		payload: payload,
		execution: &agent.Execution{
			ID:         agent.NewID("test"),
			WorkflowID: w.ID,
			Version:    w.Version,
			Trigger:    "manual",
			Depth:      1,
			StartedAt:  agent.Now(),
		},
	}
	r.top = r.newScope(nil, nil, 0, -1)
	in := instance{r.top, i}
	r.state(in).sources = []input{{value: payload}}
	f := r.newNodeRun(in)
	f.call.ExecutionID, f.call.Record, f.call.BeforeEffect = "", nil, nil
	f.execute(e.withChain(ctx, r.execution.Chain()))
	t := NodeTest{
		Status:     agent.NodeSuccess,
		Output:     f.raw,
		Logs:       f.outcome.Logs,
		Warnings:   append(f.warnings, f.outcome.Warnings...),
		DurationMS: elapsedMilliseconds(f.began),
	}
	if t.Logs == nil {
		t.Logs = []agent.LogLine{}
	}
	if f.err != nil {
		t.Status, t.Output, t.Error = agent.NodeFailed, nil, r.explain(f.err, nodeID)
	}
	return t, nil
}
