package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"satchel/agent"
	"satchel/store/sqlite"
)

// readers returns readers that start without waiting for many files.
func readers(t testing.TB) *fileReaders {
	t.Helper()
	r := &fileReaders{files: manyFiles}
	t.Cleanup(r.close)
	return r
}

// changeFile runs statements on a file as the program's writer does.
func changeFile(t *testing.T, path string, statements ...string) {
	t.Helper()
	c, err := openConn(source(path, sqlite.ReadWrite, "journal_mode(WAL)", "synchronous(OFF)"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.watchTables(); err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := c.exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
}

// A reader with its own schema reads files as connections with the file's schema do:
// files of each version, with work of each kind, in any order.
func TestFileReader(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var paths []string
	for version := 1; version <= fileVersion(); version++ {
		path := filepath.Join(folder, fmt.Sprintf("v%d.db", version))
		unpackFixture(t, version, path)
		paths = append(paths, path)
	}
	blank := template(t, "Support")
	const at = "'2026-01-31T09:00:00.000Z'"
	for kind, statement := range map[string]string{
		"Sources": "INSERT INTO sources(id,type,name,status,created_at,updated_at) " +
			"VALUES ('s','file','n','processing'," +
			at + "," + at + ")",
		"Events": "INSERT INTO _events(type, data) VALUES ('x', '{}')",
		"Deliveries": "INSERT INTO _deliveries(id, webhook_id, event_id, event, body, status, next_attempt_at, " +
			"created_at) VALUES ('d','w','e','x','{}','pending'," + at + "," + at + ")",
		"Schedules": "INSERT INTO _replan VALUES ('x', 1)",
		"Runs":      "INSERT INTO runs(id, schedule_id, scheduled_for, status) VALUES ('r','s'," + at + ",'running')",
		"Executions": "INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) " +
			"VALUES ('e','w',1,'queued','manual'," + at + ")",
		"Gateways": "INSERT INTO gateways(id, type, name, status, created_at, updated_at) " +
			"VALUES ('g','chatbot_a','n','active'," +
			at + "," + at + ")",
		"MCPServers": "INSERT INTO mcp_servers(id, name, url) VALUES ('m','n','https://example.com')",
		"Attachments": "INSERT INTO _attachments(message_id, n, gateway_id, attempts, next_attempt_at, upload, " +
			"name, media_type, size) VALUES (1, 0, 'g', 0, " + at + ", '', 'n', 'text/plain', 1)",
	} {
		path := filepath.Join(folder, kind+".db")
		copyClosed(t, path, blank)
		changeFile(t, path, statement)
		if r := inspect(path); r.problem != nil || reflect.ValueOf(r.pending).FieldByName(kind).IsZero() {
			t.Fatalf("%s: %+v", kind, r)
		}
		paths = append(paths, path)
	}
	many := filepath.Join(folder, "many.db") // its sqlite_schema has other and more pages
	copyClosed(t, many, blank)
	changeFile(
		t,
		many,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO contacts(name, "+
			"tags) SELECT 'c' || i, '[\"a\"]' FROM n",
		"INSERT INTO _admins(id, email, role, created_at) VALUES ('a','ada@example.com','owner',"+at+")",
	)
	paths = append(paths, many, blank)

	r := readers(t)
	for range 2 {
		for _, path := range paths {
			got, ok := r.read(path)
			if want := inspect(path); !ok || want.problem != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v\n%+v\nwant\n%+v", filepath.Base(path), ok, got, want)
			}
		}
	}
}

// A file is left to be inspected when its tables have more indexes for pending work, when
// it has a -wal, and when anything about it is unexpected.
func TestFileReaderLeavesOthers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	blank := template(t, "Support")
	r := readers(t)
	if _, ok := r.read(blank); !ok {
		t.Fatal("a blank file was not read")
	}
	for name, change := range map[string]func(path string){
		"large table": func(path string) {
			c, err := openConn(source(path, sqlite.ReadWrite))
			if err != nil {
				t.Fatal(err)
			}
			for i := range schemaParts {
				if schemaParts[i].name == "deliveries" {
					err = makePart(c, &schemaParts[i])
				}
			}
			if err := errors.Join(err, c.close()); err != nil {
				t.Fatal(err)
			}
		},
		"foreign table": func(path string) { changeFile(t, path, "CREATE VIEW foreign_one AS SELECT 1") },
		"foreign trigger": func(path string) {
			changeFile(t, path, "CREATE TRIGGER x AFTER INSERT ON _agent BEGIN SELECT 1; END")
		},
		"another program": func(path string) { changeFile(t, path, "PRAGMA application_id = 1") },
		"newer": func(path string) {
			changeFile(t, path, fmt.Sprintf("PRAGMA user_version = %d", fileVersion()+1))
		},
		"no agent": func(path string) { changeFile(t, path, "DELETE FROM _agent") },
		"not whole": func(path string) {
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()-pageSize)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"-wal": func(path string) {
			if err := os.WriteFile(path+"-wal", []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		path := filepath.Join(folder, name+".db")
		copyClosed(t, path, blank)
		change(path)
		for range 2 { // the second time the schema is known
			if got, ok := r.read(path); ok {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	if _, ok := r.read(blank); !ok {
		t.Error("a blank file was not read after the others")
	}
}

// A start without the catalog's cache reads many files, and reports what is wrong with
// one of them as it does for a few.
func TestManyFilesAreRead(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	makeAgents(t, path, 3*manyFiles)
	damaged := filepath.Join(path, "agents", "agent-zzz.db")
	copyClosed(t, damaged, template(t, "Damaged"))
	changeFile(t, damaged, "CREATE VIEW foreign_one AS SELECT 1")
	f := openAt(t, path)
	for i := range 3 * manyFiles {
		if db := byName(t, f, fmt.Sprintf("agent-%d", i)); db.Problem() != nil {
			t.Error(db.Problem())
		}
	}
	wantCode(t, byName(t, f, "agent-zzz").Problem(), agent.CodeAgentDamaged)
}
