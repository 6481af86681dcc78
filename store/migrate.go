package store

import (
	"embed"
	"fmt"
	"io/fs"

	"satchel/agent"
)

// applicationID marks an agent's file ("STCH"), see
// https://www.sqlite.org/pragma.html#pragma_application_id.
const applicationID = 0x53544348

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations only ever grows: element n takes a file from version n to n+1.
// The files are named by the version that they make, in order; one that was
// released never changes.
var migrations = readMigrations()

func readMigrations() []string {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		panic(err) // the pattern is a constant
	}
	steps := make([]string, len(names))
	for i, name := range names {
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			panic(err) // the file was embedded
		}
		steps[i] = string(text)
	}
	return steps
}

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
