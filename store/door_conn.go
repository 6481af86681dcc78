package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// doorConn is a connection of the SQL door. It speaks to SQLite's C interface,
// as the driver's package lib carries it over, because database/sql will not
// do: the driver heeds a context only until a statement's first row, so one
// that never comes to its second could not be stopped.
// See https://www.sqlite.org/cintro.html. A doorConn is for one goroutine at
// a time.
type doorConn struct {
	tls   *libc.TLS
	db    uintptr
	out   uintptr // room for two pointers that SQLite returns by address
	guard doorGuard

	ctx      context.Context // of the client's statement that runs, else nil
	memory   int64           // bytes that it may still allocate
	starved  bool            // it wanted more
	temp     int64           // bytes that it may still write to temporary files
	doubtful bool            // a failure may have left something behind: close it
}

// doorConns finds a connection in a callback by the TLS it runs on.
var doorConns sync.Map // *libc.TLS -> *doorConn

func connOf(tls *libc.TLS) *doorConn {
	c, _ := doorConns.Load(tls)
	d, _ := c.(*doorConn)
	return d
}

// late tells whether the client's statement has to stop.
func (c *doorConn) late() bool { return c.ctx != nil && c.ctx.Err() != nil }

// doorError is a failure that SQLite reports.
type doorError struct {
	code   int
	text   string
	offset int // in bytes of the statement, -1 when it is about none
}

func (e *doorError) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// Code is SQLite's extended result code.
func (e *doorError) Code() int { return e.code }

func (c *doorConn) fail(rc int32) error {
	return &doorError{
		code:   int(rc),
		text:   libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db)),
		offset: int(lib.Xsqlite3_error_offset(c.tls, c.db)),
	}
}

// openDoor opens a connection of the door to an agent's file, which is open
// otherwise too. What is not allowed by its guard cannot be prepared on it.
func openDoor(path string, write bool) (*doorConn, error) {
	if err := errors.Join(errMemory, registerDoorVFS()); err != nil {
		return nil, err
	}
	c := &doorConn{tls: libc.NewTLS()}
	if err := c.open(path, write); err != nil {
		return nil, errors.Join(fmt.Errorf("open the SQL door: %w", err), c.close())
	}
	return c, nil
}

func (c *doorConn) open(path string, write bool) error {
	flags, pragmas := int32(lib.SQLITE_OPEN_READONLY), readerPragmas
	if write {
		flags, pragmas = lib.SQLITE_OPEN_READWRITE, writerPragmas
	}
	if err := c.connect(path, flags); err != nil {
		return err
	}
	if err := c.setUp(append(slices.Clone(pragmas), "temp_store(FILE)")); err != nil {
		return err
	}
	return c.guard.load(c)
}

// connect opens the database of this name and reads nothing of it yet.
func (c *doorConn) connect(name string, flags int32) error {
	doorConns.Store(c.tls, c)
	if c.out = libc.Xmalloc(c.tls, 2*16); c.out == 0 {
		return errors.New("out of memory")
	}
	path, err := libc.CString(name)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, path)
	vfs, err := libc.CString(doorVFS)
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

// doorSwitches are settings of a connection that SQL cannot change, see
// https://www.sqlite.org/c3ref/c_dbconfig_defensive.html.
var doorSwitches = []struct{ name, on int32 }{
	{lib.SQLITE_DBCONFIG_DEFENSIVE, 1},
	{lib.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	{lib.SQLITE_DBCONFIG_DQS_DML, 0}, // "x" is a name and never a string, so a slip is an error
	{lib.SQLITE_DBCONFIG_DQS_DDL, 0},
	{lib.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
	{lib.SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, 0},
	{lib.SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, 0},
}

// doorBounds are run-time limits, see https://www.sqlite.org/c3ref/c_limit_attached.html.
var doorBounds = []struct{ name, value int32 }{
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

func (c *doorConn) setUp(pragmas []string) error {
	lib.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	lib.Xsqlite3_busy_timeout(c.tls, c.db, 10_000)
	lib.Xsqlite3_progress_handler(c.tls, c.db, clockEvery, pointerTo[func(*libc.TLS, uintptr) int32](doorClock), 0)
	if rc := lib.Xsqlite3_set_authorizer(c.tls, c.db, pointerTo[authorizerFunc](doorAuthorizer), 0); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	args := libc.Xmalloc(c.tls, 2*16)
	if args == 0 {
		return errors.New("out of memory")
	}
	defer libc.Xfree(c.tls, args)
	for _, s := range doorSwitches {
		if rc := lib.Xsqlite3_db_config(c.tls, c.db, s.name, libc.VaList(args, s.on, uintptr(0))); rc != lib.SQLITE_OK {
			return c.fail(rc)
		}
	}
	for _, b := range doorBounds {
		lib.Xsqlite3_limit(c.tls, c.db, b.name, b.value)
	}
	c.boundValues(longestValue)
	for _, p := range pragmas {
		if _, err := c.own("PRAGMA " + p); err != nil {
			return err
		}
	}
	return nil
}

// boundValues sets how long a value may be, in bytes, and returns how long it
// could be before; -1 sets nothing.
func (c *doorConn) boundValues(n int) int {
	return int(lib.Xsqlite3_limit(c.tls, c.db, lib.SQLITE_LIMIT_LENGTH, int32(n)))
}

func (c *doorConn) close() error {
	var err error
	if rc := lib.Xsqlite3_close_v2(c.tls, c.db); rc != lib.SQLITE_OK {
		err = fmt.Errorf("close the SQL door: SQLite code %d", rc)
	}
	libc.Xfree(c.tls, c.out)
	doorConns.Delete(c.tls)
	c.tls.Close()
	return err
}

// doorClock stops a statement whose time is up, and one that was refused
// memory: some aggregates keep that to themselves until their last row.
func doorClock(tls *libc.TLS, _ uintptr) int32 {
	if c := connOf(tls); c != nil && c.ctx != nil && (c.starved || c.late()) {
		return 1
	}
	return 0
}

type authorizerFunc = func(tls *libc.TLS, _ uintptr, action int32, a, b, database, context uintptr) int32

// doorAuthorizer asks the connection's guard, and refuses without one.
func doorAuthorizer(tls *libc.TLS, _ uintptr, action int32, a, b, database, context uintptr) int32 {
	c := connOf(tls)
	if c != nil && c.guard.allows(action, libc.GoString(a), libc.GoString(b), libc.GoString(database), libc.GoString(context)) {
		return lib.SQLITE_OK
	}
	return lib.SQLITE_DENY
}

// own runs a statement of the program's own and returns all of its rows.
func (c *doorConn) own(query string, args ...any) ([][]any, error) {
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
