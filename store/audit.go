package store

import (
	"context"
	"encoding/json"
	"fmt"

	"satchel/agent"
	"satchel/store/sqlite"
)

const insertLog = "INSERT INTO logs(id, level, source, message, data, created_at) VALUES (?,?,?,?,?,?)"

// log writes an entry of the agent's own log. data must hold no secret.
func (tx *Tx) log(level agent.Level, source, message string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("log data: %w", err)
	}
	_, err = tx.exec(
		insertLog,
		agent.NewID(agent.KindLog),
		level,
		source,
		message,
		string(raw),
		tx.Now,
	)
	return err
}

// audit logs a change made by a person or a key; the program's own changes are
// not audited.
func (tx *Tx) audit(message string, data map[string]any) error {
	if tx.actor == "" {
		return nil
	}
	if data == nil {
		data = map[string]any{}
	}
	data["by"] = tx.actor
	return tx.log(agent.LevelInfo, agent.SourceAudit, message, data)
}

// Audit logs an action by the request's person or key that does not write to the
// store, such as a backup.
func (db *DB) Audit(ctx context.Context, message string, data map[string]any) error {
	return db.Do(ctx, func(tx *Tx) error {
		return tx.audit(message, data)
	})
}

// Log writes an entry of the agent's own log. data must hold no secret.
func (db *DB) Log(ctx context.Context, level agent.Level, source, message string, data any) error {
	return db.Do(ctx, func(tx *Tx) error {
		return tx.log(level, source, message, data)
	})
}

// LogFilter narrows the list of log entries. From is inclusive, To exclusive;
// zero values do not narrow.
type LogFilter struct {
	From, To agent.Time
	Levels   []string
	Sources  []string
}

var logListing = listing[agent.Log]{listed{
	table:   "logs",
	columns: "id, level, source, message, data, created_at",
	order:   Order{"created_at", true},
	sort:    map[string]string{"created_at": "created_at", "level": "level", "source": "source"},
	search:  []string{"message", "data"},
}, func(rows *sqlite.Rows) (l agent.Log, err error) {
	return l, rows.Scan(&l.ID, &l.Level, &l.Source, &l.Message, (*rawJSON)(&l.Data), &l.CreatedAt)
}}

// Logs lists log entries, newest first, and returns their total number.
func (db *DB) Logs(ctx context.Context, lf LogFilter, p Page) ([]agent.Log, int, error) {
	var total int
	page, err := readSearch(
		ctx,
		db,
		p.Search,
		func(tx *Tx) (page []agent.Log, err error) {
			filter := lf.filter(p.Order)
			if filter.count != "" {
				counted := false
				if err := tx.value(
					&counted,
					"SELECT EXISTS (SELECT 1 FROM _filter_counts WHERE list = 'counted' AND value_1 = 'logs')",
				); err != nil {
					return nil, err
				}
				if !counted {
					filter.count, filter.indexed = "", false
					if err := tx.wantFor("logs", "logs_filtered"); err != nil {
						return nil, err
					}
				}
			}
			page, total, err = logListing.list(tx, filter, p)
			return page, err
		},
	)
	return page, total, err
}

func (lf LogFilter) filter(order []Order) (filter filter) {
	filter.in("level", lf.Levels...)
	filter.in("source", lf.Sources...)
	if len(filter.where) > 0 && lf.From.IsZero() && lf.To.IsZero() {
		filter.countBy("logs", "level", "source")
	}
	filter.indexed = len(filter.where) <= 1 && sortedBy(order, "created_at")
	if filter.indexed && len(filter.where) == 1 {
		filter.split = filter.where[0].column
	}
	if !lf.From.IsZero() {
		filter.add("created_at >= ?", lf.From)
	}
	if !lf.To.IsZero() {
		filter.add("created_at < ?", lf.To)
	}
	return filter
}

// listPage runs a listing in its own read transaction.
func listPage[T any](
	ctx context.Context,
	db *DB,
	l listing[T],
	f filter,
	p Page,
) ([]T, int, error) {
	var total int
	page, err := readSearch(ctx, db, p.Search, func(tx *Tx) (page []T, err error) {
		page, total, err = l.list(tx, f, p)
		return page, err
	})
	return page, total, err
}

// rawJSON scans a copy of a TEXT column into a json.RawMessage.
type rawJSON json.RawMessage

// Scan implements sql.Scanner; NULL becomes null.
func (r *rawJSON) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*r = rawJSON("null")
	case string:
		*r = rawJSON(v)
	case []byte:
		*r = append(rawJSON(nil), v...)
	default:
		return fmt.Errorf("cannot read JSON from %T", src)
	}
	return nil
}

// unmarshalInto decodes stored JSON into dst, over the defaults that it holds.
func unmarshalInto(raw rawJSON, dst any) error {
	if err := json.Unmarshal(raw, dst); err != nil {
		return fmt.Errorf("stored JSON: %w", err)
	}
	return nil
}
