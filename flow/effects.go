package flow

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"satchel/agent"
	"satchel/agent/script"
	"satchel/agent/template"
	"satchel/store"
	"satchel/store/sqlsandbox"
	"satchel/vector"
)

// engineKinds returns the node types that need only the engine.
func (e *Engine) engineKinds() map[string]*Kind {
	kinds := e.logicKinds()
	maps.Copy(kinds, map[string]*Kind{
		"http-request": {Run: e.runHTTP, Check: checkHTTP, CheckSaved: checkAddress},
		"sql": {
			Run:        runSQL,
			Raw:        []string{"query"},
			Code:       "query",
			CheckCode:  checkSQL,
			CheckSaved: checkQuotes,
		},
		"table":     {Run: runTable, Check: checkTable},
		"new-items": {Run: runNewItems, Check: checkNewItems},
		"workflow":  {Run: e.runWorkflow},
	})
	if e.options.Scripts != nil {
		kinds["code"] = &Kind{
			Run:        e.runCode,
			Raw:        []string{"code"},
			Timeout:    script.DefaultTimeout,
			Check:      checkCode,
			Repeatable: true,
		}
	}
	if e.options.Index != nil {
		kinds["search"] = &Kind{Run: e.runSearch}
	}
	return kinds
}

func (e *Engine) runSearch(ctx context.Context, c *Call) (Outcome, error) {
	results, err := e.options.Index.Search(ctx, c.DB, vector.Query{
		Text:     c.Text("query"),
		Limit:    int(c.Number("limit", 0)),
		SourceID: c.Text("source_id"),
		MinScore: c.Number("min_score", 0),
		Mode:     vector.Mode(c.Text("mode")),
	})
	return Outcome{Output: map[string]any{"results": results}}, err
}

// checkSQL rejects templates that cannot be parameters of a statement.
func checkSQL(_ map[string]any, query string, templates []sqlsandbox.Span) error {
	return sqlsandbox.CheckSpans(query, templates)
}

// checkQuotes rejects templates within quotes. Earlier versions allowed quotes that
// contain only a template, which is then bound as text.
func checkQuotes(data map[string]any) (field, issue string) {
	query, _ := data["query"].(string)
	templates, err := codeSpans(query)
	if err != nil {
		return "", "" // which checkSQL reports
	}
	bound, err := sqlsandbox.CutSpans(query, templates)
	for i := range templates {
		if err == nil && bound.Quoted(i) {
			return "data.query", "has a template within quotes; it is bound as a parameter: " +
				"write {{x}} in place of '{{x}}'"
		}
	}
	return "", ""
}

// statement returns the node's statement with each template replaced by a
// parameter, and the parameters with their values.
func (c *Call) statement() (query string, params store.Params, err error) {
	if given := c.Data["params"]; given != nil {
		raw, err := json.Marshal(given)
		if err != nil {
			return "", params, err
		}
		if err := json.Unmarshal(raw, &params); err != nil {
			return "", params, agent.Invalid("params", "must be a list or an object of plain values").Because(err)
		}
	}
	query = c.Text("query")
	if len(c.Values) == 0 {
		return query, params, nil
	}
	spans, err := codeSpans(query)
	if err != nil {
		return "", params, err
	}
	bound, err := sqlsandbox.CutSpans(query, spans)
	if err != nil {
		return "", params, err
	}
	values := make([]any, len(spans))
	for i, v := range c.Values {
		switch v.(type) {
		case map[string]any, []any:
			v = template.Text(v)
		}
		if values[i] = v; bound.Quoted(i) {
			values[i] = template.Text(v)
		}
	}
	return bound.With(params, values)
}

// runSQL runs a statement as the SQL endpoint does. Its changes are committed
// together with the node's result.
func runSQL(ctx context.Context, c *Call) (Outcome, error) {
	query, params, err := c.statement()
	if err != nil {
		return Outcome{}, err
	}
	recorded := false
	access := store.Access{Write: true}
	if c.Record != nil {
		access.Record = func(r store.Result) (string, agent.NodeResult, error) {
			recorded = true
			return c.Record(r)
		}
	}
	result, err := c.DB.SQL(ctx, query, params, access)
	return Outcome{Output: result, Recorded: recorded && err == nil}, err
}

// runWorkflow starts another workflow and, unless wait is false, waits for it
// to end. The new execution is inserted in the transaction in which the node
// starts to wait, or ends.
func (e *Engine) runWorkflow(ctx context.Context, c *Call) (Outcome, error) {
	a, err := e.ready(ctx, c.DB)
	if err != nil {
		return Outcome{}, err
	}
	input, err := json.Marshal(c.Data["input"])
	if err != nil {
		return Outcome{}, err
	}
	q := Request{
		WorkflowID: c.Text("workflow_id"),
		Input:      input,
		Trigger:    "workflow",
		Queue:      true,
		chain:      c.Chain,
	}
	x, p, payload, err := e.prepareExecution(ctx, c.DB, q)
	if err != nil {
		return Outcome{}, err
	}
	x.ParentID = c.ExecutionID
	if why := e.charge(x); why != nil {
		if e.budget.shouldRecord(x.RootID, x.WorkflowID) {
			return Outcome{}, errors.Join(logRefusal(ctx, c.DB, x, why), why)
		}
		return Outcome{}, why
	}
	q.callers = callersOf(ctx).outer()
	s, err := e.admit(ctx, a, x, p, q.atLimit())
	if err != nil {
		return Outcome{}, err
	}
	begun := &child{
		execution: x,
		program:   p,
		payload:   payload,
		slot:      s,
		callers:   q.callers,
	}
	if c.Bool("wait", true) {
		return Outcome{wait: &store.Wait{Kind: store.WaitExecution, ChildID: x.ID}, child: begun}, nil
	}
	return Outcome{Output: map[string]any{"execution_id": x.ID, "status": x.Status, "output": nil}, child: begun}, nil
}
