package store

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A part of the schema is not in a file from the beginning: indexes that are not
// needed for few rows, or that serve an order or a search that has not been used
// yet. Without them a new file is smaller, and writing to it is cheaper.
type part struct {
	name   string
	since  int    // the first version of files that can have it
	table  string // it is created when this has partRows rows; empty: when it is wanted
	script string
	first  string // the name of the first object that it creates

	writing []string // it is created before the first write to one of these tables, see writing_parts.go
}

const (
	partRows   = 128   // rows at which a table gets its indexes
	wantedRows = 1_000 // records of a list that justify an index of its own
)

//go:embed migrations/parts.sql
var partsText string

// schemaParts are all parts, those of earlier versions first.
var schemaParts = readParts(partsText)

// partsOf returns the parts that files of a version may have.
func partsOf(version int) []part {
	n := slices.IndexFunc(schemaParts, func(p part) bool {
		return p.since > version
	})
	if n < 0 {
		return schemaParts
	}
	return schemaParts[:n]
}

// readParts reads sections that begin with "-- part NAME: TABLE". A line "--
// since VERSION" gives the version of the sections below it.
func readParts(text string) []part {
	const heading, version = "-- part ", "-- since "
	var list []part
	since, start, end := 0, 0, 0
	for line := range strings.Lines(text) {
		end += len(line)
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), version); ok {
			since, _ = strconv.Atoi(rest)
		} else if rest, ok := strings.CutPrefix(strings.TrimSpace(line), heading); ok {
			name, table, _ := strings.Cut(rest, ": ")
			p := part{name: name, since: since, table: table}
			if tables, ok := strings.CutPrefix(table, "writing "); ok {
				p.table, p.writing = "", strings.Split(tables, ", ")
			} else if table == "wanted" {
				p.table = ""
			}
			list, start = append(list, p), end
		} else if len(list) > 0 {
			list[len(list)-1].script = text[start:end]
		}
	}
	for i := range list {
		list[i].first = firstObject(list[i].script)
	}
	return list
}

// want requests a part that would have made a list faster. It is created at once, in
// the background.
func (db *DB) want(name string) {
	if _, requested := db.wanted.LoadOrStore(name, true); requested {
		return
	}
	if strings.HasPrefix(name, searchPart) {
		db.indexing.Store(true)
	}
	db.partsDue.Store(true)
	select {
	case db.folder.partsRequested <- struct{}{}:
	default:
	}
}

// wantFor requests a part if a table has enough rows for it.
func (tx *Tx) wantFor(table, part string) error {
	var rows int
	err := tx.value(&rows, "SELECT n FROM _counts WHERE name = ?", table)
	if err == nil && rows >= wantedRows {
		tx.db.want(part)
	}
	return err
}

// isWanted reports whether there is a part of that name that can be wanted.
func isWanted(name string) bool {
	return slices.ContainsFunc(schemaParts, func(p part) bool {
		return p.name == name && p.table == "" && p.writing == nil
	})
}

// emptyPages is roughly how many pages a file has whose tables are all small.
const emptyPages = 108

// recountAfter is how many rows of an open file have to change before its tables are
// counted again.
const recountAfter = partRows / 2

// fileParts is what maintain knows about the parts that an open file lacks.
type fileParts struct {
	missing []*part  // nil: unknown
	counted bool     // the tables were counted
	changes int64    // changes of the file when they were
	inserts sync.Map // tables that may have gained rows, set by the writer
}

// createParts creates the parts of the schema that the file needs by now, and indexes some
// of the rows that are searched.
func (db *DB) createParts(ctx context.Context) error {
	return db.ifOpen(func(file *file) (err error) {
		changes := file.changes.Load()
		first := !file.parts.counted && file.isDirty()
		if !first && changes < file.parts.changes+recountAfter && !db.partsDue.Load() {
			return nil
		}
		db.partsDue.Store(false)
		defer func() {
			if err != nil {
				db.partsDue.Store(true)
				db.indexing.Store(false) // perhaps for long
			}
		}()
		file.parts.changes = changes
		due, err := db.dueParts(ctx, file)
		if err != nil {
			return err
		}
		for _, p := range due {
			err := file.submit(&job{ctx: ctx, run: func(c *conn) error { return makePart(c, p) }})
			if err != nil {
				return fmt.Errorf("part %s of the schema: %w", p.name, err)
			}
		}
		if len(due) > 0 {
			file.parts.missing = nil
			file.sandbox.SchemaChanged()
		}
		return db.indexSearched(ctx, file)
	})
}

// isDirty reports whether the file was written since its last checkpoint.
func (f *file) isDirty() bool {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	return f.dirty
}

// readUnused runs fn on a reader, without a transaction, and does not count as use.
func (db *DB) readUnused(ctx context.Context, f *file, fn func(*Tx) error) error {
	r, err := f.reader(Background(ctx))
	if err != nil {
		return err
	}
	defer f.putBack(r, true)
	return fn(newTx(ctx, r, db))
}

// dueParts lists the parts that the file lacks and needs.
func (db *DB) dueParts(ctx context.Context, file *file) (due []*part, err error) {
	err = db.readUnused(ctx, file, func(tx *Tx) error {
		if file.parts.missing == nil {
			if file.parts.missing, err = tx.missingParts(); err != nil {
				return err
			}
		}
		tables, err := file.tablesToCount(tx)
		if err != nil {
			return err
		}
		large, err := tx.tablesWithRows(tables, partRows)
		for _, p := range file.parts.missing {
			if _, wanted := db.wanted.Load(p.name); wanted || large[p.counted()] {
				due = append(due, p)
			}
		}
		file.parts.counted = true
		return err
	})
	return due, err
}

// tablesToCount lists the tables that may have gained enough rows to need a part
// that the file lacks: at the first check, all of them unless the file is small.
func (f *file) tablesToCount(tx *Tx) (tables []string, err error) {
	var pages int64
	if !f.parts.counted {
		if err := tx.value(&pages, "PRAGMA page_count"); err != nil {
			return nil, err
		}
	}
	for _, p := range f.parts.missing {
		table := p.counted()
		_, inserted := f.parts.inserts.Load(table)
		if table != "" && (inserted || pages > emptyPages) && !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	}
	return tables, nil
}

// noteInserts marks the tables that a client's SQL has changed for counting.
func (f *file) noteInserts(tables map[string]bool) {
	for table := range tables {
		f.parts.inserts.Store(table, true)
	}
	f.changes.Add(recountAfter)
}

// counted returns the table whose rows decide whether the part is created; "" if it
// is created when wanted. A file of an earlier version may lack parts needed for
// writing, regardless of its rows.
func (p *part) counted() string {
	if p.writing != nil {
		return p.writing[0]
	}
	return p.table
}

// tablesWithRows reports which of the tables have count rows.
func (tx *Tx) tablesWithRows(tables []string, count int) (map[string]bool, error) {
	query := "SELECT '' WHERE ?1 < 0"
	for _, table := range tables {
		query += fmt.Sprintf(
			" UNION ALL SELECT '%[1]s' WHERE (SELECT count(*) FROM (SELECT 1 FROM %[1]s LIMIT ?1)) = ?1",
			table,
		)
	}
	rows, err := tx.sql.QueryOnce(query, count)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	have := map[string]bool{}
	for rows.Next() {
		name, err := scanID(rows)
		if err != nil {
			return nil, err
		}
		have[name] = true
	}
	return have, rows.Err()
}

// firstObject returns the name of the first object that a part creates.
func firstObject(script string) string {
	head, _, _ := strings.Cut(script, "(")
	words := strings.Fields(head)
	if words[1] == "VIRTUAL" || words[1] == "UNIQUE" {
		return words[3]
	}
	return words[2]
}

// missingParts lists the parts that the file does not have.
func (tx *Tx) missingParts() (lacking []*part, err error) {
	existing, err := tx.existingParts()
	for i := range schemaParts {
		if p := &schemaParts[i]; !existing[p.name] {
			lacking = append(lacking, p)
		}
	}
	return lacking, err
}

// existingParts returns the names of the parts that the file has. It keeps the pages of
// the schema, a third of a small file, out of the cache.
func (tx *Tx) existingParts() (map[string]bool, error) {
	defer tx.sql.DropPages()
	names, err := all(tx, scanID, "SELECT name FROM sqlite_schema")
	objects := make(map[string]bool, len(names))
	for _, name := range names {
		objects[name] = true
	}
	existing := map[string]bool{}
	for _, p := range schemaParts {
		existing[p.name] = objects[p.first]
	}
	return existing, err
}

func makePart(c *conn, p *part) error {
	existing, err := (&Tx{conn: c}).existingParts()
	if err != nil || existing[p.name] {
		return err
	}
	defer c.forgetParts()
	return c.script(p.script)
}
