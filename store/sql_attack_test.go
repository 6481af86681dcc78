package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
)

// sqlAttacks are statements that each try to read or change what is closed. {T} stands
// for every closed table in turn.
var sqlAttacks = []string{
	// Reading, in every way of naming a table.
	"SELECT * FROM {T}",
	"SELECT count(*) FROM {T}",
	"SELECT 1 FROM {T} LIMIT 1",
	"SELECT rowid FROM {T}",
	"SELECT * FROM main.{T}",
	`SELECT * FROM "{T}"`,
	"SELECT * FROM [{T}]",
	"SELECT * FROM `{T}`",
	"SELECT * FROM '{T}'",
	"SELECT * FROM \"main\".'{T}'",
	"SELECT * FROM {T}/**/",
	"SELECT/**/*/**/FROM/**/{T}--",
	"SELECT x.* FROM {T} AS x",
	"SELECT x.* FROM contacts, {T} AS x",
	"SELECT c.name FROM contacts c LEFT JOIN {T} ON 1",
	"SELECT c.name FROM contacts c NATURAL JOIN {T}",
	"SELECT count(*) FROM (SELECT 'x' AS id, 'x' AS owner, 'x' AS name) NATURAL JOIN {T}",
	"SELECT * FROM (SELECT * FROM {T})",
	"SELECT (SELECT count(*) FROM {T})",
	"SELECT EXISTS (SELECT 1 FROM {T})",
	"SELECT 1 WHERE 1 IN {T}",
	"SELECT name FROM contacts WHERE id IN (SELECT 1 FROM {T})",
	"SELECT name FROM contacts ORDER BY (SELECT count(*) FROM {T})",
	"SELECT name FROM contacts GROUP BY 1 HAVING (SELECT count(*) FROM {T})",
	"SELECT name FROM contacts LIMIT (SELECT count(*) FROM {T})",
	"SELECT 1 UNION SELECT count(*) FROM {T}",
	"SELECT 1 EXCEPT SELECT count(*) FROM {T}",
	"WITH x AS (SELECT * FROM {T}) SELECT * FROM x",
	"WITH x AS MATERIALIZED (SELECT count(*) FROM {T}) SELECT * FROM x",
	"WITH RECURSIVE x(n) AS (SELECT count(*) FROM {T} UNION ALL SELECT n FROM x LIMIT 3) SELECT * FROM x",
	"WITH contacts AS (SELECT * FROM {T}) SELECT * FROM contacts",
	"SELECT sum(1) OVER (ORDER BY (SELECT count(*) FROM {T})) FROM contacts",
	"SELECT * FROM json_each((SELECT count(*) FROM {T}))",
	"EXPLAIN SELECT * FROM {T}",
	"EXPLAIN QUERY PLAN SELECT * FROM {T}",
	// Through names that the guard allows.
	"WITH _contacts_created AS MATERIALIZED (SELECT count(*) n FROM {T}) SELECT * FROM _contacts_created",
	"INSERT INTO contacts(name) WITH _contacts_created AS MATERIALIZED (SELECT count(*) n FROM {T}) " +
		"SELECT n FROM _contacts_created",
	"INSERT INTO contacts(name) SELECT n FROM (SELECT count(*) n FROM {T}) AS '_contacts_created'",
	"WITH [_sources_deleted] AS MATERIALIZED (SELECT count(*) n FROM {T}) DELETE FROM sources " +
		"WHERE id = (SELECT n FROM [_sources_deleted])",
	"DELETE FROM sources RETURNING (SELECT count(*) FROM {T})",
	"DELETE FROM sources WHERE id IN (SELECT 1 FROM {T})",
	// Through writes to tables that are open.
	"INSERT INTO contacts(name) SELECT count(*) FROM {T}",
	"INSERT INTO contacts(name) VALUES ((SELECT count(*) FROM {T}))",
	"INSERT INTO contacts(name) VALUES ('x') RETURNING (SELECT count(*) FROM {T})",
	"INSERT INTO contacts(id, name) VALUES ('contact-1', 'x') ON CONFLICT DO UPDATE " +
		"SET name = (SELECT count(*) FROM {T})",
	"UPDATE contacts SET name = (SELECT count(*) FROM {T})",
	"UPDATE contacts SET name = 'x' FROM {T}",
	"UPDATE contacts SET name = 'x' RETURNING (SELECT count(*) FROM {T})",
	"DELETE FROM contacts WHERE EXISTS (SELECT 1 FROM {T})",
	// Writing.
	"INSERT INTO {T} DEFAULT VALUES",
	"INSERT OR REPLACE INTO {T} SELECT * FROM {T}",
	"REPLACE INTO {T} DEFAULT VALUES",
	"UPDATE {T} SET rowid = 1",
	"DELETE FROM {T}",
	"DELETE FROM main.{T} WHERE 1 RETURNING *",
	"WITH x AS (SELECT 1) DELETE FROM {T}",
	// Pragmas and the tables made from them.
	"PRAGMA table_info({T})",
	"PRAGMA table_info = '{T}'",
	"PRAGMA main.table_xinfo(\"{T}\")",
	"PRAGMA index_list({T})",
	"PRAGMA foreign_key_list({T})",
	"PRAGMA foreign_key_check({T})",
	"PRAGMA integrity_check({T})",
	"SELECT * FROM pragma_table_info('{T}')",
	"SELECT * FROM pragma_table_xinfo WHERE arg = '{T}'",
	"SELECT p.* FROM sqlite_schema s, pragma_table_info(s.name) p WHERE s.name = '{T}'",
	"SELECT * FROM pragma_index_list('{T}')",
}

// sqlForbidden are statements that each try something that nobody may do.
var sqlForbidden = []string{
	// Raw pages, statistics, full text and vectors.
	"SELECT * FROM sqlite_dbpage",
	"SELECT hex(data) FROM sqlite_dbpage(1)",
	"SELECT count(*) FROM sqlite_dbpage",
	"SELECT data FROM sqlite_dbpage('main') WHERE pgno = 2",
	"UPDATE sqlite_dbpage SET data = x'00' WHERE pgno = 1",
	"SELECT * FROM dbstat",
	"SELECT count(*) FROM dbstat",
	"SELECT name FROM dbstat('main', 1)",
	"SELECT * FROM main.dbstat",
	"UPDATE sqlite_sequence SET seq = 1",
	"DELETE FROM sqlite_sequence",
	"SELECT * FROM sqlite_stat1",
	"SELECT * FROM sqlite_temp_schema",
	"SELECT * FROM temp.sqlite_master",
	"SELECT * FROM sqlite_temp_master",
	"SELECT * FROM _chunk_text",
	"SELECT * FROM _chunk_text('door')",
	"SELECT rowid FROM _chunk_text WHERE _chunk_text MATCH 'door'",
	"SELECT * FROM _chunk_text_data",
	"SELECT * FROM _chunk_text_config",
	"SELECT * FROM _chunk_terms",
	"SELECT rowid FROM _chunk_vectors WHERE embedding MATCH '[]' AND k = 1",
	"SELECT * FROM _chunk_vectors_chunks",
	"SELECT * FROM _chunk_vectors_rowids",
	"SELECT * FROM _chunk_vectors_vector_chunks00",
	"SELECT * FROM vec_each('[1]')",
	"INSERT INTO _chunk_text(_chunk_text) VALUES ('rebuild')",
	"DELETE FROM _chunk_vectors",
	"SELECT count(*) FROM fts5vocab",
	"SELECT vec_version()",
	"SELECT vec_distance_l2('[1]', '[2]')",
	"SELECT highlight(contacts, 0, '', '') FROM contacts",
	"SELECT bm25(contacts) FROM contacts",
	"SELECT fts5(1)",
	"SELECT rtreenode(2, x'00')",
	"SELECT geopoly_area('[]')",
	// The schema.
	"UPDATE sqlite_schema SET sql = ''",
	"DELETE FROM sqlite_master",
	"INSERT INTO sqlite_schema VALUES ('table','x','x',0,'')",
	"UPDATE main.sqlite_master SET name = 'open' WHERE name = '_keys'",
	"INSERT OR IGNORE INTO [sqlite_schema] VALUES ('table','x','x',0,'')",
	"WITH x AS (SELECT 1) UPDATE OR IGNORE \"main\".'sqlite_schema' SET sql = ''",
	"REPLACE INTO sqlite_sequence VALUES ('messages', 0)",
	"EXPLAIN DELETE FROM sqlite_schema",
	// Functions that access more than their arguments.
	"SELECT load_extension('x')",
	"SELECT load_extension('x', 'y')",
	`SELECT "load_extension"('x')`,
	"SELECT LOAD_EXTENSION('x')",
	"SELECT sqlite_log(1, 'x')",
	"SELECT sqlite_offset(name) FROM contacts",
	"SELECT last_insert_rowid()",
	"SELECT changes(), total_changes()",
	"SELECT sqlite_compileoption_get(1)",
	"INSERT INTO contacts(name) VALUES (load_extension('x'))",
	// Pragmas that set or do something, or show where files are.
	"PRAGMA writable_schema = 1",
	"PRAGMA writable_schema",
	"PRAGMA writable_schema(ON)",
	"PRAGMA query_only = 0",
	"PRAGMA trusted_schema = 1",
	"PRAGMA journal_mode = DELETE",
	"PRAGMA main.journal_mode(MEMORY)",
	"PRAGMA foreign_keys = OFF",
	"PRAGMA recursive_triggers = 0",
	"PRAGMA user_version = 99",
	"PRAGMA application_id = 0",
	"PRAGMA schema_version = 1",
	"PRAGMA synchronous = OFF",
	"PRAGMA temp_store = 2",
	"PRAGMA temp_store_directory = '/tmp'",
	"PRAGMA cache_size = 1000000",
	"PRAGMA mmap_size = 1000000000",
	"PRAGMA hard_heap_limit = 1",
	"PRAGMA soft_heap_limit(1)",
	"PRAGMA wal_checkpoint",
	"PRAGMA wal_checkpoint(TRUNCATE)",
	"PRAGMA incremental_vacuum(10)",
	"PRAGMA optimize",
	"PRAGMA shrink_memory",
	"PRAGMA database_list",
	"SELECT * FROM pragma_database_list",
	"SELECT file FROM pragma_database_list()",
	"PRAGMA locking_mode = EXCLUSIVE",
	"PRAGMA max_page_count = 10",
	"PRAGMA ignore_check_constraints = 1",
	"PRAGMA defer_foreign_keys = 1",
	"PRAGMA legacy_alter_table = 1",
	"PRAGMA case_sensitive_like = 1",
	"PRAGMA secure_delete = 1",
	"PRAGMA threads = 8",
	"PRAGMA nope",
	"PRAGMA busy_timeout = 0",
	"PRAGMA encoding = 'UTF-16'",
	"PRAGMA page_size = 512",
	"PRAGMA auto_vacuum = 0",
	"PRAGMA analysis_limit = 1",
	"SELECT * FROM pragma_integrity_check",
	"SELECT * FROM pragma_optimize",
	// Statements that are closed, in any spelling.
	"CREATE TABLE x(a)",
	"create temp table x(a)",
	"CREATE VIEW v AS SELECT * FROM _keys",
	"CREATE TEMP VIEW v AS SELECT * FROM _keys",
	"CREATE TRIGGER t AFTER INSERT ON contacts BEGIN DELETE FROM _keys; END",
	"CREATE VIRTUAL TABLE x USING fts5(a)",
	"CREATE INDEX i ON contacts(name)",
	"DROP TABLE contacts",
	"DROP TRIGGER _contacts_created",
	"DROP INDEX contacts_email",
	"ALTER TABLE contacts ADD COLUMN x",
	"ALTER TABLE _keys RENAME TO keys",
	"ATTACH 'x.db' AS x",
	"ATTACH DATABASE ':memory:' AS x",
	"DETACH main",
	"VACUUM",
	"VACUUM INTO '/tmp/x.db'",
	"REINDEX", "REINDEX contacts", "ANALYZE",
	"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "END", "ROLLBACK", "SAVEPOINT x", "RELEASE x", "ROLLBACK TO x",
	"VALUES (1)", "VALUES (1), (2)",
	"/* SELECT */ DROP TABLE contacts",
	"-- SELECT\nDROP TABLE contacts",
	"\ufeffDROP TABLE contacts",
	";DROP TABLE contacts",
	" \t\r\n\fdrop table contacts",
	"EXPLAIN DROP TABLE contacts",
	"EXPLAIN QUERY PLAN CREATE TABLE x(a)",
	"EXPLAIN VACUUM",
	"EXPLAIN ATTACH 'x' AS y",
	"EXPLAIN BEGIN",
	"EXPLAIN REINDEX",
	"WITH x AS (SELECT 1) VALUES (1)",
	// Tables that are read-only, or open in part.
	"INSERT INTO chunks(id, source_id, position, content) VALUES ('x', 'source-1', 9, 'x')",
	"UPDATE chunks SET content = ''",
	"DELETE FROM chunks",
	"UPDATE chunks SET embedded = 0 WHERE id = 'chunk-1' RETURNING id",
	"INSERT INTO logs(level, source, message) VALUES ('info', 'x', 'y')",
	"UPDATE logs SET message = ''",
	"DELETE FROM logs",
	"REPLACE INTO logs(id, level, source, message) VALUES ('x', '', '', '')",
	"INSERT INTO sources(type, name, status, created_at, updated_at) VALUES ('file', 'x', 'ready', '', '')",
	"UPDATE sources SET status = 'processing'",
	"UPDATE sources SET id = 'x'",
	"UPDATE sources SET rowid = 7",
	"UPDATE sources SET name = 'x', file_path = '/etc/passwd'",
	"REPLACE INTO sources(id) VALUES ('source-1')",
}

// sqlNonsense are statements that each try to smuggle in a second statement, or to
// confuse the parser.
var sqlNonsense = []string{
	"SELECT 1; DROP TABLE contacts",
	"SELECT 1;SELECT * FROM _keys",
	"SELECT 1; -- x\n DELETE FROM contacts",
	"SELECT ';' ; DELETE FROM contacts",
	"SELECT 1 /* ; */ ; DELETE FROM contacts",
	"SELECT 1 -- ; \n ; DELETE FROM contacts",
	"SELECT 1 /*/ ; DELETE FROM contacts -- */ ; SELECT 2",
	"SELECT ''';' ; DELETE FROM contacts",
	`SELECT ";" ; DELETE FROM contacts`,
	"SELECT [;] ; DELETE FROM contacts",
	"SELECT `;` ; DELETE FROM contacts",
	"SELECT 1; COMMIT; DROP TABLE contacts",
	"INSERT INTO contacts(name) VALUES ('x'); COMMIT",
	"DELETE FROM contacts; SELECT 1",
	"SELECT x';' ; DELETE FROM contacts",
	"SELECT 1\x00; DROP TABLE contacts",
	"SELECT 'a\x00'; DROP TABLE contacts",
	"SELECT $a(;) ; DELETE FROM contacts",
	"SELECT \"a", "SELECT [a", "SELECT `a", "SELECT 'a", "SELECT /* a", "SELECT 1 /", "EXPLAIN", "EXPLAIN QUERY PLAN",
	"WITH", "WITH x", "WITH x AS", "WITH x AS (", "WITH x AS (SELECT 1)", "WITH x AS (SELECT 1) x", "WITH RECURSIVE",
	"PRAGMA", "DELETE", "\xc3\x28", "SELECT 1 @", "SELECT #1", "REGEXP", "MATCH 1",
	"SELECT * FROM temp._keys",
	"SELECT * FROM pragma_wal_checkpoint",
	"SELECT * FROM nope._keys",
	"SELECT * FROM keys",
	"DELETE FROM temp.contacts",
}

// closedTables lists the tables that contain hiddenText, and some that do not.
func closedTables(t testing.TB, db *DB) []string {
	t.Helper()
	names := strings.Fields(valueOf(
		t,
		db,
		"SELECT group_concat(name, ' ') FROM sqlite_schema WHERE type IN ('table','view') AND substr(name, 1, 1) = '_'",
	))
	if len(names) < 10 {
		t.Fatalf("closed tables: %v", names)
	}
	return names
}

// closedState returns what no statement at all may change.
func closedState(t testing.TB, db *DB) string {
	t.Helper()
	return statesOf(
		t,
		db,
		"SELECT group_concat(type || name || coalesce(sql, '')) FROM sqlite_schema",
		"SELECT group_concat(owner || field || key_id || sealed) FROM _secrets",
		"SELECT group_concat(id || hash || role) FROM _keys",
		"SELECT group_concat(id || email || role) FROM _admins",
		"SELECT count(*) || max(data) FROM _events WHERE id = '"+hiddenText+"'",
		"SELECT id || folder || status || settings FROM _agent",
		"SELECT coalesce(group_concat(id || content), '') FROM chunks",
		"SELECT count(*) FROM logs",
		"PRAGMA user_version",
		"PRAGMA application_id",
		"SELECT journal_mode FROM pragma_journal_mode",
	)
}

// sqlState returns what no refused statement may change.
func sqlState(t testing.TB, db *DB) string {
	t.Helper()
	return closedState(t, db) + statesOf(
		t,
		db,
		"SELECT group_concat(upload || sha256) FROM _files",
		"SELECT group_concat(upload || data) FROM _file_parts",
		"SELECT group_concat(id || status || file_path) FROM sources",
		"SELECT group_concat(id || name) FROM contacts",
		"SELECT group_concat(id || content) FROM messages",
		"SELECT max(seq) FROM _events",
	)
}

func statesOf(t testing.TB, db *DB, queries ...string) string {
	t.Helper()
	var b strings.Builder
	for _, query := range queries {
		fmt.Fprintln(&b, valueOf(t, db, query))
	}
	return b.String()
}

func TestSQLKeepsClosedTablesClosed(t *testing.T) {
	db := openForSQL(t)
	before := sqlState(t, db)
	for _, table := range closedTables(t, db) {
		for _, attack := range sqlAttacks {
			query := strings.ReplaceAll(attack, "{T}", table)
			refuseSQL(t, db, query, agent.CodeForbiddenOperation, agent.CodeInvalidQuery)
			refuseSQL(
				t,
				db,
				strings.ReplaceAll(attack, "{T}", strings.ToUpper(table)),
				agent.CodeForbiddenOperation,
				agent.CodeInvalidQuery,
			)
		}
	}
	if after := sqlState(t, db); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
}

func TestSQLForbids(t *testing.T) {
	db := openForSQL(t)
	before := sqlState(t, db)
	for _, query := range sqlForbidden {
		refuseSQL(t, db, query, agent.CodeForbiddenOperation)
	}
	for _, query := range sqlNonsense {
		refuseSQL(t, db, query, agent.CodeInvalidQuery, agent.CodeForbiddenOperation)
	}
	if after := sqlState(t, db); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
}

// refuseSQL runs a statement that must be refused for an admin and a viewer, with one of
// the codes and without revealing what is hidden.
func refuseSQL(t testing.TB, db *DB, query string, codes ...agent.Code) {
	t.Helper()
	for _, access := range []Access{sqlAdmin, sqlViewer} {
		r, err := db.SQL(t.Context(), query, Params{}, access)
		code := agent.ErrorCode(err)
		fits := code == agent.CodeForbidden && !access.Write
		for _, c := range codes {
			fits = fits || c == code
		}
		if !fits {
			t.Errorf("%q was answered with %v, %v", query, r.Rows, err)
		}
		if b, _ := json.Marshal(r); strings.Contains(string(b), hiddenText) ||
			err != nil && strings.Contains(err.Error(), hiddenText) {
			t.Errorf("%q shows what is hidden: %s, %v", query, b, err)
		}
	}
}

// TestSQLNamesOfClosedThings checks that names of the program's own tables and triggers
// do not widen what a statement may do, and are allowed as text.
func TestSQLNamesOfClosedThings(t *testing.T) {
	db := openForSQL(t)
	refuseSQL(
		t,
		db,
		"INSERT INTO contacts(name) WITH _contacts_created(n) AS (SELECT 'x') SELECT n FROM _contacts_created",
		agent.CodeForbiddenOperation,
	)
	refuseSQL(t, db, "SELECT x._keys FROM (SELECT 1 AS _keys) x", agent.CodeForbiddenOperation)
	refuseSQL(t, db, "UPDATE contacts SET notes = '_keys'", agent.CodeForbiddenOperation)
	for _, text := range []string{"_keys", "_contacts_created", "sqlite_stat1"} {
		r, err := db.SQL(
			t.Context(),
			"UPDATE contacts SET notes = ? WHERE id = 'contact-1' RETURNING notes",
			Params{List: []any{text}},
			sqlAdmin,
		)
		if err != nil || r.Rows[0][0] != text {
			t.Errorf("%s by parameter: %v, %v", text, r.Rows, err)
		}
	}
	askSQL(t, db, "UPDATE contacts SET notes = '_keys and _secrets' WHERE notes NOT LIKE 'sqlite_%'")
	askSQL(t, db, "WITH _mine AS (SELECT 1) SELECT count(*) FROM _mine")
	askSQL(
		t,
		db,
		"SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "+
			"AND name <> 'sqlite_sequence'",
	)
}

// TestSQLDoesNotAnswerGuesses checks that NATURAL JOIN and USING, whose columns SQLite
// compares without asking its authorizer, do not confirm guesses.
func TestSQLDoesNotAnswerGuesses(t *testing.T) {
	db := openForSQL(t)
	for _, guess := range []string{
		"SELECT count(*) FROM (SELECT '" + hiddenText + "' AS hash) NATURAL JOIN _keys",
		"SELECT count(*) FROM (SELECT '" + hiddenText + "' AS hash) JOIN _keys USING (hash)",
		"SELECT count(*) FROM _keys JOIN (SELECT '" + hiddenText + "' AS hash) USING (hash)",
		"SELECT 1 FROM (SELECT 1 AS pgno, x'00' AS data) NATURAL JOIN sqlite_dbpage",
		"SELECT 1 FROM (SELECT 'x' AS term) NATURAL JOIN _chunk_terms",
		"SELECT c.name FROM contacts c NATURAL LEFT JOIN '_agent'",
		"DELETE FROM contacts WHERE EXISTS (SELECT 1 FROM (SELECT 'x' AS hash) NATURAL JOIN [_keys])",
		"UPDATE contacts SET name = 'x' FROM (SELECT 'x' AS hash) NATURAL JOIN `_keys`",
	} {
		refuseSQL(t, db, guess, agent.CodeForbiddenOperation)
	}
}
