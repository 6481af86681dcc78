package flow

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store"
)

// Parts of a node that NodePart returns.
const (
	PartInput    = "input"    // its input
	PartResolved = "resolved" // its data with templates filled
	PartOutput   = "output"
)

// NodeParts lists the parts of a node.
var NodeParts = []string{PartInput, PartResolved, PartOutput}

// NodePart returns a part of a node in an execution, for the loop iterations that
// path names. Input and resolved data are not stored but recomputed, so {{now}}
// differs. Credentials are masked.
func (engine *Engine) NodePart(ctx context.Context, db *store.DB, id, node, path, part string) (any, error) {
	execution, err := db.WorkingExecution(ctx, id)
	if err != nil {
		return nil, err
	}
	if part == PartOutput {
		for _, r := range execution.Results {
			if r.NodeID == node && r.FullPath() == path && r.Output != nil {
				return decodeOr(r.Output), nil
			}
		}
		return nil, agent.NotFound("output of this node", node)
	}
	state, err := engine.ready(ctx, db)
	if err != nil {
		return nil, err
	}
	run := engine.newRun(state, id)
	defer run.cancel(nil)
	run.execution, run.journaled = &execution.Execution, map[instanceKey]agent.NodeResult{}
	for _, result := range execution.Results {
		run.journaled[instanceKey{result.NodeID, result.FullPath()}] = result
	}
	run.payload, _ = decodeOr(execution.Input).(map[string]any)
	if run.program, err = engine.programFor(db, execution, run.payload); err != nil {
		return nil, err
	}
	in, found := run.find(instanceKey{node, path})
	if !found {
		return nil, agent.NotFound("node that was reached in this execution", node)
	}
	if part == PartInput {
		return run.inputOf(in), nil
	}
	f := run.newNodeRun(in)
	if f.err != nil {
		return nil, f.err
	}
	return masked(f.call.Node, f.call.Data)
}

// find replays the journal until it reaches the node with a key. It neither runs
// nodes nor writes anything.
func (run *run) find(at instanceKey) (instance, bool) {
	target, known := run.program.graph.Find(at.node)
	if !known {
		return instance{}, false
	}
	run.initialize()
	for len(run.ready) > 0 {
		in := run.ready[0]
		run.ready = run.ready[1:]
		here := run.keyOf(in)
		past, ended := run.journaled[here]
		switch {
		case here == at:
			return in, run.state(in).reached
		case ended && past.Items != nil && run.program.graph.InLoopBody(target, in.node):
			run.startLoop(in)
		case ended && past.Finished():
			run.replay(in, past)
		}
	}
	return instance{}, false
}

// masked returns a node's data without its credentials.
func masked(n *agent.Node, data map[string]any) (any, error) {
	raw, err := json.Marshal(agent.Node{
		ID:   n.ID,
		Type: n.Type,
		Data: data,
	})
	if err != nil {
		return nil, err
	}
	nodes, _, err := agent.TakeNodeSecrets([]agent.RawNode{raw})
	if err != nil {
		return nil, err
	}
	safe, _ := decodeOr(nodes[0]).(map[string]any)
	return safe["data"], nil
}
