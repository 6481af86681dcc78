package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/sqlsandbox"
)

// TestSQLWritesTakeEffect checks that writes by SQL have the same effects as those of the
// API.
func TestSQLWritesTakeEffect(t *testing.T) {
	db := openForSQL(t)
	before := valueOf(t, db, "SELECT count(*) FROM _events")
	r := askSQL(
		t,
		db,
		"INSERT INTO contacts(name, tags) VALUES ('Carl', '[\"de\"]'), ('Dora', '[]') RETURNING name, id",
	)
	if len(r.Rows) != 2 || r.Changes != 2 || r.RowCount != 2 || r.LastInsertID == nil || r.Rows[0][0] != "Carl" {
		t.Fatalf("insert returning: %+v", r)
	}
	id, _ := r.Rows[0][1].(string)
	if r := askSQL(
		t,
		db,
		"UPDATE contacts SET tags = '[\"fr\",\"de\"]', name = ? WHERE id = ?",
		"Karl", id,
	); r.RowCount != 1 || r.Changes != 1 || len(r.Columns) != 0 || r.LastInsertID != nil {
		t.Fatalf("update: %+v", r)
	}
	if got := valueOf(
		t,
		db,
		"SELECT group_concat(tag) FROM (SELECT tag FROM _contact_tags WHERE contact_id = '"+id+"' ORDER BY tag)",
	); got != "de,fr" {
		t.Errorf("tags: %s", got)
	}
	if _, total, err := db.Contacts(t.Context(), []string{"fr"}, Page{Limit: 10}); err != nil || total != 1 {
		t.Errorf("contacts by tag: %d, %v", total, err)
	}
	if r := askSQL(t, db, "DELETE FROM contacts WHERE name IN ('Karl', 'Dora')"); r.Changes != 2 {
		t.Errorf("delete: %+v", r)
	}
	if r := askSQL(t, db, "DELETE FROM contacts WHERE 0"); r.Changes != 0 || r.RowCount != 0 {
		t.Errorf("empty delete: %+v", r)
	}
	events := valueOf(
		t,
		db,
		"SELECT group_concat(type) FROM (SELECT type FROM _events WHERE seq > "+before+" ORDER BY seq)",
	)
	if events != "contact.created,contact.created,contact.updated,contact.deleted,contact.deleted" {
		t.Errorf("events: %s", events)
	}
	if got := valueOf(t, db, "SELECT n FROM _counts WHERE name = 'contacts'"); got != "2" {
		t.Errorf("count of contacts: %s", got)
	}
}

func TestSQLCascades(t *testing.T) {
	db := openForSQL(t)
	askSQL(t, db, "INSERT INTO messages(conversation_id, role, content) VALUES ('conversation-1', 'user', 'more')")
	if got := valueOf(t, db, "SELECT n FROM _counts WHERE name = 'messages'"); got != "3" {
		t.Errorf("messages: %s", got)
	}
	askSQL(t, db, "DELETE FROM conversations")
	if got := valueOf(t, db, "SELECT n FROM _counts WHERE name = 'messages'"); got != "0" {
		t.Errorf("messages of a deleted conversation: %s", got)
	}
	askSQL(t, db, "UPDATE sources SET name = 'Handbook' WHERE id = 'source-1'")
	if r := askSQL(t, db, "DELETE FROM sources RETURNING name"); answerJSON(t, r) != `[["name"],[["Handbook"]]]` {
		t.Errorf("delete source: %s", answerJSON(t, r))
	}
	if got := valueOf(
		t,
		db,
		"SELECT (SELECT count(*) FROM _files) || (SELECT count(*) FROM _file_parts)",
	); got != "00" {
		t.Errorf("files of a deleted source: %s", got)
	}
	for more := true; more; {
		var err error
		if more, err = db.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r := askSQL(t, db, "SELECT count(*) FROM chunks"); r.Rows[0][0] != int64(0) {
		t.Errorf("chunks of a deleted source: %v", r.Rows)
	}
	if r := askSQL(t, db, "PRAGMA integrity_check"); r.Rows[0][0] != "ok" {
		t.Errorf("integrity: %v", r.Rows)
	}
}

func TestSQLReplaceAndUpsert(t *testing.T) {
	db := openForSQL(t)
	askSQL(t, db, "REPLACE INTO contacts(id, name, email) VALUES ('contact-9', 'Eve', 'ada@example.com')")
	if got := answerJSON(
		t,
		askSQL(t, db, "SELECT id FROM contacts ORDER BY id"),
	); got != `[["id"],[["contact-2"],["contact-9"]]]` {
		t.Errorf("after replace: %s", got)
	}
	if got := valueOf(
		t,
		db,
		"SELECT n || (SELECT count(*) FROM _contact_tags) FROM _counts WHERE name = 'contacts'",
	); got != "20" {
		t.Errorf("counts after replace: %s", got)
	}
	r := askSQL(
		t,
		db,
		"INSERT INTO contacts(id, name) VALUES ('contact-9', 'x') ON CONFLICT(id) DO UPDATE "+
			"SET name = excluded.name || '!' RETURNING name",
	)
	if got := answerJSON(t, r); got != `[["name"],[["x!"]]]` || r.LastInsertID != nil {
		t.Errorf("upsert: %s, %v", got, r.LastInsertID)
	}
	r = askSQL(
		t,
		db,
		"UPDATE contacts SET notes = m.content FROM messages m WHERE m.role = 'user' AND contacts.id = "+
			"'contact-2' RETURNING notes",
	)
	if got := answerJSON(t, r); got != `[["notes"],[["hello"]]]` {
		t.Errorf("update from: %s", got)
	}
	r = askSQL(t, db, "WITH names(n) AS (VALUES ('F'), ('G')) INSERT INTO contacts(name) SELECT n FROM names")
	if r.Changes != 2 {
		t.Errorf("insert from a common table expression: %+v", r)
	}
}

func TestSQLAudits(t *testing.T) {
	db := openForSQL(t)
	person := WithActor(t.Context(), "ada@example.com")
	if _, err := db.SQL(
		person,
		"UPDATE contacts SET notes = ? WHERE id = 'contact-1'",
		Params{List: []any{"s3cret"}},
		sqlAdmin,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL(person, "SELECT * FROM contacts", Params{}, sqlAdmin); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL(person, "INSERT INTO contacts(name) VALUES (NULL)", Params{}, sqlAdmin); err == nil {
		t.Fatal("a contact without a name was stored")
	}
	askSQL(t, db, "DELETE FROM contacts WHERE id = 'contact-2'") // the program itself
	logs, total, err := db.Logs(t.Context(), LogFilter{Sources: []string{agent.SourceAudit}}, Page{Limit: 10})
	if err != nil || total != 1 {
		t.Fatalf("%d audit entries, %v", total, err)
	}
	want := `{"by":"ada@example.com","changes":1,"statement":"UPDATE","tables":["contacts"]}`
	if logs[0].Message != "SQL statement run" || string(logs[0].Data) != want {
		t.Errorf("audit: %s %s", logs[0].Message, logs[0].Data)
	}
}

func TestSQLRollsBackWhatItStops(t *testing.T) {
	db := openForSQL(t)
	limits := sqlsandbox.DefaultLimits
	limits.Time = 100 * time.Millisecond
	const endless = "INSERT INTO tasks(title, start_time, end_time) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL " +
		"SELECT n+1 FROM c) SELECT n, '', '' FROM c"
	_, err := db.sql(t.Context(), endless, Params{}, sqlAdmin, limits)
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != agent.CodeExecution || e.Details["limit_seconds"] != 0.1 {
		t.Fatalf("endless insert: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.SQL(ctx, "DELETE FROM contacts", Params{}, sqlAdmin); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while queued: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := db.SQL(ctx, endless, Params{}, sqlAdmin); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sender disconnected: %v", err)
	}
	if r := askSQL(
		t,
		db,
		"SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM contacts)",
	); fmt.Sprint(r.Rows) != "[[0 2]]" {
		t.Errorf("what is left: %v", r.Rows)
	}
	askSQL(t, db, "INSERT INTO contacts(name) VALUES ('after')")
}

// TestSQLConcurrentWithOthers checks that statements, the API's writes and the closing of idle
// connections do not interfere with each other.
func TestSQLConcurrentWithOthers(t *testing.T) {
	db := openForSQL(t)
	f, err := db.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.release(t.Context())
	var all sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	const rounds = 20
	for i := range 4 {
		all.Go(func() {
			for n := range rounds {
				_, err := db.SQL(
					t.Context(),
					"INSERT INTO contacts(name, tags) VALUES (?, '[\"t\"]')",
					Params{List: []any{fmt.Sprint(i, n)}},
					sqlAdmin,
				)
				fail(err)
				_, err = db.SQL(t.Context(), "SELECT count(*) FROM contacts a, messages b", Params{}, sqlViewer)
				fail(err)
			}
		})
		all.Go(func() {
			for n := range rounds {
				_, err := Write(t.Context(), db, func(tx *Tx) (any, error) {
					return tx.exec("INSERT INTO contacts(name) VALUES (?)", fmt.Sprint("api", i, n))
				})
				fail(err)
				if n%5 == 0 {
					f.shrink()
				}
			}
		})
	}
	all.Wait()
	if r := askSQL(t, db, "SELECT count(*) FROM contacts"); r.Rows[0][0] != int64(2+8*rounds) {
		t.Errorf("contacts: %v", r.Rows)
	}
	if got := valueOf(t, db, "SELECT n FROM _counts WHERE name = 'contacts'"); got != fmt.Sprint(2+8*rounds) {
		t.Errorf("counted contacts: %s", got)
	}
	if !f.needsCheckpoint() {
		t.Error("the file is not due for a checkpoint after a write by SQL")
	}
}

func TestSQLClosesWithTheFile(t *testing.T) {
	db := openForSQL(t)
	askSQL(t, db, "INSERT INTO contacts(name) VALUES ('x')")
	askSQL(t, db, "SELECT 1")
	if closed, err := db.closeIdle(); err != nil || !closed {
		t.Fatalf("closed %v, %v", closed, err)
	}
	if HasWAL(db.path) {
		t.Error("a connection was left open and kept the -wal")
	}
	if r := askSQL(t, db, "SELECT count(*) FROM contacts"); r.Rows[0][0] != int64(3) {
		t.Errorf("after opening again: %v", r.Rows)
	}
}
