package flow

import (
	"encoding/json"
	"log/slog"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestTestRunsSurviveRestart: a waiting test resumes with its own graph and pins in an
// engine that is started later.
func TestTestRunsSurviveRestart(t *testing.T) {
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	w := createWorkflow(t, db, e, "t trigger\ns set {\"values\":{}}\nt -> s")
	graph := TestRequest{
		WorkflowID: w.ID,
		Mode:       TestAll,
		Pins:       map[string]json.RawMessage{"c": json.RawMessage(`{"text":"pinned"}`)},
		Nodes: []agent.RawNode{
			agent.RawNode(`{"id":"t","type":"trigger"}`),
			agent.RawNode(`{"id":"w","type":"wait","data":{"event":"contact.created"}}`),
			agent.RawNode(`{"id":"c","type":"chat","data":{"prompt":"fail"}}`),
			agent.RawNode(`{"id":"s","type":"set","data":{"values":{"said":"{{nodes.c.text}}"}}}`),
		},
		Edges: []agent.RawEdge{
			agent.RawEdge(`{"source":"t","target":"w"}`),
			agent.RawEdge(`{"source":"w","target":"c"}`),
			agent.RawEdge(`{"source":"c","target":"s"}`),
		},
	}
	started, err := e.Test(t.Context(), db, graph)
	if err != nil {
		t.Fatal(err)
	}
	id := started.Execution.ID
	waitForStatus(t, db, e, id, "w", agent.NodeWaiting)
	e.Stop()
	later := New(Options{Env: store.Env{Folder: folder, Log: slog.New(slog.DiscardHandler)}})
	later.Register(testKinds)
	if err := later.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(later.Stop)
	if _, err := later.Resume(t.Context(), db, id, Answer{NodeID: "w"}); err != nil {
		t.Fatal(err)
	}
	x, story := waitForEnd(t, db, later, id)
	if x.Status != agent.ExecutionComplete ||
		story != "t=success w=success c=success s=success" ||
		string(x.Output) != `{"said":"pinned"}` {
		t.Errorf("got %s %s %s %v", x.Status, story, x.Output, x.Error)
	}
	events, err := db.Events(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if ev.Type == agent.EventWorkflowStarted || ev.Type == agent.EventWorkflowComplete {
			t.Errorf("a test run emitted the event %s", ev.Type)
		}
	}
}
