package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"satchel/agent"
	"satchel/store/sqlsandbox"
)

// Access specifies what the sender of a SQL statement may do.
type Access struct {
	Write bool // change data; without it only reading statements run
	// Record, unless nil, receives the result of a statement that changes data and
	// returns the result of a node: both are committed, or neither. The error is
	// ErrEnded if the execution has ended in the meantime.
	Record func(Result) (executionID string, result agent.NodeResult, err error)
}

// Params are the parameters of a SQL statement, Result is its result.
type (
	Params = sqlsandbox.Params
	Result = sqlsandbox.Result
)

// sandboxOptions are what the SQL sandbox needs to know about an agent's file.
var sandboxOptions = sqlsandbox.Options{
	ReaderPragmas: readerPragmas,
	WriterPragmas: writerPragmas,
	LaterTables: []string{
		vectorTable, "_chunk_text", "_chunk_terms", "_search_", "_contact_json", "_conversation_json",
		"_gateway_json", "_message_events", "_tool_credentials", "_workflow_credentials",
	},
	Rules: map[string]sqlsandbox.Rule{
		"chunks": {Reason: "chunks are made from their source: change that and reindex it"},
		"executions": {
			Delete: true,
			Reason: "executions are what happened: terminate, retry or resume them by the API, or delete them",
		},
		"logs":            {Reason: "the log is evidence and can only be read"},
		"runs":            {Reason: "runs are written by the scheduler and can only be read"},
		"downloads":       {Delete: true, Reason: "downloads come from browser sessions; SQL can delete them"},
		"session_actions": {Reason: "actions are logged by browser sessions; SQL can only read them"},
		"sessions":        {Reason: "browser sessions are opened and closed by the API; SQL can only read them"},
		"takeovers":       {Reason: "takeovers are asked for and ended by the API; SQL can only read them"},
		"occurrences":     {Reason: "occurrences are written by the scheduler and can only be read"},
		"sources": {
			Delete: true,
			Update: []string{"name"},
			Reason: "sources come from uploads, crawls and imports; SQL can rename and delete them",
		},
	},
}

// SQL runs one statement for a client: SELECT, INSERT, UPDATE, DELETE, PRAGMA or
// EXPLAIN, possibly with WITH. It cannot access tables whose names begin with "_". A
// write is a transaction of its own; it has the same effects through triggers
// (events, counts, tags) as writes through the API, and it is audited without the
// values in it.
//
// Errors: INVALID_QUERY for a statement that cannot be prepared, and EXECUTION_ERROR for
// one that fails while it runs, such as by violating a constraint, both with SQLite's own
// message; EXECUTION_ERROR too for a statement that takes longer than 10 seconds or needs
// more than 24 MB of memory or 128 MB of temporary files; FORBIDDEN_OPERATION for what no
// one may do; FORBIDDEN for a write without Access.Write. A write that fails is undone
// completely.
func (db *DB) SQL(ctx context.Context, query string, params Params, access Access) (Result, error) {
	return db.sql(ctx, query, params, access, sqlsandbox.DefaultLimits)
}

// Limits on the rows of a source of type database.
const (
	MaxSourceRows  = 50_000
	MaxSourceBytes = 16 << 20 // of all rows as JSON
	maxSourceTime  = 30 * time.Second
)

// Limits on a statement whose rows are passed on one by one.
const (
	MaxEachRows  = 100_000
	maxEachBytes = 64 << 20
)

// EachRow runs one reading statement in the SQL sandbox and passes its rows to each;
// if Truncated, there are more. Errors are those of SQL.
func (db *DB) EachRow(
	ctx context.Context,
	query string,
	params Params,
	each func(columns []string, row []any) error,
) (Result, error) {
	limits := sqlsandbox.DefaultLimits
	limits.Rows, limits.Bytes, limits.Time, limits.Each = MaxEachRows, maxEachBytes, maxSourceTime, each
	s, err := sqlsandbox.Parse(query, params)
	if err != nil {
		return Result{}, err
	}
	if s.Writes() {
		return Result{}, agent.Errorf(
			agent.CodeForbiddenOperation,
			"a %s statement changes data; only queries can return CSV",
			s.Kind,
		).With("statement", s.Kind)
	}
	return db.runSQL(ctx, s, Access{}, limits)
}

// Rows runs one SELECT in the SQL sandbox and returns at most limit rows and
// MaxSourceBytes; if Truncated, there are more. With a limit of 0 it checks that the
// query can be run and returns its columns. Errors are those of SQL.
func (db *DB) Rows(ctx context.Context, query string, limit int) (Result, error) {
	statement, err := sqlsandbox.Parse(query, Params{})
	if err != nil {
		return Result{}, err
	}
	if statement.Kind != "SELECT" {
		return Result{}, agent.Errorf(
			agent.CodeForbiddenOperation,
			"a %s statement returns no records; it must be a SELECT",
			statement.Kind,
		).With("statement", statement.Kind)
	}
	limits := sqlsandbox.DefaultLimits
	limits.Rows, limits.Bytes = limit, MaxSourceBytes
	if limit > 0 {
		limits.Time = maxSourceTime
	}
	return db.runSQL(ctx, statement, Access{}, limits)
}

func (db *DB) sql(
	ctx context.Context,
	query string,
	params Params,
	access Access,
	limits sqlsandbox.Limits,
) (Result, error) {
	s, err := sqlsandbox.Parse(db.HideLinks(query), db.hideParams(params))
	if err != nil {
		return Result{}, err
	}
	return db.runSQL(ctx, s, access, limits)
}

func (db *DB) runSQL(
	ctx context.Context,
	statement *sqlsandbox.Statement,
	access Access,
	limits sqlsandbox.Limits,
) (Result, error) {
	started := time.Now()
	if statement.Writes() && !access.Write {
		return Result{}, agent.Errorf(agent.CodeForbidden, "your role may only read").With("statement", statement.Kind)
	}
	file, err := db.acquire(ctx)
	if err != nil {
		return Result{}, err
	}
	defer db.release(ctx)
	var r Result
	if statement.Writes() {
		r, err = db.writeSQL(ctx, file, statement, limits, access.Record)
	} else {
		limits.Each = file.awaitBeforeFirst(ctx, limits.Each)
		if r, err = file.sandbox.Read(ctx, statement, limits); err == nil {
			err = file.awaitShipped(ctx)
		}
	}
	if err != nil {
		return Result{}, explain(err)
	}
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	return r, nil
}

// writeSQL runs a changing statement in the writer's turn, while no other
// write to the file runs.
func (db *DB) writeSQL(
	ctx context.Context,
	file *file,
	statement *sqlsandbox.Statement,
	limits sqlsandbox.Limits,
	record recorder,
) (result Result, err error) {
	err = db.alone(ctx, func(conn *conn) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		file.markDirty()
		if made, err := conn.makeWritingParts(allWritingParts()); err != nil {
			return err
		} else if made { // by triggers a write can reach any table, so it gets them all
			file.sandbox.SchemaChanged()
		}
		changed, err := file.sandbox.Write(func(c *sqlsandbox.Conn) (err error) {
			if db.watcher.Load() != nil {
				c.OnRow(conn.noteRow)
			}
			result, err = runAudited(ctx, c, statement, limits, record)
			return err
		})
		file.noteInserts(changed)
		if err == nil && (changed["schedules"] || changed["tasks"]) {
			db.planChanges(ctx, conn)
		}
		conn.sql.Used |= uint32(workOfTables(changed))
		if err != nil {
			conn.rows = nil
		}
		return err
	})
	return result, err
}

// markDirty records that the -wal has to be written back when the file is idle.
func (f *file) markDirty() {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	f.dirty, f.written = true, true
}

// runAudited runs a statement that changes data, marks the events that it wrote with
// the chain of ctx, and writes its audit entry and its node's result.
func runAudited(
	ctx context.Context,
	conn *sqlsandbox.Conn,
	statement *sqlsandbox.Statement,
	limits sqlsandbox.Limits,
	record recorder,
) (r Result, err error) {
	before, err := beginSQLChain(ctx, conn)
	if err != nil {
		return r, err
	}
	if r, err = conn.Run(ctx, statement, limits); err != nil {
		return r, err
	}
	if err := endSQLChain(ctx, conn, before); err != nil {
		return r, err
	}
	if err := auditSQL(ctx, conn, statement, r); err != nil {
		return r, err
	}
	return r, recordSQL(conn, record, r)
}

// beginSQLChain returns the number of the newest event if there is a chain.
func beginSQLChain(ctx context.Context, c *sqlsandbox.Conn) (before any, err error) {
	chain := ChainOf(ctx)
	if chain.Depth == 0 {
		return nil, nil
	}
	rows, err := c.Trusted(lastEvent)
	if err != nil {
		return nil, err
	}
	_, err = c.Trusted(beginChain, chain.Root)
	return rows[0][0], err
}

func endSQLChain(ctx context.Context, c *sqlsandbox.Conn, before any) error {
	chain := ChainOf(ctx)
	if chain.Depth == 0 {
		return nil
	}
	if _, err := c.Trusted(endChain); err != nil {
		return err
	}
	if !chain.Remote {
		if _, err := c.Trusted(notReceived, before); err != nil {
			return err
		}
	}
	_, err := c.Trusted(setChain, int64(chain.Depth), chain.Root, before)
	return err
}

// recorder is Access.Record.
type recorder func(Result) (executionID string, result agent.NodeResult, err error)

// recordSQL writes a node's result from a statement into its execution's journal.
func recordSQL(conn *sqlsandbox.Conn, record recorder, r Result) error {
	if record == nil {
		return nil
	}
	id, result, err := record(r)
	if err != nil {
		return err
	}
	rows, err := conn.Trusted("SELECT 1 FROM executions WHERE id = ? AND status = 'running'", id)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return ErrEnded
	}
	raw, err := encodeJournal([]agent.NodeResult{result})
	if err != nil {
		return err
	}
	_, err = conn.Trusted(insertJournal, id, raw)
	return err
}

// auditSQL logs a person's write: what kind and to which tables, not its values.
func auditSQL(ctx context.Context, conn *sqlsandbox.Conn, statement *sqlsandbox.Statement, result Result) error {
	actor := Actor(ctx)
	if actor == "" {
		return nil
	}
	data, err := json.Marshal(map[string]any{
		"by":        actor,
		"statement": statement.Kind,
		"tables":    conn.Targets(),
		"changes":   result.Changes,
	})
	if err != nil {
		return fmt.Errorf("log data: %w", err)
	}
	_, err = conn.Trusted(
		insertLog,
		agent.NewID(agent.KindLog),
		string(agent.LevelInfo),
		agent.SourceAudit,
		"SQL statement run",
		string(data),
		agent.Now().String(),
	)
	return err
}
