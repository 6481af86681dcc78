package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"satchel/agent"
	"satchel/flow/graph"
	"satchel/store"
)

// TestRequest describes a test: an execution of a graph that is not saved.
type TestRequest struct {
	WorkflowID string
	Nodes      []agent.RawNode
	Edges      []agent.RawEdge
	Input      json.RawMessage            // as in Request
	Mode       string                     // one of TestModes
	NodeID     string                     // for TestTo and TestNode
	Pins       map[string]json.RawMessage // outputs to use instead of running, by node
	Wait       time.Duration
}

// How much of a graph a test runs.
const (
	TestAll  = "all"
	TestTo   = "to"   // the nodes that lead to a node, and the node
	TestNode = "node" // the node alone, with the pinned or last outputs of its upstream nodes
)

// TestModes lists the modes of a test.
var TestModes = []string{TestAll, TestTo, TestNode}

// testPlan is stored with a test's graph, so that the test can be resumed after
// a restart.
type testPlan struct {
	Mode   string                     `json:"mode"`
	NodeID string                     `json:"node_id,omitempty"`
	Pins   map[string]json.RawMessage `json:"pins,omitempty"`
}

// maxPin limits a pinned output, in bytes.
const maxPin = 256 << 10

// Test starts a test. It is an ordinary execution, except that it does not
// count against the workflow's concurrency and emits no events.
func (engine *Engine) Test(ctx context.Context, db *store.DB, request TestRequest) (Started, error) {
	state, err := engine.ready(ctx, db)
	if err != nil {
		return Started{}, err
	}
	if err := request.check(); err != nil {
		return Started{}, err
	}
	payload, err := readPayload(db.HideLinksIn(request.Input))
	if err != nil {
		return Started{}, err
	}
	contact, _ := payload["contact_id"].(string)
	execution, err := db.NewExecution(ctx, request.WorkflowID, contact, "")
	if err != nil {
		return Started{}, err
	}
	if _, present := payload["contact"]; !present && execution.Contact != nil {
		payload["contact"] = decodeOr(execution.Contact)
	}
	workflow, err := execution.Text.Workflow()
	if err != nil {
		return Started{}, err
	}
	workflow.Nodes, workflow.Edges = request.Nodes, request.Edges
	plan := testPlan{request.Mode, request.NodeID, request.Pins}
	if plan.Mode == TestNode {
		if plan.Pins, err = lastOutputs(ctx, db, &workflow, request.Pins); err != nil {
			return Started{}, err
		}
	}
	x, err := engine.newTest(ctx, workflow, plan, payload)
	if err != nil {
		return Started{}, err
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		return Started{}, err
	}
	var waited *awaited
	if request.Wait > 0 {
		waited = engine.addWaiter(x.ID)
		defer engine.removeWaiter(x.ID, waited)
	}
	if err := db.InsertTest(ctx, x, store.TestGraph{
		Nodes: workflow.Nodes,
		Edges: workflow.Edges,
		Plan:  raw,
	}); err != nil {
		return Started{}, err
	}
	engine.executions.Enqueue(job{agent: state, id: x.ID})
	return engine.await(ctx, db, Request{Wait: request.Wait}, Started{Execution: *x}, nil, waited)
}

// newTest returns the execution of a test whose graph can be run.
func (engine *Engine) newTest(
	ctx context.Context,
	workflow agent.Workflow,
	plan testPlan,
	payload map[string]any,
) (*agent.Execution, error) {
	program, err := engine.testProgram(workflow, plan, payload)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	start := plan.NodeID
	if program.isolated == nil {
		start = program.nodes[program.start()].ID
	}
	now, id := agent.Now(), agent.NewID(agent.KindExecution)
	chain := store.ChainOf(ctx).Next(id)
	execution := &agent.Execution{
		ID:          id,
		WorkflowID:  workflow.ID,
		Version:     workflow.Version,
		Status:      agent.ExecutionRunning,
		Trigger:     agent.TriggerTest,
		TriggerNode: start,
		Input:       input,
		RootID:      chain.Root,
		Depth:       chain.Depth,
		CreatedAt:   now,
		StartedAt:   now,
	}
	if why := engine.charge(execution); why != nil {
		return nil, why
	}
	return execution, nil
}

// check validates a request, and makes sure that it would not store a
// credential.
func (q *TestRequest) check() error {
	var is agent.Issues
	is.Check(slices.Contains(TestModes, q.Mode), "mode", "must be all, to, or node")
	for id, pin := range q.Pins {
		is.Check(len(pin) <= maxPin, "pins."+id, fmt.Sprintf("must have at most %d KB", maxPin>>10))
		is.Check(bytes.HasPrefix(bytes.TrimSpace(pin), []byte("{")), "pins."+id, "must be an object")
		is.CheckNesting("pins."+id, pin)
	}
	if err := is.Err(); err != nil {
		return err
	}
	if _, err := graph.Parse(q.Nodes, q.Edges, false); err != nil {
		return err
	}
	nodes, secrets, err := agent.TakeNodeSecrets(q.Nodes)
	if err != nil {
		return err
	}
	for name := range secrets.Given {
		return agent.Invalid(
			"nodes",
			"contain a credential that is not saved yet; save the workflow first",
		).With("credential", name)
	}
	q.Nodes = nodes
	return nil
}

// testProgram compiles what a test runs of its graph.
func (engine *Engine) testProgram(workflow agent.Workflow, plan testPlan, payload map[string]any) (*program, error) {
	pins := map[string]map[string]any{}
	for id, raw := range plan.Pins {
		pins[id], _ = decodeOr(raw).(map[string]any)
	}
	if plan.Mode == TestAll {
		p, err := engine.compile(workflow)
		if err == nil {
			p.pins = pins
		}
		return p, err
	}
	g, _ := graph.Read(workflow.Nodes, workflow.Edges, true)
	target, found := g.Find(plan.NodeID)
	if !found {
		return nil, agent.Invalid(
			"node_id",
			"is not a node of this graph",
		).With("node_id", agent.Clip(plan.NodeID, 100))
	}
	if plan.Mode == TestTo {
		p, err := engine.compile(subgraph(workflow, g, func(i int) bool {
			return i == target || g.InLoopBody(i, target) || g.HasPath(i, target)
		}))
		if err == nil {
			p.pins = pins
		}
		return p, err
	}
	alone := subgraph(workflow, g, func(i int) bool {
		return i == target || g.InLoopBody(i, target)
	})
	if g.Nodes[target].Type != agent.NodeTrigger { // a graph needs one
		alone.Nodes = append(alone.Nodes, agent.RawNode(fmt.Sprintf(`{"id":%q,"type":"trigger"}`, unusedID(g))))
	}
	p, err := engine.compile(alone)
	if err == nil {
		p.isolated = &isolatedNode{input: engine.isolatedInput(g, target, pins, payload), outputs: pins}
	}
	return p, err
}

// isolatedNode is the environment of a node that is tested on its own.
type isolatedNode struct {
	input   any
	outputs map[string]map[string]any
}

// unusedID returns an id that no node has.
func unusedID(g *graph.Graph) string {
	id := "trigger"
	for {
		if _, taken := g.Find(id); !taken {
			return id
		}
		id += "-"
	}
}

// subgraph returns a workflow with some of its nodes, and the edges between
// them.
func subgraph(w agent.Workflow, g *graph.Graph, keep func(i int) bool) agent.Workflow {
	var nodes []agent.RawNode
	for i, raw := range w.Nodes {
		if keep(i) {
			nodes = append(nodes, raw)
		}
	}
	var edges []agent.RawEdge
	for i, raw := range w.Edges {
		if keep(g.Edges[i].Source) && keep(g.Edges[i].Target) {
			edges = append(edges, raw)
		}
	}
	w.Nodes, w.Edges = nodes, edges
	return w
}

// isolatedInput returns what would flow into a node, given the outputs of the
// nodes before it.
func (engine *Engine) isolatedInput(
	g *graph.Graph,
	node int,
	outputs map[string]map[string]any,
	payload map[string]any,
) any {
	var values []any
	all := map[string]any{}
	for _, edge := range g.Edges {
		if edge.Target != node || !g.HasPath(edge.Source, node) {
			continue
		}
		source := &g.Nodes[edge.Source]
		var v any
		output, known := outputs[source.ID]
		switch kind := engine.kinds[source.Type]; {
		case kind != nil && kind.PassesInput:
			v = engine.isolatedInput(g, edge.Source, outputs, payload)
		case known:
			v = output
		case source.Type == agent.NodeTrigger:
			v = payload
		}
		values, all[source.ID] = append(values, v), v
	}
	switch len(values) {
	case 0:
		return payload
	case 1:
		return values[0]
	}
	return all
}

// lastOutputs adds to pins the outputs of nodes in the newest executions of a
// workflow.
func lastOutputs(
	ctx context.Context,
	db *store.DB,
	workflow *agent.Workflow,
	pins map[string]json.RawMessage,
) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	newest, _, err := db.Executions(
		ctx,
		store.ExecutionFilter{WorkflowID: workflow.ID, Tests: true},
		store.Page{Limit: 5},
	)
	if err != nil {
		return nil, err
	}
	for _, x := range slices.Backward(newest) {
		_, results, err := db.Execution(ctx, x.ID)
		if err != nil {
			return nil, agent.IgnoreNotFound(err)
		}
		for _, r := range results {
			if r.Status == agent.NodeSuccess && len(r.Output) > 0 && len(r.Output) <= maxPin {
				all[r.NodeID] = r.Output
			}
		}
	}
	for id, pin := range pins {
		all[id] = pin
	}
	return all, nil
}

// usePin completes a node of a test with its pinned output.
func (run *run) usePin(in instance, output map[string]any) {
	result := run.result(in, agent.NodeSuccess)
	result.Pinned = true
	raw, err := encode(output)
	if err != nil {
		result.Status, result.Error = agent.NodeFailed, run.explain(err, result.NodeID)
		run.complete(in, result, nil, false)
		return
	}
	result.Output = raw
	switch result.Type {
	case agent.NodeIfElse:
		result.Handle = fmt.Sprint(truthy(output["result"]))
	case agent.NodeSwitch:
		result.Handle, _ = output["case"].(string)
	case agent.NodeApproval:
		result.Handle, _ = output["decision"].(string)
	case agent.NodeLoop:
		result.Handle = agent.HandleDone
	}
	run.complete(in, result, output, false)
}
