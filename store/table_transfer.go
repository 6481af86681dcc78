package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"satchel/agent"
	"satchel/store/sqlite"
	"slices"
)

// eachRows is how many rows EachTableRow reads at a time, so that a slow reader does
// not hold a transaction open.
const eachRows = 500

// EachTableRow calls each with every row of a table, in the order in which they
// were added.
func (db *DB) EachTableRow(ctx context.Context, table *agent.Table, each func(json.RawMessage) error) error {
	query := fmt.Sprintf(
		"SELECT rowid, %s FROM %q WHERE rowid > ? ORDER BY rowid LIMIT ?",
		rowJSON(table),
		tablePrefix+table.Name,
	)
	for last := int64(-1 << 63); ; {
		batch, err := Read(ctx, db, func(tx *Tx) ([]json.RawMessage, error) {
			return all(tx, func(rows *sqlite.Rows) (raw json.RawMessage, err error) {
				var text string
				err = rows.Scan(&last, &text)
				return json.RawMessage(text), err
			}, query, last, eachRows)
		})
		if err != nil {
			return err
		}
		for _, raw := range batch {
			if err := each(raw); err != nil {
				return err
			}
		}
		if len(batch) < eachRows {
			return nil
		}
	}
}

// ImportRows writes rows of cells in one transaction, one outcome per row: each
// changes the row that has the same value in the column key, or is added. An
// empty key adds them all. A bad row is reported and does not stop the others.
// Without store nothing remains.
func (db *DB) ImportRows(
	ctx context.Context,
	table, key string,
	rows [][]agent.Cell,
	mode ImportMode,
) (out []Imported, err error) {
	err = db.Do(ctx, func(tx *Tx) error {
		t, err := tx.table(table)
		if err != nil {
			return err
		}
		if c, known := t.Column(key); key != "" && (!known || !c.Unique) {
			return agent.Invalid("key", "must be id or a column that is unique")
		}
		out = make([]Imported, len(rows))
		for i, cells := range rows {
			outcome, err := tx.importRow(&t, key, cells)
			var known *agent.Error
			if err != nil && !errors.As(err, &known) {
				return err
			}
			out[i] = Imported{outcome, err}
		}
		if mode == TryImport {
			return errDryRun
		}
		return tx.audit("rows imported", map[string]any{"table": table, "rows": len(rows)})
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return out, err
}

// ImportMode says whether an import stores anything.
type ImportMode bool

// Modes of an import.
const (
	StoreImport ImportMode = false
	TryImport   ImportMode = true
)

// isRowID reports whether a cell is the id of a row, so that an exported row that was
// deleted comes back as it was.
func isRowID(cell any) bool {
	text, ok := cell.(string)
	return ok && agent.IsID(agent.KindRow, text)
}

func (tx *Tx) importRow(table *agent.Table, key string, cells []agent.Cell) (string, error) {
	if i := slices.IndexFunc(cells, func(c agent.Cell) bool {
		return c.Column == key
	}); key != "" &&
		i >= 0 &&
		cells[i].Value != nil {
		rows, err := tx.updateCells(
			table,
			cells,
			fmt.Sprintf(" WHERE %q = ?", key),
			[]any{cells[i].Value},
		)
		if err != nil || len(rows) > 0 {
			return "updated", err
		}
	}
	own := slices.DeleteFunc(slices.Clone(cells), func(c agent.Cell) bool {
		return c.Column == "id" && !(key == "id" && isRowID(c.Value))
	})
	for _, c := range table.Columns {
		if c.Required && !slices.ContainsFunc(own, func(cell agent.Cell) bool { return cell.Column == c.Name }) {
			return "", agent.Invalid(c.Name, "is required")
		}
	}
	_, err := tx.insertCells(table, own, "")
	return "imported", err
}
