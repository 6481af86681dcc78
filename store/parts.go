package store

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A part of the schema is not in a file from the beginning: indexes that few
// rows do not need, or that serve an order or a search that nobody has asked
// for. A new file is smaller without them, and what is written to it cheaper.
type part struct {
	name   string
	since  int    // the version of the file from which on it is made
	table  string // it is made when this has partRows rows; empty: when it is wanted
	script string
	first  string // the name of the first object that it makes

	writing []string // it is made before the first write to one of these tables, see writing_parts.go
}

const (
	partRows   = 128   // rows of a table from which on its indexes are made
	wantedRows = 1_000 // records of a list from which on one is worth an index of its own
)

//go:embed migrations/parts.sql
var partsText string

// schemaParts are all parts, those of earlier versions first.
var schemaParts = readParts(partsText)

// partsOf returns the parts that files of a version may have.
func partsOf(version int) []part {
	n := slices.IndexFunc(schemaParts, func(p part) bool { return p.since > version })
	if n < 0 {
		return schemaParts
	}
	return schemaParts[:n]
}

// readParts reads sections that begin with "-- part NAME: TABLE". A line "-- since
// VERSION" says of which version those below it are.
func readParts(text string) []part {
	const heading, version = "-- part ", "-- since "
	var list []part
	since := 0
	for line := range strings.Lines(text) {
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
			list = append(list, p)
		} else if len(list) > 0 {
			list[len(list)-1].script += line
		}
	}
	for i := range list {
		list[i].first = firstObject(list[i].script)
	}
	return list
}

// want asks for a part that would have made a list faster. It is made soon, in
// the background.
func (db *DB) want(name string) {
	if _, asked := db.wanted.LoadOrStore(name, true); !asked {
		db.wants.Store(true)
		db.growing.Store(true)
	}
}

// wantFor asks for a part when a table has enough rows for it.
func (tx *Tx) wantFor(table, part string) error {
	var rows int
	err := tx.value(&rows, "SELECT n FROM _counts WHERE name = ?", table)
	if err == nil && rows >= wantedRows {
		tx.db.want(part)
	}
	return err
}

// isWanted reports whether there is a part of that name to want.
func isWanted(name string) bool {
	return slices.ContainsFunc(schemaParts, func(p part) bool { return p.name == name && p.table == "" && p.writing == nil })
}

// emptyPages is about how many pages a file without records has.
const emptyPages = 100

// grownBy is how many pages a file has gained when its tables are counted again.
const grownBy = 8

// grow makes the parts of the schema that the file needs by now, and indexes
// some of what searches look at.
func (db *DB) grow(ctx context.Context) error {
	return db.ifOpen(func(f *file) error {
		if !f.isDirty() && !db.growing.Load() {
			return nil
		}
		db.growing.Store(false)
		due, err := db.dueParts(ctx, f)
		if err != nil {
			return err
		}
		for _, p := range due {
			err := f.submit(&job{ctx: ctx, run: func(c *conn) error { return makePart(c, p) }})
			if err != nil {
				return fmt.Errorf("part %s of the schema: %w", p.name, err)
			}
		}
		if len(due) > 0 {
			f.sandbox.SchemaChanged()
		}
		return db.indexSearched(ctx, f)
	})
}

// isDirty reports whether the file was written since its last checkpoint.
func (f *file) isDirty() bool {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	return f.dirty
}

// look runs fn on a reader, without a transaction, and does not count as use.
func (db *DB) look(ctx context.Context, f *file, fn func(*Tx) error) error {
	r, err := f.reader(Background(ctx))
	if err != nil {
		return err
	}
	defer f.putBack(r, true)
	return fn(newTx(ctx, r, db))
}

// dueParts lists the parts that the file lacks and needs.
func (db *DB) dueParts(ctx context.Context, f *file) (due []part, err error) {
	err = db.look(ctx, f, func(tx *Tx) error {
		var pages int64
		if err := tx.value(&pages, "PRAGMA page_count"); err != nil {
			return err
		}
		grown := pages >= f.grownAt+grownBy
		if !grown && !db.wants.Swap(false) {
			return nil
		}
		there, err := tx.partsThere()
		for _, p := range schemaParts {
			if err == nil && !there[p.name] {
				due, err = tx.addDue(due, p, grown)
			}
		}
		f.grownAt = pages
		return err
	})
	return due, err
}

// addDue adds a part to those that are due if it is. The rows of tables are
// counted when the file has grown.
func (tx *Tx) addDue(due []part, p part, grown bool) ([]part, error) {
	table := p.table
	if p.writing != nil { // a file of an earlier version may lack it, whatever rows it has
		table = p.writing[0]
	}
	if table == "" {
		if _, wanted := tx.db.wanted.Load(p.name); wanted {
			due = append(due, p)
		}
		return due, nil
	}
	if !grown {
		return due, nil
	}
	var rows int
	err := tx.value(&rows, "SELECT count(*) FROM (SELECT 1 FROM "+table+" LIMIT ?)", partRows)
	if rows == partRows {
		due = append(due, p)
	}
	return due, err
}

// firstObject is the name of the first object that a part makes.
func firstObject(script string) string {
	words := strings.Fields(script)
	if words[1] == "VIRTUAL" || words[1] == "UNIQUE" {
		return words[3]
	}
	return words[2]
}

// partsThere returns the names of the parts that the file has.
func (tx *Tx) partsThere() (map[string]bool, error) {
	names, err := all(tx, scanID, "SELECT name FROM sqlite_schema")
	objects := make(map[string]bool, len(names))
	for _, name := range names {
		objects[name] = true
	}
	there := map[string]bool{}
	for _, p := range schemaParts {
		there[p.name] = objects[p.first]
	}
	return there, err
}

func makePart(c *conn, p part) error {
	there, err := (&Tx{conn: c}).partsThere()
	if err != nil || there[p.name] {
		return err
	}
	defer c.forgetParts()
	return c.script(p.script)
}
