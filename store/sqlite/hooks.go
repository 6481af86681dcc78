package sqlite

import (
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Authorizer reports whether an action is allowed; see
// https://www.sqlite.org/c3ref/set_authorizer.html. inside is the trigger, view or
// subquery that it comes from.
type Authorizer func(action int32, a, b, database, inside string) bool

// Authorize makes the connection call fn for each action when statements are
// compiled.
func (c *Conn) Authorize(fn Authorizer) error {
	c.authorizer = fn
	if rc := lib.Xsqlite3_set_authorizer(
		c.tls,
		c.db,
		pointerTo[authorizerFunc](authorize),
		0,
	); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

type authorizerFunc = func(tls *libc.TLS, _ uintptr, action int32, a, b, database, inside uintptr) int32

func authorize(tls *libc.TLS, _ uintptr, action int32, a, b, database, inside uintptr) int32 {
	c := connOf(tls)
	if c != nil &&
		c.authorizer(
			action,
			libc.GoString(a),
			libc.GoString(b),
			libc.GoString(database),
			libc.GoString(inside),
		) {
		return lib.SQLITE_OK
	}
	return lib.SQLITE_DENY
}

// RowFunc is called for each row that changes, with its table, SQLite's operation,
// and its values by column: the previous ones, or the new ones of an inserted row.
type RowFunc func(table string, op int32, column func(i int) any)

// OnRow calls fn for each row that changes from now on, including through triggers
// and foreign keys; nil stops that.
func (c *Conn) OnRow(fn RowFunc) {
	c.onRow = fn
	var hook uintptr
	if fn != nil {
		hook = pointerTo[preupdateFunc](noteRow)
	}
	lib.Xsqlite3_preupdate_hook(c.tls, c.db, hook, 0)
}

// preupdateFunc is the callback of
// https://www.sqlite.org/c3ref/preupdate_blobwrite.html.
type preupdateFunc = func(tls *libc.TLS, _, db uintptr, op int32, database, table uintptr, oldRow, newRow int64)

func noteRow(tls *libc.TLS, _, db uintptr, op int32, _, table uintptr, _, _ int64) {
	conn := connOf(tls)
	if conn == nil || conn.onRow == nil {
		return
	}
	read := lib.Xsqlite3_preupdate_old
	if op == lib.SQLITE_INSERT {
		read = lib.Xsqlite3_preupdate_new
	}
	conn.onRow(libc.GoString(table), op, func(i int) any {
		if read(tls, db, int32(i), conn.out+16) != lib.SQLITE_OK {
			return nil
		}
		value := peek(conn.out + 16)
		if lib.Xsqlite3_value_type(tls, value) == lib.SQLITE_INTEGER {
			return lib.Xsqlite3_value_int64(tls, value)
		}
		return libc.GoString(lib.Xsqlite3_value_text(tls, value))
	})
}

// OnRollback calls fn whenever a transaction is rolled back, including by SQLite
// itself, but not for a savepoint.
func (c *Conn) OnRollback(fn func()) {
	c.onRollback = fn
	lib.Xsqlite3_rollback_hook(c.tls, c.db, pointerTo[rollbackFunc](noteRollback), 0)
}

type rollbackFunc = func(tls *libc.TLS, _ uintptr)

func noteRollback(tls *libc.TLS, _ uintptr) {
	if c := connOf(tls); c != nil {
		c.onRollback()
	}
}

// functions are those made by NewFunction, in the order of their numbers.
var functions struct {
	mu   sync.Mutex
	list []*Function // guarded by mu
}

// Function is a function of one text that can be called in SQL.
type Function struct {
	name   string
	number uintptr
	fn     func(string) string
}

// NewFunction defines a function, which Register then adds to connections. It must
// be deterministic.
func NewFunction(name string, fn func(string) string) *Function {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	f := &Function{
		name:   name,
		number: uintptr(len(functions.list)),
		fn:     fn,
	}
	functions.list = append(functions.list, f)
	return f
}

// Register makes a function available in the connection's SQL.
func (c *Conn) Register(f *Function) error {
	name, err := libc.CString(f.name)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	const flags = lib.SQLITE_UTF8 | lib.SQLITE_DETERMINISTIC
	if rc := lib.Xsqlite3_create_function_v2(
		c.tls, c.db, name, 1, flags, f.number, pointerTo[functionFunc](callFunction), 0, 0, 0,
	); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

type functionFunc = func(tls *libc.TLS, ctx uintptr, n int32, args uintptr)

func callFunction(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	functions.mu.Lock()
	f := functions.list[lib.Xsqlite3_user_data(tls, ctx)]
	functions.mu.Unlock()
	value := peek(args)
	p := lib.Xsqlite3_value_text(tls, value)
	result := f.fn(string(view(p, int(lib.Xsqlite3_value_bytes(tls, value)))))
	copied, err := libc.CString(result)
	if err != nil {
		lib.Xsqlite3_result_error_nomem(tls, ctx)
		return
	}
	defer libc.Xfree(tls, copied)
	const transient = ^uintptr(0) // SQLITE_TRANSIENT
	lib.Xsqlite3_result_text(tls, ctx, copied, int32(len(result)), transient)
}
