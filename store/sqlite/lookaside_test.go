package sqlite

import (
	"testing"

	lib "modernc.org/sqlite/lib"
)

// A connection that is used much has lookaside memory for small allocations, also for a
// statement that began before.
func TestBusyConnectionHasLookaside(t *testing.T) {
	c := open(t, Source{})
	hits := func() int32 {
		lib.Xsqlite3_db_status(c.tls, c.db, lib.SQLITE_DBSTATUS_LOOKASIDE_HIT, c.out, c.out+16, 0)
		return *at[int32](c.out + 16)
	}
	exec(t, c, "CREATE TABLE t(a TEXT)")
	rows, err := c.Query(
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT hex(i) FROM n",
	)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	for i := range busyAfter - 10 {
		exec(t, c, "INSERT INTO t VALUES (?)", i)
	}
	if n := hits(); n != 0 {
		t.Errorf("%d allocations from lookaside before the connection is busy", n)
	}
	for i := range 20 {
		exec(t, c, "INSERT INTO t SELECT hex(?)", i)
	}
	if hits() == 0 {
		t.Error("no memory from lookaside once the connection is busy")
	}
	n := 1
	for rows.Next() {
		n++
	}
	if n != 3 || rows.Err() != nil {
		t.Errorf("%d rows, %v; want 3", n, rows.Err())
	}
}
