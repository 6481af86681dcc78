package sqlsandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Conn is a connection of the sandbox to a file. It speaks to SQLite's C interface,
// as the driver's package lib carries it over, because database/sql will not
// do: the driver heeds a context only until a statement's first row, so one
// that never comes to its second could not be stopped.
// See https://www.sqlite.org/cintro.html. A Conn is for one goroutine at
// a time.
type Conn struct {
	tls   *libc.TLS
	db    uintptr
	out   uintptr // room for two pointers that SQLite returns by address
	guard guard

	ctx      context.Context // of the client's statement that runs, else nil
	memory   int64           // bytes that it may still allocate
	starved  bool            // it wanted more
	temp     int64           // bytes that it may still write to temporary files
	doubtful bool            // a failure may have left something behind: close it
	onRow    RowFunc         // see OnRow; nil for nobody
}

// conns finds a connection in a callback by the TLS it runs on.
var conns sync.Map // *libc.TLS -> *Conn

func connOf(tls *libc.TLS) *Conn {
	c, _ := conns.Load(tls)
	d, _ := c.(*Conn)
	return d
}

// late reports whether the client's statement has to stop.
func (c *Conn) late() bool { return c.ctx != nil && c.ctx.Err() != nil }

// sqliteError is a failure that SQLite reports.
type sqliteError struct {
	code   int
	text   string
	offset int // in bytes of the statement, -1 when it is about none
}

func (e *sqliteError) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// Code is SQLite's extended result code.
func (e *sqliteError) Code() int { return e.code }

func (c *Conn) fail(rc int32) error {
	return &sqliteError{
		code:   int(rc),
		text:   libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db)),
		offset: int(lib.Xsqlite3_error_offset(c.tls, c.db)),
	}
}

// openConn opens a connection to the database of this name. What is not allowed
// by its guard cannot be prepared on it: everything, unless Run or Trusted runs.
func openConn(name string, flags int32, pragmas []string) (*Conn, error) {
	if err := errors.Join(errMemory, registerVFS()); err != nil {
		return nil, err
	}
	c := &Conn{tls: libc.NewTLS()}
	err := c.connect(name, flags)
	if err == nil {
		err = c.setUp(pragmas)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a connection of the SQL sandbox: %w", err), c.close())
	}
	return c, nil
}

// connect opens the database of this name and reads nothing of it yet.
func (c *Conn) connect(name string, flags int32) error {
	conns.Store(c.tls, c)
	if c.out = libc.Xmalloc(c.tls, 2*16); c.out == 0 {
		return errors.New("out of memory")
	}
	path, err := libc.CString(name)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, path)
	vfs, err := libc.CString(vfsName)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, vfs)
	rc := lib.Xsqlite3_open_v2(c.tls, path, c.out, flags|lib.SQLITE_OPEN_NOMUTEX, vfs)
	if c.db = peek(c.out); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

// switches are settings of a connection that SQL cannot change, see
// https://www.sqlite.org/c3ref/c_dbconfig_defensive.html.
var switches = []struct{ name, on int32 }{
	{lib.SQLITE_DBCONFIG_DEFENSIVE, 1},
	{lib.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	{lib.SQLITE_DBCONFIG_DQS_DML, 0}, // "x" is a name and never a string, so a slip is an error
	{lib.SQLITE_DBCONFIG_DQS_DDL, 0},
	{lib.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
	{lib.SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, 0},
	{lib.SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, 0},
}

// bounds are run-time limits, see https://www.sqlite.org/c3ref/c_limit_attached.html.
var bounds = []struct{ name, value int32 }{
	{lib.SQLITE_LIMIT_SQL_LENGTH, maxQuery},
	{lib.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, maxPattern},
	{lib.SQLITE_LIMIT_COLUMN, 200},
	{lib.SQLITE_LIMIT_FUNCTION_ARG, 100},
	{lib.SQLITE_LIMIT_TRIGGER_DEPTH, 20},
	{lib.SQLITE_LIMIT_VDBE_OP, 1_000_000},
	{lib.SQLITE_LIMIT_ATTACHED, 0},
	{lib.SQLITE_LIMIT_WORKER_THREADS, 0},
}

// clockEvery is how many steps of its program SQLite runs before it looks at
// the clock: some 10 microseconds, of which looking costs under a hundredth.
const clockEvery = 500

func (c *Conn) setUp(pragmas []string) error {
	lib.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	lib.Xsqlite3_busy_timeout(c.tls, c.db, 10_000)
	lib.Xsqlite3_progress_handler(c.tls, c.db, clockEvery, pointerTo[func(*libc.TLS, uintptr) int32](checkClock), 0)
	if rc := lib.Xsqlite3_set_authorizer(c.tls, c.db, pointerTo[authorizerFunc](authorize), 0); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	args := libc.Xmalloc(c.tls, 2*16)
	if args == 0 {
		return errors.New("out of memory")
	}
	defer libc.Xfree(c.tls, args)
	for _, s := range switches {
		if rc := lib.Xsqlite3_db_config(c.tls, c.db, s.name, libc.VaList(args, s.on, uintptr(0))); rc != lib.SQLITE_OK {
			return c.fail(rc)
		}
	}
	for _, b := range bounds {
		lib.Xsqlite3_limit(c.tls, c.db, b.name, b.value)
	}
	c.boundValues(longestValue)
	for _, p := range pragmas {
		if _, err := c.Trusted("PRAGMA " + p); err != nil {
			return err
		}
	}
	return nil
}

// boundValues sets how long a value may be, in bytes, and returns how long it
// could be before; -1 sets nothing.
func (c *Conn) boundValues(n int) int {
	return int(lib.Xsqlite3_limit(c.tls, c.db, lib.SQLITE_LIMIT_LENGTH, int32(n)))
}

func (c *Conn) close() error {
	var err error
	if rc := lib.Xsqlite3_close_v2(c.tls, c.db); rc != lib.SQLITE_OK {
		err = fmt.Errorf("close a connection of the SQL sandbox: SQLite code %d", rc)
	}
	libc.Xfree(c.tls, c.out)
	conns.Delete(c.tls)
	c.tls.Close()
	return err
}

// checkClock stops a statement whose time is up, and one that was refused
// memory: some aggregates keep that to themselves until their last row.
func checkClock(tls *libc.TLS, _ uintptr) int32 {
	if c := connOf(tls); c != nil && c.ctx != nil && (c.starved || c.late()) {
		return 1
	}
	return 0
}

type authorizerFunc = func(tls *libc.TLS, _ uintptr, action int32, a, b, database, context uintptr) int32

// authorize asks the connection's guard, and refuses without one.
func authorize(tls *libc.TLS, _ uintptr, action int32, a, b, database, context uintptr) int32 {
	c := connOf(tls)
	if c != nil && c.guard.allows(action, libc.GoString(a), libc.GoString(b), libc.GoString(database), libc.GoString(context)) {
		return lib.SQLITE_OK
	}
	return lib.SQLITE_DENY
}

// Trusted runs a statement of the program's own and returns all of its rows.
func (c *Conn) Trusted(query string, args ...any) ([][]any, error) {
	c.guard.open = true
	defer func() { c.guard.open = false }()
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	defer s.finalize()
	for i, arg := range args {
		if err := s.bind(i+1, arg); err != nil {
			return nil, err
		}
	}
	var rows [][]any
	for {
		more, err := s.step()
		if err != nil || !more {
			return rows, err
		}
		row := make([]any, s.columns)
		for i := range row {
			row[i] = s.value(i)
		}
		rows = append(rows, row)
	}
}
