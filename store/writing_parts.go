package store

import "sync"

// The other effects of writing to a table (counts, tags, full text, events) come
// from triggers, and each connection keeps the triggers of all tables in memory,
// about 2 KB each; an index takes a page of the file. So a file gets both, as parts
// of the schema, only with the first write to a table. The writer's authorizer sees
// the write when SQLite compiles the statement, even if it comes from a trigger or a
// foreign key. It refuses the statement, the parts are created in the same
// transaction, and the statement is compiled again.

// writingParts are the parts that a write to a table needs.
var writingParts = func() map[string][]part {
	parts := map[string][]part{}
	for _, p := range schemaParts {
		for _, table := range p.writing {
			parts[table] = append(parts[table], p)
		}
	}
	return parts
}()

// writerParts is what a writer knows about the parts that writes need.
type writerParts struct {
	existing map[string]bool // names of the parts that the file has; nil: unknown
	missing  string          // the table whose parts were missing for the refused statement

	inserts *sync.Map // of the file, see fileParts; nil when it has none
}

// mayWrite reports whether the file has the parts that a write to the table needs.
func (c *conn) mayWrite(table string) bool {
	for _, p := range writingParts[table] {
		if !c.parts.existing[p.name] {
			c.parts.missing = table
			return false
		}
	}
	return true
}

// noteInsert records that a table may gain rows.
func (c *conn) noteInsert(table string) {
	if c.parts.inserts != nil {
		c.parts.inserts.Store(table, true)
	}
}

// createMissing creates the parts that a refused statement lacks, and reports whether
// it was refused for that reason.
func (c *conn) createMissing() (bool, error) {
	table := c.parts.missing
	if table == "" {
		return false, nil
	}
	c.parts.missing = ""
	_, err := c.makeWritingParts(writingParts[table])
	return err == nil, err
}

// makeWritingParts creates those of the parts that the file lacks, all or none.
func (c *conn) makeWritingParts(parts []part) (made bool, err error) {
	if c.parts.existing == nil {
		if c.parts.existing, err = (&Tx{conn: c}).existingParts(); err != nil {
			return false, err
		}
	}
	script := ""
	for _, p := range parts {
		if !c.parts.existing[p.name] {
			script += p.script
		}
	}
	if script == "" {
		return false, nil
	}
	if err := c.script("SAVEPOINT parts;" + script + "RELEASE parts"); err != nil {
		c.forgetParts()
		_ = c.script("ROLLBACK TO parts; RELEASE parts") // fails when SQLite has rolled back already
		return false, err
	}
	for _, p := range parts {
		c.parts.existing[p.name] = true
	}
	return true, nil
}

// forgetParts makes the parts be looked up again, since some may have been rolled
// back.
func (c *conn) forgetParts() { c.parts.existing = nil }

// allWritingParts returns the parts that writes to any table need.
func allWritingParts() (all []part) {
	for _, p := range schemaParts {
		if p.writing != nil {
			all = append(all, p)
		}
	}
	return all
}
