package sqlite

import (
	"testing"

	lib "modernc.org/sqlite/lib"
)

// TestStatementsAreCompiledOnce checks that no value bound to a cached statement makes
// SQLite compile it again.
func TestStatementsAreCompiledOnce(t *testing.T) {
	c, err := Open(Source{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Script("CREATE TABLE t (a INTEGER, b TEXT); CREATE INDEX ofB ON t(b) WHERE a = 7"); err != nil {
		t.Fatal(err)
	}
	for query, values := range map[string][]any{
		"SELECT b FROM t WHERE b LIKE ?":          {"x%", "%y", "z"},
		"SELECT b FROM t WHERE a = ? AND b = 'x'": {0, 7, 1, 8},
		"SELECT b FROM t LIMIT ?":                 {1, 50, 0},
	} {
		for _, value := range values {
			if _, err := c.Exec(query, value); err != nil {
				t.Fatal(err)
			}
		}
		if n := lib.Xsqlite3_stmt_status(c.tls, c.cached[query].p, lib.SQLITE_STMTSTATUS_REPREPARE, 0); n != 0 {
			t.Errorf("%s was compiled again %d times", query, n)
		}
	}
}
