package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"satchel/agent"
)

// examineTime bounds how long the header and the schema of a file are read,
// also on a machine that is very busy.
const examineTime = 20 * time.Second

// examineBounds are limits, in addition to doorBounds, for reading a schema that may be
// anyone's. What Satchel makes stays far below them.
var examineBounds = []struct{ name, value int32 }{
	{lib.SQLITE_LIMIT_LENGTH, maxQuery},
	{lib.SQLITE_LIMIT_EXPR_DEPTH, 50},
	{lib.SQLITE_LIMIT_COMPOUND_SELECT, 20},
}

// examine reads the header and the schema of a file that may be anyone's and
// refuses all but those of an agent's file as this program makes it, before
// anything in it can run. The connection is one of the SQL sandbox: its memory
// and its time are bounded. name is a DSN for the file at path.
func examine(ctx context.Context, path, name string) error {
	if isEmpty(path) {
		return damaged(errEmpty)
	}
	if isShort(path) {
		return damaged(errShort)
	}
	c, err := openExamined(ctx, name)
	if err != nil {
		return refused(err)
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	c.ctx, c.memory, c.temp = ctx, doorDefaults.memory, doorDefaults.temp
	counted.Add(1)
	defer counted.Add(-1)
	defer func() { c.ctx = nil }()
	return c.examine()
}

func openExamined(ctx context.Context, name string) (*doorConn, error) {
	if err := errors.Join(ctx.Err(), errMemory, registerDoorVFS()); err != nil {
		return nil, err
	}
	c := &doorConn{tls: libc.NewTLS()}
	err := c.connect(name, lib.SQLITE_OPEN_READWRITE|lib.SQLITE_OPEN_URI)
	if err == nil {
		err = c.setUp([]string{"query_only(1)"}) // others would read the schema before its bounds are set
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a file to examine it: %w", err), c.close())
	}
	for _, b := range examineBounds {
		lib.Xsqlite3_limit(c.tls, c.db, b.name, b.value)
	}
	return c, nil
}

// examine reports why the file is refused, or nil.
func (c *doorConn) examine() error {
	err := c.compare()
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil, c.starved, errors.Is(err, errForeign):
		return foreign(err)
	}
	if code := sqliteCode(err) & 0xff; code == lib.SQLITE_TOOBIG || code == lib.SQLITE_ERROR {
		return foreign(err)
	}
	return refused(err)
}

// compare compares the header before SQLite has to read the schema for more.
func (c *doorConn) compare() error {
	var header [3]int64
	for i, name := range []string{"application_id", "user_version", "page_size"} {
		n, err := c.pragma(name)
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
	if encoding, err := c.pragma("encoding"); err != nil || encoding != "UTF-8" {
		return cmp.Or(err, fmt.Errorf("%w: texts in %v", errForeign, encoding))
	}
	rows, err := c.own(schemaRows)
	if err != nil {
		return err
	}
	return compareSchema(version, rows)
}

// pageSize is that of every file that this program makes, in bytes.
const pageSize = 4096

// pragma returns what a PRAGMA answers.
func (c *doorConn) pragma(name string) (any, error) {
	rows, err := c.own("PRAGMA " + name)
	if err != nil || len(rows) == 0 || len(rows[0]) == 0 {
		return nil, err
	}
	return rows[0][0], nil
}

// foreign refuses a file whose schema or header is not as this program makes
// them.
func foreign(cause error) *agent.Error {
	if !errors.Is(cause, errForeign) {
		cause = fmt.Errorf("%w: %w", errForeign, cause)
	}
	return agent.Errorf(agent.CodeAgentDamaged,
		"this agent's file has a schema that is not as Satchel makes it; it was left as it is, see satchel doctor").
		Because(cause)
}
