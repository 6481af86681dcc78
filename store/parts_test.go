package store

import "testing"

// A table gets its indexes once it has enough rows, whoever wrote them, and the file is
// not examined again before it has changed.
func TestLargeTablesGetTheirIndexes(t *testing.T) {
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	grow := func(index string, want int) {
		t.Helper()
		if err := db.createParts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := value[int](t, db, "SELECT count(*) FROM sqlite_schema WHERE name = ?", index); n != want {
			t.Errorf("%d indexes %s, want %d", n, index, want)
		}
	}
	createContact(t, db, named("x"))
	grow("contacts_created", 0)
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 127) SELECT i FROM n"
	do(t, db, "INSERT INTO contacts(id, name) SELECT 'x-' || i, 'x' FROM ("+numbers+")")
	grow("contacts_created", 1)
	if _, err := db.SQL(
		t.Context(),
		"INSERT INTO conversations(id) SELECT 'x-' || i FROM ("+numbers+")",
		Params{},
		Access{Write: true},
	); err != nil {
		t.Fatal(err)
	}
	grow("conversations_created", 0)
	do(t, db, "INSERT INTO conversations(id) VALUES ('last')")
	grow("conversations_created", 0)
	do(t, db, "INSERT INTO messages(conversation_id, role, content) SELECT id, 'user', 'x' FROM conversations")
	grow("conversations_created", 1)
}
