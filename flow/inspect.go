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
func (e *Engine) NodePart(ctx context.Context, db *store.DB, id, node, path, part string) (any, error) {
	w, err := db.WorkingExecution(ctx, id)
	if err != nil {
		return nil, err
	}
	if part == PartOutput {
		for _, r := range w.Results {
			if r.NodeID == node && r.FullPath() == path && r.Output != nil {
				return decodeOr(r.Output), nil
			}
		}
		return nil, agent.NotFound("output of this node", node)
	}
	a, err := e.ready(ctx, db)
	if err != nil {
		return nil, err
	}
	r := e.newRun(a, id)
	defer r.cancel(nil)
	r.execution, r.journaled = &w.Execution, map[instanceKey]agent.NodeResult{}
	for _, result := range w.Results {
		r.journaled[instanceKey{result.NodeID, result.FullPath()}] = result
	}
	r.payload, _ = decodeOr(w.Input).(map[string]any)
	if r.program, err = e.programFor(db, w, r.payload); err != nil {
		return nil, err
	}
	in, found := r.find(instanceKey{node, path})
	if !found {
		return nil, agent.NotFound("node that was reached in this execution", node)
	}
	if part == PartInput {
		return r.inputOf(in), nil
	}
	f := r.newNodeRun(in)
	if f.err != nil {
		return nil, f.err
	}
	return masked(f.call.Node, f.call.Data)
}

// find replays the journal until it reaches the node with a key. It neither runs
// nodes nor writes anything.
func (r *run) find(at instanceKey) (instance, bool) {
	target, known := r.program.graph.Find(at.node)
	if !known {
		return instance{}, false
	}
	r.initialize()
	for len(r.ready) > 0 {
		in := r.ready[0]
		r.ready = r.ready[1:]
		here := r.keyOf(in)
		past, ended := r.journaled[here]
		switch {
		case here == at:
			return in, r.state(in).reached
		case ended && past.Items != nil && r.program.graph.InLoopBody(target, in.node):
			r.startLoop(in)
		case ended && past.Finished():
			r.replay(in, past)
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
