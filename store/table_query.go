package store

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// RowQuery selects rows of a table.
type RowQuery struct {
	Where  []agent.RowCondition // all must be met
	Search string               // a substring of any text column
	Order  []Order              // by columns; empty: in the order in which they were added
	Limit  int
	Offset int
}

// rowOperators write a condition of a column; %[1]s is the column.
var rowOperators = map[string]string{
	"equals":       "%[1]s IS ?",
	"not_equals":   "%[1]s IS NOT ?",
	"gt":           "%[1]s > ?",
	"gte":          "%[1]s >= ?",
	"lt":           "%[1]s < ?",
	"lte":          "%[1]s <= ?",
	"contains":     `%[1]s LIKE '%%' || ? || '%%' ESCAPE '\'`,
	"not_contains": `coalesce(%[1]s NOT LIKE '%%' || ? || '%%' ESCAPE '\', 1)`,
	"starts_with":  `%[1]s LIKE ? || '%%' ESCAPE '\'`,
	"ends_with":    `%[1]s LIKE '%%' || ? ESCAPE '\'`,
	"in":           "%[1]s IN (%[2]s)",
	"not_in":       "coalesce(%[1]s NOT IN (%[2]s), 1)",
	"is_empty":     "coalesce(%[1]s, '') = ''",
	"is_not_empty": "coalesce(%[1]s, '') <> ''",
	"is_true":      "%[1]s = 1",
	"is_false":     "%[1]s = 0",
}

// maxConditions limits the conditions of a query, maxInValues the values that one
// compares with.
const (
	maxConditions = 20
	maxInValues   = 1000
)

// rowFilter returns the WHERE clause of conditions and a search, with its arguments.
func rowFilter(table *agent.Table, where []agent.RowCondition, search string) (string, []any, error) {
	var is agent.Issues
	var texts []string
	var args []any
	is.Check(len(where) <= maxConditions, "where", fmt.Sprintf("must have at most %d conditions", maxConditions))
	for i, c := range where {
		field := fmt.Sprintf("where[%d].", i)
		column, known := table.Column(c.Column)
		operator, named := rowOperators[c.Operator]
		is.Check(known, field+"column", "is not a column of the table "+table.Name)
		is.Check(named, field+"operator", "is unknown")
		if !known || !named {
			continue
		}
		text, more, issue := rowCondition(&column, operator, c)
		is.Check(issue == "", field+"value", issue)
		texts, args = append(texts, text), append(args, more...)
	}
	if search != "" {
		var columns []string
		for _, c := range table.Columns {
			if c.Type != agent.ColumnBoolean {
				columns = append(columns, quoted(c.Name))
			}
		}
		if len(columns) == 0 {
			texts = append(texts, "0")
		} else {
			text, more := likeAny(columns, search)
			texts, args = append(texts, text), append(args, more...)
		}
	}
	if len(texts) == 0 {
		return "", nil, is.Err()
	}
	return " WHERE " + strings.Join(texts, " AND "), args, is.Err()
}

func rowCondition(
	column *agent.TableColumn,
	operator string,
	condition agent.RowCondition,
) (text string, args []any, issue string) {
	name := quoted(column.Name)
	switch condition.Operator {
	case "is_empty", "is_not_empty", "is_true", "is_false":
		return fmt.Sprintf(operator, name), nil, ""
	case "contains", "not_contains", "starts_with", "ends_with":
		part, issue := agentText(condition.Value)
		return fmt.Sprintf(operator, name), []any{escapeLike(part)}, issue
	case "in", "not_in":
		values := listOf(condition.Value)
		if len(values) > maxInValues {
			return "", nil, fmt.Sprintf("must have at most %d entries", maxInValues)
		}
		for _, v := range values {
			cell, issue := comparisonValue(column, v)
			if issue != "" {
				return "", nil, issue
			}
			args = append(args, cell)
		}
		return fmt.Sprintf(operator, name, placeholders(len(args))), args, ""
	}
	cell, issue := comparisonValue(column, condition.Value)
	return fmt.Sprintf(operator, name), []any{cell}, issue
}

// comparisonValue returns a value that a column is compared with. A text that is not an
// option of a choice is fine: no row has it.
func comparisonValue(column *agent.TableColumn, value any) (any, string) {
	c := *column
	if c.Type == agent.ColumnChoice {
		c.Type = agent.ColumnText
	}
	return c.Parse(value)
}

func agentText(value any) (string, string) {
	text := agent.TableColumn{Type: agent.ColumnText}
	cell, issue := text.Parse(value)
	s, _ := cell.(string)
	return s, issue
}

// listOf reads a list, or values separated by commas.
func listOf(value any) []any {
	switch v := value.(type) {
	case []any:
		return v
	case string:
		var list []any
		for part := range strings.SplitSeq(v, ",") {
			list = append(list, strings.TrimSpace(part))
		}
		return list
	case nil:
		return nil
	}
	return []any{value}
}

// rowOrder returns the ORDER BY of a query.
func rowOrder(table *agent.Table, order []Order) (string, error) {
	var keys []string
	desc := ""
	for index, o := range order {
		column, known := table.Column(o.Field)
		if !known {
			return "", agent.Invalid(
				"sort",
				fmt.Sprintf("%s is not a column of the table %s", agent.Clip(o.Field, 60), table.Name),
			)
		}
		key := quoted(column.Name)
		if column.Type == agent.ColumnText || column.Type == agent.ColumnChoice {
			key += " COLLATE NOCASE"
		}
		direction := ""
		if o.Desc {
			direction = " DESC"
		}
		if index == 0 {
			desc = direction
		}
		keys = append(keys, key+direction)
	}
	return " ORDER BY " + strings.Join(append(keys, "rowid"+desc), ", "), nil
}
