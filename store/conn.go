package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	_ "modernc.org/sqlite/vec" // registers sqlite-vec on every connection

	"satchel/agent"
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
	codeForeignKey = 787
)

// conn is one SQLite connection with its prepared statements.
type conn struct {
	pool   *sql.DB
	sql    *sql.Conn
	stmts  map[string]statementOf
	name   string // its DSN
	handle *handle

	compiled workKinds // of the statement that SQLite compiles
	touched  workKinds // of those that were used since takeWork
	taken    workKinds // see Tx.takesOn

	rows []Change // of the transaction, where somebody watches; see watchRows
}

// statementOf is a prepared statement and the work that it can make.
type statementOf struct {
	*sql.Stmt
	work workKinds
}

// dsn names a database file for the driver. Pragmas are applied in order.
func dsn(path, mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// The journals of savepoints and statements stay in memory (temp_store): as
// temporary files they cost more than the writes they guard. The -wal may stay
// longer than it grows between two checkpoints: one that is cut and grows again
// costs the file system a fifth of all writing. An agent at rest has none.
var writerPragmas = []string{
	"synchronous(FULL)", "foreign_keys(1)", "recursive_triggers(1)", "cache_size(-1024)", "temp_store(MEMORY)",
	"journal_size_limit(16777216)", "wal_autocheckpoint(2000)",
}

// unlocked names a file that is only to be read, without taking locks and
// without leaving anything beside it. What a crash left in the -wal is seen,
// and stays there. Someone who writes meanwhile can make the file look damaged.
func unlocked(path string) string {
	name := dsn(path, "ro", "query_only(1)")
	if hasWAL(path) {
		return name
	}
	return name + "&immutable=1"
}

func hasWAL(path string) bool {
	wal, err := os.Stat(path + "-wal")
	return err == nil && wal.Size() > 0
}

// shared names a database that others may be writing.
func shared(path string) string { return dsn(path, "rw", "query_only(1)") }

var readerPragmas = []string{"query_only(1)", "cache_size(-1024)"}

func openConn(dsn string) (*conn, error) {
	if errHandles != nil {
		return nil, errHandles
	}
	name, number := withNumber(dsn)
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(1)
	raw, err := pool.Conn(context.Background())
	h := takeHandle(number)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), pool.Close())
	}
	c := &conn{pool: pool, sql: raw, stmts: map[string]statementOf{}, name: dsn, handle: h}
	openConns.Store(c, true)
	return c, nil
}

func (c *conn) close() error {
	openConns.Delete(c)
	if c.handle.drop() {
		_ = c.script("SELECT 1") // a pending interrupt would keep the -wal from being written back
	}
	for _, s := range c.stmts {
		_ = s.Close()
	}
	return errors.Join(c.sql.Close(), c.pool.Close())
}

// keptStatements bounds the prepared statements of a connection.
const keptStatements = 200

// prepare returns the kept statement for query.
func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		c.touched |= s.work
		return s.Stmt, nil
	}
	if len(c.stmts) >= keptStatements {
		for q, s := range c.stmts {
			_ = s.Close() // one in use closes when its rows do
			delete(c.stmts, q)
		}
	}
	c.compiled = 0
	s, err := c.sql.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	c.touched |= c.compiled
	c.stmts[query] = statementOf{s, c.compiled}
	return s, nil
}

func (c *conn) exec(query string, args ...any) (sql.Result, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.Exec(args...)
}

func (c *conn) query(query string, args ...any) (*sql.Rows, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.Query(args...)
}

// value reads one value of one row; the error is sql.ErrNoRows without one.
func (c *conn) value(dst any, query string, args ...any) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	return s.QueryRow(args...).Scan(dst)
}

// script runs statements that are used once and not worth keeping.
func (c *conn) script(text string) error {
	c.compiled = 0
	_, err := c.sql.ExecContext(context.Background(), text)
	c.touched |= c.compiled
	return err
}

// sqliteCode returns SQLite's extended result code of err, or 0.
func sqliteCode(err error) int {
	var e interface{ Code() int } // *sqlite.Error, or the SQL sandbox's
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// explain turns failures of SQLite and the file system that a client should
// tell apart into errors of ours; everything else stays as it is.
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
	case code == codeFull || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return agent.Errorf(agent.CodeDiskFull, "the disk is full; nothing was changed").Because(err)
	case code == codeReadOnly || errors.Is(err, syscall.EROFS):
		return agent.Errorf(agent.CodeReadOnly, "the data folder cannot be written; nothing was changed").Because(err)
	case code == codeCorrupt || code == codeNotADB:
		return damaged(err)
	case code == codeInterrupt:
		return errors.Join(ErrClosed, err) // as EndBy does
	}
	return err
}

// errOutside is in the chain of a refusal whose reason lies outside the file
// and may pass.
var errOutside = errors.New("the reason lies outside the file")

// refused turns what went wrong with a file into why its agent is refused.
func refused(err error) error {
	outside := errors.Join(err, errOutside)
	switch sqliteCode(err) & 0xff {
	case codePerm, codeBusy, codeIOErr, codeCantOpen:
		return agent.Errorf(agent.CodeAgentDamaged, "this agent's file cannot be opened, see satchel doctor").Because(outside)
	case codeFull:
		return agent.Errorf(agent.CodeDiskFull, "the disk was full when this agent's file was to be taken in").Because(outside)
	case codeReadOnly:
		return agent.Errorf(agent.CodeReadOnly, "this agent's file cannot be written, so it was not taken in").Because(outside)
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return known
	}
	return damaged(err)
}

func damaged(cause error) *agent.Error {
	return agent.Errorf(agent.CodeAgentDamaged,
		"this agent's file is damaged; it was left as it is, see satchel doctor").Because(cause)
}

// isUnique reports whether err is a uniqueness violation.
func isUnique(err error) bool {
	code := sqliteCode(err)
	return code == codeUnique || code == codePrimaryKey
}

// escapeLike makes text stand for itself in a LIKE pattern with ESCAPE '\'.
func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
