package store

import (
	"fmt"
	"strings"

	"satchel/store/sqlite"
)

// Order is one key to sort by. Field is a name of the interface.
type Order struct {
	Field string
	Desc  bool
}

// Page says which part of a list is wanted.
type Page struct {
	Limit  int
	Offset int
	Order  []Order
	Search string
}

// listing knows how one kind of record is listed.
type listing[T any] struct {
	table   string
	columns string
	order   string            // unless the client orders
	sort    map[string]string // field -> column
	search  []string          // columns that a search looks at
	scan    func(*sqlite.Rows) (T, error)
}

// filter collects the conditions of a list.
type filter struct {
	where []string
	args  []any
	// count is a query for how many rows meet the first condition, when that
	// need not be counted.
	count string
}

func (f *filter) add(condition string, args ...any) {
	f.where = append(f.where, condition)
	f.args = append(f.args, args...)
}

// in adds "column IN (values)"; no values, no condition.
func (f *filter) in(column string, values []string) {
	if len(values) == 0 {
		return
	}
	f.where = append(f.where, column+" IN ("+placeholders(len(values))+")")
	for _, v := range values {
		f.args = append(f.args, v)
	}
}

func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

func (f *filter) search(columns []string, text string) {
	if text == "" || len(columns) == 0 {
		return
	}
	pattern := "%" + escapeLike(text) + "%"
	var any []string
	for _, c := range columns {
		any = append(any, c+` LIKE ? ESCAPE '\'`)
		f.args = append(f.args, pattern)
	}
	f.where = append(f.where, "("+strings.Join(any, " OR ")+")")
}

func (f *filter) clause() string {
	if len(f.where) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.where, " AND ")
}

// list returns one page of records, never nil, and how many there are in all.
// Without conditions the total is one row of _counts.
func (l listing[T]) list(tx *Tx, f filter, p Page) ([]T, int, error) {
	f.search(l.search, p.Search)
	total, err := l.total(tx, f)
	if err != nil {
		return nil, 0, err
	}
	query := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT ? OFFSET ?", l.columns, l.table, f.clause(), l.orderBy(p.Order))
	rows, err := tx.query(query, append(f.args, p.Limit, p.Offset)...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	page := make([]T, 0, min(p.Limit, max(total-p.Offset, 0)))
	for rows.Next() {
		record, err := l.scan(rows)
		if err != nil {
			return nil, 0, err
		}
		page = append(page, record)
	}
	return page, total, rows.Err()
}

func (l listing[T]) total(tx *Tx, f filter) (total int, err error) {
	switch {
	case len(f.where) == 0:
		err = tx.value(&total, "SELECT n FROM _counts WHERE name = ?", l.table)
	case len(f.where) == 1 && f.count != "":
		err = tx.value(&total, f.count, f.args...)
	default:
		err = tx.value(&total, fmt.Sprintf("SELECT count(*) FROM %s%s", l.table, f.clause()), f.args...)
	}
	return total, err
}

func (l listing[T]) orderBy(order []Order) string {
	var keys []string
	for _, o := range order {
		if column, ok := l.sort[o.Field]; ok {
			if o.Desc {
				column += " DESC"
			}
			keys = append(keys, column)
		}
	}
	if len(keys) == 0 {
		return l.order
	}
	last := "id" // in the direction of the first key, so that an index serves both
	if strings.HasSuffix(keys[0], " DESC") {
		last = "id DESC"
	}
	return strings.Join(append(keys, last), ", ")
}

// all reads every row of a query whose size is bounded by its text.
func all[T any](tx *Tx, scan func(*sqlite.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := tx.query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		record, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	return out, rows.Err()
}
