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

// migrations only ever grows: element n takes a file from version n to n+1. Released
// ones never change.
var migrations = []string{
	version1,
	version2,
	version3 +
		perTable(
			countRows, "canned_replies", "contacts", "conversations", "executions", "gateways", "logs",
			"mcp_servers", "messages", "schedules", "sources", "tasks", "tools", "webhooks", "workflows",
		) +
		perTable(deleteSecrets, "gateways", "mcp_servers", "tools", "webhooks", "workflows"),
	version4,
	version5,
	version6,
	version7,
}

var (
	//go:embed migrations/0001.sql
	version1 string
	//go:embed migrations/0002.sql
	version2 string
	//go:embed migrations/0003.sql
	version3 string
	//go:embed migrations/0004.sql
	version4 string
	//go:embed migrations/0005.sql
	version5 string
	//go:embed migrations/0006.sql
	version6 string
	//go:embed migrations/0007.sql
	version7 string
)

// countRows keeps the number of a table's rows in _counts, so that meta.total costs
// one row, however long the list is.
const countRows = `
DROP TRIGGER IF EXISTS _TABLE_counted;
DROP TRIGGER IF EXISTS _TABLE_uncounted;
CREATE TRIGGER _TABLE_counted AFTER INSERT ON TABLE BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'TABLE'; END;
CREATE TRIGGER _TABLE_uncounted AFTER DELETE ON TABLE BEGIN UPDATE _counts SET n = n - 1 WHERE name = 'TABLE'; END;`

// deleteSecrets deletes a row's secrets with it.
const deleteSecrets = `
CREATE TRIGGER _TABLE_forgotten AFTER DELETE ON TABLE BEGIN DELETE FROM _secrets WHERE owner = old.id; END;`

// perTable returns a script once for each table, with TABLE replaced by its name.
func perTable(script string, tables ...string) string {
	var all strings.Builder
	for _, table := range tables {
		all.WriteString(strings.ReplaceAll(script, "TABLE", table))
	}
	return all.String()
}

// fileVersion is the version that this program writes.
func fileVersion() int { return len(migrations) }

// migrate brings a file to the current version, with one transaction per step, so
// that an interruption leaves either the version before the step or the one after
// it.
func migrate(c *conn) error { return migrateTo(c, fileVersion()) }

func migrateTo(conn *conn, target int) error {
	var version int
	if err := conn.value(&version, "PRAGMA user_version"); err != nil {
		return err
	}
	if version > fileVersion() {
		return newer(version)
	}
	for ; version < target; version++ {
		step := fmt.Sprintf(
			"BEGIN IMMEDIATE;\n%s\nPRAGMA user_version = %d; PRAGMA application_id = %d;",
			migrations[version],
			version+1,
			applicationID,
		)
		err := conn.script(step)
		if err == nil && version+1 == chunkIndexVersion {
			err = dropChunkIndex(conn)
		}
		if err == nil {
			err = conn.script("COMMIT")
		}
		if err != nil {
			_ = conn.script("ROLLBACK")
			return fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
	}
	return nil
}

// chunkIndexVersion is the version since which a file gets the index of its chunks
// only with its first chunk.
const chunkIndexVersion = 5

// dropChunkIndex drops the index of chunks from a file that has none.
func dropChunkIndex(c *conn) error {
	var some bool
	if err := c.value(&some, "SELECT EXISTS (SELECT 1 FROM chunks)"); err != nil || some {
		return err
	}
	return c.script("DROP TABLE _chunk_terms; DROP TABLE _chunk_text; DROP TABLE _chunk_vectors")
}

func newer(version int) *agent.Error {
	return agent.Errorf(
		agent.CodeAgentNewer,
		"this agent's file has version %d, and this program knows up to version %d; update Satchel to use it",
		version,
		fileVersion(),
	).With("file_version", version).With("program_version", fileVersion())
}
