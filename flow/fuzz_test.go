package flow

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/flow/graph"
)

// FuzzExecute executes any accepted graph of pure nodes: each execution ends,
// and every node in it has a final status.
func FuzzExecute(f *testing.F) {
	for _, text := range []string{four, `t trigger
		l loop {"items":[[1],[2,3]],"concurrency":2}
		m loop {"items":"{{item}}","item_variable":"x"}
		a set {"values":{"x":"{{x}}"}}
		b set {"values":{"all":"{{nodes}}"}}
		t -> l
		l:loop -> m
		m:loop -> a
		a -> m
		m -> b
		b -> l`, `t trigger
		s switch {"value":"{{n}}","cases":[{"id":"x","conditions":[{"left":"{{n}}","operator":"matches","right":"{{n}}"}]}]}
		a set {"values":"{{n}}","on_error":"continue"}
		b set {"values":{"x":"{{error}}"},"disabled":true}
		t -> s
		s:x -> a
		s -> b
		a:error -> b`} {
		nodes, edges := parseGraph(text)
		f.Add(string(mustJSON(nodes)), string(mustJSON(edges)), `{"n":7}`)
	}
	db, e := open(f)
	f.Fuzz(func(t *testing.T, nodes, edges, input string) {
		w := agent.Workflow{Name: "Fuzz", Status: agent.WorkflowActive, Settings: many}
		if json.Unmarshal([]byte(nodes), &w.Nodes) != nil || json.Unmarshal([]byte(edges), &w.Edges) != nil {
			return
		}
		g, err := graph.Parse(w.Nodes, w.Edges, true)
		if err != nil || len(g.Nodes) > 50 || strings.Contains(nodes, "duration") {
			return
		}
		for _, n := range g.Nodes {
			if n.Type != agent.NodeLoop &&
				(e.kinds[n.Type] == nil ||
					!e.kinds[n.Type].Pure ||
					n.Type == agent.NodeWait ||
					n.Type == agent.NodeApproval ||
					isScripted(n.Data)) {
				return
			}
		}
		if err := e.Check(w); err != nil {
			var known *agent.Error
			if !errors.As(err, &known) {
				t.Fatalf("not an *agent.Error: %v", err)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if w, err = db.CreateWorkflow(ctx, w); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.DeleteWorkflow(context.WithoutCancel(ctx), w.ID) }()
		s, err := e.Execute(ctx, db, Request{
			WorkflowID: w.ID,
			Input:      json.RawMessage(input),
			Trigger:    "manual",
			Wait:       45 * time.Second,
		})
		if agent.ErrorCode(err) == agent.CodeValidation {
			return
		}
		if err != nil || !s.Execution.Status.Ended() {
			t.Fatalf("%s %v\n%s\n%s", s.Execution.Status, err, nodes, edges)
		}
		if x := s.Execution; x.Status == agent.ExecutionErrored &&
			(x.Error == nil || x.Error.Code == string(agent.CodeInternal)) {
			t.Fatalf("internal error: %v\n%s\n%s", x.Error, nodes, edges)
		}
		for _, r := range s.Results {
			if !r.Finished() {
				t.Fatalf("%s is %s in an execution that is %s", r.NodeID, r.Status, s.Execution.Status)
			}
		}
	})
}
