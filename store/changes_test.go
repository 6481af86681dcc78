package store

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"satchel/agent"
)

// watched collects the changes that a file's watcher receives.
type watched struct {
	mu   sync.Mutex
	rows []Change
}

func watch(tb testing.TB, db *DB) *watched {
	tb.Helper()
	w := &watched{}
	stop, err := db.Watch(tb.Context(), func(rows []Change) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rows = append(w.rows, rows...)
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return w
}

func (w *watched) take() []Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows := w.rows
	w.rows = nil
	return rows
}

// TestWatch checks that a commit reports the records it changed, also through triggers
// and foreign keys, and that one that is rolled back reports nothing.
func TestWatch(t *testing.T) {
	db := openFolder(t).Default()
	w := watch(t, db)
	if _, err := db.Watch(t.Context(), func([]Change) {}); err == nil {
		t.Error("a second watcher was accepted")
	}
	run := func(statements ...string) func() error {
		return func() error {
			return db.Do(t.Context(), func(tx *Tx) error {
				for _, s := range statements {
					if _, err := tx.exec(s); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	query := func(statement string) func() error {
		return func() error {
			_, err := db.SQL(t.Context(), statement, Params{}, Access{Write: true})
			return err
		}
	}
	many := make([]string, maxRows+5)
	for i := range many {
		many[i] = fmt.Sprintf("INSERT INTO contacts(id, name) VALUES ('contact-%d', 'x')", i)
	}
	for _, c := range []struct {
		name string
		do   func() error
		want []Change
	}{
		{
			"an insertion",
			run("INSERT INTO contacts(id, name) VALUES ('contact-a', 'Ada')"),
			[]Change{{"contact", "contact-a", OpCreate, ""}},
		},
		{
			"a change",
			run("UPDATE contacts SET name = 'B' WHERE id = 'contact-a'"),
			[]Change{{"contact", "contact-a", OpUpdate, ""}},
		},
		{
			"a conversation with a message",
			run(
				"INSERT INTO conversations(id) VALUES ('conversation-a')",
				"INSERT INTO messages(id, conversation_id, role, content) VALUES (7, 'conversation-a', 'user', 'x')",
			),
			[]Change{
				{"conversation", "conversation-a", OpCreate, ""},
				{"message", "7", OpCreate, "conversation-a"},
				{"conversation", "conversation-a", OpUpdate, ""},
			},
		},
		{
			"a deletion that cascades to messages",
			run("DELETE FROM conversations"),
			[]Change{{"conversation", "conversation-a", OpDelete, ""}, {"message", "7", OpDelete, "conversation-a"}},
		},
		{
			"inserts into tables without rowid",
			run(
				"INSERT INTO workflows(id, name) VALUES ('workflow-a', 'w')",
				"INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) "+
					"VALUES ('execution-a', 'workflow-a', 1, 'running', 'manual', '2026-01-01T00:00:00.000Z')",
			),
			[]Change{{"workflow", "workflow-a", OpCreate, ""}, {"execution", "execution-a", OpCreate, ""}},
		},
		{
			"an update of a table without rowid",
			run("UPDATE executions SET status = 'complete'"),
			[]Change{{"execution", "execution-a", OpUpdate, ""}},
		},
		{
			"a deletion from a table without rowid",
			run("DELETE FROM executions"),
			[]Change{{"execution", "execution-a", OpDelete, ""}},
		},
		{
			"an id other than the rowid",
			run("INSERT INTO sources(id, type, name, status, created_at, updated_at) VALUES ('source-a', 'file', " +
				"'f', 'ready', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')"),
			[]Change{{"source", "source-a", OpCreate, ""}},
		},
		{"settings", run("UPDATE _agent SET settings = settings"), []Change{{"agent", "default", OpUpdate, ""}}},
		{"a table that is not listed", run("INSERT INTO _purge VALUES ('source-x')"), nil},
		{"a write that fails", func() error {
			if err := run("DELETE FROM contacts", "SELECT RAISE(FAIL, 'x')")(); err == nil {
				return fmt.Errorf("it succeeded")
			}
			return nil
		}, nil},
		{"SQL of a client", query("UPDATE contacts SET name = 'C'"), []Change{{"contact", "contact-a", OpUpdate, ""}}},
		{
			"SQL of a client with triggers and foreign keys",
			query("DELETE FROM workflows"),
			[]Change{{"workflow", "workflow-a", OpDelete, ""}},
		},
		{
			"SQL of a client on a table with rowids",
			query("INSERT INTO conversations(id) VALUES ('conversation-b')"),
			[]Change{{"conversation", "conversation-b", OpCreate, ""}},
		},
		{
			"a message by SQL",
			query("INSERT INTO messages(id, conversation_id, role, content) VALUES (9, 'conversation-b', 'user', 'x')"),
			[]Change{{"message", "9", OpCreate, "conversation-b"}, {"conversation", "conversation-b", OpUpdate, ""}},
		},
		{"SQL of a client that fails", func() error {
			if err := query(
				"INSERT INTO contacts(id, name) VALUES ('contact-b', 'x'), ('contact-b', 'y')",
			)(); err == nil {
				return fmt.Errorf("it succeeded")
			}
			return nil
		}, nil},
		{"more changes than are reported one by one", run(many...), []Change{{Kind: KindReset}}},
	} {
		w.take()
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := w.take()
		if n := len(got); n == maxRows+1 {
			got = got[n-1:]
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWatchSurvivesClosing checks that a file is still watched after it was closed and opened
// again, and no longer once its watcher has stopped.
func TestWatchSurvivesClosing(t *testing.T) {
	db := openFolder(t).Default()
	w := &watched{}
	stop, err := db.Watch(t.Context(), func(rows []Change) { w.rows = append(w.rows, rows...) })
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		t.Helper()
		if _, err := db.CreateContact(t.Context(), agent.ContactChange{Name: agent.Some(name)}); err != nil {
			t.Fatal(err)
		}
	}
	if closed, err := db.closeIdle(); !closed || err != nil {
		t.Fatal(closed, err)
	}
	create("Ada")
	if len(w.rows) != 1 {
		t.Errorf("after closing: %v", w.rows)
	}
	stop()
	create("Bob")
	if len(w.rows) != 1 {
		t.Errorf("after the end: %v", w.rows)
	}
}

// TestRecords checks that records are read as lists show them, whatever their ids look
// like.
func TestRecords(t *testing.T) {
	db := openFolder(t).Default()
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := db.AppendMessage(t.Context(), agent.Message{ConversationID: c.ID, Role: agent.MessageUser, Content: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string][]string{"unknown": {"x"}}
	for kind := range recordKinds {
		ids[kind] = []string{"nobody"}
	}
	ids[KindMessage], ids[agent.KindConversation] = []string{fmt.Sprint(m.ID)}, []string{c.ID}
	got, err := db.Records(t.Context(), ids)
	if err != nil ||
		len(got[KindMessage]) != 1 ||
		got[KindMessage][fmt.Sprint(m.ID)].(agent.Message).Content != "hi" ||
		len(got[agent.KindConversation]) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// BenchmarkWatchedWrite creates contacts in a file without a watcher and in one with a
// watcher.
func BenchmarkWatchedWrite(b *testing.B) {
	for _, name := range []string{"unwatched", "watched"} {
		b.Run(name, func(b *testing.B) {
			f, err := Open(Options{Path: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			if name == "watched" {
				stop, err := f.Default().Watch(b.Context(), func([]Change) {})
				if err != nil {
					b.Fatal(err)
				}
				defer stop()
			}
			for b.Loop() {
				err := f.Default().Do(b.Context(), func(tx *Tx) error {
					for range 100 {
						if _, err := tx.exec("INSERT INTO contacts(name) VALUES ('x')"); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
