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
func (engine *Engine) TestNode(
	ctx context.Context,
	db *store.DB,
	workflowID, nodeID string,
	given json.RawMessage,
) (NodeTest, error) {
	payload, err := readPayload(db.HideLinksIn(given))
	if err != nil {
		return NodeTest{}, err
	}
	workflow, err := db.Workflow(ctx, workflowID)
	if err != nil {
		return NodeTest{}, err
	}
	g, err := graph.Parse(workflow.Nodes, workflow.Edges, false)
	if err != nil {
		return NodeTest{}, err
	}
	index, ok := g.Find(nodeID)
	if !ok {
		return NodeTest{}, agent.Invalid("node_id", "is not a node of this workflow")
	}
	switch g.Nodes[index].Type {
	case agent.NodeLoop, agent.NodeWait, agent.NodeApproval, "workflow":
		return NodeTest{}, agent.Invalid(
			"node_id",
			"is a node of type "+g.Nodes[index].Type+", which cannot be tested on its own",
		)
	}
	p := &program{
		workflow: workflow,
		graph:    g,
		nodes:    make([]step, len(g.Nodes)),
		indexes:  make([]int, len(g.Nodes)),
		regions:  map[int]*region{-1: {nodes: []int{index}, unresolved: []int{0}}},
	}
	if err := g.CheckNode(index); err != nil {
		return NodeTest{}, err
	}
	if err := engine.prepare(p, index); err != nil {
		return NodeTest{}, err
	}
	r := &run{
		engine:  engine,
		db:      db,
		id:      "test",
		program: p,
		payload: payload,
		execution: &agent.Execution{
			ID:         agent.NewID("test"),
			WorkflowID: workflow.ID,
			Version:    workflow.Version,
			Trigger:    "manual",
			Depth:      1,
			StartedAt:  agent.Now(),
		},
	}
	r.top = r.newScope(nil, nil, 0, -1)
	in := instance{r.top, index}
	r.state(in).sources = []input{{value: payload}}
	nodeRun := r.newNodeRun(in)
	nodeRun.call.ExecutionID, nodeRun.call.Record, nodeRun.call.BeforeEffect = "", nil, nil
	nodeRun.execute(engine.withChain(ctx, r.execution.Chain()))
	t := NodeTest{
		Status:     agent.NodeSuccess,
		Output:     nodeRun.raw,
		Logs:       nodeRun.outcome.Logs,
		Warnings:   append(nodeRun.warnings, nodeRun.outcome.Warnings...),
		DurationMS: elapsedMilliseconds(nodeRun.began),
	}
	if t.Logs == nil {
		t.Logs = []agent.LogLine{}
	}
	if nodeRun.err != nil {
		t.Status, t.Output, t.Error = agent.NodeFailed, nil, r.explain(nodeRun.err, nodeID)
	}
	return t, nil
}
