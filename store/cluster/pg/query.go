package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNoRows is returned by Scanner.Scan if there is no row.
var ErrNoRows = errors.New("no rows in the result")

// errRolledBack reports that a transaction was rolled back instead of committed, since one
// of its statements had failed.
var errRolledBack = errors.New("the transaction was rolled back")

// executor executes statements: those of a Pool each on any of its connections, those of
// a Tx on its own. Statements with arguments are prepared once for each connection, so
// different values must be arguments.
type executor struct {
	acquire func(context.Context) (*conn, error)
	release func(*conn)
}

// Query executes a statement while its rows are iterated over. Its last value has the
// error, if there is one: only without it has the statement been executed.
func (e executor) Query(ctx context.Context, sql string, args ...any) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		wanted := true
		_, err := e.run(ctx, Batch{{sql, args, func(row Row) error {
			if wanted = wanted && yield(row, nil); !wanted {
				return errors.New("no more rows are wanted")
			}
			return nil
		}}})
		if err != nil && wanted {
			yield(Row{}, err)
		}
	}
}

// QueryRow returns a Scanner of the first row of a statement.
func (e executor) QueryRow(ctx context.Context, sql string, args ...any) Scanner {
	return func(to ...any) error {
		result := ErrNoRows
		for row, err := range e.Query(ctx, sql, args...) {
			if err != nil {
				return err
			}
			if errors.Is(result, ErrNoRows) {
				result = row.Scan(to...)
			}
		}
		return result
	}
}

// Scanner executes a statement and stores the columns of a row in variables.
type Scanner func(to ...any) error

// Scan calls the function.
func (s Scanner) Scan(to ...any) error { return s(to...) }

// Exec executes a statement or, without arguments, any number of them.
func (e executor) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if len(args) > 0 {
		return e.run(ctx, Batch{{sql, args, nil}})
	}
	c, err := e.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer e.release(c)
	return c.exec(ctx, sql)
}

// Batch is a list of statements.
type Batch []struct {
	SQL  string
	Args []any
	Read func(Row) error // called for each row; may be nil
}

// ExecBatch executes statements with one request, and in one transaction.
func (e executor) ExecBatch(ctx context.Context, b Batch) error {
	_, err := e.run(ctx, b)
	return err
}

// run executes statements, and returns what the last one has done.
func (e executor) run(ctx context.Context, batch Batch) (done pgconn.CommandTag, err error) {
	conn, err := e.acquire(ctx)
	if err != nil {
		return done, err
	}
	defer e.release(conn)
	request := &pgconn.Batch{}
	for _, q := range batch {
		prepared, err := conn.prepare(ctx, q.SQL)
		if err != nil {
			return done, err
		}
		values, formats, err := encode(q.Args)
		if err != nil {
			return done, err
		}
		request.ExecStatement(prepared, values, formats, resultFormats)
	}
	results := conn.ExecBatch(ctx, request)
	for i := 0; err == nil && results.NextResult(); i++ {
		rows := results.ResultReader()
		for err == nil && rows.NextRow() {
			if batch[i].Read != nil {
				err = batch[i].Read(Row{rows})
			}
		}
		done, _ = rows.Close() // results has the error
	}
	return done, cmp.Or(results.Close(), err)
}

// prepare prepares a statement, unless the connection has it already.
func (c *conn) prepare(ctx context.Context, sql string) (*pgconn.StatementDescription, error) {
	if s := c.prepared[sql]; s != nil {
		return s, nil
	}
	s, err := c.Prepare(ctx, strconv.Itoa(len(c.prepared)), sql, nil)
	if err == nil {
		c.prepared[sql] = s
	}
	return s, err
}

// exec executes statements without preparing them.
func (c *conn) exec(ctx context.Context, sql string) (done pgconn.CommandTag, err error) {
	results := c.Exec(ctx, sql)
	for results.NextResult() {
		done, _ = results.ResultReader().Close()
	}
	return done, results.Close()
}

// Row is a row of a result. It is valid until the next one is read.
type Row struct{ result *pgconn.ResultReader }

// Scan stores the columns of the row in variables.
func (r Row) Scan(to ...any) error {
	values, fields := r.result.Values(), r.result.FieldDescriptions()
	if len(values) != len(to) {
		return fmt.Errorf("the row has %d columns, not %d", len(values), len(to))
	}
	for i, v := range values {
		if err := decode(fields[i].DataTypeOID, v, to[i]); err != nil {
			return fmt.Errorf("column %q: %w", fields[i].Name, err)
		}
	}
	return nil
}

// Tx is a transaction.
type Tx struct {
	executor
	conn *conn
	end  func(*conn)
}

// Snapshot begins a transaction that reads the database as of one moment. The caller must
// roll it back.
func (p *Pool) Snapshot(ctx context.Context) (*Tx, error) {
	return p.begin(ctx, "begin isolation level repeatable read read only")
}

// Transact executes do in a transaction, and commits it unless do fails.
func (p *Pool) Transact(ctx context.Context, do func(*Tx) error) error {
	tx, err := p.begin(ctx, "begin")
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if err := do(tx); err != nil {
		return err
	}
	done, err := tx.conn.exec(ctx, "commit")
	if err == nil && done.String() == "ROLLBACK" {
		err = errRolledBack
	}
	return err
}

func (p *Pool) begin(ctx context.Context, sql string) (*Tx, error) {
	c, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.exec(ctx, sql); err != nil {
		p.release(c)
		return nil, err
	}
	own := executor{func(context.Context) (*conn, error) { return c, nil }, func(*conn) {}}
	return &Tx{own, c, p.release}, nil
}

// Rollback ends a transaction that was not committed. If the database does not answer, the
// connection is closed, and the database rolls it back.
func (t *Tx) Rollback(ctx context.Context) {
	if t.conn.TxStatus() != noTransaction {
		_, _ = t.conn.exec(ctx, "rollback")
	}
	t.end(t.conn)
}
