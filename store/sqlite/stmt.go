package sqlite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// maxStatements limits the statements that a connection caches.
const maxStatements = 150

// Stmt is a compiled statement.
type Stmt struct {
	c       *Conn
	p       uintptr
	params  int
	columns int
	reads   bool // it changes nothing

	query string // key in the cache; empty: not cached
	mark  uint32 // what the authorizer noted, see Conn.Compiling
	inUse bool
	used  uint64 // when it was last used

	args  []argument // currently bound, reused
	texts buffer     // their bytes, which SQLite reads as long as they are bound
}

// statement returns the statement for a query: a cached one that is free, or a newly
// compiled one. Return it with release.
func (c *Conn) statement(query string) (*Stmt, error) {
	if s, ok := c.cached[query]; ok && !s.inUse {
		if err := s.check(); err != nil {
			return nil, err
		}
		c.countUse()
		s.used, s.inUse = c.uses, true
		c.Used |= s.mark
		return s, nil
	} else if ok { // its rows are being read
		return c.Prepare(query)
	}
	s, rest, err := c.compile(query, lib.SQLITE_PREPARE_PERSISTENT)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if s, err = s.single(query, rest); err != nil {
		return nil, err
	}
	c.dropOldest()
	c.countUse()
	s.query, s.used, s.inUse = query, c.uses, true
	c.cached[query] = s
	delete(c.uncached, s)
	c.Used |= s.mark
	return s, nil
}

// check refuses a statement that changes something on a read-only connection.
func (s *Stmt) check() error {
	if s.reads || !s.c.ReadOnly {
		return nil
	}
	return NewError(lib.SQLITE_READONLY, "attempt to write on a connection that only reads")
}

// dropOldest makes room for another statement in the cache.
func (c *Conn) dropOldest() {
	if len(c.cached) < maxStatements {
		return
	}
	var oldest *Stmt
	for _, s := range c.cached {
		if !s.inUse && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest != nil {
		oldest.Close()
	}
}

// Queries returns the texts of the cached statements.
func (c *Conn) Queries() []string {
	return slices.Collect(maps.Keys(c.cached))
}

// release returns a statement, which stays in the cache if it is cached.
func (s *Stmt) release() {
	if s.query == "" {
		s.Close()
		return
	}
	s.reset()
	s.inUse = false
}

// Prepare compiles a statement, which must be the only one in query. It is not
// cached: close it.
func (c *Conn) Prepare(query string) (*Stmt, error) {
	s, rest, err := c.compile(query, 0)
	if err != nil {
		return nil, err
	}
	if s, err = s.single(query, rest); err != nil {
		return nil, err
	}
	c.Used |= s.mark
	return s, nil
}

// MoreStatements is the error text for a query with more than one statement.
const MoreStatements = "query contains more than one statement"

// single returns the statement, or an error if there is none or it is followed by
// another.
func (s *Stmt) single(query string, rest int) (*Stmt, error) {
	if s != nil && strings.TrimSpace(query[rest:]) == "" {
		return s, nil
	}
	if s != nil {
		s.Close()
	}
	return nil, &Error{code: lib.SQLITE_ERROR, Text: MoreStatements, Offset: rest}
}

// retry reports whether a statement that failed with err should be tried again, and
// returns the error otherwise.
func (c *Conn) retry(err error) (bool, error) {
	if e, ok := errors.AsType[*Error](err); !ok || e.code != lib.SQLITE_AUTH || c.Refused == nil {
		return false, err
	}
	again, e := c.Refused()
	if e != nil {
		return false, e
	}
	return again, err
}

// compile compiles the first statement of a text and returns where it ends; s is nil
// for a text of only white space and comments.
func (c *Conn) compile(text string, flags uint32) (s *Stmt, rest int, err error) {
	for again := true; again; {
		s, rest, err = c.compileOnce(text, flags)
		again, err = c.retry(err)
	}
	return s, rest, err
}

func (c *Conn) compileOnce(text string, flags uint32) (stmt *Stmt, rest int, err error) {
	c.beginUse()
	defer c.endUse()
	address, err := c.sql.put(c.tls, text)
	if err != nil {
		return nil, 0, err
	}
	defer c.sql.shrink(c.tls)
	c.Compiling = 0
	tail := c.out + 16
	if rc := lib.Xsqlite3_prepare_v3(
		c.tls, c.db, address, int32(len(text)+1), flags, c.out, tail,
	); rc != lib.SQLITE_OK {
		return nil, 0, c.fail(rc)
	}
	rest = int(peek(tail) - address)
	handle := peek(c.out)
	if handle == 0 {
		return nil, rest, nil
	}
	stmt = &Stmt{
		c:       c,
		p:       handle,
		mark:    c.Compiling,
		reads:   lib.Xsqlite3_stmt_readonly(c.tls, handle) != 0,
		params:  int(lib.Xsqlite3_bind_parameter_count(c.tls, handle)),
		columns: int(lib.Xsqlite3_column_count(c.tls, handle)),
	}
	if err := stmt.check(); err != nil {
		stmt.finalize()
		return nil, 0, err
	}
	c.uncached[stmt] = true
	return stmt, rest, nil
}

// Close frees the statement; it may be called twice.
func (s *Stmt) Close() {
	if s.p == 0 {
		return
	}
	if s.query != "" {
		delete(s.c.cached, s.query)
	}
	delete(s.c.uncached, s)
	s.c.beginUse()
	defer s.c.endUse()
	s.finalize()
}

func (s *Stmt) finalize() {
	lib.Xsqlite3_finalize(s.c.tls, s.p) // returns the error of the last step again
	s.p = 0
	s.texts.free(s.c.tls)
}

// reset makes the statement ready for its next use.
func (s *Stmt) reset() {
	s.c.beginUse()
	defer s.c.endUse()
	lib.Xsqlite3_reset(s.c.tls, s.p) // returns the error of the last step again
	clear(s.args)
	s.texts.shrink(s.c.tls)
}

// Step moves to the next row and reports whether there is one. If the schema has
// changed, SQLite compiles the statement again, which may be refused.
func (s *Stmt) Step() (row bool, err error) {
	for again := true; again; {
		row, err = s.step()
		again, err = s.c.retry(err)
	}
	return row, err
}

func (s *Stmt) step() (bool, error) {
	s.c.beginUse()
	defer s.c.endUse()
	switch rc := lib.Xsqlite3_step(s.c.tls, s.p); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.fail(rc)
	}
}

// finish runs the statement to its end.
func (s *Stmt) finish() error {
	for {
		if more, err := s.Step(); err != nil || !more {
			return err
		}
	}
}

// ReadOnly reports whether the statement changes nothing.
func (s *Stmt) ReadOnly() bool { return s.reads }

// Params returns the names of the statement's parameters with their prefix, "" for a
// plain ?.
func (s *Stmt) Params() []string {
	names := make([]string, s.params)
	for i := range names {
		names[i] = libc.GoString(lib.Xsqlite3_bind_parameter_name(
			s.c.tls,
			s.p,
			int32(i+1),
		))
	}
	return names
}

// Columns returns the names of the result's columns.
func (s *Stmt) Columns() []string {
	names := make([]string, s.columns)
	for i := range names {
		names[i] = libc.GoString(lib.Xsqlite3_column_name(s.c.tls, s.p, int32(i)))
	}
	return names
}

// Size returns the length in bytes of the text or blob in column i of the row.
func (s *Stmt) Size(i int) int {
	switch lib.Xsqlite3_column_type(s.c.tls, s.p, int32(i)) {
	case lib.SQLITE_TEXT, lib.SQLITE_BLOB:
		return int(lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i)))
	}
	return 0
}

// Value returns column i of the row as nil, int64, float64, string or []byte.
func (s *Stmt) Value(i int) any {
	switch n := int32(i); lib.Xsqlite3_column_type(s.c.tls, s.p, n) {
	case lib.SQLITE_INTEGER:
		return lib.Xsqlite3_column_int64(s.c.tls, s.p, n)
	case lib.SQLITE_FLOAT:
		return lib.Xsqlite3_column_double(s.c.tls, s.p, n)
	case lib.SQLITE_TEXT:
		return string(s.text(n))
	case lib.SQLITE_BLOB:
		return append([]byte{}, s.blob(n)...)
	}
	return nil
}

// text returns SQLite's memory of a text, valid until the next step.
func (s *Stmt) text(i int32) []byte {
	p := lib.Xsqlite3_column_text(s.c.tls, s.p, i)
	return view(p, int(lib.Xsqlite3_column_bytes(s.c.tls, s.p, i)))
}

func (s *Stmt) blob(i int32) []byte {
	p := lib.Xsqlite3_column_blob(s.c.tls, s.p, i)
	return view(p, int(lib.Xsqlite3_column_bytes(s.c.tls, s.p, i)))
}
