package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"satchel/agent"
	"satchel/store/sqlite"
)

// SQLite result codes with errors of their own, see https://www.sqlite.org/rescode.html.
const (
	codePerm       = 3
	codeBusy       = 5
	codeReadOnly   = 8
	codeIOErr      = 10
	codeCorrupt    = 11
	codeInterrupt  = 9
	codeFull       = 13
	codeCantOpen   = 14
	codeNotADB     = 26
	codeUnique     = 2067
	codePrimaryKey = 1555
	codeConstraint = 19
	codeNotNull    = 1299
	codeForeignKey = 787
)

// conn is one SQLite connection.
type conn struct {
	sql  *sqlite.Conn
	path string // of the database file

	writes bool // this is the file's writer

	claimed workKinds // see Tx.claimWork

	parts writerParts // see writing_parts.go

	rows []Change // changed by the transaction, recorded for a watcher; see watchRows
}

// source names a database file. Pragmas are applied in order.
func source(path string, mode sqlite.Mode, pragmas ...string) sqlite.Source {
	return sqlite.Source{Path: path, Mode: mode, Pragmas: pragmas}
}

// The journals of savepoints and statements stay in memory (temp_store), since
// as temporary files they would cost more than the writes that they guard. The
// -wal may remain longer than it grows between two checkpoints: truncating and
// growing it again would cost the file system a fifth of all writing. An idle
// agent has none.
var writerPragmas = []string{
	"synchronous(FULL)", "foreign_keys(1)", "recursive_triggers(1)", "cache_size(-1024)", "temp_store(MEMORY)",
	"journal_size_limit(16777216)", "wal_autocheckpoint(2000)",
}

// unlockedSource names a file to read without taking locks and without creating files
// next to it. Data that a crash left in the -wal is read and stays there. A
// concurrent writer can make the file look damaged.
func unlockedSource(path string) sqlite.Source {
	s := source(path, sqlite.ReadOnly, "query_only(1)")
	s.Immutable = !HasWAL(path)
	return s
}

// HasWAL reports whether a database has a non-empty -wal.
func HasWAL(path string) bool {
	wal, err := os.Stat(path + "-wal")
	return err == nil && wal.Size() > 0
}

// sharedSource names a database that others may be writing to.
func sharedSource(path string) sqlite.Source {
	return source(path, sqlite.ReadWrite, "query_only(1)")
}

var readerPragmas = []string{"query_only(1)", "cache_size(-1024)"}

// openConns are the connections that Folder.InterruptAt interrupts.
var openConns sync.Map // *conn -> true

func openConn(s sqlite.Source) (*conn, error) {
	s.Prepare = func(c *sqlite.Conn) error {
		return c.Register(separateWords)
	}
	raw, err := sqlite.Open(s)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	c := &conn{sql: raw, path: s.Path}
	openConns.Store(c, true)
	return c, nil
}

func (c *conn) close() error {
	openConns.Delete(c)
	return c.sql.Close()
}

func (c *conn) exec(query string, args ...any) (sqlite.Result, error) {
	return c.sql.Exec(query, args...)
}

func (c *conn) query(query string, args ...any) (*sqlite.Rows, error) {
	return c.sql.Query(query, args...)
}

// each calls fn with every row of a query, until it returns an error.
func (c *conn) each(fn func(*sqlite.Rows) error, query string, args ...any) error {
	rows, err := c.query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// row reads the first row of a query; without one, its error is sqlite.ErrNoRows.
func (c *conn) row(query string, args ...any) sqlite.Row {
	return c.sql.QueryRow(query, args...)
}

// value reads a single value; without a row, the error is sqlite.ErrNoRows.
func (c *conn) value(dst any, query string, args ...any) error {
	return c.sql.QueryRow(query, args...).Scan(dst)
}

// script runs statements that are used once and not worth caching.
func (c *conn) script(text string) error {
	return c.sql.Script(text)
}

// sqliteCode returns SQLite's extended result code of err, or 0.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// explain converts failures of SQLite and the file system that matter to clients
// into errors of ours; other errors are returned unchanged.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return err
	}
	code := sqliteCode(err) & 0xff
	switch {
	case outOfDescriptors(err):
		return tooManyOpen(err)
	case code == codeFull || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return agent.Errorf(agent.CodeDiskFull, "the disk is full; nothing was changed").Because(err)
	case code == codeReadOnly || errors.Is(err, syscall.EROFS):
		return agent.Errorf(agent.CodeReadOnly, "the data folder cannot be written; nothing was changed").Because(err)
	case code == codeCorrupt || code == codeNotADB:
		return damagedError(err)
	case code == codeInterrupt:
		return errors.Join(ErrClosed, err) // as InterruptAt does
	}
	return err
}

// errExternalCause marks a refusal whose cause is outside the file and may go away.
var errExternalCause = errors.New("the cause is outside the file")

// refused turns an error about a file into the reason why its agent is refused.
func refused(err error) error {
	outside := fmt.Errorf("%w; %w", err, errExternalCause)
	if outOfDescriptors(err) {
		return tooManyOpen(outside)
	}
	switch sqliteCode(err) & 0xff {
	case codePerm, codeBusy, codeIOErr, codeCantOpen:
		return agent.Errorf(
			agent.CodeAgentDamaged,
			"this agent's file cannot be opened, see satchel doctor",
		).Because(outside)
	case codeFull:
		return agent.Errorf(
			agent.CodeDiskFull,
			"this agent's file was not loaded, because the disk was full",
		).Because(outside)
	case codeReadOnly:
		return agent.Errorf(
			agent.CodeReadOnly,
			"this agent's file was not loaded, because it is read-only",
		).Because(outside)
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return known
	}
	return damagedError(err)
}

func tooManyOpen(cause error) *agent.Error {
	return agent.Errorf(agent.CodeUnavailable, "the server has too many files open; try again").Because(cause)
}

func damagedError(cause error) *agent.Error {
	return agent.Errorf(
		agent.CodeAgentDamaged,
		"this agent's file is damaged; it was left as it is, see satchel doctor",
	).Because(cause)
}

// isUnique reports whether err is a uniqueness violation.
func isUnique(err error) bool {
	code := sqliteCode(err)
	return code == codeUnique || code == codePrimaryKey
}

// escapeLike escapes text so that it is taken literally in a LIKE pattern with
// ESCAPE '\'.
func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
