package store

import (
	"context"
	"database/sql"
)

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
