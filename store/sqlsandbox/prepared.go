package sqlsandbox

import (
	"fmt"
	"strings"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// prepared is a prepared statement of a Conn.
type prepared struct {
	c       *Conn
	p       uintptr
	columns int
}

const moreStatements = "query holds more than one statement"

// prepare compiles one statement, which text must hold and nothing behind it.
func (c *Conn) prepare(text string) (*prepared, error) {
	p, err := libc.CString(text)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, p)
	tail := c.out + 16
	rc := lib.Xsqlite3_prepare_v2(c.tls, c.db, p, -1, c.out, tail)
	if rc != lib.SQLITE_OK {
		return nil, c.fail(rc)
	}
	s := &prepared{c: c, p: peek(c.out)}
	if rest := int(peek(tail) - p); s.p == 0 || strings.TrimSpace(text[rest:]) != "" {
		s.finalize()
		return nil, &sqliteError{code: lib.SQLITE_ERROR, text: moreStatements, offset: rest}
	}
	s.columns = int(lib.Xsqlite3_column_count(c.tls, s.p))
	return s, nil
}

// finalize ends the statement; it may be called twice.
func (s *prepared) finalize() {
	lib.Xsqlite3_finalize(s.c.tls, s.p) // returns the error of the last step again
	s.p = 0
}

// step moves to the next row and reports whether there is one.
func (s *prepared) step() (bool, error) {
	switch rc := lib.Xsqlite3_step(s.c.tls, s.p); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.fail(rc)
	}
}

// bind sets parameter i, counted from 1, to nil, an int64, float64 or string.
func (s *prepared) bind(i int, value any) error {
	tls, n := s.c.tls, int32(i)
	var rc int32
	switch v := value.(type) {
	case nil:
		rc = lib.Xsqlite3_bind_null(tls, s.p, n)
	case int64:
		rc = lib.Xsqlite3_bind_int64(tls, s.p, n, v)
	case float64:
		rc = lib.Xsqlite3_bind_double(tls, s.p, n, v)
	case string:
		p, err := libc.CString(v)
		if err != nil {
			return err
		}
		defer libc.Xfree(tls, p)
		const copied = ^uintptr(0) // SQLITE_TRANSIENT
		rc = lib.Xsqlite3_bind_text(tls, s.p, n, p, int32(len(v)), copied)
	default:
		return fmt.Errorf("cannot bind a %T", value)
	}
	if rc != lib.SQLITE_OK {
		return s.c.fail(rc)
	}
	return nil
}

// params returns the names of the statement's parameters with their sign, ""
// for a plain ?.
func (s *prepared) params() []string {
	names := make([]string, lib.Xsqlite3_bind_parameter_count(s.c.tls, s.p))
	for i := range names {
		names[i] = libc.GoString(lib.Xsqlite3_bind_parameter_name(s.c.tls, s.p, int32(i+1)))
	}
	return names
}

// names returns the names of the result's columns.
func (s *prepared) names() []string {
	names := make([]string, s.columns)
	for i := range names {
		names[i] = libc.GoString(lib.Xsqlite3_column_name(s.c.tls, s.p, int32(i)))
	}
	return names
}

// size is the length in bytes of the text or blob in column i of the row.
func (s *prepared) size(i int) int {
	switch lib.Xsqlite3_column_type(s.c.tls, s.p, int32(i)) {
	case lib.SQLITE_TEXT, lib.SQLITE_BLOB:
		return int(lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i)))
	}
	return 0
}

// value returns column i of the row as nil, int64, float64, string or []byte.
func (s *prepared) value(i int) any {
	tls, n := s.c.tls, int32(i)
	switch lib.Xsqlite3_column_type(tls, s.p, n) {
	case lib.SQLITE_INTEGER:
		return lib.Xsqlite3_column_int64(tls, s.p, n)
	case lib.SQLITE_FLOAT:
		return lib.Xsqlite3_column_double(tls, s.p, n)
	case lib.SQLITE_TEXT:
		p := lib.Xsqlite3_column_text(tls, s.p, n)
		return string(view(p, lib.Xsqlite3_column_bytes(tls, s.p, n)))
	case lib.SQLITE_BLOB:
		p := lib.Xsqlite3_column_blob(tls, s.p, n)
		return append([]byte{}, view(p, lib.Xsqlite3_column_bytes(tls, s.p, n))...)
	}
	return nil
}

// view is n bytes of C memory, valid until SQLite moves on.
func view(p uintptr, n int32) []byte {
	if p == 0 || n == 0 {
		return nil
	}
	return libc.GoBytes(p, int(n))
}
