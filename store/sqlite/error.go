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
	Offset int // of what it is about, in bytes of the statement; -1 when it is about none
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.code) }

// Code is SQLite's extended result code, see https://www.sqlite.org/rescode.html.
func (e *Error) Code() int { return e.code }

// NewError makes an error of SQLite's codes that is not about a place in the
// statement.
func NewError(code int, text string) *Error { return &Error{code: code, Text: text, Offset: -1} }

func (c *Conn) fail(rc int32) error {
	return &Error{
		code:   int(rc),
		Text:   libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db)),
		Offset: int(lib.Xsqlite3_error_offset(c.tls, c.db)),
	}
}
