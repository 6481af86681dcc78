package sqlsandbox

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// RowFunc is told of a row that changes: its table, SQLite's operation, and by
// column its values, those that it had before unless it is inserted.
type RowFunc func(table string, op int32, column func(i int) any)

// OnRow has fn told of each row that the transaction changes from now on, also
// by way of triggers and foreign keys.
func (c *Conn) OnRow(fn RowFunc) {
	c.onRow = fn
	lib.Xsqlite3_preupdate_hook(c.tls, c.db, pointerTo[preupdateFunc](noteRow), 0)
}

// endOnRow ends what OnRow began.
func (c *Conn) endOnRow() {
	if c.onRow != nil {
		c.onRow = nil
		lib.Xsqlite3_preupdate_hook(c.tls, c.db, 0, 0)
	}
}

// preupdateFunc is the callback of
// https://www.sqlite.org/c3ref/preupdate_blobwrite.html.
type preupdateFunc = func(tls *libc.TLS, _, db uintptr, op int32, database, table uintptr, oldRow, newRow int64)

func noteRow(tls *libc.TLS, _, db uintptr, op int32, _, table uintptr, _, _ int64) {
	c := connOf(tls)
	if c == nil || c.onRow == nil {
		return
	}
	read := lib.Xsqlite3_preupdate_old
	if op == lib.SQLITE_INSERT {
		read = lib.Xsqlite3_preupdate_new
	}
	c.onRow(libc.GoString(table), op, func(i int) any {
		if read(tls, db, int32(i), c.out+16) != lib.SQLITE_OK {
			return nil
		}
		value := peek(c.out + 16)
		if lib.Xsqlite3_value_type(tls, value) == lib.SQLITE_INTEGER {
			return lib.Xsqlite3_value_int64(tls, value)
		}
		return libc.GoString(lib.Xsqlite3_value_text(tls, value))
	})
}
