package store

import (
	"testing"
	"time"

	"satchel/agent"
)

// TestAttentionOfClosedFiles: what waits and what failed is known of a file
// that is closed, in this process and the next, and no file is opened for it.
func TestAttentionOfClosedFiles(t *testing.T) {
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	now := agent.Now()
	_, err = Write(t.Context(), db, func(tx *Tx) (struct{}, error) {
		for _, statement := range []string{
			"INSERT INTO conversations(id, muted) VALUES ('conversation-1', 1)",
			"INSERT INTO messages(conversation_id, role, content) VALUES ('conversation-1', 'user', 'hi')",
			"INSERT INTO workflows(id, name) VALUES ('workflow-1', 'w')",
		} {
			if _, err := tx.exec(statement); err != nil {
				return struct{}{}, err
			}
		}
		for _, made := range []time.Time{now.Time, now.Add(-25 * time.Hour)} {
			if _, err := tx.exec("INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) VALUES (?,'workflow-1',1,'errored','manual',?)",
				agent.FirstID(agent.KindExecution, made), agent.At(made)); err != nil {
				return struct{}{}, err
			}
		}
		_, err := tx.exec("INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) VALUES (?,'workflow-1',1,'errored','test',?)", agent.NewID(agent.KindExecution), now)
		return struct{}{}, err // a test is not to be looked at
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Attention{Waiting: 1, Failures: 1, FailedAt: now}
	check := func(state string) {
		t.Helper()
		if got, err := db.Attention(t.Context()); err != nil || got != want {
			t.Errorf("%s: %+v, %v", state, got, err)
		}
	}
	check("open")
	if _, err := db.closeIdle(); err != nil {
		t.Fatal(err)
	}
	check("closed")
	f = restart(t, f)
	if db, err = f.Agent("a"); err != nil {
		t.Fatal(err)
	}
	check("after a restart")
	if db.isOpen() {
		t.Error("the file was opened")
	}
	db.update(func(r *record) { r.attention.FailedAt = agent.At(now.Add(-25 * time.Hour)) })
	if got, _ := db.Attention(t.Context()); got.Failures != 0 || got.Waiting != 1 {
		t.Errorf("a day later: %+v", got)
	}
}
