package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// syntaxConn is an empty agent in memory on which statements are compiled and
// never run, to find those that are no SQL before there is an agent to run
// them on.
type syntaxConn struct {
	mu   sync.Mutex
	conn *doorConn // without a guard: it is only given to prepare
}

var emptyAgent syntaxConn

// parses reports whether a statement is SQL by its grammar. Names that are not
// there are no matter of grammar.
func parses(statement string) (bool, error) {
	emptyAgent.mu.Lock()
	defer emptyAgent.mu.Unlock()
	if emptyAgent.conn == nil {
		c, err := openSyntax()
		if err != nil {
			return false, err
		}
		emptyAgent.conn = c
	}
	stmt, err := emptyAgent.conn.prepare(statement)
	if err == nil {
		stmt.finalize()
		return true, nil
	}
	for _, problem := range []string{"syntax error", "incomplete input", "unrecognized token", moreStatements} {
		if strings.Contains(err.Error(), problem) {
			return false, nil
		}
	}
	return true, nil
}

func openSyntax() (*doorConn, error) {
	c := &doorConn{tls: libc.NewTLS()}
	if err := c.openEmpty(); err != nil {
		return nil, errors.Join(fmt.Errorf("open an empty agent: %w", err), c.close())
	}
	return c, nil
}

// openEmpty opens a database in memory that has the tables of an agent.
func (c *doorConn) openEmpty() error {
	if c.out = libc.Xmalloc(c.tls, 2*16); c.out == 0 {
		return errors.New("out of memory")
	}
	name, err := libc.CString(":memory:")
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	rc := lib.Xsqlite3_open_v2(c.tls, name, c.out, lib.SQLITE_OPEN_READWRITE|lib.SQLITE_OPEN_CREATE|lib.SQLITE_OPEN_NOMUTEX, 0)
	if c.db = peek(c.out); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	for _, step := range migrations {
		if err := c.script(step); err != nil {
			return err
		}
	}
	for _, b := range doorBounds {
		lib.Xsqlite3_limit(c.tls, c.db, b.name, b.value)
	}
	return nil
}

// script runs statements of the program's own.
func (c *doorConn) script(text string) error {
	p, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, p)
	if rc := lib.Xsqlite3_exec(c.tls, c.db, p, 0, 0, 0); rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}
