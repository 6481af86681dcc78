package store

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"satchel/agent"
)

// doorSeeds are statements of every kind, honest and not.
func doorSeeds() []string {
	seeds := []string{
		"", ";", "SELECT 1", "SELECT name FROM contacts WHERE id = ?", "/* a */ SELECT -- b\n 1;", "WITH x(a) AS (SELECT 1) SELECT * FROM x",
		"INSERT INTO contacts(name, tags) VALUES ('a', '[\"b\"]') RETURNING *", "UPDATE contacts SET notes = :n", "DELETE FROM sources", "PRAGMA table_info(contacts)",
		"EXPLAIN QUERY PLAN SELECT * FROM messages ORDER BY content", "SELECT 'it''s', \"name\", [name], `name` FROM contacts", "SELECT x'00', 0x1F, 1e-5, .5, 1_000",
		"SELECT $a::b(c), @x, #1, ?7", "SELECT \ufeff1", "SELECT 1/**//*/ ; */", "SELECT metadata->>'$.a', tags -> 0 FROM contacts", "SELECT 'a' LIKE 'b' ESCAPE '\\'",
		"SELECT trim(name, 'a'), instr(name, ?), replace(name, name, name) FROM contacts", "SELECT * FROM json_tree('{\"a\":[1,2]}')",
	}
	seeds = append(seeds, doorForbidden...)
	seeds = append(seeds, doorNonsense...)
	for _, attack := range doorAttacks {
		seeds = append(seeds, strings.ReplaceAll(attack, "{T}", "_keys"))
	}
	return seeds
}

func FuzzDoorStatement(f *testing.F) {
	for _, seed := range doorSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		end := 0
		for tokens := (tokenizer{text: query}); ; {
			tok, ok := tokens.next()
			if !ok {
				break
			}
			if tok.start < end || tok.end <= tok.start || tok.end > len(query) {
				t.Fatalf("token %+v behind %d of %d bytes", tok, end, len(query))
			}
			end = tok.end
			if tok.kind <= tokenString {
				unquote(query[tok.start:tok.end])
			}
		}
		s, err := parseStatement(query)
		if err != nil {
			if e := new(agent.Error); !errors.As(err, &e) || !utf8.ValidString(e.Message) && utf8.ValidString(query) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if !strings.Contains(query, s.text) || s.kind == "" || s.before > len(query) {
			t.Fatalf("%+v", s)
		}
		if limit, err := s.weight.valueLimit(1000); err == nil && (limit < shortestValue || limit > longestValue) {
			t.Fatalf("values of %d bytes", limit)
		}
	})
}

// FuzzDoor runs statements: none may panic, show or change what is closed, be
// more than one in SQLite's eyes, or leave the file broken.
func FuzzDoor(f *testing.F) {
	for _, seed := range doorSeeds() {
		f.Add(seed, `[]`)
	}
	f.Add("SELECT ?, ?", `[1, "a"]`)
	f.Add("INSERT INTO contacts(name, notes) VALUES (:a, $b)", `{"a": "x", "b": null}`)
	db := openForDoor(f)
	before := closedState(f, db)
	limits := doorLimits{time: 100 * time.Millisecond, rows: 20, bytes: 1 << 16, memory: 4 << 20, temp: 4 << 20}
	f.Fuzz(func(t *testing.T, query, params string) {
		var p Params
		if json.Unmarshal([]byte(params), &p) != nil {
			return
		}
		r, err := db.sql(t.Context(), query, p, doorAdmin, limits)
		answer, jsonErr := json.Marshal(r)
		if jsonErr != nil {
			t.Fatalf("%q: %v", query, jsonErr)
		}
		if strings.Contains(string(answer), doorSecret) && !strings.Contains(query+params, doorSecret) {
			t.Fatalf("%q shows what is hidden: %s", query, answer)
		}
		var e *agent.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%q: %v", query, err)
		}
		if e != nil && e.Message == moreStatements && e.Err != nil {
			t.Fatalf("%q is several statements to SQLite only", query)
		}
		if r.Changes == 0 {
			return
		}
		if after := closedState(t, db); after != before {
			t.Fatalf("%q changed\n%s\nto\n%s", query, before, after)
		}
		if got := askDoor(t, db, "PRAGMA quick_check").Rows[0][0]; got != "ok" {
			t.Fatalf("%q left the file broken: %v", query, got)
		}
		for _, table := range []string{"contacts", "conversations", "tasks", "schedules", "workflows"} {
			askDoor(t, db, "DELETE FROM "+table)
		}
	})
}
