package store

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/sqlsandbox"
)

// sqlSeeds are statements of every kind, honest and not.
func sqlSeeds() []string {
	seeds := []string{
		"",
		";",
		"SELECT 1",
		"SELECT name FROM contacts WHERE id = ?",
		"/* a */ SELECT -- b\n 1;",
		"WITH x(a) AS (SELECT 1) SELECT * FROM x",
		"INSERT INTO contacts(name, tags) VALUES ('a', '[\"b\"]') RETURNING *",
		"UPDATE contacts SET notes = :n",
		"DELETE FROM sources",
		"PRAGMA table_info(contacts)",
		"EXPLAIN QUERY PLAN SELECT * FROM messages ORDER BY content",
		"SELECT 'it''s', \"name\", [name], `name` FROM contacts",
		"SELECT x'00', 0x1F, 1e-5, .5, 1_000",
		"SELECT $a::b(c), @x, #1, ?7",
		"SELECT \ufeff1",
		"SELECT 1/**//*/ ; */",
		"SELECT metadata->>'$.a', tags -> 0 FROM contacts",
		"SELECT 'a' LIKE 'b' ESCAPE '\\'",
		"SELECT trim(name, 'a'), instr(name, ?), replace(name, name, name) FROM contacts",
		"SELECT * FROM json_tree('{\"a\":[1,2]}')",
	}
	seeds = append(seeds, sqlForbidden...)
	seeds = append(seeds, sqlNonsense...)
	for _, attack := range sqlAttacks {
		seeds = append(seeds, strings.ReplaceAll(attack, "{T}", "_keys"))
	}
	return seeds
}

// FuzzSQL runs statements: none may panic, show or change what is closed, be several
// statements to SQLite, or damage the file.
func FuzzSQL(f *testing.F) {
	for _, seed := range sqlSeeds() {
		f.Add(seed, `[]`)
	}
	f.Add("SELECT ?, ?", `[1, "a"]`)
	f.Add("INSERT INTO contacts(name, notes) VALUES (:a, $b)", `{"a": "x", "b": null}`)
	db := openForSQL(f)
	before := closedState(f, db)
	limits := sqlsandbox.Limits{Time: 100 * time.Millisecond, Rows: 20, Bytes: 1 << 16, Memory: 4 << 20, Temp: 4 << 20}
	f.Fuzz(func(t *testing.T, query, params string) {
		var p Params
		if json.Unmarshal([]byte(params), &p) != nil {
			return
		}
		r, err := db.sql(t.Context(), query, p, sqlAdmin, limits)
		answer, jsonErr := json.Marshal(r)
		if jsonErr != nil {
			t.Fatalf("%q: %v", query, jsonErr)
		}
		if strings.Contains(string(answer), hiddenText) && !strings.Contains(query+params, hiddenText) {
			t.Fatalf("%q shows what is hidden: %s", query, answer)
		}
		var e *agent.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%q: %v", query, err)
		}
		if e != nil && e.Message == "query contains more than one statement" && e.Err != nil {
			t.Fatalf("%q is several statements to SQLite only", query)
		}
		if r.Changes == 0 {
			return
		}
		if after := closedState(t, db); after != before {
			t.Fatalf("%q changed\n%s\nto\n%s", query, before, after)
		}
		if got := askSQL(t, db, "PRAGMA quick_check").Rows[0][0]; got != "ok" {
			t.Fatalf("%q left the file broken: %v", query, got)
		}
		for _, table := range []string{"contacts", "conversations", "tasks", "schedules", "workflows"} {
			askSQL(t, db, "DELETE FROM "+table)
		}
	})
}
