package flow

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/store"
)

// TestRunTool runs workflows as tools.
func TestRunTool(t *testing.T) {
	db, e := open(t)
	double := createWorkflow(t, db, e, "t trigger\ns set {\"values\":{\"n\":\"{{trigger.n}}\"}}\nt -> s")
	fails := createWorkflow(t, db, e, "t trigger\nc chat {\"prompt\":\"fail\"}\nt -> c")
	draft := createWorkflow(t, db, e, "t trigger\ns set {\"values\":{}}\nt -> s")
	if _, err := db.UpdateWorkflow(t.Context(), draft.ID, func(w *agent.Workflow) error {
		w.Status = agent.WorkflowDraft
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "k", "k"} {
		out, err := e.RunTool(t.Context(), db, chat.WorkflowRun{
			WorkflowID: double.ID,
			Input:      json.RawMessage(`{"n":21}`),
			Key:        key,
		})
		if err != nil || string(mustJSON(out)) != `{"n":21}` {
			t.Errorf("key %q: %v %v", key, out, err)
		}
	}
	if _, n, err := db.Executions(
		t.Context(),
		store.ExecutionFilter{WorkflowID: double.ID},
		store.Page{Limit: 10},
	); err != nil || n != 2 {
		t.Errorf("%d executions, %v", n, err)
	}
	for id, code := range map[string]agent.Code{
		fails.ID:        agent.CodeExecution,
		draft.ID:        agent.CodeConflict,
		"workflow-none": agent.CodeNotFound,
	} {
		_, err := e.RunTool(t.Context(), db, chat.WorkflowRun{WorkflowID: id, Input: nil, Key: ""})
		wantCode(t, err, code)
	}
}

// lateContext is a context whose deadline has passed once late is closed.
type lateContext struct {
	context.Context
	late chan struct{}
}

func (c lateContext) Done() <-chan struct{} { return c.late }

func (c lateContext) Err() error {
	select {
	case <-c.late:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestRunToolTerminatesAtTimeout: an execution that has not ended in time is
// terminated.
func TestRunToolTerminatesAtTimeout(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, sleeper)
	for i, key := range []string{"", "k"} {
		ctx, ended := lateContext{t.Context(), make(chan struct{})}, make(chan error, 1)
		go func() {
			_, err := e.RunTool(ctx, db, chat.WorkflowRun{WorkflowID: w.ID, Input: nil, Key: key})
			ended <- err
		}()
		eventually(t, "the execution", func() bool {
			_, n, err := db.Executions(t.Context(), store.ExecutionFilter{WorkflowID: w.ID}, store.Page{Limit: 1})
			return err == nil && n == i+1
		})
		close(ctx.late)
		wantCode(t, <-ended, agent.CodeUpstream)
	}
	found, n, err := db.Executions(t.Context(), store.ExecutionFilter{WorkflowID: w.ID}, store.Page{Limit: 10})
	if err != nil || n != 2 {
		t.Fatalf("%d executions, %v", n, err)
	}
	for _, x := range found {
		if x.Status != agent.ExecutionTerminated {
			t.Errorf("%s is %s", x.ID, x.Status)
		}
	}
}

// TestRunToolOfItself: a workflow with a concurrency of one calls itself as a tool,
// directly and through another workflow, and an endless chain of calls is ended.
func TestRunToolOfItself(t *testing.T) {
	db, e := open(t)
	e.Register(map[string]*Kind{"tool": {Run: func(ctx context.Context, c *Call) (Outcome, error) {
		out, err := e.RunTool(ctx, c.DB, chat.WorkflowRun{
			WorkflowID: c.Text("tool_id"),
			Input:      mustJSON(c.Data["arguments"]),
			Key:        c.Key,
		})
		return Outcome{Output: map[string]any{"result": out}}, err
	}}})
	calling := func(id string) string {
		return `t trigger
			i if-else {"conditions":[{"left":"{{trigger.n}}","operator":"gt","right":0}]}
			d code {"code":"return {n: trigger.n - 1}"}
			c tool {"tool_id":"` + id + `","arguments":{"n":"{{nodes.d.n}}"}}
			e set {"values":{"end":true}}
			t -> i
			i:true -> d
			d -> c
			i:false -> e`
	}
	inner := createWorkflow(t, db, e, "t trigger\ns set {\"values\":{}}\nt -> s")
	outer := createWorkflow(t, db, e, calling(inner.ID))
	for _, other := range []string{inner.ID, outer.ID} {
		nodes, edges := parseGraph(calling(other))
		if _, err := db.UpdateWorkflow(t.Context(), inner.ID, func(w *agent.Workflow) error {
			w.Nodes, w.Edges = nodes, edges
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := e.RunTool(ctx, db, chat.WorkflowRun{
			WorkflowID: outer.ID,
			Input:      json.RawMessage(`{"n":4}`),
			Key:        "",
		})
		if err != nil ||
			strings.Count(string(mustJSON(out)), "result") != 4 ||
			!strings.Contains(string(mustJSON(out)), `"end":true`) {
			t.Errorf("got %s %v", mustJSON(out), err)
		}
		_, err = e.RunTool(ctx, db, chat.WorkflowRun{
			WorkflowID: outer.ID,
			Input:      json.RawMessage(`{"n":100}`),
			Key:        "",
		})
		if agent.ErrorCode(err) != agent.CodeExecution || !strings.Contains(err.Error(), "limit of a chain") {
			t.Errorf("an endless chain ended with %v", err)
		}
	}
}

// TestRunToolContinuesAfterTimeout: a workflow that takes longer than a model waits
// continues, and the tool returns its execution.
func TestRunToolContinuesAfterTimeout(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, sleeper)
	out, err := e.RunTool(t.Context(), db, chat.WorkflowRun{
		WorkflowID: w.ID,
		Deadline:   time.Now().Add(2 * time.Second),
	})
	running, is := out.(chat.RunningWorkflow)
	if err != nil || !is || running.Status != "running" {
		t.Fatalf("got %+v, %v", out, err)
	}
	if x, _, err := db.Execution(t.Context(), running.ExecutionID); err != nil || x.Status.Ended() {
		t.Errorf("got %+v, %v", x, err)
	}
}
