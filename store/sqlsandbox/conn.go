package sqlsandbox

import (
	"context"
	"fmt"

	lib "modernc.org/sqlite/lib"

	"satchel/store/sqlite"
)

// Conn is a connection of the sandbox to a file, for use by one goroutine at a time.
type Conn struct {
	sql     *sqlite.Conn
	guard   guard
	schemas int // Pool.schemas when it was opened

	suspect bool // a failure may have left it in a bad state: close it
}

// openConn opens a connection. Its guard refuses to compile every statement, except those
// that Run allows and those of Trusted.
func openConn(source sqlite.Source) (*Conn, error) {
	c := &Conn{}
	c.guard.open = true
	defer func() { c.guard.open = false }()
	source.Prepare = c.setUp
	var err error
	if c.sql, err = sqlite.Open(source); err != nil {
		return nil, fmt.Errorf("open a connection of the SQL sandbox: %w", err)
	}
	return c, nil
}

// configSwitches are settings of a connection that SQL cannot change, see
// https://www.sqlite.org/c3ref/c_dbconfig_defensive.html.
var configSwitches = map[int32]bool{
	lib.SQLITE_DBCONFIG_DEFENSIVE:             true,
	lib.SQLITE_DBCONFIG_TRUSTED_SCHEMA:        false,
	lib.SQLITE_DBCONFIG_DQS_DML:               false, // "x" is a name and never a string, so a slip is an error
	lib.SQLITE_DBCONFIG_DQS_DDL:               false,
	lib.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: false,
	lib.SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE:  false,
	lib.SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE:   false,
}

// runtimeLimits are SQLite's run-time limits, see
// https://www.sqlite.org/c3ref/c_limit_attached.html.
var runtimeLimits = map[int32]int32{
	lib.SQLITE_LIMIT_SQL_LENGTH:          maxQuery,
	lib.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: maxPattern,
	lib.SQLITE_LIMIT_COLUMN:              200,
	lib.SQLITE_LIMIT_FUNCTION_ARG:        100,
	lib.SQLITE_LIMIT_TRIGGER_DEPTH:       20,
	lib.SQLITE_LIMIT_VDBE_OP:             1_000_000,
	lib.SQLITE_LIMIT_ATTACHED:            0,
	lib.SQLITE_LIMIT_WORKER_THREADS:      0,
	lib.SQLITE_LIMIT_LENGTH:              longestValue,
}

func (c *Conn) setUp(conn *sqlite.Conn) error {
	if err := conn.Authorize(c.guard.allows); err != nil {
		return err
	}
	for setting, on := range configSwitches {
		if err := conn.Configure(setting, on); err != nil {
			return err
		}
	}
	for kind, value := range runtimeLimits {
		conn.Limit(kind, value)
	}
	return nil
}

// limitValues sets the maximum length of a value, in bytes, and returns the previous one;
// -1 only returns it.
func (c *Conn) limitValues(n int) int {
	return c.sql.Limit(lib.SQLITE_LIMIT_LENGTH, int32(n))
}

func (c *Conn) close() error { return c.sql.Close() }

// limit bounds what the connection's statements may use until unlimit.
func (c *Conn) limit(ctx context.Context, limits Limits) {
	c.sql.SetLimits(ctx, sqlite.Budget{Memory: limits.Memory, Temp: limits.Temp})
}

// Trusted runs one of the program's own statements and returns all of its rows.
func (c *Conn) Trusted(query string, args ...any) ([][]any, error) {
	c.guard.open = true
	defer func() { c.guard.open = false }()
	stmt, err := c.sql.Prepare(query)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	if err := stmt.Bind(args...); err != nil {
		return nil, err
	}
	columns := len(stmt.Columns())
	var rows [][]any
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return rows, err
		}
		row := make([]any, columns)
		for i := range row {
			row[i] = stmt.Value(i)
		}
		rows = append(rows, row)
	}
}

// OnRow sets a function that is called for each row that the transaction
// changes from now on, including through triggers and foreign keys.
func (c *Conn) OnRow(fn sqlite.RowFunc) {
	c.sql.OnRow(fn)
}
