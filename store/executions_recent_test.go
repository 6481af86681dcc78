package store

import (
	"fmt"
	"testing"
)

// TestRecentExecutions checks that each workflow has its newest executions, whatever
// their status, even next to a workflow that is executed more often.
func TestRecentExecutions(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	do(t, db, "INSERT INTO workflows(id, name) VALUES ('busy', 'Busy'), ('rare', 'Rare'), ('new', 'New')")
	insert := func(id, workflow, status, trigger, fault string) {
		do(
			t,
			db,
			"INSERT INTO executions(id, workflow_id, version, status, trigger, error, created_at) "+
				"VALUES (?, ?, 1, ?, ?, nullif(?, ''), '2026-01-01T00:00:00.000Z')",
			id, workflow, status, trigger, fault,
		)
	}
	insert("execution-1", "rare", "errored", "manual", `{"code":"TIMEOUT","message":"too slow"}`)
	insert("execution-2", "rare", "complete", "manual", "")
	insert("execution-3", "rare", "complete", "test", "")
	for i := range 200 {
		insert(fmt.Sprintf("execution-4%03d", i), "busy", "complete", "manual", "")
	}
	insert("execution-5", "busy", "running", "manual", "")
	recent, err := db.RecentExecutions(t.Context(), []string{"busy", "rare", "new"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := "map[busy:[{execution-5 running } {execution-4199 complete } {execution-4198 complete }] " +
		"rare:[{execution-2 complete } {execution-1 errored too slow}]]"
	if got := fmt.Sprint(recent); got != want {
		t.Errorf("recent executions are %s, want %s", got, want)
	}
}
