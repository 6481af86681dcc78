package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Recorder receives the rows that a write created or changed, and returns the
// result of a node: both are committed, or neither. The error is ErrEnded if
// the execution has ended since. It may be nil.
type Recorder func(rows []json.RawMessage) (executionID string, result agent.NodeResult, err error)

func scanRow(rows *sqlite.Rows) (raw json.RawMessage, err error) {
	var text string
	err = rows.Scan(&text)
	return json.RawMessage(text), err
}

// TableRows lists rows of a table, as JSON with their columns in order, and counts
// all that match.
func (db *DB) TableRows(
	ctx context.Context,
	table string,
	q RowQuery,
) (t agent.Table, rows []json.RawMessage, total int, err error) {
	err = db.read(ctx, true, func(tx *Tx) error {
		if t, err = tx.table(table); err != nil {
			return err
		}
		rows, total, err = tx.rows(&t, q)
		return err
	})
	return t, rows, total, err
}

func (tx *Tx) rows(table *agent.Table, query RowQuery) ([]json.RawMessage, int, error) {
	where, args, err := rowFilter(table, query.Where, query.Search)
	if err != nil {
		return nil, 0, err
	}
	order, err := rowOrder(table, query.Order)
	if err != nil {
		return nil, 0, err
	}
	total := table.Rows
	if where != "" {
		if err := tx.value(
			&total,
			fmt.Sprintf("SELECT count(*) FROM %q%s", tablePrefix+table.Name, where),
			args...,
		); err != nil {
			return nil, 0, err
		}
	}
	rows, err := all(
		tx,
		scanRow,
		fmt.Sprintf("SELECT %s FROM %q%s%s LIMIT ? OFFSET ?", rowJSON(table), tablePrefix+table.Name, where, order),
		append(args, query.Limit, query.Offset)...,
	)
	return rows, total, err
}

// Row reads one row of a table.
func (db *DB) Row(ctx context.Context, table, id string) (json.RawMessage, error) {
	return Read(ctx, db, func(tx *Tx) (json.RawMessage, error) {
		t, err := tx.table(table)
		if err != nil {
			return nil, err
		}
		return tx.rowOf(&t, id)
	})
}

func (tx *Tx) rowOf(t *agent.Table, id string) (json.RawMessage, error) {
	found, err := all(tx, scanRow, fmt.Sprintf("SELECT %s FROM %q WHERE id = ?", rowJSON(t), tablePrefix+t.Name), id)
	if err == nil && len(found) == 0 {
		return nil, agent.NotFound("row", id)
	} else if err != nil {
		return nil, err
	}
	return found[0], nil
}

// writeRows runs fn, which changes rows of a table, and records them.
func (db *DB) writeRows(
	ctx context.Context,
	table, done string,
	record Recorder,
	fn func(*Tx, *agent.Table) ([]json.RawMessage, error),
) ([]json.RawMessage, error) {
	return Write(ctx, db, func(tx *Tx) ([]json.RawMessage, error) {
		t, err := tx.table(table)
		if err != nil {
			return nil, err
		}
		rows, err := fn(tx, &t)
		if err != nil {
			return nil, err
		}
		if record != nil {
			return rows, tx.recordNode(func() (string, agent.NodeResult, error) { return record(rows) })
		}
		return rows, tx.audit(done, map[string]any{"table": table, "rows": len(rows)})
	})
}

// recordNode writes a node's result into its execution's journal.
func (tx *Tx) recordNode(record func() (string, agent.NodeResult, error)) error {
	id, result, err := record()
	if err != nil {
		return err
	}
	var running bool
	if err := tx.value(
		&running,
		"SELECT EXISTS (SELECT 1 FROM executions WHERE id = ? AND status = 'running')",
		id,
	); err != nil {
		return err
	}
	if !running {
		return ErrEnded
	}
	return tx.appendJournal(id, []agent.NodeResult{result})
}

// InsertRows adds rows to a table and returns them.
func (db *DB) InsertRows(
	ctx context.Context,
	table string,
	rows []agent.Row,
	record Recorder,
) ([]json.RawMessage, error) {
	return db.writeRows(ctx, table, "rows added", record, func(tx *Tx, t *agent.Table) ([]json.RawMessage, error) {
		added := make([]json.RawMessage, 0, len(rows))
		for i, row := range rows {
			field := ""
			if len(rows) > 1 {
				field = fmt.Sprintf("rows[%d]", i)
			}
			raw, err := tx.insertRow(t, row, field)
			if err != nil {
				return nil, err
			}
			added = append(added, raw)
		}
		return added, nil
	})
}

func (tx *Tx) insertRow(t *agent.Table, row agent.Row, field string) (json.RawMessage, error) {
	cells, err := t.Cells(row, true, field)
	if err != nil {
		return nil, err
	}
	return tx.insertCells(t, cells, field)
}

func (tx *Tx) insertCells(table *agent.Table, cells []agent.Cell, field string) (json.RawMessage, error) {
	columns, args := []string{`"id"`, `"created_at"`, `"updated_at"`}, []any{agent.NewID(agent.KindRow), tx.Now, tx.Now}
	for _, c := range cells {
		if c.Column == "id" { // of an import
			args[0] = c.Value
			continue
		}
		columns, args = append(columns, quoted(c.Column)), append(args, c.Value)
	}
	added, err := all(tx, scanRow, fmt.Sprintf(
		"INSERT INTO %q (%s) VALUES (%s) RETURNING %s",
		tablePrefix+table.Name,
		strings.Join(columns, ", "),
		placeholders(len(args)),
		rowJSON(table),
	), args...)
	if err != nil {
		return nil, rowError(err, table, field)
	}
	return added[0], nil
}

// UpdateRow changes the given columns of a row.
func (db *DB) UpdateRow(ctx context.Context, table, id string, row agent.Row) (json.RawMessage, error) {
	rows, err := db.writeRows(ctx, table, "row updated", nil, func(tx *Tx, t *agent.Table) ([]json.RawMessage, error) {
		rows, err := tx.updateRows(t, row, ` WHERE "id" = ?`, []any{id})
		if err == nil && len(rows) == 0 {
			err = agent.NotFound("row", id)
		}
		return rows, err
	})
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

func (tx *Tx) updateRows(t *agent.Table, row agent.Row, where string, args []any) ([]json.RawMessage, error) {
	cells, err := t.Cells(row, false, "")
	if err != nil {
		return nil, err
	}
	return tx.updateCells(t, cells, where, args)
}

func (tx *Tx) updateCells(t *agent.Table, cells []agent.Cell, where string, args []any) ([]json.RawMessage, error) {
	set, values := []string{`"updated_at" = ?`}, []any{tx.Now}
	for _, c := range cells {
		if c.Column == "id" {
			continue
		}
		set, values = append(set, quoted(c.Column)+" = ?"), append(values, c.Value)
	}
	rows, err := all(
		tx,
		scanRow,
		fmt.Sprintf("UPDATE %q SET %s%s RETURNING %s", tablePrefix+t.Name, strings.Join(set, ", "), where, rowJSON(t)),
		append(values, args...)...,
	)
	return rows, rowError(err, t, "")
}

// UpdateRows changes the rows that match the conditions, at most MaxRowBatch.
func (db *DB) UpdateRows(
	ctx context.Context,
	table string,
	where []agent.RowCondition,
	row agent.Row,
	record Recorder,
) ([]json.RawMessage, error) {
	return db.writeRows(ctx, table, "rows updated", record, func(tx *Tx, t *agent.Table) ([]json.RawMessage, error) {
		text, args, err := tx.smallRowFilter(t, where)
		if err != nil {
			return nil, err
		}
		return tx.updateRows(t, row, text, args)
	})
}

// smallRowFilter returns the WHERE clause of conditions that not too many rows match. At
// least one condition is required, so that omitting them does not change all rows.
func (tx *Tx) smallRowFilter(table *agent.Table, where []agent.RowCondition) (string, []any, error) {
	if len(where) == 0 {
		return "", nil, agent.Invalid("where", "must have at least one condition")
	}
	text, args, err := rowFilter(table, where, "")
	if err != nil {
		return "", nil, err
	}
	var n int
	err = tx.value(&n, fmt.Sprintf("SELECT count(*) FROM %q%s", tablePrefix+table.Name, text), args...)
	if err == nil && n > agent.MaxRowBatch {
		err = agent.Errorf(
			agent.CodeValidation,
			"%d rows match the conditions; at most %d can be changed at once",
			n, agent.MaxRowBatch,
		).With("field", "where")
	}
	return text, args, err
}

// DeleteRow deletes one row.
func (db *DB) DeleteRow(ctx context.Context, table, id string) error {
	_, err := db.writeRows(ctx, table, "row deleted", nil, func(tx *Tx, t *agent.Table) ([]json.RawMessage, error) {
		rows, err := tx.deleteRows(t, ` WHERE "id" = ?`, []any{id})
		if err == nil && len(rows) == 0 {
			err = agent.NotFound("row", id)
		}
		return rows, err
	})
	return err
}

func (tx *Tx) deleteRows(t *agent.Table, where string, args []any) ([]json.RawMessage, error) {
	return all(
		tx,
		scanRow,
		fmt.Sprintf("DELETE FROM %q%s RETURNING %s", tablePrefix+t.Name, where, rowJSON(t)),
		args...,
	)
}

// DeleteRows deletes the rows that match the conditions, at most MaxRowBatch, and
// returns them.
func (db *DB) DeleteRows(
	ctx context.Context,
	table string,
	where []agent.RowCondition,
	record Recorder,
) ([]json.RawMessage, error) {
	return db.writeRows(ctx, table, "rows deleted", record, func(tx *Tx, t *agent.Table) ([]json.RawMessage, error) {
		text, args, err := tx.smallRowFilter(t, where)
		if err != nil {
			return nil, err
		}
		return tx.deleteRows(t, text, args)
	})
}

// UpsertRecorder is Recorder for a row that was changed or, isNew, added.
type UpsertRecorder func(row json.RawMessage, isNew bool) (executionID string, result agent.NodeResult, err error)

// UpsertRow changes the row that has the same value in a column, or adds one.
// The column is id, or one that is unique.
func (db *DB) UpsertRow(
	ctx context.Context,
	table, key string,
	row agent.Row,
	record UpsertRecorder,
) (raw json.RawMessage, isNew bool, err error) {
	var done Recorder
	if record != nil {
		done = func(rows []json.RawMessage) (string, agent.NodeResult, error) {
			return record(rows[0], isNew)
		}
	}
	rows, err := db.writeRows(ctx, table, "row written", done, func(tx *Tx, t *agent.Table) ([]json.RawMessage, error) {
		column, known := t.Column(key)
		if !known || !column.Unique {
			return nil, agent.Invalid("key", "must be id or a column that is unique")
		}
		raw, isNew, err = tx.upsertRow(t, &column, row)
		return []json.RawMessage{raw}, err
	})
	if err != nil {
		return nil, false, err
	}
	return rows[0], isNew, nil
}

func (tx *Tx) upsertRow(
	table *agent.Table,
	key *agent.TableColumn,
	row agent.Row,
) (raw json.RawMessage, isNew bool, err error) {
	value, issue := key.Parse(row[key.Name])
	if issue == "" && value == nil {
		issue = "is required: the row is found by it"
	}
	if issue != "" {
		return nil, false, agent.Invalid(key.Name, issue)
	}
	rows, err := tx.updateRows(table, row, " WHERE "+quoted(key.Name)+" = ?", []any{value})
	if err != nil || len(rows) > 0 {
		if err == nil {
			raw = rows[0]
		}
		return raw, false, err
	}
	if key.Name == "id" {
		return nil, false, agent.NotFound("row", fmt.Sprint(value))
	}
	raw, err = tx.insertRow(table, row, "")
	return raw, true, err
}

// rowError explains why a row could not be written. Its values have been checked,
// except against other rows.
func rowError(err error, table *agent.Table, field string) error {
	if sqliteCode(err)&0xff != codeConstraint {
		return err
	}
	column := ""
	if found := brokenColumn.FindStringSubmatch(err.Error()); found != nil {
		column = strings.TrimSpace(found[1])
	}
	where := column
	if field != "" {
		where = field + "." + column
	}
	switch {
	case isUnique(err):
		return agent.Errorf(agent.CodeConflict, "another row of the table %s has this %s", table.Name, column).
			With("field", where).
			With("column", column).
			Because(err)
	case column == rowSize:
		return agent.Invalid("row", fmt.Sprintf("must have at most %d KB", agent.MaxRowBytes>>10)).Because(err)
	}
	return agent.Invalid(where, "does not hold this value").Because(err)
}
