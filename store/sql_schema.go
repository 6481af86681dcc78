package store

import (
	"cmp"
	"context"
	_ "embed"
	"strings"
	"sync"

	"satchel/store/sqlite"
)

// Table is a table that is open to SQL.
type Table struct {
	Name        string   `json:"name" example:"contacts"`
	Description string   `json:"description" example:"People whom the agent deals with."`
	Columns     []Column `json:"columns"`
}

// Column is a column of a Table.
type Column struct {
	Name        string `json:"name" example:"email"`
	Type        string `json:"type" example:"TEXT"`
	Nullable    bool   `json:"nullable"`
	PrimaryKey  bool   `json:"primary_key"`
	Description string `json:"description" example:"Email address; one contact has it, in whatever case."`
}

//go:embed descriptions.txt
var descriptionsText string

// descriptions say what each table and column contains, by the name of the table and
// by "table.column". A column of anyTable is described for all tables that do not
// describe it themselves.
var descriptions = sync.OnceValue(func() map[string]string {
	return readDescriptions(descriptionsText)
})

const anyTable = "any table"

// readDescriptions reads lines of the form "name: text": a table, followed by its
// columns, indented.
func readDescriptions(text string) map[string]string {
	found := map[string]string{}
	table := ""
	for line := range strings.Lines(text) {
		name, description, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if column, ok := strings.CutPrefix(name, "  "); ok {
			name = table + "." + column
		} else {
			table = name
		}
		found[name] = description
	}
	return found
}

// describe returns what a column contains.
func describe(table, column string) string {
	return cmp.Or(descriptions()[table+"."+column], descriptions()[anyTable+"."+column])
}

// describeTable returns what a table contains.
func describeTable(name string) string {
	if own, ok := strings.CutPrefix(name, tablePrefix); ok {
		return "Rows of the agent's own table " + own + "."
	}
	return descriptions()[name]
}

// Schema lists the tables that are open to SQL, by name, with their columns.
func (db *DB) Schema(ctx context.Context) ([]Table, error) {
	return Read(ctx, db, func(tx *Tx) ([]Table, error) {
		type row struct {
			table string
			Column
		}
		columns, err := all(tx, func(rows *sqlite.Rows) (r row, err error) {
			return r, rows.Scan(&r.table, &r.Name, &r.Type, &r.Nullable, &r.PrimaryKey)
		}, `SELECT t.name, c.name, c.type, c."notnull" = 0 AND c.pk = 0, c.pk > 0
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND substr(t.name, 1, 1) <> '_' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'
			ORDER BY t.name, c.cid`)
		tables := []Table{}
		for _, c := range columns {
			if n := len(tables); n == 0 || tables[n-1].Name != c.table {
				tables = append(tables, Table{
					Name:        c.table,
					Description: describeTable(c.table),
					Columns:     []Column{},
				})
			}
			c.Description = describe(c.table, c.Name)
			last := &tables[len(tables)-1]
			last.Columns = append(last.Columns, c.Column)
		}
		return tables, err
	})
}
