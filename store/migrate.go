package store

import (
	_ "embed"
	"fmt"

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
func migrate(c *conn) error {
	var version int
	if err := c.value(&version, "PRAGMA user_version"); err != nil {
		return err
	}
	if version > fileVersion() {
		return newer(version)
	}
	for ; version < fileVersion(); version++ {
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
