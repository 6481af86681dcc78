package flow

import (
	"encoding/json"
	"sync"
	"testing"

	"satchel/agent"
)

// TestExecuteIdempotent executes a workflow once for a key, however often it is
// called.
func TestExecuteIdempotent(t *testing.T) {
	db, e := open(t)
	valid := createWorkflow(t, db, e, `start trigger
		say chat {"prompt":"hello"}
		start -> say`)
	broken := createWorkflow(t, db, e, `start trigger
		say chat {"prompt":"fail"}
		start -> say`)
	var printed []string
	onStart := func(id string) { printed = append(printed, id) }
	q := Request{WorkflowID: valid.ID, Trigger: "schedule", IdempotencyKey: "run-1", Input: json.RawMessage(`{"a":1}`)}
	first, err := e.ExecuteIdempotent(t.Context(), db, q, onStart)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.ExecuteIdempotent(t.Context(), db, q, onStart)
	if err != nil || again != first || len(printed) != 2 || printed[0] != first || printed[1] != first {
		t.Errorf("got %s and %s, %v, onStart got %v", first, again, err, printed)
	}
	q.WorkflowID, q.IdempotencyKey = broken.ID, "run-2"
	for range 2 {
		id, err := e.ExecuteIdempotent(t.Context(), db, q, onStart)
		if agent.ErrorCode(err) != agent.CodeExecution || id == "" {
			t.Errorf("got %s, %v", id, err)
		}
	}
	wide := createWorkflowWith(t, db, e, `start trigger
		say chat {"prompt":"hello"}
		start -> say`, many)
	q.WorkflowID, q.IdempotencyKey = wide.ID, "run-together"
	var ids [8]string
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var err error
			if ids[i], err = e.ExecuteIdempotent(t.Context(), db, q, func(string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("concurrent calls started %v", ids)
		}
	}
	q.WorkflowID, q.IdempotencyKey = "workflow-x", "run-3"
	if _, err := e.ExecuteIdempotent(t.Context(), db, q, onStart); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("no such workflow: %v", err)
	}
}
