package store

import (
	"fmt"
	"testing"

	"satchel/agent"
)

// TestBrowses checks that a session has one browse at a time, that a browse's steps
// remain after its end, and that a lost session ends it.
func TestBrowses(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	openedSession(t, db, "session-a")
	b := agent.Browse{
		ID:        "browse-a",
		SessionID: "session-a",
		Status:    agent.BrowseRunning,
		Goal:      "Find the hours.",
		MaxSteps:  5,
		MaxTokens: 1000,
		Hosts:     []string{"example.com"},
		Variables: []string{"pin"},
		CreatedAt: agent.Now(),
	}
	if err := db.CreateBrowse(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateBrowse(t.Context(), agent.Browse{
		ID:        "browse-b",
		SessionID: "session-a",
		Status:    agent.BrowseRunning,
		CreatedAt: agent.Now(),
	}); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("a second browse: %v", err)
	}
	b.StepCount, b.InputTokens = 1, 70
	if err := db.UpdateBrowse(t.Context(), b, agent.BrowseStep{
		Step:      1,
		Action:    "click",
		CreatedAt: agent.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.EndLostSessions(
		t.Context(),
		func(string) bool { return false },
		"the server was stopped",
	); err != nil {
		t.Fatal(err)
	}
	b.Status, b.Result, b.EndedAt = agent.BrowseDone, "late", agent.Now()
	if err := db.UpdateBrowse(t.Context(), b, agent.BrowseStep{Step: 2, CreatedAt: agent.Now()}); err != nil {
		t.Fatal(err)
	}
	got, steps, err := db.Browse(t.Context(), "session-a", "browse-a")
	if err != nil ||
		got.Status != agent.BrowseFailed ||
		got.Reason != "the server was stopped" ||
		got.EndedAt.IsZero() ||
		got.InputTokens != 70 ||
		got.Result != nil ||
		len(steps) != 1 ||
		got.Hosts[0] != "example.com" {
		t.Errorf("an interrupted browse is %+v with %d steps, %v", got, len(steps), err)
	}
	if _, _, err := db.Browse(t.Context(), "session-b", "browse-a"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("a browse of another session: %v", err)
	}
	if err := db.DeleteSession(t.Context(), "session-a"); err != nil {
		t.Fatal(err)
	}
	if _, total, err := db.Browses(t.Context(), "session-a", Page{Limit: 1}); err != nil || total != 0 {
		t.Errorf("%d browses of a deleted session, %v", total, err)
	}
}

// TestBrowsesAreBounded checks that an agent keeps only its newest browses.
func TestBrowsesAreBounded(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	openedSession(t, db, "session-a")
	for i := range maxBrowses + 3 {
		b := agent.Browse{
			ID:        fmt.Sprintf("browse-%03d", i),
			SessionID: "session-a",
			Status:    agent.BrowseRunning,
			Hosts:     []string{},
			Variables: []string{},
			CreatedAt: agent.Now(),
		}
		if err := db.CreateBrowse(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b.Status, b.EndedAt = agent.BrowseDone, agent.Now()
		if err := db.UpdateBrowse(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	list, total, err := db.Browses(t.Context(), "session-a", Page{Limit: 1})
	if err != nil || total != maxBrowses || list[0].ID != "browse-202" {
		t.Errorf("%d browses, %+v, %v", total, list, err)
	}
}

// TestPlannedActions checks that the most recently used actions are kept.
func TestPlannedActions(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	actions := []agent.PlannedAction{{Action: "click", Selector: "#a"}}
	if err := db.SetPlannedActions(t.Context(), []byte("first"), actions); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), db, func(tx *Tx) (any, error) {
		return tx.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?)
			INSERT INTO _planned_actions(key, actions, used_at) SELECT CAST('k' || i AS BLOB), '[]', '2020' FROM n`, maxPlannedActions)
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.SetPlannedActions(t.Context(), []byte("last"), actions); err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := Read(t.Context(), db, func(tx *Tx) (any, error) {
		return nil, tx.value(&n, "SELECT count(*) FROM _planned_actions")
	}); err != nil || n != maxPlannedActions {
		t.Errorf("%d actions are kept, %v", n, err)
	}
	for _, key := range []string{"first", "last"} {
		if got, err := db.PlannedActions(t.Context(), []byte(key)); err != nil ||
			len(got) != 1 ||
			got[0].Selector != "#a" {
			t.Errorf("%s: %v, %v", key, got, err)
		}
	}
	if err := db.SetPlannedActions(t.Context(), []byte("last"), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := db.PlannedActions(t.Context(), []byte("last")); err != nil || got != nil {
		t.Errorf("the action that was dropped: %v, %v", got, err)
	}
}
