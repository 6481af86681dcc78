package store

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"satchel/agent"
	"satchel/store/sqlite"
)

// object is a row of sqlite_schema: a table, index, trigger or view. SQLite stores
// the statement that created it and runs that again to load the schema
// (https://www.sqlite.org/schematab.html), so two schemas with the same rows are the
// same.
type object struct {
	kind, name, table string
	sql               string // empty for the index of a PRIMARY KEY or UNIQUE
}

// schema holds the objects of a file, and whether each has pages of its own.
type schema map[object]bool

// schemaRows reads the input of compareSchema. The schema of one of our files has
// far fewer rows than the limit.
const schemaRows = "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema LIMIT 5000"

// errForeign reports that a file's schema has objects that this program does not create.
var errForeign = errors.New("the schema is not one that Satchel creates")

// checkSchema refuses a file unless its tables, indexes and triggers are exactly
// those that this program creates for the file's version.
func checkSchema(c *conn) error {
	var version int
	if err := c.value(&version, "PRAGMA user_version"); err != nil {
		return err
	}
	rows, err := all(&Tx{conn: c}, scanObject, schemaRows)
	if err != nil {
		return err
	}
	return compareSchema(version, rows)
}

func scanObject(rows *sqlite.Rows) ([]any, error) {
	row := make([]any, 5)
	return row, rows.Scan(
		&row[0],
		&row[1],
		&row[2],
		&row[3],
		&row[4],
	)
}

// compareSchema compares the rows of a file's schema with that of its version.
func compareSchema(version int, rows [][]any) error {
	want, optional, err := wantedSchema(version, rows)
	if err != nil {
		return err
	}
	lacking := maps.Clone(optional.size)
	seen := make(schema, len(want))
	pages := map[int64]bool{1: true} // page 1 is the schema's own
	for _, row := range rows {
		object, page, err := parseObject(row)
		if err != nil {
			return err
		}
		paged, ours := want[object]
		if of, ok := optional.part[object]; ok {
			paged, ours = optional.schema[object], true
			lacking[of]--
		}
		switch {
		case !ours:
			return fmt.Errorf(
				"%w: the %s %q",
				errForeign,
				agent.Clip(object.kind, 20),
				agent.Clip(object.name, 60),
			)
		case seen[object], paged != (page > 0), pages[page]:
			return fmt.Errorf(
				"%w: the %s %q exists twice or has no pages of its own",
				errForeign, object.kind, object.name,
			)
		}
		seen[object], pages[page] = true, paged
	}
	for part, n := range lacking {
		if n != 0 && n != optional.size[part] {
			return fmt.Errorf("%w: its part %s is incomplete", errForeign, part)
		}
	}
	for o := range want {
		if !seen[o] {
			return fmt.Errorf("%w: the %s %q is missing", errForeign, o.kind, o.name)
		}
	}
	return nil
}

// parseObject parses a row of sqlite_schema and the number of its root page.
func parseObject(row []any) (o object, page int64, err error) {
	for i, dst := range []*string{&o.kind, &o.name, &o.table, &o.sql} {
		text, ok := row[i].(string)
		if !ok && (row[i] != nil || i < 3) {
			return o, 0, fmt.Errorf("%w: a row of it is not text", errForeign)
		}
		*dst = text
	}
	page, ok := row[4].(int64)
	if !ok {
		return o, 0, fmt.Errorf("%w: %q has no page number", errForeign, agent.Clip(o.name, 60))
	}
	return o, page, nil
}

// maxVectorTables limits the vector lengths, besides the usual one, that a file may
// have tables for.
const maxVectorTables = 100

// wantedSchema returns the schema of a version, with the tables for the vector
// lengths that the file has tables for, and the user's own tables. The file may also
// have the optional parts.
func wantedSchema(version int, rows [][]any) (want schema, optional *optionalParts, err error) {
	if version < 1 || version > fileVersion() {
		return nil, nil, fmt.Errorf("%w: version %d is unknown", errForeign, version)
	}
	want, optional, err = patterns.of(version)
	if err != nil {
		return nil, nil, err
	}
	tables := 0
	for _, row := range rows {
		name, _ := row[1].(string)
		n, ok := lengthOf(name)
		if !ok || row[0] != "table" {
			continue
		}
		if tables++; tables > maxVectorTables {
			return nil, nil, fmt.Errorf("%w: it has more than %d tables of vectors", errForeign, maxVectorTables)
		}
		if want, err = withVectors(want, n); err != nil {
			return nil, nil, err
		}
	}
	if version < tablesSince {
		return want, optional, nil
	}
	want, err = withTables(want, rows)
	return want, optional, err
}

// tablesSince is the first version whose files may have users' own tables.
const tablesSince = 4

// lengthOf returns the length of the vectors in a table created by makeVectors.
func lengthOf(table string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(table, vectorTable+"_")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 1 && n <= MaxVectorLength && vectorsOf(n) == table
}

// withVectors returns a schema with the tables for vectors of n dimensions added.
func withVectors(base schema, n int) (schema, error) {
	more, err := patterns.vectors(n)
	if err != nil {
		return nil, err
	}
	joined := maps.Clone(base)
	maps.Copy(joined, more)
	return joined, nil
}

// patternCache caches the schemas that this program creates, each of which is built
// once in memory.
type patternCache struct {
	mu       sync.Mutex
	versions map[string]schema         // by the text of the migrations
	parts    map[string]*optionalParts // by the text of the migrations
	lengths  map[int]schema            // of the tables for vectors
}

var patterns = patternCache{
	versions: map[string]schema{},
	parts:    map[string]*optionalParts{},
	lengths:  map[int]schema{},
}

// of returns the schema of a version, and the parts that parts.sql creates in its
// files. Neither must be modified.
func (p *patternCache) of(version int) (schema, *optionalParts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := keyOf(version)
	if o, ok := p.parts[key]; ok {
		return p.versions[key], o, nil
	}
	o := &optionalParts{schema{}, map[object]string{}, map[string]int{}}
	s, err := buildSchema(func(c *conn) error { return migrateTo(c, version) }, func(c *conn) error {
		for _, part := range partsOf(version) {
			if err := o.add(c, part); err != nil {
				return fmt.Errorf("part %s: %w", part.name, err)
			}
		}
		return nil
	})
	if err == nil {
		p.versions[key], p.parts[key] = s, o
	}
	return s, o, err
}

// keyOf returns the text of the migrations up to a version.
func keyOf(version int) string {
	return strings.Join(migrations[:version], "\x00")
}

// optionalParts are the objects that a file may have or lack.
type optionalParts struct {
	schema schema
	part   map[object]string // the name of the part that makes it
	size   map[string]int    // of each part
}

// add creates a part and records its objects.
func (o *optionalParts) add(conn *conn, part part) error {
	var last int64
	if err := errors.Join(
		conn.value(&last, "SELECT max(rowid) FROM sqlite_schema"),
		conn.script(part.script),
	); err != nil {
		return err
	}
	rows, err := all(
		&Tx{conn: conn},
		scanObject,
		"SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema WHERE rowid > ?",
		last,
	)
	if err != nil {
		return err
	}
	for _, row := range rows {
		made, page, err := parseObject(row)
		if err != nil {
			return err
		}
		o.schema[made], o.part[made] = page > 0, part.name
		o.size[part.name]++
	}
	return nil
}

// vectors returns the tables for vectors of n dimensions. It must not be modified.
func (p *patternCache) vectors(n int) (schema, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.lengths[n]; ok {
		return s, nil
	}
	s, err := buildSchema(func(c *conn) error { return (&Tx{conn: c}).makeVectors(n) }, nil)
	if err == nil && len(p.lengths) < maxVectorTables {
		p.lengths[n] = s
	}
	return s, err
}

// buildSchema returns the schema of a database in memory that make has filled. It
// then calls then, unless that is nil, with the database.
func buildSchema(make, then func(*conn) error) (schema, error) {
	c, err := openConn(sqlite.Source{})
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := make(c); err != nil {
		return nil, err
	}
	rows, err := all(&Tx{conn: c}, scanObject, schemaRows)
	if err != nil {
		return nil, err
	}
	s := schema{}
	for _, row := range rows {
		o, page, err := parseObject(row)
		if err != nil {
			return nil, err
		}
		s[o] = page > 0
	}
	if then != nil {
		err = then(c)
	}
	return s, err
}
