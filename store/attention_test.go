package store

import (
	"reflect"
	"testing"
	"time"

	"satchel/agent"
)

// TestAttentionOfClosedFiles checks that what waits and what failed in a closed file is
// known in this process and after a restart, without opening the file.
func TestAttentionOfClosedFiles(t *testing.T) {
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	now := agent.Now()
	err = db.Do(t.Context(), func(tx *Tx) error {
		for _, statement := range []string{
			"INSERT INTO conversations(id, muted) VALUES ('conversation-1', 1)",
			"INSERT INTO messages(conversation_id, role, content) VALUES ('conversation-1', 'user', 'hi')",
			"INSERT INTO workflows(id, name) VALUES ('workflow-1', 'w')",
		} {
			if _, err := tx.exec(statement); err != nil {
				return err
			}
		}
		for _, made := range []time.Time{now.Time, now.Add(-25 * time.Hour)} {
			if _, err := tx.exec(
				"INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) "+
					"VALUES (?,'workflow-1',1,'errored','manual',?)",
				agent.FirstID(agent.KindExecution, made),
				agent.At(made),
			); err != nil {
				return err
			}
		}
		_, err := tx.exec(
			"INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) "+
				"VALUES (?,'workflow-1',1,'errored','test',?)",
			agent.NewID(agent.KindExecution),
			now,
		)
		return err // a test run needs no attention
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Attention{Waiting: 1, Failures: 1, FailedAt: now, Holds: &Holdings{Conversations: 1}}
	check := func(state string) {
		t.Helper()
		if got, err := db.Attention(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
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

// TestAttentionOfNewAgents checks that what a new agent has is known at once, and
// what a copy has, without opening their files.
func TestAttentionOfNewAgents(t *testing.T) {
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	check := func(db *DB, want Attention) {
		t.Helper()
		if db.isOpen() {
			t.Error("the file is open")
		}
		if got, err := db.Attention(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", db.Agent().Name, got, err)
		}
	}
	check(db, Attention{Holds: &Holdings{}})
	err = db.Do(t.Context(), func(tx *Tx) error {
		_, err := tx.exec("INSERT INTO conversations(id) VALUES ('conversation-1')")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	copied, err := f.Fork(t.Context(), db, "b", "")
	if err != nil {
		t.Fatal(err)
	}
	check(copied, Attention{Holds: &Holdings{Conversations: 1}})
}

// TestRetriedFailures checks that an execution whose retry succeeded no longer counts as
// a failure, and that one whose retry failed counts once.
func TestRetriedFailures(t *testing.T) {
	db, err := openFolder(t).CreateAgent(t.Context(), agent.Agent{Name: "a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	now := agent.Now()
	for _, c := range []struct {
		id, from, status string
		want             int
	}{
		{"a", "", "errored", 1}, {"b", "", "errored", 2},
		{"c", "a", "running", 2}, {"d", "a", "terminated", 2}, // neither counts
		{"e", "a", "errored", 2}, {"f", "e", "complete", 1},
	} {
		trigger := "manual"
		if c.from != "" {
			trigger = "retry"
		}
		first := agent.FirstID(agent.KindExecution, now.Time)
		from := ""
		if c.from != "" {
			from = first + c.from
		}
		if err := db.Do(t.Context(), func(tx *Tx) error {
			_, _ = tx.exec("INSERT INTO workflows(id, name) VALUES ('workflow-1', 'w') ON CONFLICT DO NOTHING")
			_, err := tx.exec(
				"INSERT INTO executions(id, workflow_id, version, status, trigger, retried_from, created_at) "+
					"VALUES (?,'workflow-1',1,?,?,?,?)",
				first+c.id, c.status, trigger, from, now,
			)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		a, err := db.Attention(t.Context())
		if err != nil || a.Failures != c.want {
			t.Errorf("after %s: %d failures, want %d; %v", c.id, a.Failures, c.want, err)
		}
		o, err := db.Overview(t.Context(), 1)
		if err != nil || len(o.Failures) != 1 || o.Failures[0].Count != c.want {
			t.Errorf("after %s: %+v, %v", c.id, o.Failures, err)
		}
	}
}
