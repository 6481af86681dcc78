package store

import (
	"context"
	"time"

	"satchel/agent"
)

// Bounds of the rows that a source of type database is made of.
const (
	MaxSourceRows  = 50_000
	MaxSourceBytes = 16 << 20 // of all rows as JSON
	maxSourceTime  = 30 * time.Second
)

// Rows runs one SELECT through the SQL door, on its guarded connection and
// within its limits of memory, and returns at most limit rows, of at most
// MaxSourceBytes together; more is there when Truncated. With a limit of 0 it
// tells whether the query can be run, and its columns. Errors as those of SQL.
func (db *DB) Rows(ctx context.Context, query string, limit int) (Result, error) {
	s, err := parseStatement(query)
	if err != nil {
		return Result{}, err
	}
	if s.kind != "SELECT" {
		return Result{}, agent.Errorf(agent.CodeForbiddenOperation, "a %s statement gives no records; it must be a SELECT", s.kind).With("statement", s.kind)
	}
	limits := doorDefaults
	limits.rows, limits.bytes = limit, MaxSourceBytes
	if limit > 0 {
		limits.time = maxSourceTime
	}
	return db.sql(ctx, query, Params{}, Access{}, limits)
}
