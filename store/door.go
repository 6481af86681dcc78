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
	// Record, unless nil, is told the result of a statement that changes data
	// and gives what becomes of a node by it: both are committed, or neither.
	// ErrEnded when the execution has ended meanwhile.
	Record func(Result) (executionID string, result agent.NodeResult, err error)
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
// seconds or needs more than 24 MB of memory or 128 MB of temporary files. Nothing remains of a
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
	f, err := db.acquire(ctx)
	if err != nil {
		return Result{}, err
	}
	defer db.release(ctx)
	var r Result
	if s.writes() {
		r, err = db.writeSQL(ctx, f, s, args, limits, access.Record)
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
func (db *DB) writeSQL(ctx context.Context, f *file, s *statement, args arguments, limits doorLimits, record recorder) (r Result, err error) {
	err = db.alone(ctx, func(w *conn) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := f.door.takeWriter(f.path)
		if err != nil {
			return err
		}
		defer f.door.putWriter(c)
		f.markDirty()
		if r, err = c.transaction(ctx, s, args, limits, record); err == nil && (c.guard.changed["schedules"] || c.guard.changed["tasks"]) {
			db.planChanges(ctx, w)
		}
		w.touched |= workOfTables(c.guard.changed)
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
func (c *doorConn) transaction(ctx context.Context, s *statement, args arguments, limits doorLimits, record recorder) (r Result, err error) {
	if _, err := c.own("BEGIN IMMEDIATE"); err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			_, _ = c.own("ROLLBACK") // fails when SQLite has rolled back already
		}
		c.doubtful = c.doubtful || lib.Xsqlite3_get_autocommit(c.tls, c.db) == 0
	}()
	chain := ChainOf(ctx)
	before := [][]any{{int64(0)}}
	if chain.Depth > 0 {
		if before, err = c.own(lastEvent); err != nil {
			return r, err
		}
		if _, err = c.own(beginChain, chain.Root); err != nil {
			return r, err
		}
	}
	if r, err = c.run(ctx, s, args, limits); err != nil {
		return r, err
	}
	if chain.Depth > 0 {
		if _, err := c.own(endChain); err != nil {
			return r, err
		}
		if !chain.Remote {
			if _, err := c.own(notReceived, before[0][0]); err != nil {
				return r, err
			}
		}
		if _, err := c.own(setChain, int64(chain.Depth), chain.Root, before[0][0]); err != nil {
			return r, err
		}
	}
	if err := c.audit(ctx, s, r); err != nil {
		return r, err
	}
	if err := c.record(record, r); err != nil {
		return r, err
	}
	_, err = c.own("COMMIT")
	return r, err
}

// recorder is Access.Record.
type recorder func(Result) (executionID string, result agent.NodeResult, err error)

// record writes what a node becomes by a statement into its execution's journal.
func (c *doorConn) record(record recorder, r Result) error {
	if record == nil {
		return nil
	}
	id, result, err := record(r)
	if err != nil {
		return err
	}
	rows, err := c.own("SELECT 1 FROM executions WHERE id = ? AND status = 'running'", id)
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
	_, err = c.own(insertJournal, id, raw)
	return err
}

// audit logs a person's write: what kind and to which tables, not its values.
func (c *doorConn) audit(ctx context.Context, s *statement, r Result) error {
	actor := Actor(ctx)
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
