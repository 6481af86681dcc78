package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	lib "modernc.org/sqlite/lib"

	"satchel/agent"
)

// Access says what a SQL statement's sender may do.
type Access struct {
	Write bool // change data; without it only reading statements run
}

// Result is the answer to a SQL statement. Rows and Columns are never nil.
// Blobs are base64 text, integers beyond 2^53 decimal text.
type Result struct {
	Columns      []string `json:"columns"`
	Rows         [][]any  `json:"rows"`
	RowCount     int      `json:"row_count" doc:"Rows in this answer, or rows changed by a statement that returns none."`
	Truncated    bool     `json:"truncated" doc:"There were more rows than an answer holds: 1,000, or 16 MB."`
	Changes      int64    `json:"changes" doc:"Rows inserted, updated or deleted by the statement itself."`
	LastInsertID *int64   `json:"last_insert_id" doc:"Row number of the last row inserted, if any."`
	DurationMS   float64  `json:"duration_ms"`
}

// SQL runs one statement of a client's: SELECT, INSERT, UPDATE, DELETE, PRAGMA
// or EXPLAIN, also behind WITH. Tables whose names begin with "_" are closed to
// it. A write is one transaction of its own; what the API's writes bring about
// by way of triggers (events, counts, tags) a write by SQL does too, and it is
// audited without the values in it.
//
// Errors: INVALID_QUERY for a statement that SQLite refuses or that breaks a
// constraint, since both are the sender's to mend, with SQLite's own words
// about it; FORBIDDEN_OPERATION for what no one may do; FORBIDDEN for a write
// without Access.Write; EXECUTION_ERROR for one that runs longer than 10
// seconds or needs more than 32 MB of memory or 128 MB of temporary files. Nothing remains of a
// write that failed.
func (db *DB) SQL(ctx context.Context, query string, params Params, access Access) (Result, error) {
	return db.sql(ctx, query, params, access, doorDefaults)
}

func (db *DB) sql(ctx context.Context, query string, params Params, access Access, limits doorLimits) (Result, error) {
	started := time.Now()
	s, err := parseStatement(query)
	if err != nil {
		return Result{}, err
	}
	args, err := params.arguments()
	if err != nil {
		return Result{}, err
	}
	if s.writes() && !access.Write {
		return Result{}, agent.Errorf(agent.CodeForbidden, "your role may only read").With("statement", s.kind)
	}
	f, err := db.acquire()
	if err != nil {
		return Result{}, err
	}
	defer db.release()
	var r Result
	if s.writes() {
		r, err = db.writeSQL(ctx, f, s, args, limits)
	} else {
		r, err = f.door.read(ctx, f.path, s, args, limits)
	}
	if err != nil {
		return Result{}, err
	}
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	return r, nil
}

// doorReaders bounds the statements of one agent that read at the same time,
// and with them the memory that they hold.
const doorReaders = 2

// door holds the SQL door's connections to one file. They open on first use.
type door struct {
	once   sync.Once
	slots  chan struct{} // one token a reader that may exist
	mu     sync.Mutex
	idle   []*doorConn
	writer *doorConn // at most one is in use, by who has the writer's turn
}

// close closes the connections that wait for work.
func (d *door) close() error {
	d.mu.Lock()
	waiting := d.idle
	if d.writer != nil {
		waiting = append(waiting, d.writer)
	}
	d.idle, d.writer = nil, nil
	d.mu.Unlock()
	var errs []error
	for _, c := range waiting {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// read runs a reading statement and waits for a connection within ctx.
func (d *door) read(ctx context.Context, path string, s *statement, args arguments, limits doorLimits) (Result, error) {
	d.once.Do(func() { d.slots = make(chan struct{}, doorReaders) })
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	defer func() { <-d.slots }()
	c, err := d.reader(path)
	if err != nil {
		return Result{}, explain(err)
	}
	defer d.putReader(c)
	return c.run(ctx, s, args, limits)
}

// putReader keeps a connection for the next statement unless it is in doubt.
func (d *door) putReader(c *doorConn) {
	if c.doubtful {
		_ = c.close()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, c)
}

func (d *door) reader(path string) (*doorConn, error) {
	d.mu.Lock()
	if n := len(d.idle); n > 0 {
		c := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		return c, nil
	}
	d.mu.Unlock()
	return openDoor(path, false)
}

// takeWriter returns the writing connection for a turn.
func (d *door) takeWriter(path string) (*doorConn, error) {
	d.mu.Lock()
	c := d.writer
	d.writer = nil
	d.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return openDoor(path, true)
}

func (d *door) putWriter(c *doorConn) {
	if c.doubtful {
		_ = c.close()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writer = c
}

// writeSQL runs a changing statement in the writer's turn, while no other
// write to the file runs.
func (db *DB) writeSQL(ctx context.Context, f *file, s *statement, args arguments, limits doorLimits) (r Result, err error) {
	err = db.alone(ctx, func(*conn) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := f.door.takeWriter(f.path)
		if err != nil {
			return err
		}
		defer f.door.putWriter(c)
		f.markDirty()
		r, err = c.transaction(ctx, s, args, limits)
		return err
	})
	return r, explain(err)
}

// markDirty notes that the -wal has to be written back when the file rests.
func (f *file) markDirty() {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	f.dirty = true
}

// transaction runs a changing statement and its audit entry, both or neither.
func (c *doorConn) transaction(ctx context.Context, s *statement, args arguments, limits doorLimits) (r Result, err error) {
	if _, err := c.own("BEGIN IMMEDIATE"); err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			_, _ = c.own("ROLLBACK") // fails when SQLite has rolled back already
		}
	}()
	if r, err = c.run(ctx, s, args, limits); err != nil {
		return r, err
	}
	if err := c.audit(ctx, s, r); err != nil {
		return r, err
	}
	_, err = c.own("COMMIT")
	return r, err
}

// audit logs a person's write: what kind and to which tables, not its values.
func (c *doorConn) audit(ctx context.Context, s *statement, r Result) error {
	actor, _ := ctx.Value(actorKey{}).(string)
	if actor == "" {
		return nil
	}
	data, err := json.Marshal(map[string]any{
		"by": actor, "statement": s.kind, "tables": c.guard.tablesChanged(), "changes": r.Changes,
	})
	if err != nil {
		return fmt.Errorf("log data: %w", err)
	}
	_, err = c.own(insertLog, agent.NewID(agent.KindLog), string(agent.LevelInfo), agent.SourceAudit,
		"SQL statement run", string(data), agent.Now().String())
	return err
}

// run compiles a client's statement, binds its parameters and collects its
// answer, all within the limits.
func (c *doorConn) run(ctx context.Context, s *statement, args arguments, limits doorLimits) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, limits.time)
	defer cancel()
	c.guard.begin(s)
	c.memory, c.starved, c.temp = limits.memory, false, limits.temp
	c.ctx = limited
	counted.Add(1)
	defer func() {
		counted.Add(-1)
		c.ctx = nil
		c.guard.end()
		c.boundValues(longestValue)
	}()
	r, err := c.answer(s, args, limits)
	if err == nil {
		return r, nil
	}
	return Result{}, c.judge(ctx, s, limits, err)
}

func (c *doorConn) answer(s *statement, args arguments, limits doorLimits) (Result, error) {
	lib.Xsqlite3_set_last_insert_rowid(c.tls, c.db, 0)
	stmt, err := c.prepare(s.text)
	if err != nil {
		return Result{}, err
	}
	defer func() { stmt.finalize() }()
	if s.kind == "SELECT" && lib.Xsqlite3_stmt_readonly(c.tls, stmt.p) == 0 {
		return Result{}, agent.Errorf(agent.CodeForbiddenOperation, "this %s statement would change data", s.kind).With("statement", s.kind)
	}
	limit, err := s.weight.valueLimit(args.longest)
	if err != nil {
		return Result{}, err
	}
	c.boundValues(limit)
	values, err := args.match(stmt.params())
	if err != nil {
		return Result{}, err
	}
	for i, v := range values {
		if err := stmt.bind(i+1, v); err != nil {
			return Result{}, err
		}
	}
	r := Result{Columns: stmt.names(), Rows: [][]any{}}
	if err := stmt.collect(&r, limits); err != nil {
		return Result{}, err
	}
	stmt.finalize() // ends the statement, which sets the counts
	c.count(s, &r)
	return r, nil
}

// collect reads the rows of an answer.
func (s *doorStmt) collect(r *Result, limits doorLimits) error {
	size := 0
	for {
		more, err := s.step()
		if err != nil || !more {
			return err
		}
		if len(r.Rows) == limits.rows {
			r.Truncated = true
			return nil
		}
		row := make([]any, s.columns)
		for i := range row {
			if size+s.size(i) > limits.bytes {
				r.Truncated = true
				return nil
			}
			var n int
			row[i], n = jsonValue(s.value(i))
			size += n
		}
		if size > limits.bytes {
			r.Truncated = true
			return nil
		}
		if s.c.late() {
			return &doorError{code: lib.SQLITE_INTERRUPT, text: "interrupted"}
		}
		r.Rows = append(r.Rows, row)
	}
}

// count fills in what the statement changed.
func (c *doorConn) count(s *statement, r *Result) {
	r.RowCount = len(r.Rows)
	if !s.writes() {
		return
	}
	r.Changes = lib.Xsqlite3_changes64(c.tls, c.db)
	if len(r.Columns) == 0 {
		r.RowCount = int(r.Changes)
	}
	if id := lib.Xsqlite3_last_insert_rowid(c.tls, c.db); id != 0 && s.kind == "INSERT" {
		r.LastInsertID = &id
	}
}

// judge turns the failure of a client's statement into what it is told.
func (c *doorConn) judge(ctx context.Context, s *statement, limits doorLimits, err error) error {
	var e *doorError
	if !errors.As(err, &e) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch e.code & 0xff {
	case lib.SQLITE_NOMEM, lib.SQLITE_IOERR, lib.SQLITE_FULL, lib.SQLITE_CORRUPT:
		c.doubtful = true
	}
	switch e.code & 0xff {
	case lib.SQLITE_INTERRUPT:
		return agent.Errorf(agent.CodeExecution, "the statement ran longer than %g seconds and was stopped", limits.time.Seconds()).
			With("limit_seconds", limits.time.Seconds()).Because(err)
	case lib.SQLITE_FULL:
		if c.temp < 0 {
			return agent.Errorf(agent.CodeExecution, "the statement needs more than %d MB of temporary space", limits.temp>>20).
				With("limit_bytes", limits.temp).Because(err)
		}
	case lib.SQLITE_NOMEM:
		if c.starved {
			return agent.Errorf(agent.CodeExecution, "the statement needs more than %d MB of memory", limits.memory>>20).
				With("limit_bytes", limits.memory).Because(err)
		}
	case lib.SQLITE_AUTH, lib.SQLITE_ERROR:
		if c.guard.refused != nil {
			return c.guard.refused.Because(err)
		}
		return sayWhy(s, e)
	case lib.SQLITE_TOOBIG:
		limit := c.boundValues(-1)
		return badQuery("a value is longer than the %d KB that this statement may handle; "+
			"the fewer functions it calls, the longer its values may be", limit>>10).With("limit_bytes", limit)
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_RANGE:
		return sayWhy(s, e)
	}
	return explain(err)
}

// sayWhy hands on what SQLite says about the client's own statement.
func sayWhy(s *statement, e *doorError) error {
	bad := badQuery("%s", agent.Clip(e.text, 500)).Because(e)
	if e.offset >= 0 {
		bad.With("offset", s.before+offset(s.text, min(e.offset, len(s.text))))
	}
	return bad
}

// Table is a table that is open to SQL.
type Table struct {
	Name    string   `json:"name" example:"contacts"`
	Columns []Column `json:"columns"`
}

// Column is a column of a Table.
type Column struct {
	Name       string `json:"name" example:"email"`
	Type       string `json:"type" example:"TEXT"`
	Nullable   bool   `json:"nullable"`
	PrimaryKey bool   `json:"primary_key"`
}

// Schema lists the tables that are open to SQL, by name, with their columns.
func (db *DB) Schema(ctx context.Context) ([]Table, error) {
	return Read(ctx, db, func(tx *Tx) ([]Table, error) {
		type row struct {
			table string
			Column
		}
		columns, err := all(tx, func(rows *sql.Rows) (r row, err error) {
			return r, rows.Scan(&r.table, &r.Name, &r.Type, &r.Nullable, &r.PrimaryKey)
		}, `SELECT t.name, c.name, c.type, c."notnull" = 0 AND c.pk = 0, c.pk > 0
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND substr(t.name, 1, 1) <> '_' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'
			ORDER BY t.name, c.cid`)
		tables := []Table{}
		for _, c := range columns {
			if n := len(tables); n == 0 || tables[n-1].Name != c.table {
				tables = append(tables, Table{Name: c.table, Columns: []Column{}})
			}
			last := &tables[len(tables)-1]
			last.Columns = append(last.Columns, c.Column)
		}
		return tables, err
	})
}
