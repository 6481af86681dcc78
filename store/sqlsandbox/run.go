package sqlsandbox

import (
	"context"
	"errors"
	"strings"

	lib "modernc.org/sqlite/lib"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Result is the result of a statement. Rows and Columns are never nil. Blobs are base64
// text, and integers beyond 2^53 are decimal text.
type Result struct {
	Columns      []string `json:"columns"`
	Rows         [][]any  `json:"rows"`
	RowCount     int      `json:"row_count" doc:"Rows in this answer, or rows changed by a statement that returns none."`
	Truncated    bool     `json:"truncated" doc:"There were more rows than a response can have: 1,000, or 16 MB."`
	Changes      int64    `json:"changes" doc:"Rows inserted, updated or deleted by the statement itself."`
	LastInsertID *int64   `json:"last_insert_id" doc:"Row number of the last row inserted, if any."`
	DurationMS   float64  `json:"duration_ms"`
}

// Run compiles a client's statement, binds its parameters and collects its result, all
// within the limits. The error is INVALID_QUERY with SQLite's message for a statement that
// cannot be prepared, EXECUTION_ERROR with that message for one that fails while it runs,
// such as by violating a constraint, or without it for one that exceeds a limit; and
// FORBIDDEN_OPERATION if the statement is not allowed.
func (c *Conn) Run(ctx context.Context, statement *Statement, limits Limits) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	c.guard.begin(statement)
	c.limit(limited, limits)
	defer func() {
		c.sql.ClearLimits()
		c.suspect = c.suspect || c.sql.OutOfMemory() || c.sql.Spilled()
		c.guard.end()
		c.limitValues(longestValue)
	}()
	stmt, err := c.prepare(statement)
	if err != nil {
		return Result{}, c.clientError(ctx, statement, limits, agent.CodeInvalidQuery, err)
	}
	defer stmt.Close()
	r, err := c.execute(statement, stmt, limits)
	if err != nil {
		return Result{}, c.clientError(ctx, statement, limits, agent.CodeExecution, err)
	}
	return r, nil
}

// prepare compiles a statement and binds its parameters. The caller closes it.
func (c *Conn) prepare(s *Statement) (*sqlite.Stmt, error) {
	stmt, err := c.compile(s)
	if err != nil {
		return nil, err
	}
	if err := c.bind(s, stmt); err != nil {
		stmt.Close()
		return nil, err
	}
	return stmt, nil
}

func (c *Conn) bind(s *Statement, stmt *sqlite.Stmt) error {
	if s.Kind == "SELECT" && !stmt.ReadOnly() {
		return agent.Errorf(agent.CodeForbiddenOperation, "this %s statement would change data", s.Kind).
			With("statement", s.Kind)
	}
	limit, err := s.weight.valueLimit(s.args.longest)
	if err != nil {
		return err
	}
	c.limitValues(limit)
	values, err := s.args.order(stmt.Params())
	if err != nil {
		return err
	}
	return stmt.Bind(values...)
}

func (c *Conn) execute(s *Statement, stmt *sqlite.Stmt, limits Limits) (Result, error) {
	c.sql.SetLastID(0)
	r := Result{Columns: stmt.Columns(), Rows: [][]any{}}
	if err := c.collect(stmt, &r, limits); err != nil {
		return Result{}, err
	}
	stmt.Close() // ends the statement, which sets the counts
	c.count(s, &r)
	return r, nil
}

// compile prepares a client's statement. The error says why it may not run.
func (c *Conn) compile(s *Statement) (*sqlite.Stmt, error) {
	if table := c.guard.mentionedClosed(); table != "" && s.Kind != "PRAGMA" {
		return nil, agent.Errorf(
			agent.CodeForbiddenOperation,
			"the table %s is closed to SQL; if it is meant as text, pass it as a parameter",
			table,
		).With("table", table)
	}
	stmt, err := c.sql.Prepare(s.text)
	if err != nil && c.guard.refused != nil {
		return nil, c.guard.refused.Because(err)
	}
	c.guard.refused = nil
	return stmt, err
}

// collect reads the statement's rows.
func (c *Conn) collect(stmt *sqlite.Stmt, result *Result, limits Limits) error {
	size := 0
	for ; ; result.RowCount++ {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if result.RowCount == limits.Rows {
			result.Truncated = true
			return nil
		}
		row := make([]any, len(result.Columns))
		for i := range row {
			if size+stmt.Size(i) > limits.Bytes {
				result.Truncated = true
				return nil
			}
			var n int
			row[i], n = jsonValue(stmt.Value(i))
			size += n
		}
		if size > limits.Bytes {
			result.Truncated = true
			return nil
		}
		if c.sql.PastDeadline() {
			return sqlite.NewError(lib.SQLITE_INTERRUPT, "interrupted")
		}
		if limits.Each == nil {
			result.Rows = append(result.Rows, row)
		} else if err := limits.Each(result.Columns, row); err != nil {
			return err
		}
	}
}

// count fills in how many rows the statement changed.
func (c *Conn) count(s *Statement, r *Result) {
	if !s.Writes() {
		return
	}
	done := c.sql.Result()
	r.Changes = done.Changes
	if len(r.Columns) == 0 {
		r.RowCount = int(r.Changes)
	}
	if done.LastID != 0 && s.Kind == "INSERT" {
		r.LastInsertID = &done.LastID
	}
}

// clientError turns the failure of a client's statement into the client's error, with the
// code if it is about the statement itself.
func (c *Conn) clientError(
	ctx context.Context,
	statement *Statement,
	limits Limits,
	about agent.Code,
	err error,
) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if _, refused := errors.AsType[*agent.Error](err); refused || !ok {
		return err // the guard's refusal is the client's error already
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := e.Code() & 0xff
	switch {
	case c.sql.OutOfMemory() && (code == lib.SQLITE_NOMEM || code == lib.SQLITE_INTERRUPT):
		return agent.Errorf(agent.CodeExecution, "the statement needs more than %d MB of memory", limits.Memory>>20).
			With("limit_bytes", limits.Memory).Because(err)
	case c.sql.Spilled() && code == lib.SQLITE_FULL:
		return agent.Errorf(
			agent.CodeExecution,
			"the statement needs more than %d MB of temporary space",
			limits.Temp>>20,
		).With("limit_bytes", limits.Temp).Because(err)
	case code == lib.SQLITE_INTERRUPT:
		return agent.Errorf(
			agent.CodeExecution,
			"the statement ran longer than %g seconds and was stopped",
			limits.Time.Seconds(),
		).With("limit_seconds", limits.Time.Seconds()).Because(err)
	}
	switch code {
	case lib.SQLITE_AUTH: // what a table-valued pragma would have compiled
		if c.guard.refused != nil {
			return c.guard.refused.Because(err)
		}
	case lib.SQLITE_TOOBIG:
		limit := c.limitValues(-1)
		return agent.Errorf(about, "a value is longer than the %d KB that this statement may handle; "+
			"the fewer functions it calls, the longer its values may be", limit>>10).With("limit_bytes", limit)
	case lib.SQLITE_ERROR, lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_RANGE:
		return sqlError(statement, about, e)
	}
	c.suspect = true
	return err
}

// sqlError returns an error with SQLite's message about the client's statement.
func sqlError(s *Statement, code agent.Code, e *sqlite.Error) error {
	bad := agent.Errorf(code, "%s", agent.Clip(e.Text, 500)).Because(e)
	if _, name, ok := strings.Cut(e.Text, "constraint failed: "); ok && e.Code()&0xff == lib.SQLITE_CONSTRAINT {
		bad = bad.With("constraint", agent.Clip(name, 200))
	}
	if e.Offset >= 0 {
		bad = bad.With("offset", s.before+offset(s.text, min(e.Offset, len(s.text))))
	}
	return bad
}
