package store

import (
	"errors"
	"slices"
	"testing"

	"satchel/store/sqlite"
)

// makeAllWritingParts creates the parts of the schema that writes need.
func makeAllWritingParts(t testing.TB, db *DB) {
	t.Helper()
	if _, err := Write(t.Context(), db, func(tx *Tx) (bool, error) {
		return tx.makeWritingParts(allWritingParts())
	}); err != nil {
		t.Fatal(err)
	}
}

const triggersOf = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?"

// A new file has only the triggers of the log, and gets those of a table with the first
// write to it, also if an earlier write was rolled back.
func TestWritesMakeTheirParts(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	if got := value[string](
		t,
		db,
		"SELECT group_concat(name) FROM sqlite_schema WHERE type IN ('trigger','view')",
	); got != "_logs_counted,_logs_uncounted" {
		t.Errorf("a new file has %s", got)
	}
	const insert = "INSERT INTO contacts(name) VALUES ('x')"
	failure := errors.New("no")
	for range 2 {
		if _, err := Write(t.Context(), db, func(tx *Tx) (any, error) {
			_, err := tx.exec(insert)
			return nil, errors.Join(err, failure)
		}); !errors.Is(err, failure) {
			t.Fatal(err)
		}
	}
	if got := value[int](t, db, triggersOf, "contacts"); got != 0 {
		t.Errorf("a write that was rolled back left %d triggers", got)
	}
	do(t, db, insert) // a cached statement
	wantCounted(t, db, "contacts", 1)
	if got := value[int](t, db, "SELECT count(*) FROM _events WHERE type = 'contact.created'"); got != 1 {
		t.Errorf("%d events", got)
	}
	if got := value[int](t, db, triggersOf, "workflows"); got != 0 {
		t.Error("tables that are not written to have triggers too")
	}
	if _, err := db.SQL(
		t.Context(),
		"INSERT INTO workflows(id, name) VALUES ('w', 'w')",
		Params{},
		Access{Write: true},
	); err != nil {
		t.Fatal(err)
	}
	wantCounted(t, db, "workflows", 1)
	if _, _, err := db.Contacts(t.Context(), nil, Page{Limit: 1}); err != nil {
		t.Error(err)
	}
}

func wantCounted(t *testing.T, db *DB, table string, want int) {
	t.Helper()
	counted, rows :=
		value[int](t, db, "SELECT n FROM _counts WHERE name = ?", table),
		value[int](t, db, "SELECT count(*) FROM "+table)
	if counted != want || rows != want {
		t.Errorf("%s: %d counted, %d rows, want %d", table, counted, rows, want)
	}
}

// A write can create parts while rows are read by the same connection.
func TestPartsWhileRowsAreRead(t *testing.T) {
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	do(t, db, "INSERT INTO contacts(name) VALUES ('x'), ('y')")
	_, err := Write(t.Context(), db, func(tx *Tx) (any, error) {
		rows, err := tx.query("SELECT name FROM contacts")
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return nil, err
			}
			if _, err := tx.exec("INSERT INTO workflows(id, name) VALUES (?, 'w')", name); err != nil {
				return nil, err
			}
		}
		return nil, rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	wantCounted(t, db, "workflows", 2)
}

// Writes that share a commit, one of which fails, get their parts too.
func TestSharedCommitsMakeTheirParts(t *testing.T) {
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	group := []*job{}
	for i := range 4 {
		group = append(group, &job{ctx: t.Context(), run: func(c *conn) error {
			_, err := c.exec("INSERT INTO contacts(name) VALUES ('x')")
			if i == 0 {
				return errors.Join(err, errors.New("no"))
			}
			return err
		}})
	}
	if err := db.alone(t.Context(), func(*conn) error {
		db.file.commit(group)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	wantCounted(t, db, "contacts", 3)
}

// A file has an index of chunks from its first chunk on; without it, searches find
// nothing.
func TestFirstChunkMakesTheirIndex(t *testing.T) {
	t.Parallel()
	db := createAgent(t, openFolder(t), "a")
	want := func(tables, found int) {
		t.Helper()
		const index = "SELECT count(*) FROM sqlite_schema WHERE name IN ('_chunk_text','_chunk_terms'," +
			"'_chunk_vectors','chunks_position')"
		if n := value[int](t, db, index); n != tables {
			t.Errorf("%d tables, want %d", n, tables)
		}
		n, err := Read(t.Context(), db, func(tx *Tx) (int, error) {
			k, err := tx.Knowledge("", testModel)
			if err != nil {
				return 0, err
			}
			m, err := k.Matching(Words{{Ways: []Way{{Text: "bread"}}, Weight: 1}}, 5)
			if err != nil {
				return 0, err
			}
			near, err := k.Nearest(make([]float32, vectorLength), 5)
			return len(m.Scores) + len(near), err
		})
		if err != nil || n != found {
			t.Errorf("found %d, want %d: %v", n, found, err)
		}
	}
	want(0, 0)
	learn(t, db, testModel, []string{"bread and butter"})
	want(4, 1)
}

// A file of version 4 with many rows gets its indexes back with a write to any table.
func TestMigratedFileGetsIndexesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	db := migrateFixture(
		t,
		"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO contacts(name, "+
			"notes) SELECT 'x', hex(zeroblob(1000)) FROM n",
	)
	const index = "SELECT count(*) FROM sqlite_schema WHERE name = 'contacts_email'"
	if value[int](t, db, index) != 0 {
		t.Fatal("the index is there already")
	}
	do(t, db, "UPDATE _agent SET name = 'Grown'")
	if err := db.createParts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if value[int](t, db, index) != 1 {
		t.Error("the index was not created")
	}
	createContact(t, db, named("x"))
}

// migrateFixture opens the fixture of version 4 after running a script on it.
func migrateFixture(t *testing.T, script string) *DB {
	t.Helper()
	f := openAt(t, t.TempDir(), fixtureKey)
	closeFolder(t, f)
	unpackFixture(t, 4, f.filePath("agent-fixture"))
	c, err := openConn(source(f.filePath("agent-fixture"), sqlite.ReadWrite))
	if err == nil {
		err = errors.Join(c.script(script), c.close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, openAt(t, f.Path(), fixtureKey), "Fixture")
}

// Rows that foreign keys delete are counted in a file of version 4, whose triggers the
// migration removes.
func TestMigratedFileKeepsCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	db := migrateFixture(
		t,
		"INSERT INTO conversations(id) VALUES ('c'); INSERT INTO messages(conversation_id, role, content) "+
			"VALUES ('c', 'user', 'hello')",
	)
	if value[int](t, db, "SELECT count(*) FROM messages") == 0 {
		t.Fatal("the file has no messages")
	}
	do(t, db, "DELETE FROM conversations")
	wantCounted(t, db, "conversations", 0)
	wantCounted(t, db, "messages", 0)
	createContact(t, db, named("x"))
	wantCounted(t, db, "contacts", 2)
}

// Retention creates no parts for tables without rows.
func TestRetentionMakesNoParts(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	checkpointIdle(t, f, db)
	if _, err := Write(t.Context(), db, func(tx *Tx) (bool, error) { return trim(tx) }); err != nil {
		t.Fatal(err)
	}
	parts, err := Read(t.Context(), db, func(tx *Tx) (map[string]bool, error) { return tx.existingParts() })
	if err != nil || slices.ContainsFunc(schemaParts, func(p part) bool { return parts[p.name] }) {
		t.Errorf("%v, %v", parts, err)
	}
}
