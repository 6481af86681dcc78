package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Table is a user-defined table, created and changed at run time.
type Table struct {
	Name    string        `json:"name" example:"leads"`
	Columns []TableColumn `json:"columns"`
	Rows    int           `json:"rows" doc:"How many rows it has." example:"12"`
}

// TableColumn is a column of a Table.
type TableColumn struct {
	Name     string     `json:"name" doc:"Letters, digits and _; templates and SQL know the column by it." example:"email"`
	Type     ColumnType `json:"type" enum:"text,number,boolean,time,json,choice" example:"text"`
	Required bool       `json:"required,omitempty" doc:"Every row has a value."`
	Unique   bool       `json:"unique,omitempty" doc:"No two rows have the same value."`
	Options  []string   `json:"options,omitempty" doc:"The values of a choice." example:"[\"new\",\"won\"]"`
}

// ColumnType is what a column holds.
type ColumnType string

// Types of columns.
const (
	ColumnText    ColumnType = "text"
	ColumnNumber  ColumnType = "number"
	ColumnBoolean ColumnType = "boolean"
	ColumnTime    ColumnType = "time"
	ColumnJSON    ColumnType = "json"
	ColumnChoice  ColumnType = "choice"
)

// ColumnTypes are all types of columns.
var ColumnTypes = []ColumnType{ColumnText, ColumnNumber, ColumnBoolean, ColumnTime, ColumnJSON, ColumnChoice}

// Limits of tables.
const (
	MaxTables       = 100 // of an agent
	MaxTableColumns = 64
	maxTableName    = 48 // and of a column
	MaxRowBytes     = 256 << 10
	MaxRowBatch     = 1000 // rows of one request
	maxUnique       = 10   // columns of a table
	maxOptions      = 100  // of a column
	maxOptionBytes  = 16 << 10
)

// RowColumns are the columns that every table has in addition to its own. The
// program sets them.
var RowColumns = []TableColumn{
	{Name: "id", Type: ColumnText, Required: true, Unique: true},
	{Name: "created_at", Type: ColumnTime, Required: true},
	{Name: "updated_at", Type: ColumnTime, Required: true},
}

var tableName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// reservedColumns are the reserved names, which SQLite or the program uses.
var reservedColumns = []string{"id", "created_at", "updated_at", "rowid", "oid"}

// ValidTableName reports whether a table can have the name.
func ValidTableName(name string) bool { return matches(tableName, name, maxTableName) }

// Validate checks the definition of a table.
func (t *Table) Validate() error {
	var is Issues
	is.Check(
		ValidTableName(t.Name),
		"name",
		"must be 1 to 48 lower-case letters, digits and _, beginning with a letter",
	)
	is.Check(len(t.Columns) > 0, "columns", "must have at least one entry")
	is.Check(len(t.Columns) <= MaxTableColumns, "columns", fmt.Sprintf("must have at most %d entries", MaxTableColumns))
	seen, unique, options := map[string]bool{}, 0, 0
	for i := range t.Columns {
		c := &t.Columns[i]
		field := fmt.Sprintf("columns[%d].", i)
		c.validate(&is, field)
		key := strings.ToLower(c.Name)
		is.Check(!seen[key], field+"name", "is the name of another column too")
		seen[key] = true
		if c.Unique {
			unique++
		}
		for _, o := range c.Options {
			options += len(o) + 4
		}
	}
	is.Check(unique <= maxUnique, "columns", fmt.Sprintf("must have at most %d entries that are unique", maxUnique))
	is.Check(
		options <= maxOptionBytes,
		"columns",
		fmt.Sprintf("must have at most %d KB of options in all", maxOptionBytes>>10),
	)
	return is.Err()
}

func (c *TableColumn) validate(is *Issues, field string) {
	is.Check(
		matches(fieldName, c.Name, maxTableName),
		field+"name",
		"must be 1 to 48 letters, digits and _, beginning with a letter",
	)
	is.Check(
		!slices.Contains(reservedColumns, strings.ToLower(c.Name)),
		field+"name",
		"is taken: every table has id, created_at and updated_at",
	)
	is.Check(slices.Contains(ColumnTypes, c.Type), field+"type", "must be text, number, boolean, time, json or choice")
	is.Check(!c.Unique || c.Type != ColumnJSON, field+"unique", "does not go with the type json")
	if c.Type != ColumnChoice {
		is.Check(len(c.Options) == 0, field+"options", "go with the type choice only")
		return
	}
	is.Check(
		len(c.Options) > 0 && len(c.Options) <= maxOptions,
		field+"options",
		fmt.Sprintf("must have 1 to %d entries", maxOptions),
	)
	for i, o := range c.Options {
		at := fmt.Sprintf("%soptions[%d]", field, i)
		is.Check(o != "" && strings.TrimSpace(o) == o, at, "must be text without spaces around it")
		is.Check(!strings.ContainsFunc(o, isControl), at, "must be one line")
		is.checkText(at, o, 100)
		is.Check(slices.Index(c.Options, o) == i, at, "is a duplicate")
	}
}

// isControl reports whether a character ends a line or cannot be seen.
func isControl(r rune) bool {
	return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfffd
}

// Column returns the column of that name, which may be one of RowColumns.
func (t *Table) Column(name string) (TableColumn, bool) {
	for _, list := range [][]TableColumn{t.Columns, RowColumns} {
		if i := slices.IndexFunc(list, func(c TableColumn) bool {
			return c.Name == name
		}); i >= 0 {
			return list[i], true
		}
	}
	return TableColumn{}, false
}

// TableChange is an update of a table. Columns lists all columns that the table
// has afterwards.
type TableChange struct {
	Name    Optional[string]         `json:"name,omitempty" example:"leads"`
	Columns Optional[[]ColumnChange] `json:"columns,omitempty" doc:"All columns, in their order; a column that is not listed is deleted with its values."`
}

// ColumnChange is a column of a changed table.
type ColumnChange struct {
	TableColumn
	From string `json:"from,omitempty" doc:"The current name of the column, to rename it." example:"mail"`
}

// Apply returns the changed table, and for each of its columns the name of the
// existing column that it comes from; "" for a new one.
func (ch TableChange) Apply(table Table) (Table, []string, error) {
	var is Issues
	ch.Name.Into(&table.Name)
	from := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		from[i] = c.Name
	}
	if ch.Columns.Given {
		before := table
		table.Columns, from = make([]TableColumn, len(ch.Columns.Value)), make([]string, len(ch.Columns.Value))
		for index, change := range ch.Columns.Value {
			table.Columns[index], from[index] = change.TableColumn, change.From
			if change.From == "" {
				from[index] = change.Name
			}
			known := slices.ContainsFunc(before.Columns, func(b TableColumn) bool {
				return b.Name == from[index]
			})
			is.Check(known || change.From == "", fmt.Sprintf("columns[%d].from", index), "is not a column of the table")
			is.Check(
				!known || slices.Index(from, from[index]) == index,
				fmt.Sprintf("columns[%d].from", index),
				"is given to another column too",
			)
			if !known {
				from[index] = ""
			}
		}
	}
	if err := is.Err(); err != nil {
		return table, nil, err
	}
	return table, from, table.Validate()
}
