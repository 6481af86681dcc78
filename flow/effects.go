package flow

import (
	"context"
	"encoding/json"
	"maps"

	"satchel/agent"
	"satchel/agent/script"
	"satchel/store"
	"satchel/vector"
)

// ownKinds are the nodes that need nothing but what the engine has.
func (e *Engine) ownKinds() map[string]*Kind {
	kinds := e.logicKinds()
	maps.Copy(kinds, map[string]*Kind{
		"http-request": {Run: e.runHTTP, Check: checkHTTP},
		"sql":          {Run: runSQL},
		"workflow":     {Run: e.runWorkflow},
	})
	if e.options.Scripts != nil {
		kinds["code"] = &Kind{Run: e.runCode, Raw: []string{"code"}, Timeout: script.DefaultTimeout, Check: checkCode}
	}
	if e.options.Index != nil {
		kinds["search"] = &Kind{Run: e.runSearch}
	}
	return kinds
}

func (e *Engine) runSearch(ctx context.Context, c *Call) (Outcome, error) {
	results, err := e.options.Index.Search(ctx, c.DB, vector.Query{Text: c.Text("query"), Limit: int(c.Number("limit", 0)), SourceID: c.Text("source_id"),
		MinScore: c.Number("min_score", 0), Mode: vector.Mode(c.Text("mode"))})
	return Outcome{Output: map[string]any{"results": results}}, err
}

// runSQL runs a statement as the SQL endpoint does. What it changes is
// committed together with the node's result.
func runSQL(ctx context.Context, c *Call) (Outcome, error) {
	var params store.Params
	if given := c.Data["params"]; given != nil {
		raw, err := json.Marshal(given)
		if err != nil {
			return Outcome{}, err
		}
		if err := json.Unmarshal(raw, &params); err != nil {
			return Outcome{}, agent.Invalid("params", "must be a list or an object of plain values").Because(err)
		}
	}
	recorded := false
	access := store.Access{Write: true}
	if c.Record != nil {
		access.Record = func(r store.Result) (string, agent.NodeResult, error) {
			recorded = true
			return c.Record(r)
		}
	}
	result, err := c.DB.SQL(store.WithDepth(ctx, c.Depth), c.Text("query"), params, access)
	return Outcome{Output: result, Recorded: recorded && err == nil}, err
}

// runWorkflow starts another workflow, and waits for its end unless told not
// to. The execution is entered in the transaction in which the node begins to
// wait, or ends.
func (e *Engine) runWorkflow(ctx context.Context, c *Call) (Outcome, error) {
	if c.Depth >= agent.MaxEventDepth {
		return Outcome{}, agent.Errorf(agent.CodeExecution, "a chain of executions that start each other ends here, at %d", agent.MaxEventDepth).With("depth", c.Depth)
	}
	a, err := e.ready(ctx, c.DB)
	if err != nil {
		return Outcome{}, err
	}
	input, err := json.Marshal(c.Data["input"])
	if err != nil {
		return Outcome{}, err
	}
	x, p, payload, err := e.draw(ctx, c.DB, Request{WorkflowID: c.Text("workflow_id"), Input: input, Trigger: "workflow", depth: c.Depth + 1})
	if err != nil {
		return Outcome{}, err
	}
	x.ParentID = c.ExecutionID
	l, begins, err := e.place(a, x, p, true)
	if err != nil {
		return Outcome{}, err
	}
	begun := &child{execution: x, program: p, payload: payload, queue: l}
	if begins {
		begun.admitted = l
	}
	if c.Bool("wait", true) {
		return Outcome{wait: &store.Wait{Kind: store.WaitExecution, ChildID: x.ID}, child: begun}, nil
	}
	return Outcome{Output: map[string]any{"execution_id": x.ID, "status": x.Status, "output": nil}, child: begun}, nil
}
