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
func (engine *Engine) engineKinds() map[string]*Kind {
	kinds := engine.logicKinds()
	maps.Copy(kinds, map[string]*Kind{
		"http-request": {Run: engine.runHTTP, Check: checkHTTP, CheckSaved: checkAddress},
		"sql": {
			Run:        runSQL,
			Raw:        []string{"query"},
			Code:       "query",
			CheckCode:  checkSQL,
			CheckSaved: checkQuotes,
		},
		"table":     {Run: runTable, Check: checkTable},
		"new-items": {Run: runNewItems, Check: checkNewItems},
		"workflow":  {Run: engine.runWorkflow},
	})
	if engine.options.Scripts != nil {
		kinds["code"] = &Kind{
			Run:        engine.runCode,
			Raw:        []string{"code"},
			Timeout:    script.DefaultTimeout,
			Check:      checkCode,
			Repeatable: true,
		}
	}
	if engine.options.Index != nil {
		kinds["search"] = &Kind{Run: engine.runSearch}
	}
	return kinds
}

func (engine *Engine) runSearch(ctx context.Context, c *Call) (Outcome, error) {
	results, err := engine.options.Index.Search(ctx, c.DB, vector.Query{
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
func (engine *Engine) runWorkflow(ctx context.Context, call *Call) (Outcome, error) {
	state, err := engine.ready(ctx, call.DB)
	if err != nil {
		return Outcome{}, err
	}
	input, err := json.Marshal(call.Data["input"])
	if err != nil {
		return Outcome{}, err
	}
	request := Request{
		WorkflowID: call.Text("workflow_id"),
		Input:      input,
		Trigger:    "workflow",
		Queue:      true,
		chain:      call.Chain,
	}
	execution, program, payload, err := engine.prepareExecution(ctx, call.DB, request)
	if err != nil {
		return Outcome{}, err
	}
	execution.ParentID = call.ExecutionID
	if why := engine.charge(execution); why != nil {
		if engine.budget.shouldRecord(execution.RootID, execution.WorkflowID) {
			return Outcome{}, errors.Join(logRefusal(ctx, call.DB, execution, why), why)
		}
		return Outcome{}, why
	}
	request.callers = callersOf(ctx).outer()
	s, err := engine.admit(ctx, state, execution, program, request.atLimit())
	if err != nil {
		return Outcome{}, err
	}
	begun := &child{
		execution: execution,
		program:   program,
		payload:   payload,
		slot:      s,
		callers:   request.callers,
	}
	if call.Bool("wait", true) {
		return Outcome{wait: &store.Wait{Kind: store.WaitExecution, ChildID: execution.ID}, child: begun}, nil
	}
	return Outcome{
		Output: map[string]any{
			"execution_id": execution.ID,
			"status":       execution.Status,
			"output":       nil,
		},
		child: begun,
	}, nil
}
