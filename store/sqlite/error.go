package sqlite

import (
	"errors"
	"fmt"

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
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.code) }

// Code returns SQLite's extended result code; see
// https://www.sqlite.org/rescode.html.
func (e *Error) Code() int { return e.code }

// NewError returns an error with a code of SQLite's and no position in the
// statement.
func NewError(code int, text string) *Error { return &Error{code: code, Text: text, Offset: -1} }

func (c *Conn) fail(rc int32) error {
	return &Error{
		code:   int(rc),
		Text:   libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db)),
		Offset: int(lib.Xsqlite3_error_offset(c.tls, c.db)),
	}
}
