package store

import (
	"fmt"
	"slices"
	"testing"

	"satchel/agent"
)

// growAll creates the parts that a file needs, and indexes everything that is searched.
func growAll(t testing.TB, db *DB) {
	t.Helper()
	db.partsDue.Store(true)
	for db.partsDue.Load() {
		if err := db.createParts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func fillPeople(t testing.TB, db *DB, n int) {
	t.Helper()
	do(t, db, `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < ?)
		INSERT INTO contacts(id, name, email, phone) SELECT printf('contact-%06d', i), 'Ärzte Person ' || i || iif(i % 100, '', ' 李明'), 'p' || i || '@example.com', '+49151' || i FROM k`, n)
}

// TestSearchesByIndex checks that the index finds what a scan of all rows finds, after
// all kinds of changes.
func TestSearchesByIndex(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	fillPeople(t, db, 3000)
	do(
		t,
		db,
		`INSERT INTO conversations(id, contact_id, external_thread_id) SELECT 'conversation-' || `+
			`id, id, 'thread ' || rowid FROM contacts WHERE rowid <= 1500`,
	)
	do(
		t,
		db,
		"INSERT INTO messages(conversation_id, role, content) SELECT id, 'user', 'Where is order ' || "+
			"rowid || '?' FROM conversations",
	)
	do(
		t,
		db,
		"INSERT INTO logs(created_at, level, source, message, data) SELECT printf('2026-01-01T00:%02d:%02d.%03dZ', "+
			"rowid / 60 % 60, rowid % 60, rowid % 1000), iif(rowid % 50, 'info', 'error'), 'test', 'entry ' || "+
			"rowid, '{\"n\":' || rowid || '}' FROM contacts",
	)
	terms := []string{
		"person 1234", "PERSON 99", "1@ex", "4", "99", "李", "李明", "rzt", "ärz", "%", `"`, "_5", "no such thing",
		"order 77", "thread 9", "entry 300", `n":12`,
	}
	search := func() map[string][]string {
		found := map[string][]string{}
		for _, term := range terms {
			p := Page{Limit: 4000, Search: term}
			note := func(what string, n, total int, ids []string, err error) {
				if err != nil || n != total {
					t.Fatalf("%s %q: %d of %d, %v", what, term, n, total, err)
				}
				found[what+" "+term] = ids
			}
			contacts, total, err := db.Contacts(t.Context(), nil, p)
			note("contacts", len(contacts), total, idsOf(contacts, func(c agent.Contact) string { return c.ID }), err)
			logs, total, err := db.Logs(t.Context(), LogFilter{}, p)
			note("logs", len(logs), total, idsOf(logs, func(l agent.Log) string { return l.ID }), err)
			conversations, total, err := db.Conversations(t.Context(), ConversationFilter{Status: "open"}, p)
			note(
				"conversations",
				len(conversations),
				total,
				idsOf(conversations, func(c agent.ConversationSummary) string { return c.ID }),
				err,
			)
		}
		return found
	}
	compare := func(when string) {
		t.Helper()
		indexed := search()
		do(t, db, "UPDATE _filter_counts SET list = 'searched' WHERE list = 'search'") // hides the index
		plain := search()
		do(t, db, "UPDATE _filter_counts SET list = 'search' WHERE list = 'searched'")
		for what, want := range plain {
			if got := indexed[what]; !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d found, want %d", when, what, len(got), len(want))
			}
		}
	}
	search()
	growAll(t, db)
	if n := value[int](
		t,
		db,
		"SELECT count(*) FROM _filter_counts WHERE list = 'search' AND (n > 1 OR value_2 <> '')",
	); n != 4 {
		t.Fatalf("%d tables are indexed", n)
	}
	compare("new")
	change := func() {
		do(t, db, "UPDATE contacts SET name = 'Person 1234 too' WHERE rowid = 7")
		do(t, db, "UPDATE contacts SET email = 'x@y.z' WHERE rowid = 1234")
		do(t, db, "DELETE FROM contacts WHERE rowid > 2900")
		do(t, db, "INSERT INTO contacts(rowid, name) VALUES (2950, 'order 77'), (2901, '99')")
		do(t, db, "UPDATE messages SET content = 'thread 9' WHERE id = 5")
		do(t, db, "DELETE FROM conversations WHERE rowid = 77")
		do(t, db, "DELETE FROM logs WHERE message = 'entry 300'")
		do(
			t,
			db,
			"INSERT INTO logs(created_at, level, source, message) VALUES ('2026-01-01T00:10:00.000Z', 'info', "+
				"'test', 'entry 3000'), ('2027-01-01T00:10:00.000Z', 'info', 'test', 'entry 300')",
		)
	}
	change()
	compare("changed")
	for i := range 600 {
		do(t, db, "UPDATE contacts SET name = ? WHERE rowid = ?", fmt.Sprint("Person 99 ", i), i+20)
	}
	growAll(t, db)
	if n := value[int](t, db, "SELECT count(*) FROM _search_changes WHERE list = 'contacts'"); n >= indexedRows {
		t.Errorf("%d changes are left", n)
	}
	compare("indexed again")
	if r, err := db.SQL(
		t.Context(),
		"UPDATE contacts SET name = 'by SQL 1234' WHERE name LIKE 'Person 99 %'",
		Params{},
		Access{Write: true},
	); err != nil || r.Changes == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	compare("by SQL")
	if err := db.checkWhole(t); err != nil {
		t.Error(err)
	}
}

// checkWhole closes the file and opens it again, which checks its schema.
func (db *DB) checkWhole(t *testing.T) error {
	if _, err := db.closeIdle(); err != nil {
		return err
	}
	_, err := db.Stats(t.Context())
	return err
}

func idsOf[T any](list []T, id func(T) string) []string {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = id(r)
	}
	return ids
}
