package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Tables lists the user's own tables by name.
func (db *DB) Tables(ctx context.Context) ([]agent.Table, error) {
	return Read(
		ctx,
		db,
		func(tx *Tx) ([]agent.Table, error) {
			return tx.tables("")
		},
	)
}

// Table reads the definition of one of the user's own tables.
func (db *DB) Table(ctx context.Context, name string) (agent.Table, error) {
	return Read(ctx, db, func(tx *Tx) (agent.Table, error) {
		return tx.table(name)
	})
}

// tables reads one table, or all.
func (tx *Tx) tables(name string) ([]agent.Table, error) {
	type row struct {
		sql  string
		rows int
	}
	found, err := all(
		tx,
		func(rows *sqlite.Rows) (r row, err error) {
			return r, rows.Scan(&r.sql, &r.rows)
		},
		`SELECT sql, coalesce((SELECT n FROM _counts c WHERE c.name = t.name), 0) FROM sqlite_schema t
		WHERE type = 'table' AND substr(name, 1, ?1) = ?2 AND (?3 = '' OR name = ?2 || ?3) ORDER BY name`,
		len(tablePrefix),
		tablePrefix,
		name,
	)
	tables := make([]agent.Table, 0, len(found))
	for _, r := range found {
		t, ok := parseTable(r.sql)
		if !ok {
			return nil, fmt.Errorf("the user's table cannot be parsed: %s", agent.Clip(r.sql, 100))
		}
		t.Rows = r.rows
		tables = append(tables, t)
	}
	return tables, err
}

func (tx *Tx) table(name string) (agent.Table, error) {
	if !agent.ValidTableName(name) {
		return agent.Table{}, noTable(name)
	}
	found, err := tx.tables(name)
	if err != nil {
		return agent.Table{}, err
	}
	if len(found) == 0 {
		return agent.Table{}, noTable(name)
	}
	return found[0], nil
}

func noTable(name string) error {
	return agent.Errorf(
		agent.CodeNotFound,
		"there is no table %s",
		agent.Clip(name, 60),
	).With("id", agent.Clip(name, 100))
}

// tableRecords reads tables for watchers.
func tableRecords(tx *Tx, ids string) (map[string]any, error) {
	var names []string
	if err := json.Unmarshal([]byte(ids), &names); err != nil {
		return nil, err
	}
	records := map[string]any{}
	for _, name := range names {
		t, err := tx.table(name)
		if agent.ErrorCode(err) == agent.CodeNotFound {
			continue
		} else if err != nil {
			return nil, err
		}
		records[name] = t
	}
	return records, nil
}

// CreateTable creates a table of the user's own.
func (db *DB) CreateTable(ctx context.Context, table agent.Table) (agent.Table, error) {
	table.Rows = 0
	if err := table.Validate(); err != nil {
		return table, err
	}
	return db.changeTables(ctx, func(tx *Tx) (agent.Table, error) {
		others, err := tx.tables("")
		if err != nil {
			return table, err
		}
		if len(others) >= agent.MaxTables {
			return table, agent.Errorf(agent.CodeConflict, "an agent may have at most %d tables", agent.MaxTables)
		}
		if err := tx.refuseTable(table.Name); err != nil {
			return table, err
		}
		if err := tx.conn.script(tableSQL(&table, tablePrefix+table.Name)); err != nil {
			return table, err
		}
		if _, err := tx.exec("INSERT OR REPLACE INTO _counts VALUES (?, 0)", tablePrefix+table.Name); err != nil {
			return table, err
		}
		tx.noteTable(table.Name, OpCreate)
		return table, errors.Join(tx.makeParts(&table), tx.audit("table created", map[string]any{"table": table.Name}))
	})
}

// refuseTable returns CONFLICT if a table of that name exists.
func (tx *Tx) refuseTable(name string) error {
	switch _, err := tx.table(name); {
	case err == nil:
		return agent.Errorf(agent.CodeConflict, "a table %s already exists", name).With("field", "name")
	case agent.ErrorCode(err) != agent.CodeNotFound:
		return err
	}
	return nil
}

// changeTables runs fn, which changes the schema, and makes the SQL sandbox
// reload it.
func (db *DB) changeTables(ctx context.Context, fn func(*Tx) (agent.Table, error)) (agent.Table, error) {
	t, err := Write(ctx, db, fn)
	if err != nil {
		return t, err
	}
	return t, db.ifOpen(func(f *file) error {
		f.sandbox.SchemaChanged()
		return nil
	})
}

// noteTable records for the watcher that a table was created, changed or
// deleted.
func (tx *Tx) noteTable(name string, op Op) {
	if tx.db.watcher.Load() != nil {
		tx.conn.note(Change{Kind: KindTable, ID: name, Op: op})
	}
}

func (tx *Tx) makeParts(t *agent.Table) error {
	for _, o := range tableParts(t) {
		if err := tx.conn.script(o.sql); err != nil {
			return err
		}
	}
	return nil
}

// DeleteTable deletes a table with its rows.
func (db *DB) DeleteTable(ctx context.Context, name string) error {
	_, err := db.changeTables(ctx, func(tx *Tx) (agent.Table, error) {
		t, err := tx.table(name)
		if err != nil {
			return t, err
		}
		if err := tx.dropTable(name); err != nil {
			return t, err
		}
		if _, err := tx.exec("DELETE FROM _counts WHERE name = ?", tablePrefix+name); err != nil {
			return t, err
		}
		tx.noteTable(name, OpDelete)
		return t, tx.audit("table deleted", map[string]any{"table": name, "rows": t.Rows})
	})
	return err
}

// dropTable drops a table with its triggers, which emits no events.
func (tx *Tx) dropTable(name string) error {
	return tx.conn.script(fmt.Sprintf("DROP VIEW _%[1]s_json; DROP TABLE %[1]q", tablePrefix+name))
}

// rebuiltTable is the name of a table while its rows are moved into it.
const rebuiltTable = "_data_rebuilt"

// UpdateTable renames a table or changes its columns. If a column gets another type,
// its values are converted. If a row would not fit, nothing is changed.
func (db *DB) UpdateTable(ctx context.Context, name string, wanted agent.TableChange) (agent.Table, error) {
	return db.changeTables(ctx, func(tx *Tx) (agent.Table, error) {
		old, err := tx.table(name)
		if err != nil {
			return old, err
		}
		table, from, err := wanted.Apply(old)
		if err != nil {
			return table, err
		}
		if table.Name != name {
			if err := tx.refuseTable(table.Name); err != nil {
				return table, err
			}
			tx.noteTable(name, OpDelete)
		}
		change := tx.rebuild
		if keepsRows(&old, &table, from) {
			change = tx.redefine
		}
		if err := change(&old, &table, from); err != nil {
			return table, err
		}
		tx.noteTable(table.Name, OpUpdate)
		return table, tx.audit("table updated", map[string]any{"table": table.Name})
	})
}

// keepsRows reports whether the rows stay unchanged when a table changes: its
// columns have other names or more options, are no longer required, or new ones are
// added at the end.
func keepsRows(old, table *agent.Table, from []string) bool {
	if len(table.Columns) < len(old.Columns) {
		return false
	}
	for index := range table.Columns {
		column := &table.Columns[index]
		if index >= len(old.Columns) {
			if from[index] != "" || column.Required || column.Unique {
				return false
			}
			continue
		}
		before := &old.Columns[index]
		removed := slices.ContainsFunc(before.Options, func(o string) bool {
			return !slices.Contains(column.Options, o)
		})
		if from[index] != before.Name ||
			column.Type != before.Type ||
			column.Unique != before.Unique ||
			column.Required && !before.Required ||
			removed {
			return false
		}
	}
	return true
}

// redefine changes the definition of a table without touching its rows; see
// https://www.sqlite.org/lang_altertable.html#otheralter.
func (tx *Tx) redefine(old, t *agent.Table, _ []string) error {
	table := tablePrefix + t.Name
	if err := tx.dropParts(old); err != nil {
		return err
	}
	if t.Name != old.Name {
		if err := tx.conn.script(fmt.Sprintf("ALTER TABLE %q RENAME TO %q", tablePrefix+old.Name, table)); err != nil {
			return err
		}
		if _, err := tx.exec("UPDATE _counts SET name = ? WHERE name = ?", table, tablePrefix+old.Name); err != nil {
			return err
		}
	}
	err := tx.conn.script(fmt.Sprintf(
		"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = %s WHERE type = 'table' AND name = '%s'; "+
			"PRAGMA writable_schema = RESET",
		quoteAll([]string{tableSQL(t, table)}),
		table,
	))
	if err != nil {
		return err
	}
	return tx.makeParts(t)
}

// dropParts drops the view and the triggers of a table.
func (tx *Tx) dropParts(t *agent.Table) error {
	for _, o := range tableParts(t) {
		if err := tx.conn.script(fmt.Sprintf("DROP %s %s", o.kind, o.name)); err != nil {
			return err
		}
	}
	return nil
}

// rebuild creates a table anew, moves the rows into it and replaces the old one with
// it, so that its statement is one that tableSQL writes.
func (tx *Tx) rebuild(old, table *agent.Table, from []string) error {
	if err := tx.conn.script(tableSQL(table, rebuiltTable)); err != nil {
		return err
	}
	columns, values := []string{`"id"`, `"created_at"`, `"updated_at"`}, []string{
		`"id"`,
		`"created_at"`,
		`"updated_at"`,
	}
	for i := range table.Columns {
		if c, ok := old.Column(from[i]); ok && from[i] != "" {
			columns, values =
				append(columns, quoted(table.Columns[i].Name)), append(values, conversion(&c, &table.Columns[i]))
		}
	}
	err := tx.conn.script(fmt.Sprintf(
		"INSERT INTO %s (%s) SELECT %s FROM %q ORDER BY rowid",
		rebuiltTable,
		strings.Join(columns, ", "),
		strings.Join(values, ", "),
		tablePrefix+old.Name,
	))
	if err != nil {
		return refusedColumn(err, table)
	}
	if err := tx.dropTable(old.Name); err != nil {
		return err
	}
	if err := tx.conn.script(fmt.Sprintf(
		"ALTER TABLE %s RENAME TO %q",
		rebuiltTable, tablePrefix+table.Name,
	)); err != nil {
		return err
	}
	if _, err := tx.exec(
		"UPDATE _counts SET name = ? WHERE name = ?",
		tablePrefix+table.Name, tablePrefix+old.Name,
	); err != nil {
		return err
	}
	return tx.makeParts(table)
}

func quoted(column string) string { return `"` + column + `"` }

// conversion returns an expression that converts a column's values to another type. A
// value that cannot be converted violates a constraint of the new column.
func conversion(from, to *agent.TableColumn) string {
	value := quoted(from.Name)
	text := from.Type == agent.ColumnText || from.Type == agent.ColumnChoice || from.Type == agent.ColumnTime
	switch {
	case from.Type == to.Type:
		return value
	case to.Type == agent.ColumnJSON && text:
		return fmt.Sprintf("iif(%[1]s IS NULL OR json_valid(%[1]s), %[1]s, json_quote(%[1]s))", value)
	case from.Type == agent.ColumnBoolean && to.Type != agent.ColumnNumber:
		return fmt.Sprintf("iif(%[1]s IS NULL, NULL, iif(%[1]s, 'true', 'false'))", value)
	case from.Type == agent.ColumnNumber && to.Type == agent.ColumnBoolean:
		return value
	case from.Type == agent.ColumnNumber:
		return fmt.Sprintf(
			"iif(%[1]s = CAST(%[1]s AS INTEGER) AND abs(%[1]s) < 1e15, CAST(CAST(%[1]s AS INTEGER) AS "+
				"TEXT), CAST(%[1]s AS TEXT))",
			value,
		)
	case to.Type == agent.ColumnBoolean && text:
		return fmt.Sprintf(`CASE lower(trim(%[1]s)) WHEN 'true' THEN 1 WHEN 'yes' THEN 1 WHEN '1' THEN 1
			WHEN 'false' THEN 0 WHEN 'no' THEN 0 WHEN '0' THEN 0 WHEN '' THEN NULL ELSE %[1]s END`, value)
	case to.Type != agent.ColumnText && text:
		return fmt.Sprintf("nullif(trim(%s), '')", value)
	}
	return value
}

// brokenColumn finds the column in SQLite's message about a constraint.
var brokenColumn = regexp.MustCompile(`(?:constraint failed: |column )(?:[a-z0-9_]+\.)?([A-Za-z0-9_ ]+)`)

// refusedColumn explains why rows do not fit into a table's columns.
func refusedColumn(err error, table *agent.Table) error {
	code := sqliteCode(err)
	if code&0xff != codeConstraint {
		return err
	}
	column := ""
	if found := brokenColumn.FindStringSubmatch(err.Error()); found != nil {
		column = strings.TrimSpace(found[1])
	}
	issue := "would not hold the values of all rows: change those first"
	switch {
	case isUnique(err):
		issue = "would not be unique: two rows have the same value"
	case code == codeNotNull:
		issue = "would be required, and a row has no value for it"
	case column == rowSize:
		return agent.Invalid(
			"columns",
			fmt.Sprintf("would make a row longer than %d KB", agent.MaxRowBytes>>10),
		).Because(err)
	}
	for i, c := range table.Columns {
		if c.Name == column {
			return agent.Invalid(fmt.Sprintf("columns[%d]", i), issue).With("column", column).Because(err)
		}
	}
	return agent.Invalid("columns", cmp.Or(issue, "would not hold all rows")).Because(err)
}
