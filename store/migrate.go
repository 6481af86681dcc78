package store

import (
	_ "embed"
	"fmt"
	"strings"

	"satchel/agent"
)

// applicationID marks an agent's file ("STCH"), see
// https://www.sqlite.org/pragma.html#pragma_application_id.
const applicationID = 0x53544348

//go:embed schema.sql
var schemaV1 string

// migrations only ever grows: number n takes a file from version n to n+1.
var migrations = []string{schemaV1}

// fileVersion is the version this program writes.
func fileVersion() int { return len(migrations) }

// migrate brings a file to the present version, one transaction a step, so
// that a cut leaves the version before or after the step and never between.
func migrate(c *conn) error { return migrateTo(c, fileVersion()) }

func migrateTo(c *conn, target int) error {
	var version int
	if err := c.value(&version, "PRAGMA user_version"); err != nil {
		return err
	}
	if version > fileVersion() {
		return newer(version)
	}
	for ; version < target; version++ {
		step := fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT;",
			migrations[version], version+1, applicationID)
		if err := c.script(step); err != nil {
			_ = c.script("ROLLBACK")
			return fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
	}
	return nil
}

func newer(version int) *agent.Error {
	return agent.Errorf(agent.CodeAgentNewer,
		"this agent's file has version %d, and this program knows up to version %d; update Satchel to use it",
		version, fileVersion()).With("file_version", version).With("program_version", fileVersion())
}

// checkSchema refuses a file whose tables, indexes and triggers are not those
// that its version has, or that has triggers beside them.
func checkSchema(c *conn) error {
	var version int
	if err := c.value(&version, "PRAGMA user_version"); err != nil {
		return err
	}
	pattern, err := openConn("file::memory:")
	if err != nil {
		return err
	}
	defer pattern.close()
	if err := migrateTo(pattern, version); err != nil {
		return err
	}
	want, err := schemaOf(pattern)
	if err != nil {
		return err
	}
	have, err := schemaOf(c)
	if err != nil {
		return err
	}
	for name, text := range want {
		if have[name] != text {
			return fmt.Errorf("%s is not as version %d has it", name, version)
		}
	}
	for name := range have {
		if _, ours := want[name]; !ours && strings.HasPrefix(name, "trigger ") {
			return fmt.Errorf("%s is foreign", name)
		}
	}
	return nil
}

// schemaOf maps "type name" to the text that made it.
func schemaOf(c *conn) (map[string]string, error) {
	rows, err := c.query("SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	schema := map[string]string{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		schema[name] = text
	}
	return schema, rows.Err()
}
