package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/sqlsandbox"
)

// endless yields 1, 2, 3, … forever as c(x).
const endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "

// bigText returns an expression for n bytes of text that is shorter than the text.
func bigText(n int, c string) string { return fmt.Sprintf("printf('%%.*c', %d, '%s')", n, c) }

// sqlBombs are statements that would use up time, memory or disk, with the detail of the
// error that stops them.
var sqlBombs = []struct{ want, query string }{
	// Time, with little else.
	{"limit_seconds", endless + "SELECT count(*) FROM c"},
	{"limit_seconds", endless + "SELECT x FROM c WHERE x < 0"},
	{"limit_seconds", "SELECT 1 UNION ALL SELECT count(*) FROM (" + endless + "SELECT x FROM c)"}, // after a first row
	{"limit_seconds", endless + "SELECT x FROM c WHERE x = 1 OR x < 0"},
	{"limit_seconds", endless + "SELECT group_concat(x) FROM c WHERE x % 1000 = 0"},
	{"limit_seconds", endless + "SELECT max(x) OVER (ORDER BY x ROWS 10 PRECEDING) FROM c WHERE x < 0"},
	{
		"limit_seconds",
		"SELECT count(*) FROM sqlite_schema a, sqlite_schema b, sqlite_schema c, sqlite_schema d, sqlite_schema e",
	},
	{
		"limit_seconds",
		"SELECT count(*) FROM pragma_function_list a, pragma_function_list b, pragma_function_list " +
			"c, pragma_function_list d",
	},
	{"limit_seconds", "SELECT count(*) FROM " + strings.Repeat("(SELECT 1 UNION ALL SELECT 2), ", 40) + "(SELECT 1)"},
	{
		"limit_seconds",
		"SELECT sum(a.value + b.value) FROM json_each('[" + strings.Repeat("1,", 20_000) + "1]') a, json_each('[" +
			strings.Repeat("1,", 20_000) + "1]') b",
	},
	{"limit_seconds", "UPDATE contacts SET notes = (" + endless + "SELECT count(*) FROM c)"},
	{"limit_seconds", "DELETE FROM contacts WHERE id IN (" + endless + "SELECT x FROM c WHERE x < 0)"},
	{"limit_seconds", "INSERT INTO tasks(title, start_time, end_time) " + endless + "SELECT x, '', '' FROM c"},
	// Temporary files: sorts, groups, distinct values, queues, windows, and rows that a
	// trigger makes an insert keep.
	{"limit_bytes", endless + "SELECT length(r) FROM (SELECT x || zeroblob(1000) r FROM c) ORDER BY r DESC"},
	{"limit_bytes", endless + "SELECT length(r) FROM (SELECT x || zeroblob(300000) r FROM c) ORDER BY r"},
	{"limit_bytes", endless + "SELECT DISTINCT x || zeroblob(10000) FROM c LIMIT 1 OFFSET 1000000"},
	{"limit_bytes", endless + "SELECT count(DISTINCT x || zeroblob(10000)) FROM c"},
	{"limit_bytes", endless + "SELECT max(y) OVER (ORDER BY x) FROM (SELECT x, x || zeroblob(1000) y FROM c)"},
	{
		"limit_bytes",
		"WITH RECURSIVE c(x, y) AS (SELECT 1, '' UNION SELECT x+1, x || zeroblob(10000) FROM c) SELECT count(*) FROM c",
	},
	{"limit_bytes", endless + "SELECT 1 WHERE 'a' IN (SELECT x || zeroblob(10000) FROM c)"},
	{"limit_bytes", "INSERT INTO contacts(name, notes) " + endless + "SELECT x, zeroblob(100000) || 'x' FROM c"},
	// Memory: many values at once, many caches, aggregates without a limit of their own.
	{"limit_bytes", "SELECT " + strings.Repeat("hex(zeroblob(100000)), ", 90) + "1"},
	{"limit_bytes", "SELECT " + strings.Repeat("randomblob(300000) || 'x', ", 90) + "1"},
	{"limit_bytes", endless + "SELECT " + strings.Repeat("count(DISTINCT x || zeroblob(1000)), ", 90) + "1 FROM c"},
	{"limit_bytes", endless + "SELECT json_group_array(x || zeroblob(1000)) FROM c"},
	{"limit_bytes", endless + "SELECT json_group_object(x, zeroblob(1000) || x) FROM c"},
	{"limit_bytes", "SELECT 1 IN (" + strings.Repeat("1,", 90_000) + "1)"},
	// A single value that is, or would be, too long.
	{"limit_bytes", "SELECT zeroblob(1000000000) || 'x'"},
	{"limit_bytes", "SELECT randomblob(2000000000)"},
	{"limit_bytes", "SELECT " + bigText(2_000_000_000, "a")},
	{"limit_bytes", "SELECT printf('%2000000000d', 1)"},
	{"limit_bytes", "SELECT replace(" + bigText(10_000, "a") + ", 'a', " + bigText(10_000, "a") + ")"},
	{
		"limit_bytes",
		"WITH RECURSIVE c(y) AS (SELECT 'a' UNION ALL SELECT y || y FROM c) SELECT length(y) FROM c WHERE y = 'b'",
	},
	{"limit_bytes", endless + "SELECT group_concat(zeroblob(100000) || x) FROM c"},
	// Calls that take time in proportion to the product of two lengths and cannot be
	// stopped.
	{"limit_bytes", "SELECT trim(" + bigText(100_000, "a") + ", " + bigText(100_000, "b") + " || 'a')"},
	{"limit_bytes", "SELECT \"rtrim\"(" + bigText(100_000, "a") + ", " + bigText(100_000, "b") + " || 'a')"},
	{"limit_bytes", "SELECT instr(" + bigText(1_000_000, "a") + ", " + bigText(500_000, "a") + " || 'b')"},
	{"limit_bytes", "SELECT replace(" + bigText(1_000_000, "a") + ", " + bigText(500_000, "a") + " || 'b', '')"},
	{"limit_bytes", "SELECT " + bigText(3_000_000, "a") + " LIKE '%' || " + bigText(900, "a") + " || 'b%'"},
	{"limit_bytes", "SELECT " + bigText(3_000_000, "a") + " NOT GLOB (" + bigText(900, "a") + ") || '*'"},
	{"limit_bytes", "SELECT unhex(" + bigText(100_000, "z") + ", " + bigText(100_000, "y") + " || 'z')"},
	{
		"limit_bytes",
		"SELECT json_patch('{' || " + bigText(500_000, " ") + " || '}', '{' || " + bigText(500_000, " ") + " || '}')",
	},
	{"limit_bytes", "SELECT " + strings.Repeat("upper(", 300) + bigText(1_000_000, "a") + strings.Repeat(")", 300)},
}

func TestSQLStopsBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	db := openForSQL(t)
	limits := sqlsandbox.DefaultLimits
	limits.Memory, limits.Temp = 4<<20, 8<<20
	for _, bomb := range sqlBombs {
		limits.Time = time.Minute
		if bomb.want == "limit_seconds" {
			limits.Time = 30 * time.Millisecond
		}
		_, err := db.sql(t.Context(), bomb.query, Params{}, sqlAdmin, limits)
		var e *agent.Error
		if !errors.As(err, &e) || e.Details[bomb.want] == nil {
			t.Errorf("%.150s: %v, want %s", bomb.query, err, bomb.want)
		}
		if code := agent.ErrorCode(err); code != agent.CodeExecution && code != agent.CodeInvalidQuery {
			t.Errorf("%.150s: %s", bomb.query, code)
		}
	}
	if r := askSQL(
		t,
		db,
		"SELECT (SELECT count(*) FROM tasks), (SELECT group_concat(name || notes) FROM contacts)",
	); fmt.Sprint(r.Rows) != "[[0 Ada,Blaise]]" {
		t.Errorf("what is left: %v", r.Rows)
	}
}

// TestSQLSurvivesDeepStatements checks that statements over which SQLite's parser and
// planner recurse or multiply end in an error or an answer.
func TestSQLSurvivesDeepStatements(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	db := openForSQL(t)
	doubled, crossed := "WITH t0 AS (SELECT 1 x)", "WITH t0 AS (SELECT 1 x)"
	for i := range 40 {
		doubled += fmt.Sprintf(", t%d AS (SELECT * FROM t%d UNION ALL SELECT * FROM t%d)", i+1, i, i)
		crossed += fmt.Sprintf(", t%d AS (SELECT * FROM t%d a, t%d b)", i+1, i, i)
	}
	for query, ok := range map[string]bool{
		"SELECT " + strings.Repeat("(", 90_000) + "1" + strings.Repeat(")", 90_000):              false,
		"SELECT " + strings.Repeat("abs(", 30_000) + "1" + strings.Repeat(")", 30_000):           false,
		"SELECT " + strings.Repeat("NOT ", 40_000) + "1":                                         false,
		"SELECT " + strings.Repeat("(SELECT ", 20_000) + "1" + strings.Repeat(")", 20_000):       false,
		"SELECT " + strings.Repeat("CASE WHEN ", 15_000) + "1":                                   false,
		"SELECT " + strings.Repeat("1+", 90_000) + "1":                                           false,
		"SELECT " + strings.Repeat("1+", 900) + "1":                                              true,
		strings.Repeat("SELECT 1 UNION ALL ", 600) + "SELECT 1":                                  false,
		strings.Repeat("SELECT 1 UNION ", 400) + "SELECT 1":                                      true,
		doubled + " SELECT count(*) FROM t40":                                                    false,
		crossed + " SELECT count(*) FROM t40":                                                    false,
		"SELECT " + strings.Repeat("x.*, ", 150) + "1 FROM contacts x":                           false,
		"SELECT 1 FROM contacts" + strings.Repeat(" NATURAL JOIN contacts", 70):                  false,
		"SELECT max(" + strings.Repeat("1,", 200) + "1)":                                         false,
		"INSERT INTO contacts(name) VALUES ('a')" + strings.Repeat(",('a')", 10_000):             true,
		"SELECT * FROM (VALUES (1)" + strings.Repeat(",(1)", 20_000) + ") LIMIT 1":               true,
		"WITH " + strings.Repeat("a AS (", 20_000) + "SELECT 1":                                  false,
		"SELECT json('" + strings.Repeat("[", 90_000) + strings.Repeat("]", 90_000) + "')":       false,
		"SELECT json('" + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "')":             true,
		"SELECT '" + strings.Repeat("a", 900) + "' LIKE '" + strings.Repeat("a%", 400) + "b'":    true,
		"SELECT '" + strings.Repeat("a", 900) + "' GLOB '" + strings.Repeat("[a-b]*", 150) + "'": true,
		"SELECT 'a' LIKE '" + strings.Repeat("a", 1001) + "'":                                    false,
		// without parameters
		"SELECT ?" + strings.Repeat(", ?", 100):                                                        false,
		"SELECT ?999999999":                                                                            false,
		"PRAGMA " + strings.Repeat("x", 100_000):                                                       false,
		"SELECT * FROM " + strings.Repeat("x", 100_000):                                                false,
		"SELECT 1 /* " + strings.Repeat("*", 100_000) + "/ -- " + strings.Repeat("-", 50_000):          true,
		"SELECT \"" + strings.Repeat("\"\"", 90_000) + "\"":                                            false,
		"SELECT " + strings.Repeat("1 a, ", 150) + "1":                                                 true,
		"EXPLAIN SELECT 1" + strings.Repeat(" UNION SELECT 1", 300):                                    true,
		"SELECT count(*) FROM contacts WHERE id IN ('a'" + strings.Repeat(",'abcdefgh'", 15_000) + ")": true,
	} {
		limits := sqlsandbox.DefaultLimits
		limits.Time = time.Minute
		_, err := db.sql(t.Context(), query, Params{}, sqlAdmin, limits)
		if ok && err != nil ||
			!ok &&
				agent.ErrorCode(err) != agent.CodeInvalidQuery &&
				agent.ErrorCode(err) != agent.CodeForbiddenOperation &&
				agent.ErrorCode(err) != agent.CodeExecution {
			t.Errorf("%.60s… (%d bytes): %v", query, len(query), err)
		}
		var e *agent.Error
		if errors.As(err, &e) && len(e.Message) > 700 {
			t.Errorf("%.60s…: a message of %d bytes", query, len(e.Message))
		}
	}
}

// TestSQLMemory checks that with the limits of a server the process grows by less than 50
// MB.
func TestSQLMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	db := openForSQL(t)
	askSQL(
		t,
		db,
		"INSERT INTO contacts(name, notes) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 25) "+
			"SELECT x, hex(zeroblob(500000)) FROM c",
	)
	for _, query := range []string{
		endless + "SELECT json_group_object(x, x) FROM c",
		endless + "SELECT " + strings.Repeat("count(DISTINCT x || zeroblob(1000)), ", 50) + "1 FROM c",
		endless + "SELECT length(r) FROM (SELECT x || zeroblob(1000000) r FROM c) ORDER BY r",
		"SELECT " + strings.Repeat("hex(zeroblob(100000)), ", 190) + "1",
		"SELECT 1 IN (" + strings.Repeat("1,", 95_000) + "1)",
		"SELECT notes FROM contacts",
		"SELECT notes FROM contacts ORDER BY notes || name",
		"SELECT json_group_array(notes) FROM contacts",
		"UPDATE contacts SET notes = notes || 'x'",
		"INSERT INTO contacts(name, notes) SELECT name, notes FROM contacts",
	} {
		limits := sqlsandbox.DefaultLimits
		limits.Time = 500 * time.Millisecond
		before, ok := resetPeak()
		_, err := db.sql(t.Context(), query, Params{}, sqlAdmin, limits)
		if code := agent.ErrorCode(err); err != nil && code != agent.CodeExecution && code != agent.CodeInvalidQuery {
			t.Errorf("%.80s: %v", query, err)
		}
		if grown := peakMemory() - before; ok && !raceEnabled && grown > 50<<20 {
			t.Errorf("%.80s: the process grew by %d MB", query, grown>>20)
		}
	}
}

// resetPeak resets the value of peakMemory and returns the memory in use now; ok is false
// where the system does not report it.
func resetPeak() (now int64, ok bool) {
	if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) != nil {
		return 0, false
	}
	return procStatus("VmRSS:"), true
}

// peakMemory returns the largest memory of the process since resetPeak, in bytes.
func peakMemory() int64 { return procStatus("VmHWM:") }

func procStatus(field string) (bytes int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), field)
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes << 10
}
