package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// ErrNoRows reports that a statement returned no row.
var ErrNoRows = errors.New("no rows")

var errNoMemory = errors.New("out of memory")

// Error is a failure that SQLite reports.
type Error struct {
	code   int
	Text   string
	Offset int // position in the statement, in bytes; -1 if unknown
	cause  error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%d)", e.Text, e.code)
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the error of the system because of which a file could not be opened, read
// or written; nil if there was none.
func (e *Error) Unwrap() error { return e.cause }

// Code returns SQLite's extended result code; see
// https://www.sqlite.org/rescode.html.
func (e *Error) Code() int { return e.code }

// NewError returns an error with a code of SQLite's and no position in the
// statement.
func NewError(code int, text string) *Error {
	return &Error{code: code, Text: text, Offset: -1}
}

func (c *Conn) fail(rc int32) error {
	e := &Error{
		code:   int(rc),
		Text:   libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db)),
		Offset: int(lib.Xsqlite3_error_offset(c.tls, c.db)),
	}
	if rc&0xff == lib.SQLITE_CANTOPEN || rc&0xff == lib.SQLITE_IOERR { // else it is of an earlier error
		if number := lib.Xsqlite3_system_errno(c.tls, c.db); number > 0 {
			e.cause = syscall.Errno(number)
		}
	}
	return e
}
