package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"

	"satchel/agent"
	"satchel/store/sqlite"
	"satchel/store/sqlsandbox"
)

// examine checks the header and schema of a file that may come from anyone, and
// refuses anything but an agent's file as this program creates it, before anything
// in the file can run. It uses a connection of the SQL sandbox, so memory and time
// are limited. file names the file at path.
func examine(ctx context.Context, path string, file sqlite.Source) error {
	return examineAndRead(ctx, path, file, func(*conn) error { return nil })
}

// examineAndRead is examine, and then calls read if the file is not refused. read
// gets the same connection, since SQLite parses the whole schema on each.
func examineAndRead(ctx context.Context, path string, file sqlite.Source, read func(*conn) error) error {
	if isEmpty(path) {
		return damagedError(errEmpty)
	}
	if isShort(path) {
		return damagedError(errShort)
	}
	var unread error
	err := sqlsandbox.Inspect(ctx, file, compare, func(c *sqlite.Conn) {
		unread = read(&conn{sql: c, path: path})
	})
	switch {
	case err == nil && unread == nil:
		return nil
	case err == nil:
		return refused(unread)
	case errors.Is(err, sqlsandbox.ErrLimit), errors.Is(err, errForeign):
		return foreign(err)
	}
	if code := sqliteCode(err) & 0xff; code == lib.SQLITE_TOOBIG || code == lib.SQLITE_ERROR {
		return foreign(err)
	}
	return refused(err)
}

// compare checks the header before SQLite has to read the schema.
func compare(conn *sqlsandbox.Conn) error {
	var header [3]int64
	for i, name := range []string{"application_id", "user_version", "page_size"} {
		n, err := pragma(conn, name)
		if err != nil {
			return err
		}
		header[i], _ = n.(int64)
	}
	version := int(header[1])
	switch {
	case header[0] != applicationID:
		return errNoAgent
	case version > fileVersion():
		return newer(version)
	case header[2] != pageSize:
		return fmt.Errorf("%w: pages of %d bytes", errForeign, header[2])
	}
	if encoding, err := pragma(conn, "encoding"); err != nil || encoding != "UTF-8" {
		return cmp.Or(err, fmt.Errorf("%w: texts in %v", errForeign, encoding))
	}
	rows, err := conn.Trusted(schemaRows)
	if err != nil {
		return err
	}
	return compareSchema(version, rows)
}

// pageSize is the page size, in bytes, of every file that this program creates.
const pageSize = sqlite.PageSize

// pragma returns the value of a PRAGMA.
func pragma(c *sqlsandbox.Conn, name string) (any, error) {
	rows, err := c.Trusted("PRAGMA " + name)
	if err != nil || len(rows) == 0 || len(rows[0]) == 0 {
		return nil, err
	}
	return rows[0][0], nil
}

// foreign refuses a file whose schema or header differs from those that this program
// creates.
func foreign(cause error) *agent.Error {
	if !errors.Is(cause, errForeign) {
		cause = fmt.Errorf("%w: %w", errForeign, cause)
	}
	return agent.Errorf(
		agent.CodeAgentDamaged,
		"this agent's file has a schema that was not created by Satchel; it was left as it is, see satchel doctor",
	).
		Because(cause)
}
