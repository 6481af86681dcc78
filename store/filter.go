package store

import (
	"slices"
	"strconv"
	"strings"
)

// filter collects the conditions of a list.
type filter struct {
	where []condition
	// from finds the records through another table, which is faster if they are few;
	// it replaces the conditions marked byFrom.
	from     string
	fromArgs []any
	// indexed reports whether an index finds the records in the requested order.
	indexed bool
	// split is the column of a condition that several values meet, each of which is
	// a range of such an index.
	split string
	// count is a query for the number of matching records, if they need not be
	// counted.
	count     string
	countArgs []any
}

// condition is a term of a WHERE clause.
type condition struct {
	text   string
	args   []any
	column string // the condition is that this column is one of values; empty: another condition
	values []string
	byFrom bool
	hide   bool // text begins with a column that can be hidden from indexes, see sql
	// counted is the condition on _filter_counts, if it is not the same with another
	// column name.
	counted string
}

func (f *filter) add(text string, args ...any) {
	f.where = append(f.where, condition{text: text, args: args})
}

// in adds "column IN (values)", or nothing if there are no values.
func (f *filter) in(column string, values ...string) {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	if len(values) > 0 {
		f.where = append(f.where, condition{column: column, values: values})
	}
}

// sql returns the text of a condition and its arguments. If hidden, a + before the
// column keeps SQLite from choosing an index for it.
func (c condition) sql(hidden bool) (string, []any) {
	if c.column == "" && hidden && c.hide {
		return "+" + c.text, c.args
	}
	if c.column == "" {
		return c.text, c.args
	}
	column := c.column
	if hidden {
		column = "+" + column
	}
	if len(c.values) == 1 {
		return column + " = ?", []any{c.values[0]}
	}
	return column + " IN (" + placeholders(len(c.values)) + ")", anySlice(c.values)
}

// countBy sets that the total is counted by the rows of _filter_counts of a
// list, whose values are those of columns.
func (f *filter) countBy(list string, columns ...string) {
	where := []condition{{text: "list = ?", args: []any{list}}}
	for _, c := range f.where {
		if i := slices.Index(columns, c.column); c.column != "" && i >= 0 {
			c.column = "value_" + strconv.Itoa(i+1)
		} else if c.counted != "" {
			c.text = c.counted
		}
		where = append(where, c)
	}
	text, args := clause(where, false)
	f.count, f.countArgs = "SELECT coalesce(sum(n), 0) FROM _filter_counts"+text, args
}

func placeholders(n int) string {
	return strings.TrimSuffix(strings.Repeat("?,", n), ",")
}

func (f *filter) search(columns []string, text string) {
	if text == "" || len(columns) == 0 {
		return
	}
	f.count, f.indexed = "", false
	condition, args := likeAny(columns, text)
	f.add(condition, args...)
}

// by makes the list find the records of the last condition through another table.
func (f *filter) by(from string, args []any) {
	for i := range f.where {
		f.where[i].byFrom = i == len(f.where)-1
	}
	f.from, f.fromArgs = from, args
}

// likeAny returns the condition that one of the columns contains a text.
func likeAny(columns []string, text string) (string, []any) {
	pattern := "%" + escapeLike(text) + "%"
	var conditions []string
	var args []any
	for _, c := range columns {
		conditions = append(conditions, c+` LIKE ? ESCAPE '\'`)
		args = append(args, pattern)
	}
	return "(" + strings.Join(conditions, " OR ") + ")", args
}

// clause returns the WHERE clause of conditions, with its arguments.
func clause(where []condition, hidden bool) (string, []any) {
	if len(where) == 0 {
		return "", nil
	}
	texts := make([]string, len(where))
	var args []any
	for i, c := range where {
		text, more := c.sql(hidden)
		texts[i], args = text, append(args, more...)
	}
	return " WHERE " + strings.Join(texts, " AND "), args
}
