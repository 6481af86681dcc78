package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store/sqlsandbox"
)

// hiddenText is in every closed table of a test's agent.
const hiddenText = "zq-hidden-value"

var (
	sqlAdmin  = Access{Write: true}
	sqlViewer = Access{}
)

// openForSQL opens an agent with rows in its closed tables, two contacts, a conversation
// of two messages, and a source with a file.
func openForSQL(t testing.TB) *DB {
	t.Helper()
	folder, err := Open(Options{Path: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	db := folder.Default()
	makeAllWritingParts(t, db)
	script := strings.ReplaceAll(`
		INSERT INTO _secrets(owner, field, key_id, sealed, updated_at) VALUES ('SECRET', 'f', 'SECRET', 'SECRET', 'SECRET');
		INSERT INTO _keys(id, name, prefix, hash, role, agents, created_at) VALUES ('SECRET', 'SECRET', 'SECRET', 'SECRET', 'owner', 'SECRET', '');
		INSERT INTO _admins(id, email, role, created_at) VALUES ('SECRET', 'SECRET', 'owner', '');
		INSERT INTO _events(id, type, data) VALUES ('SECRET', 'SECRET', 'SECRET');
		INSERT INTO sources(id, type, name, status, chunks, created_at, updated_at) VALUES ('source-1', 'file', 'Manual', 'ready', 1, 'TIME', 'TIME');
		INSERT INTO _files(source_id, upload, name, media_type, size, sha256) VALUES ('source-1', 'up-1', 'SECRET', 'SECRET', 1, 'SECRET');
		INSERT INTO _file_parts(upload, n, data) VALUES ('up-1', 0, 'SECRET');
		INSERT INTO chunks(id, source_id, position, content) VALUES ('chunk-1', 'source-1', 0, 'how to open the door');
		INSERT INTO contacts(id, name, email, tags) VALUES ('contact-1', 'Ada', 'ada@example.com', '["vip","uk"]');
		INSERT INTO contacts(id, name, metadata) VALUES ('contact-2', 'Blaise', '{"plan":"pro","seats":3}');
		INSERT INTO conversations(id, contact_id) VALUES ('conversation-1', 'contact-1');
		INSERT INTO messages(conversation_id, role, content) VALUES ('conversation-1', 'user', 'hello'), ('conversation-1', 'assistant', 'good day');
	`, "SECRET", hiddenText)
	script = strings.ReplaceAll(script, "TIME", "2026-01-02T03:04:05.000Z")
	if _, err := Write(t.Context(), db, func(tx *Tx) (any, error) { return nil, tx.script(script) }); err != nil {
		t.Fatal(err)
	}
	return db
}

// answerJSON returns the answer's columns and rows as a client receives them.
func answerJSON(t testing.TB, r Result) string {
	t.Helper()
	b, err := json.Marshal([]any{r.Columns, r.Rows})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// askSQL runs a statement that must succeed.
func askSQL(t testing.TB, db *DB, query string, params ...any) Result {
	t.Helper()
	r, err := db.SQL(t.Context(), query, Params{List: params}, sqlAdmin)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r
}

// valueOf returns what the program itself reads, without the sandbox.
func valueOf(t testing.TB, db *DB, query string) (value string) {
	t.Helper()
	_, err := Read(t.Context(), db, func(tx *Tx) (any, error) { return nil, tx.value(&value, query) })
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestSQLReads(t *testing.T) {
	db := openForSQL(t)
	for query, want := range map[string]string{
		"SELECT 1":              `[["1"],[[1]]]`,
		"select 'a', NULL, 1.5": `[["'a'","NULL","1.5"],[["a",null,1.5]]]`,
		"SELECT x'00ff10' AS b": `[["b"],[["AP8Q"]]]`,
		"SELECT x'' AS b":       `[["b"],[[""]]]`,
		"SELECT 9007199254740992 a, 9007199254740993 b, -9007199254740993 c": `[["a","b","c"],[[9007199254740992,` +
			`"9007199254740993","-9007199254740993"]]]`,
		"SELECT 9e999 a, -9e999 b, 0.0/0 c": `[["a","b","c"],` +
			`[["Infinity","-Infinity",null]]]`,
		"SELECT CAST(x'61ff62' AS TEXT) a":                                  `[["a"],[["a` + "\ufffd" + `b"]]]`,
		"SELECT 'a' || char(0) || 'b' a":                                    `[["a"],[["a\u0000b"]]]`,
		"SELECT 1 a, 2 a":                                                   `[["a","a"],[[1,2]]]`,
		"SELECT name FROM contacts WHERE 0":                                 `[["name"],[]]`,
		"SELECT name FROM contacts ORDER BY name DESC;":                     `[["name"],[["Blaise"],["Ada"]]]`,
		"-- names\n/* of * all */ SELECT count(*) n FROM contacts -- end":   `[["n"],[[2]]]`,
		";;SELECT 2;; -- x":                                                 `[["2"],[[2]]]`,
		"SELECT ';' AS \";\", [name] AS [a;b] FROM contacts LIMIT 1":        `[[";","a;b"],[[";","Ada"]]]`,
		"SELECT count(*) n FROM MAIN.contacts c":                            `[["n"],[[2]]]`,
		"WITH x(a) AS (SELECT 1 UNION ALL SELECT 2) SELECT sum(a) s FROM x": `[["s"],[[3]]]`,
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c LIMIT 3) " +
			"SELECT group_concat(n) g FROM c": `[["g"],[["1,2,3"]]]`,
		"WITH x AS MATERIALIZED (SELECT 1 a), y AS NOT MATERIALIZED (SELECT 2 b) " +
			"SELECT count(*) n FROM x, y": `[["n"],[[1]]]`,
		"SELECT j.value FROM contacts c, json_each(tags) j WHERE c.id = 'contact-1'": `[["value"],[["vip"],["uk"]]]`,
		"SELECT metadata->>'plan' p FROM contacts WHERE metadata->>'seats' > 2":      `[["p"],[["pro"]]]`,
		"SELECT m.role FROM messages m JOIN conversations v ON v.id = m.conversation_id " +
			"JOIN contacts c ON c.id = v.contact_id": `[["role"],[["user"],["assistant"]]]`,
		"SELECT role, row_number() OVER (ORDER BY id DESC) n " +
			"FROM messages ORDER BY id": `[["role","n"],[["user",2],["assistant",1]]]`,
		"SELECT role, count(*) n FROM messages " +
			"GROUP BY role HAVING n > 0 ORDER BY 1": `[["role","n"],[["assistant",1],["user",1]]]`,
		"SELECT content FROM chunks WHERE source_id " +
			"IN (SELECT id FROM sources)": `[["content"],[["how to open the door"]]]`,
		"SELECT json_group_array(name) a FROM contacts": `[["a"],[["[\"Ada\",\"Blaise\"]"]]]`,
		"SELECT name FROM contacts WHERE name LIKE 'a%' " +
			"OR name GLOB 'B*' ORDER BY 1": `[["name"],[["Ada"],["Blaise"]]]`,
		"SELECT strftime('%Y', '2026-01-02') y, replace('aXb', 'X', '-') r, trim(' a " +
			"') t, instr('abc', 'c') i": `[["y","r","t","i"],[["2026","a-b","a",3]]]`,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'contacts'": `[["name"],[["contacts"]]]`,
		"SELECT tbl_name FROM main.sqlite_master WHERE name = 'messages'":           `[["tbl_name"],[["messages"]]]`,
		"SELECT name FROM pragma_table_info('webhooks') WHERE pk":                   `[["name"],[["id"]]]`,
		"PRAGMA user_version": fmt.Sprintf(
			`[["user_version"],[[%d]]]`,
			fileVersion(),
		),
		"PRAGMA main.journal_mode":     `[["journal_mode"],[["wal"]]]`,
		"pragma integrity_check(5)":    `[["integrity_check"],[["ok"]]]`,
		"PRAGMA quick_check":           `[["quick_check"],[["ok"]]]`,
		"PRAGMA quick_check(contacts)": `[["quick_check"],[["ok"]]]`,
		"PRAGMA foreign_key_check":     `[["table","rowid","parent","fkid"],[]]`,
		"PRAGMA foreign_key_list('messages')": `[["id","seq","table","from","to",` +
			`"on_update","on_delete","match"],[[0,0,"conversations","conversation_id","id",` +
			`"NO ACTION","CASCADE","NONE"]]]`,
		"SELECT count(*) > 0 AS c FROM pragma_index_list('contacts')": `[["c"],[[1]]]`,
		"SELECT (SELECT count(*) FROM pragma_table_list WHERE name = 'tasks') n, count(*) > 20 AS c " +
			"FROM pragma_function_list": `[["n","c"],[[1,1]]]`,
		"SELECT 'as ''quoted''' q, \"name\" " +
			"FROM \"contacts\" WHERE `id` = 'contact-1'": `[["q","name"],[["as 'quoted'","Ada"]]]`,
		"SELECT max(length(content)) AS m FROM messages WHERE created_at > datetime('now', '-1 day')": `[["m"],[[8]]]`,
		"SELECT sum(n) s FROM (SELECT count(*) n FROM contacts UNION ALL SELECT count(*) FROM messages UNION " +
			"SELECT 100 EXCEPT SELECT 5)": `[["s"],[[102]]]`,
	} {
		for _, access := range []Access{sqlAdmin, sqlViewer} {
			r, err := db.SQL(t.Context(), query, Params{}, access)
			if err != nil {
				t.Errorf("%s: %v", query, err)
				continue
			}
			if got := answerJSON(t, r); got != want {
				t.Errorf("%s\n got %s\nwant %s", query, got, want)
			}
			if r.RowCount != len(r.Rows) ||
				r.Truncated ||
				r.Changes != 0 ||
				r.LastInsertID != nil ||
				r.Rows == nil ||
				r.Columns == nil {
				t.Errorf("%s: %+v", query, r)
			}
		}
	}
}

func TestSQLExplains(t *testing.T) {
	db := openForSQL(t)
	for _, access := range []Access{sqlAdmin, sqlViewer} {
		r, err := db.SQL(t.Context(), "EXPLAIN QUERY PLAN DELETE FROM contacts WHERE id = 'x'", Params{}, access)
		if err != nil ||
			len(r.Rows) == 0 ||
			r.Rows[0][3] != "SEARCH contacts USING INDEX sqlite_autoindex_contacts_1 (id=?)" {
			t.Errorf("query plan: %v, %v", r.Rows, err)
		}
		r, err = db.SQL(t.Context(), "EXPLAIN SELECT 1", Params{}, access)
		if err != nil || len(r.Rows) < 3 || r.Rows[0][1] != "Init" {
			t.Errorf("program: %v, %v", r.Rows, err)
		}
	}
	if got := valueOf(t, db, "SELECT count(*) FROM contacts"); got != "2" {
		t.Errorf("explaining changed something: %s contacts", got)
	}
}

func TestSQLRefusesWithoutTheRight(t *testing.T) {
	db := openForSQL(t)
	for query, want := range map[string]agent.Code{
		"INSERT INTO contacts(name) VALUES ('x')":               agent.CodeForbidden,
		"WITH x AS (SELECT 1) DELETE FROM contacts":             agent.CodeForbidden,
		"REPLACE INTO contacts(name) VALUES ('x')":              agent.CodeForbidden,
		"/* SELECT */ UPDATE contacts SET name = ''":            agent.CodeForbidden,
		"PRAGMA user_version = 5":                               agent.CodeForbiddenOperation,
		"SELECT * FROM _keys":                                   agent.CodeForbiddenOperation,
		"DROP TABLE contacts":                                   agent.CodeForbiddenOperation,
		"EXPLAIN DROP TABLE contacts":                           agent.CodeForbiddenOperation,
		"WITH x AS (SELECT 1) VALUES (1)":                       agent.CodeForbiddenOperation,
		"SELECT * FROM contacts WHERE id = (SELECT 1 FROM nope": agent.CodeInvalidQuery,
	} {
		if _, err := db.SQL(t.Context(), query, Params{}, sqlViewer); agent.ErrorCode(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	if got := valueOf(t, db, "SELECT count(*) FROM contacts"); got != "2" {
		t.Errorf("contacts: %s", got)
	}
}

func TestSQLSaysWhatIsWrong(t *testing.T) {
	db := openForSQL(t)
	for query, want := range map[string]string{
		"":                                   "query holds no statement",
		" -- nothing\n/* at all":             "query holds no statement",
		";":                                  "query holds no statement",
		"SELECT 1; SELECT 2":                 "query contains more than one statement",
		"SELECT 1 ; x":                       "query contains more than one statement",
		"SELECT 1\x00":                       "query must not contain NUL characters",
		"SELECT '\xff'":                      "query must be UTF-8",
		"SELECT " + strings.Repeat(" ", 2e5): "query is longer than 200000 bytes",
		"SELEC 1":                            `near "SELEC": syntax error`,
		"(SELECT 1)":                         `near "(": syntax error`,
		"'SELECT' 1":                         `near "'SELECT'": syntax error`,
		"SELECT 1 +":                         "incomplete input",
		"WITH":                               "incomplete input",
		"SELECT 1 FROM":                      "incomplete input",
		"SELECT 'a":                          `unrecognized token: "'a"`,
		"SELECT FROM contacts":               `near "FROM": syntax error`,
		"SELECT * FROM nope":                 "no such table: nope",
		"SELECT nope FROM contacts":          "no such column: nope",
		`SELECT "nope" FROM contacts`: `no such column: "nope" - should this be a string ` +
			`literal in single-quotes?`,
		"SELECT nope(1)": "no such function: nope",
		"SELECT " + strings.Repeat("1,", 200) + "1": "too many columns in result set",
	} {
		_, err := db.SQL(t.Context(), query, Params{}, sqlAdmin)
		var e *agent.Error
		if !errors.As(err, &e) || e.Code != agent.CodeInvalidQuery || e.Message != want {
			t.Errorf("%.60q: %v, want %s", query, err, want)
		}
	}
	_, err := db.SQL(t.Context(), "SELECT 'ä', wrong FROM contacts", Params{}, sqlAdmin)
	if e := new(agent.Error); !errors.As(err, &e) || e.Details["offset"] != 12 {
		t.Errorf("position of the error: %v", err)
	}
}

// What fails while a statement runs is EXECUTION_ERROR with SQLite's message, and the
// constraint that was violated.
func TestSQLFailsWhileItRuns(t *testing.T) {
	db := openForSQL(t)
	table := agent.Table{
		Name: "stock",
		Columns: []agent.TableColumn{
			{Name: "sku", Type: agent.ColumnText, Unique: true},
			{Name: "n", Type: agent.ColumnNumber},
		},
	}
	if _, err := db.CreateTable(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL(t.Context(), "INSERT INTO data_stock(sku, n) VALUES ('a', 1)", Params{}, sqlAdmin); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"SELECT json('{')":                   "malformed JSON",
		"SELECT abs(-9223372036854775807-1)": "integer overflow",
		"INSERT INTO contacts(name) VALUES (NULL)": "NOT NULL " +
			"constraint failed: contacts.name",
		"INSERT INTO contacts(id, name) " +
			"VALUES ('contact-1', 'x')": "UNIQUE constraint failed: contacts.id",
		"INSERT INTO contacts(name, email) " +
			"VALUES ('x', ' ADA@example.com')": "UNIQUE constraint failed: index 'contacts_email'",
		"INSERT INTO contacts(name, tags) VALUES ('x', '{}')": "CHECK constraint " +
			"failed: json_valid(tags) AND json_type(tags) = 'array'",
		"INSERT INTO messages(conversation_id, role, content) " +
			"VALUES ('nope', 'user', 'x')": "FOREIGN KEY constraint failed",
		"INSERT INTO messages(id, conversation_id, role, content) VALUES ('a', 'b', 'c', '')": "datatype mismatch",
		"SELECT sum(n) FROM (SELECT 9223372036854775807 AS n UNION ALL SELECT 1)":             "integer overflow",
		"UPDATE contacts SET name = NULL": "NOT NULL " +
			"constraint failed: contacts.name",
		"INSERT INTO " +
			"data_stock(sku, n) VALUES ('a', 2)": "UNIQUE constraint failed: data_stock.sku",
		"SELECT * FROM json_each('[')":   "malformed JSON",
		"SELECT json_extract('{}', 'x')": "bad JSON path: 'x'",
	} {
		_, err := db.SQL(t.Context(), query, Params{}, sqlAdmin)
		var e *agent.Error
		if !errors.As(err, &e) || e.Code != agent.CodeExecution || e.Message != want {
			t.Errorf("%.60q: %v, want %s", query, err, want)
			continue
		}
		_, name, _ := strings.Cut(want, "constraint failed: ")
		if got, _ := e.Details["constraint"].(string); got != name {
			t.Errorf("%.60q: constraint %q, want %q", query, got, name)
		}
	}
	if r, err := db.SQL(t.Context(), "SELECT 1 / 0", Params{}, sqlAdmin); err != nil || r.Rows[0][0] != nil {
		t.Errorf("division by zero: %v, %v", r.Rows, err)
	}
	_, err := db.SQL(t.Context(), "UPDATE tools SET config = ?; SELECT 1", Params{}, sqlAdmin)
	wantCode(t, err, agent.CodeInvalidQuery)
}

func TestSQLParams(t *testing.T) {
	db := openForSQL(t)
	for _, c := range []struct{ query, params, want string }{
		{"SELECT ?, ?, ?, ?, ?", `[1, "a", null, true, false]`, `[1,"a",null,1,0]`},
		{"SELECT typeof(?), typeof(?), typeof(?)", `[1.0, 9007199254740993, 1e2]`, `["real","integer","real"]`},
		{"SELECT ?, typeof(?)", `[9223372036854775807, 9223372036854775808]`, `["9223372036854775807","real"]`},
		{"SELECT ?2 || ?1", `["a", "b"]`, `["ba"]`},
		{"SELECT ?3", `[1, 2, 3]`, `[3]`},
		{"SELECT :a, @b, $c, :a", `{"a": 1, ":b": 2, "$c": "x"}`, ``},
		{"SELECT :a, @b, $c, :a", `{"a": 1, "@b": 2, "$c": "x"}`, `[1,2,"x",1]`},
		{"SELECT :_x1, $é", `{"_x1": "u", "é": 2}`, `["u",2]`},
		{"SELECT :a", `["listed"]`, `["listed"]`},
		{"SELECT 1", `null`, `[1]`},
		{"SELECT 1", `{}`, `[1]`},
		{"SELECT '?' || ? -- ?", `["!"]`, `["?!"]`},
	} {
		var p Params
		if err := json.Unmarshal([]byte(c.params), &p); err != nil {
			t.Fatal(err)
		}
		r, err := db.SQL(t.Context(), c.query, p, sqlAdmin)
		if err != nil {
			if c.want != "" {
				t.Errorf("%s %s: %v", c.query, c.params, err)
			}
			continue
		}
		if b, _ := json.Marshal(r.Rows[0]); string(b) != c.want && c.want != "" {
			t.Errorf("%s %s: got %s, want %s", c.query, c.params, b, c.want)
		}
	}
	r, err := db.SQL(
		t.Context(),
		"SELECT ?, typeof(?), typeof(?), typeof(?)",
		Params{List: []any{int64(1) << 60, 2.0, 2.5, 3}},
		sqlAdmin,
	)
	if err != nil || fmt.Sprint(r.Rows[0]) != "[1152921504606846976 integer real integer]" {
		t.Errorf("values from Go: %v, %v", r.Rows, err)
	}
}

func TestSQLRefusesParams(t *testing.T) {
	db := openForSQL(t)
	for _, c := range []struct{ query, params, want string }{
		{"SELECT ?", `[]`, "the statement takes 1 parameters, but params has 0"},
		{"SELECT ?", `null`, "the statement takes 1 parameters, but params has 0"},
		{"SELECT 1", `[1]`, "the statement takes 0 parameters, but params has 1"},
		{"SELECT ?4", `[1,2]`, "the statement takes 4 parameters, but params has 2"},
		{"SELECT :a, :b", `{"a": 1}`, "params lacks :b"},
		{"SELECT :a", `{"a": 1, "c": 2}`, "the statement has no parameter c"},
		{"SELECT ?", `{"a": 1}`, "parameter 1 of the statement has no name, but params is an object"},
		{"SELECT ?1", `{"1": 1}`, "parameter 1 of the statement has no name, but params is an object"},
		{"SELECT ?, ?", `[1, {"a": 1}]`, "params[1] must be text, a number, true, false or null"},
		{"SELECT ?", `[[1]]`, "params[0] must be text, a number, true, false or null"},
		{"SELECT :a", `{"a": [1]}`, "params.a must be text, a number, true, false or null"},
		{"SELECT ?", `["a\u0000b"]`, "params[0] must not contain NUL characters"},
		{"SELECT ?", `[1e999]`, "params[0] is not a number that can be stored"},
	} {
		var p Params
		if err := json.Unmarshal([]byte(c.params), &p); err != nil {
			t.Fatal(err)
		}
		_, err := db.SQL(t.Context(), c.query, p, sqlAdmin)
		var e *agent.Error
		if !errors.As(err, &e) || e.Code != agent.CodeInvalidQuery || e.Message != c.want {
			t.Errorf("%s %s: %v, want %s", c.query, c.params, err, c.want)
		}
	}
	for _, bad := range []string{`"x"`, `[1`, `{"a"`, `5`} {
		if err := new(Params).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("params %s were accepted", bad)
		}
	}
	for _, same := range []string{`[]`, `[1,"a",null,1.50]`, `{"a":1}`, `{}`} {
		var p Params
		if err := json.Unmarshal([]byte(same), &p); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(p); err != nil || string(b) != same {
			t.Errorf("params %s were encoded as %s, %v", same, b, err)
		}
	}
}

func TestSQLTruncates(t *testing.T) {
	db := openForSQL(t)
	const count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c LIMIT ?) SELECT n FROM c"
	for n, want := range map[int]int{999: 999, 1000: 1000, 1001: 1000} {
		if r := askSQL(t, db, count, n); r.RowCount != want || len(r.Rows) != want || r.Truncated != (n > want) {
			t.Errorf("%d rows: got %d, truncated %v", n, r.RowCount, r.Truncated)
		}
	}
	r := askSQL(
		t,
		db,
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c LIMIT 40) SELECT n, hex(zeroblob(500000)) FROM c",
	)
	if b, _ := json.Marshal(r); !r.Truncated || len(r.Rows) != 16 || len(b) > 16<<20 {
		t.Errorf("large rows: %d rows, truncated %v, %d bytes", len(r.Rows), r.Truncated, len(b))
	}
	limits := sqlsandbox.DefaultLimits
	limits.Bytes = 100
	r, err := db.sql(t.Context(), "SELECT hex(zeroblob(200))", Params{}, sqlViewer, limits)
	if err != nil || !r.Truncated || len(r.Rows) != 0 {
		t.Errorf("one row too large: %+v, %v", r, err)
	}
	r = askSQL(
		t,
		db,
		"INSERT INTO contacts(name) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c LIMIT 1500) "+
			"SELECT n FROM c RETURNING name",
	)
	if !r.Truncated || r.RowCount != 1000 || r.Changes != 1500 {
		t.Errorf("insert returning: %d rows, %d changes, truncated %v", r.RowCount, r.Changes, r.Truncated)
	}
	if got := valueOf(t, db, "SELECT count(*) FROM contacts"); got != "1502" {
		t.Errorf("contacts after a truncated answer: %s", got)
	}
}

func TestSQLSchema(t *testing.T) {
	db := openForSQL(t)
	tables, err := db.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, table := range tables {
		names = append(names, table.Name)
		if len(table.Columns) == 0 {
			t.Errorf("%s has no columns", table.Name)
		}
		r := askSQL(t, db, "SELECT * FROM "+table.Name+" LIMIT 0")
		var columns []string
		for _, c := range table.Columns {
			columns = append(columns, c.Name)
		}
		if !slices.Equal(columns, r.Columns) {
			t.Errorf("%s: the schema has %v, SELECT %v", table.Name, columns, r.Columns)
		}
	}
	if !slices.IsSorted(names) ||
		!slices.Contains(names, "contacts") ||
		slices.ContainsFunc(names, func(name string) bool { return name[0] == '_' }) {
		t.Errorf("tables: %v", names)
	}
	i := slices.Index(names, "executions")
	want := []Column{
		{"id", "TEXT", false, true, "Its id; ids sort by time."},
		{"workflow_id", "TEXT", false, false, "The workflow."},
		{"version", "INTEGER", false, false, "The version of the workflow that it runs."},
		{"status", "TEXT", false, false, "queued, running, complete, errored or terminated."},
	}
	if !slices.Equal(tables[i].Columns[:4], want) {
		t.Errorf("executions: %+v", tables[i].Columns)
	}
	b, _ := json.Marshal(tables[slices.Index(names, "messages")].Columns[0])
	if string(b) != `{"name":"id","type":"INTEGER","nullable":false,"primary_key":true,"description":"Its id, `+
		`in the order of creation."}` {
		t.Errorf("a column in JSON: %s", b)
	}
}
