package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Order is one key to sort by. Field is a field name of the API.
type Order struct {
	Field string
	Desc  bool
}

// Page specifies the requested part of a list.
type Page struct {
	Limit  int
	Offset int
	Order  []Order
	Search string
	After  *Cursor // start after this position; nil: from the beginning
	Next   *Next   // if not nil, receives the position after the page
}

// Next is the position after a page, from which the list continues.
type Next struct {
	Known  bool    // the list has cursors
	Cursor *Cursor // nil at its end
}

// listed describes how the records of a table are found and sorted.
type listed struct {
	table   string
	key     string // the column that identifies records; empty: id
	columns string
	order   Order             // unless the client requests another
	sort    map[string]string // field -> column, which is never NULL
	search  []string          // columns that are searched
	// value of a sort field that is not in the record's JSON; nil if there is none
	value func(record any, field string) any
}

// listing describes how one kind of record is listed.
type listing[T any] struct {
	listed
	scan func(*sqlite.Rows) (T, error)
}

// find narrows a filter to the records that contain a text, using the index if there
// is one.
func (l *listed) find(tx *Tx, filter *filter, text string) error {
	if text == "" || len(l.search) == 0 {
		return nil
	}
	filter.search(l.search, text)
	var query string
	var args []any
	var err error
	on := "rowid = found"
	if l.table == "logs" {
		query, args, err = tx.foundLogs(l.search, text)
		on = "(created_at, id) = (found_at, found_id)"
	} else if searched[l.table] != "" {
		query, args, err = tx.found(l.table, "rowid", l.search, text, math.MinInt64)
	}
	if query == "" || err != nil {
		return err
	}
	from := "(SELECT DISTINCT * FROM (" + query + "))"
	if l.table != "logs" {
		if from, args, err = tx.once(from, args); err != nil {
			return err
		}
	}
	filter.by(from+" CROSS JOIN "+l.table+" ON "+on, args)
	return nil
}

// maxOnce is how many records a search may find to be run only once for both the
// total and the page.
const maxOnce = 1_000

// once runs a search and, if it finds few rows, returns a condition that lists these
// rows instead.
func (tx *Tx) once(from string, args []any) (string, []any, error) {
	found, err := all(
		tx,
		scanID,
		"SELECT CAST(found AS TEXT) FROM "+from+" LIMIT ?",
		append(slices.Clip(args), maxOnce+1)...,
	)
	if err != nil || len(found) > maxOnce {
		return from, args, err
	}
	list, err := json.Marshal(found)
	return "(SELECT value AS found FROM json_each(?))", []any{string(list)}, err
}

// list returns one page of records, never nil, and their total number.
func (l listing[T]) list(tx *Tx, filter filter, p Page) ([]T, int, error) {
	query, err := l.plan(tx, filter, p)
	if err != nil {
		return nil, 0, err
	}
	page := make([]T, 0, query.size)
	if query.size > 0 {
		err = tx.each(func(rows *sqlite.Rows) error {
			record, err := l.scan(rows)
			page = append(page, record)
			return err
		}, query.text, query.args...)
	}
	if err == nil &&
		p.Next != nil &&
		len(page) == p.Limit &&
		p.Offset+len(page) < query.total {
		p.Next.Cursor, err = l.cursor(query.keys, page[len(page)-1])
	}
	if err != nil {
		return nil, 0, err
	}
	return page, query.total, nil
}

// pageQuery is how a page of a list is read.
type pageQuery struct {
	keys  []sortKey
	total int    // records of the list
	size  int    // at most so many records are on the page
	text  string // the statement; empty if there are none
	args  []any
}

// plan counts the records of a list, and finds out how to read a page. Without
// conditions the total is read from _counts.
func (l *listed) plan(tx *Tx, filter filter, page Page) (query pageQuery, err error) {
	query.keys = l.keys(page.Order)
	if err := checkCursor(query.keys, page.After); err != nil {
		return query, err
	}
	if err := l.find(tx, &filter, page.Search); err != nil {
		return query, err
	}
	if query.total, err = l.total(tx, filter); err != nil {
		return query, err
	}
	if name := l.table + "_by_" + query.keys[0].field; query.total >= wantedRows && isWanted(name) {
		tx.db.want(name)
	}
	if page.Next != nil {
		page.Next.Known = true
	}
	if query.size = min(page.Limit, max(query.total-page.Offset, 0)); query.size > 0 {
		query.text, query.args, err = l.page(tx, filter, query.keys, page, query.total)
	}
	return query, err
}

func (l *listed) total(tx *Tx, f filter) (total int, err error) {
	switch {
	case len(f.where) == 0:
		err = tx.value(&total, "SELECT n FROM _counts WHERE name = ?", l.table)
	case f.count != "":
		err = tx.value(&total, f.count, f.countArgs...)
	default:
		query, args := l.driven(f)
		err = tx.value(&total, "SELECT count(*) FROM "+query, args...)
	}
	return total, err
}

// driven returns the part after FROM of a query that finds the records by the
// filter.
func (l *listed) driven(f filter) (string, []any) {
	if f.from == "" {
		text, args := clause(f.where, false)
		return l.table + text, args
	}
	text, args := clause(slices.DeleteFunc(slices.Clone(f.where), func(c condition) bool { return c.byFrom }), true)
	return f.from + text, append(slices.Clip(f.fromArgs), args...)
}

// page returns the statement that reads a page, and its arguments.
func (l *listed) page(
	tx *Tx,
	filter filter,
	keys []sortKey,
	page Page,
	total int,
) (string, []any, error) {
	if page.After != nil {
		text, args := afterCursor(keys, page.After)
		filter.where = append(slices.Clip(filter.where), condition{text: text, args: args})
	}
	if page.Offset >= anchorStep && len(filter.where) == 0 && l.anchored(keys) {
		at, rest, err := l.skip(tx, keys, page.Offset, total)
		if err != nil {
			return "", nil, err
		}
		if at != nil {
			text, args := afterCursor(keys, at)
			filter.where, filter.indexed, page.Offset = []condition{{text: text, args: args}}, true, rest
		}
	}
	query, args, err := l.query(tx, filter, keys, page.Offset+page.Limit, total)
	return query, append(args, page.Limit, page.Offset), err
}

// query returns the statement that reads a page, and its arguments except the limit
// and the offset. If no index serves both the filter and the order, it uses the
// cheaper way: reading in the order and skipping what the filter excludes, or
// reading by the filter and sorting.
func (l *listed) query(tx *Tx, filter filter, keys []sortKey, need, found int) (string, []any, error) {
	if at := slices.IndexFunc(filter.where, func(c condition) bool {
		return c.column != "" && c.column == filter.split
	}); at >= 0 && filter.indexed {
		switch n := len(filter.where[at].values); {
		case n > maxSplit:
			filter.indexed = false
		case n > 1:
			query, args := l.merged(filter, at, keys)
			return query, args, nil
		}
	}
	hidden := false
	if len(filter.where) > 0 && !filter.indexed {
		rows, err := l.rows(tx)
		if err != nil {
			return "", nil, err
		}
		if hidden = rows > 0 && found*found >= rows*need; rows > 0 && !hidden {
			rest, args := l.driven(filter)
			return fmt.Sprintf(
				"SELECT %s FROM %s ORDER BY %s LIMIT ? OFFSET ?",
				l.columns,
				rest,
				orderBy(keys, "+"),
			), args, nil
		}
	}
	where, args := clause(filter.where, hidden)
	return fmt.Sprintf(
		"SELECT %s FROM %s%s ORDER BY %s LIMIT ? OFFSET ?",
		l.columns,
		l.table,
		where,
		orderBy(keys, ""),
	), args, nil
}

// rows returns the number of records, or 0 if they are not counted.
func (l *listed) rows(tx *Tx) (n int, err error) {
	err = tx.value(&n, "SELECT n FROM _counts WHERE name = ?", l.table)
	if errors.Is(err, sqlite.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// merged reads a page from one index range for each value of f.split. SQLite merges
// the ranges, so that only the page is sorted.
func (l *listed) merged(filter filter, at int, keys []sortKey) (string, []any) {
	names := make([]string, len(keys))
	order := make([]sortKey, len(keys))
	for i, k := range keys {
		order[i] = sortKey{column: fmt.Sprintf("key_%d", i), desc: k.desc}
		names[i] = k.column + " AS " + order[i].column
	}
	var parts []string
	var args []any
	for _, value := range filter.where[at].values {
		where := slices.Clone(filter.where)
		where[at].values = []string{value}
		text, more := clause(where, false)
		parts = append(parts, "SELECT "+strings.Join(names, ", ")+" FROM "+l.table+text)
		args = append(args, more...)
	}
	query := fmt.Sprintf(
		"SELECT %s FROM (%s ORDER BY %s LIMIT ? OFFSET ?) CROSS JOIN %s ON id = %s ORDER BY %s",
		l.columns,
		strings.Join(parts, " UNION ALL "),
		orderBy(order, ""),
		l.table,
		order[len(keys)-1].column,
		orderBy(order, ""),
	)
	return query, args
}

// maxSplit limits the ranges that a list is merged from.
const maxSplit = 20

// sortKey is one column that a list is sorted by.
type sortKey struct {
	field  string // of the interface
	column string
	desc   bool
}

// keys returns what a list is sorted by. The last is its key column, in the
// direction of the first, so that an index serves both.
func (l *listed) keys(order []Order) []sortKey {
	var keys []sortKey
	for _, o := range order {
		if column, ok := l.sort[o.Field]; ok {
			keys = append(keys, sortKey{o.Field, column, o.Desc})
		}
	}
	if len(keys) == 0 {
		keys = []sortKey{{l.order.Field, l.sort[l.order.Field], l.order.Desc}}
	}
	last := cmp.Or(l.key, "id")
	if keys[len(keys)-1].column == last {
		return keys
	}
	return append(keys, sortKey{last, last, keys[0].desc})
}

// orderBy returns the terms of an ORDER BY; a prefix of + keeps SQLite from choosing
// an index for them.
func orderBy(keys []sortKey, prefix string) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = prefix + k.column
		if k.desc {
			parts[i] += " DESC"
		}
	}
	return strings.Join(parts, ", ")
}

// all reads every row of a query whose number of rows is bounded.
func all[T any](tx *Tx, scan func(*sqlite.Rows) (T, error), query string, args ...any) ([]T, error) {
	out := []T{}
	err := tx.each(func(rows *sqlite.Rows) error {
		record, err := scan(rows)
		out = append(out, record)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// one reads the record with an id. If there is none, the error names the noun.
func one[T any](tx *Tx, scan func(*sqlite.Rows) (T, error), noun, query, id string) (record T, err error) {
	rows, err := tx.query(query, id)
	if err != nil {
		return record, err
	}
	defer rows.Close()
	if rows.Next() {
		return scan(rows)
	}
	if err := rows.Err(); err != nil {
		return record, err
	}
	return record, agent.NotFound(noun, id)
}
