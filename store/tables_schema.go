package store

import (
	"fmt"
	"maps"
	"strings"

	"satchel/agent"
)

// A user's own table is a STRICT table with triggers that count its rows and write
// its events. Its definition exists only in the statement that created it:
// parseTable parses that and accepts only what tableSQL writes. So a file can have
// any tables of this form, and nothing else.

// tablePrefix is the prefix of such tables' names in SQL.
const tablePrefix = "data_"

const (
	rowIDColumn   = `  "id" TEXT PRIMARY KEY NOT NULL DEFAULT ('row-' || lower(hex(randomblob(10)))),`
	rowTimeColumn = `  %q TEXT NOT NULL DEFAULT (strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ','now')) ` +
		`CONSTRAINT %q CHECK (%q GLOB ` +
		timePattern + `),`
	timePattern = `'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'`
	rowSize     = "row size" // the constraint that limits a row
)

// tableSQL returns the statement that creates a table under a name in SQL.
func tableSQL(table *agent.Table, name string) string {
	lines := []string{fmt.Sprintf("CREATE TABLE %q (", name), rowIDColumn}
	for _, c := range []string{"created_at", "updated_at"} {
		lines = append(lines, fmt.Sprintf(rowTimeColumn, c, c, c))
	}
	sizes := []string{`octet_length("id")`}
	for i := range table.Columns {
		c := &table.Columns[i]
		lines = append(lines, "  "+columnSQL(c)+",")
		if c.Type != agent.ColumnNumber && c.Type != agent.ColumnBoolean {
			sizes = append(sizes, fmt.Sprintf("coalesce(octet_length(%q),0)", c.Name))
		}
	}
	lines = append(
		lines,
		fmt.Sprintf("  CONSTRAINT %q CHECK (%s <= %d)", rowSize, joinBalanced(sizes, " + "), agent.MaxRowBytes),
		") STRICT",
	)
	return strings.Join(lines, "\n")
}

// columnSQL defines a column: "name" TYPE [NOT NULL] [UNIQUE] [CONSTRAINT "name"
// CHECK (…)].
func columnSQL(column *agent.TableColumn) string {
	kind, check := "TEXT", ""
	switch column.Type {
	case agent.ColumnNumber:
		kind, check = "REAL", `%[1]q > -9e999 AND %[1]q < 9e999`
	case agent.ColumnBoolean:
		kind, check = "INTEGER", `%[1]q IN (0,1)`
	case agent.ColumnTime:
		check = `%[1]q GLOB ` + timePattern
	case agent.ColumnJSON:
		check = `json_valid(%[1]q)`
	case agent.ColumnChoice:
		check = `%[1]q IN (` + strings.ReplaceAll(quoteAll(column.Options), "%", "%%") + `)`
	default:
		if column.Required {
			check = `%[1]q <> ''`
		}
	}
	def := fmt.Sprintf("%q %s", column.Name, kind)
	if column.Required {
		def += " NOT NULL"
	}
	if column.Unique {
		def += " UNIQUE"
	}
	if check != "" {
		def += fmt.Sprintf(" CONSTRAINT %q CHECK (", column.Name) + fmt.Sprintf(check, column.Name) + ")"
	}
	return def
}

// quoteAll returns texts as a list of string literals.
func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = "'" + strings.ReplaceAll(t, "'", "''") + "'"
	}
	return strings.Join(quoted, ",")
}

// joinBalanced joins terms with an operator in nested groups, so that the expression of
// a wide table is not deep.
func joinBalanced(terms []string, operator string) string {
	for len(terms) > 8 {
		var groups []string
		for ; len(terms) > 8; terms = terms[8:] {
			groups = append(groups, "("+strings.Join(terms[:8], operator)+")")
		}
		terms = append(groups, "("+strings.Join(terms, operator)+")")
	}
	return strings.Join(terms, operator)
}

// rowJSON returns an expression for a row as JSON, of columns with a prefix such as
// "new.".
func rowJSON(t *agent.Table) string {
	terms := []string{`'{"id":' || json_quote("id")`}
	for _, c := range append(append([]agent.TableColumn{}, t.Columns...), agent.RowColumns[1:]...) {
		terms = append(terms, fmt.Sprintf(`',"%s":' || %s`, c.Name, cellJSON(&c)))
	}
	return joinBalanced(append(terms, "'}'"), " || ")
}

func cellJSON(c *agent.TableColumn) string {
	switch c.Type {
	case agent.ColumnNumber: // whole numbers without a fraction
		return fmt.Sprintf(
			`json_quote(iif(%[1]q = CAST(%[1]q AS INTEGER) AND abs(%[1]q) < 1e15, CAST(%[1]q AS INTEGER), %[1]q))`,
			c.Name,
		)
	case agent.ColumnBoolean:
		return fmt.Sprintf(`iif(%[1]q IS NULL, 'null', iif(%[1]q, 'true', 'false'))`, c.Name)
	case agent.ColumnJSON:
		return fmt.Sprintf(`coalesce(%q, 'null')`, c.Name)
	}
	return fmt.Sprintf(`json_quote(%q)`, c.Name)
}

// tableParts returns the statements that create what belongs to a table: a view of
// its rows as JSON, and its triggers.
func tableParts(t *agent.Table) []object {
	table := tablePrefix + t.Name
	own := "_" + table
	event := func(kind, row string, more string) string {
		return fmt.Sprintf(
			`INSERT INTO _events(type, data) SELECT '%s', '{"table":"%s","row":' || json%s || '}' `+
				`FROM %s_json WHERE id = %s.id;`,
			kind, t.Name, more, own, row,
		)
	}
	var before, after, changed []string
	for _, c := range append([]agent.TableColumn{{Name: "id"}}, t.Columns...) {
		before, after = append(before, fmt.Sprintf("old.%q", c.Name)), append(after, fmt.Sprintf("new.%q", c.Name))
		changed = append(changed, fmt.Sprintf(`iif(new.%[1]q IS old.%[1]q, '', ',"%[2]s"')`, c.Name, c.Name))
	}
	trigger := func(name, when, body string) object {
		full := own + "_" + name
		return object{
			kind:  "trigger",
			name:  full,
			table: table,
			sql:   fmt.Sprintf("CREATE TRIGGER %s %s BEGIN\n  %s\nEND", full, when, body),
		}
	}
	return []object{
		{
			kind:  "view",
			name:  own + "_json",
			table: own + "_json",
			sql:   fmt.Sprintf("CREATE VIEW %s_json AS SELECT id, %s AS json FROM %q", own, rowJSON(t), table),
		},
		trigger(
			"created",
			fmt.Sprintf("AFTER INSERT ON %q", table),
			event(agent.EventRowCreated, "new", "")+fmt.Sprintf(
				"\n  UPDATE _counts SET n = n + 1 WHERE name = '%s';",
				table,
			),
		),
		trigger(
			"updated",
			fmt.Sprintf(
				"AFTER UPDATE ON %q WHEN (%s) IS NOT (%s)",
				table,
				strings.Join(after, ", "),
				strings.Join(before, ", "),
			),
			event(
				agent.EventRowUpdated,
				"new",
				` || ',"changed":[' || ltrim(`+joinBalanced(changed, " || ")+`, ',') || ']'`,
			),
		),
		trigger(
			"deleted",
			fmt.Sprintf("BEFORE DELETE ON %q", table),
			event(agent.EventRowDeleted, "old", "")+fmt.Sprintf(
				"\n  UPDATE _counts SET n = n - 1 WHERE name = '%s';",
				table,
			),
		),
	}
}

// tableObjects returns the objects of a table in the schema.
func tableObjects(t *agent.Table) schema {
	table := tablePrefix + t.Name
	objects := schema{{kind: "table", name: table, table: table, sql: tableSQL(t, table)}: true}
	indexes := 1 // of the key
	for _, c := range t.Columns {
		if c.Unique {
			indexes++
		}
	}
	for n := range indexes {
		objects[object{
			kind:  "index",
			name:  fmt.Sprintf("sqlite_autoindex_%s_%d", table, n+1),
			table: table,
			sql:   "",
		}] = true
	}
	for _, o := range tableParts(t) {
		objects[o] = false
	}
	return objects
}

// parseTable parses the definition of a table from the statement that created it. ok
// is false for any statement that tableSQL would not write.
func parseTable(sql string) (t agent.Table, ok bool) {
	lines := strings.Split(sql, "\n")
	if len(lines) < 7 {
		return t, false
	}
	name, _ := strings.CutSuffix(strings.TrimPrefix(lines[0], `CREATE TABLE "`+tablePrefix), `" (`)
	t.Name = name
	for _, line := range lines[4 : len(lines)-2] {
		t.Columns = append(t.Columns, parseColumn(strings.TrimSuffix(strings.TrimPrefix(line, "  "), ",")))
	}
	return t, t.Validate() == nil && tableSQL(&t, tablePrefix+name) == sql
}

// parseColumn parses what columnSQL writes. For other input the result is some other
// column.
func parseColumn(def string) (column agent.TableColumn) {
	column.Name, def, _ = strings.Cut(strings.TrimPrefix(def, `"`), `" `)
	kind, rest, _ := strings.Cut(def, " ")
	rest, column.Required = strings.CutPrefix(rest+" ", "NOT NULL ")
	rest, column.Unique = strings.CutPrefix(rest, "UNIQUE ")
	_, check, _ := strings.Cut(rest, " CHECK (")
	check = strings.TrimPrefix(check, fmt.Sprintf("%q ", column.Name))
	switch {
	case kind == "REAL":
		column.Type = agent.ColumnNumber
	case kind == "INTEGER":
		column.Type = agent.ColumnBoolean
	case strings.HasPrefix(check, "GLOB "):
		column.Type = agent.ColumnTime
	case strings.HasPrefix(check, "json_valid("):
		column.Type = agent.ColumnJSON
	case strings.HasPrefix(check, "IN ("):
		column.Type = agent.ColumnChoice
		column.Options = parseQuoted(strings.TrimPrefix(check, "IN ("))
	default:
		column.Type = agent.ColumnText
	}
	return column
}

// parseQuoted parses what quoteAll writes.
func parseQuoted(list string) (texts []string) {
	for strings.HasPrefix(list, "'") {
		list = list[1:]
		var text strings.Builder
		for {
			part, rest, closed := strings.Cut(list, "'")
			text.WriteString(part)
			if list = rest; !closed || !strings.HasPrefix(list, "'") {
				break
			}
			text.WriteByte('\'')
			list = list[1:]
		}
		texts = append(texts, text.String())
		list = strings.TrimPrefix(list, ",")
	}
	return texts
}

// withTables returns a schema that includes the user's tables of a file.
func withTables(base schema, rows [][]any) (schema, error) {
	joined, tables := maps.Clone(base), 0
	for _, row := range rows {
		name, _ := row[1].(string)
		sql, _ := row[3].(string)
		if row[0] != "table" || !strings.HasPrefix(name, tablePrefix) {
			continue
		}
		t, ok := parseTable(sql)
		if !ok {
			continue // foreign
		}
		if tables++; tables > agent.MaxTables {
			return nil, fmt.Errorf("%w: it has more than %d user tables", errForeign, agent.MaxTables)
		}
		maps.Copy(joined, tableObjects(&t))
	}
	return joined, nil
}
