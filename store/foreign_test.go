package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

// schemaAttacks are scripts that add to an agent's file what this program does not
// create. Those under "written" change sqlite_schema itself.
var schemaAttacks = map[string]string{
	"trigger": "CREATE TRIGGER evil AFTER UPDATE ON _agent BEGIN DELETE FROM contacts; END",
	"trigger on insert": "CREATE TRIGGER evil AFTER INSERT ON contacts BEGIN UPDATE contacts " +
		"SET name = hex(randomblob(1000000)); END",
	"endless trigger": "CREATE TRIGGER evil AFTER INSERT ON _events BEGIN INSERT INTO _counts WITH " +
		"RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k) SELECT 'x' || i, i FROM k; END",
	"trigger with our prefix": "CREATE TRIGGER _contacts_evil AFTER INSERT ON contacts BEGIN SELECT 1; END",
	"trigger with an unusual name": "CREATE TRIGGER [a b] BEFORE DELETE ON sources BEGIN " +
		"SELECT raise(ABORT, 'no'); END",
	"changed trigger": "DROP TRIGGER _logs_counted; CREATE TRIGGER _logs_counted AFTER INSERT ON logs " +
		"BEGIN DELETE FROM logs; END",
	"trigger of another case": "DROP TRIGGER _logs_counted; CREATE TRIGGER _LOGS_COUNTED AFTER INSERT ON logs BEGIN " +
		"UPDATE _counts SET n = n + 1 WHERE name = 'logs'; END",
	"trigger with an additional space": "DROP TRIGGER _logs_counted; CREATE TRIGGER _logs_counted  AFTER INSERT ON " +
		"logs BEGIN UPDATE _counts SET n = n + 1 WHERE name = 'logs'; END",
	"trigger missing":              "DROP TRIGGER _logs_counted",
	"plain index":                  "CREATE INDEX mine ON contacts(name)",
	"unique index":                 "CREATE UNIQUE INDEX mine ON contacts(name)",
	"expression index":             "CREATE INDEX mine ON sources(hex(zeroblob(300000000)))",
	"expression index with printf": "CREATE INDEX mine ON sources(printf('%1000000000d', 1))",
	"partial index": "CREATE INDEX mine ON sources(name) " +
		"WHERE length(printf('%.*c', 900000000, name)) > 0",
	"index with a collation": "CREATE INDEX mine ON contacts(name COLLATE RTRIM)",
	"index missing":          "DROP INDEX contacts_email",
	"index changed":          "DROP INDEX contacts_email; CREATE INDEX contacts_email ON contacts(name)",
	"view":                   "CREATE VIEW mine AS SELECT * FROM _secrets",
	"recursive view": "CREATE VIEW mine AS WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL " +
		"SELECT i+1 FROM k) SELECT i FROM k",
	"view in a table's place": "DROP TABLE webhooks; CREATE VIEW webhooks AS SELECT 1 AS id",
	"endless view for a table": "DROP TABLE _agent; CREATE VIEW _agent AS WITH RECURSIVE k(i) AS (SELECT 1 " +
		"UNION ALL SELECT i FROM k) SELECT i AS id FROM k WHERE i > 1",
	"view with a trigger": "CREATE VIEW mine AS SELECT 1 AS a; CREATE TRIGGER evil INSTEAD OF INSERT ON " +
		"mine BEGIN DELETE FROM contacts; END",
	"table":                 "CREATE TABLE mine(x)",
	"table with our prefix": "CREATE TABLE _mine(x)",
	"strict table":          "CREATE TABLE mine(x TEXT) STRICT",
	"without rowid":         "CREATE TABLE mine(x TEXT PRIMARY KEY, y) WITHOUT ROWID",
	"foreign key to ours":   "CREATE TABLE mine(x TEXT REFERENCES contacts(id) ON DELETE RESTRICT)",
	"table missing":         "DROP TABLE webhooks",
	"table changed":         "DROP TABLE contacts; CREATE TABLE contacts(id)",
	"table renamed":         "ALTER TABLE webhooks RENAME TO hooks",
	"additional column":     "ALTER TABLE webhooks ADD COLUMN extra TEXT",
	"default expression":    "CREATE TABLE mine(x DEFAULT (hex(randomblob(400000000))))",
	"generated column":      "ALTER TABLE webhooks ADD COLUMN extra TEXT AS (hex(zeroblob(400000000)))",
	"check":                 "CREATE TABLE mine(x CHECK (length(hex(zeroblob(400000000))) > 0))",
	"collation":             "CREATE TABLE mine(x TEXT COLLATE NOCASE UNIQUE)",
	"statistics":            "ANALYZE",
	"full-text table":       "CREATE VIRTUAL TABLE mine USING fts5(x)",
	"vectors":               "CREATE VIRTUAL TABLE mine USING vec0(embedding float[4])",
	"vectors like ours": "CREATE VIRTUAL TABLE _chunk_vectors_7 USING vec0(source INTEGER, embedding " +
		"float[8] distance_metric=cosine, chunk_size=1024)",
	"vectors of a length with zeros": "CREATE VIRTUAL TABLE _chunk_vectors_007 USING vec0(source INTEGER, " +
		"embedding float[7] distance_metric=cosine, chunk_size=1024)",
	"r-tree":                          "CREATE VIRTUAL TABLE mine USING rtree(id, a, b)",
	"shadow table alone":              "CREATE TABLE _chunk_vectors_9_chunks(x)",
	"name with quotes":                `CREATE TABLE "a""b'c"(x)`,
	"name with a newline":             "CREATE TABLE \"a\nb\"(x)",
	"older than the first version":    "PRAGMA user_version = 0",
	"negative version":                "PRAGMA user_version = -1",
	"very negative version":           "PRAGMA user_version = -2147483648",
	"another version than its schema": "PRAGMA user_version = 1",
	"no agent's file":                 "PRAGMA application_id = 7",
	"another program's file, broken": "PRAGMA application_id = 7; PRAGMA writable_schema = 1; " +
		"UPDATE sqlite_schema SET sql = 'nonsense'",
	"newer":       "PRAGMA user_version = 99",
	"large pages": "PRAGMA journal_mode = DELETE; PRAGMA page_size = 65536; VACUUM",
	"small pages": "PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM",

	"written: type in upper case": written(
		"UPDATE sqlite_schema SET type = 'TRIGGER' WHERE name = '_logs_counted'",
	),
	"written: table in upper case": written("UPDATE sqlite_schema SET type = 'TABLE' WHERE name = 'webhooks'"),
	"written: trigger as a table": written("INSERT INTO sqlite_schema VALUES ('table','evil','contacts',0,'CREATE " +
		"TRIGGER evil AFTER INSERT ON contacts BEGIN DELETE FROM contacts; END')"),
	"written: TRIGGER": written("INSERT INTO sqlite_schema VALUES ('TRIGGER','evil','contacts',0," +
		"'CREATE TRIGGER evil AFTER INSERT ON contacts BEGIN DELETE FROM contacts; END')"),
	"written: empty type": written("INSERT INTO sqlite_schema VALUES ('','evil','contacts',0,'CREATE " +
		"TRIGGER evil AFTER INSERT ON contacts BEGIN DELETE FROM contacts; END')"),
	"written: trigger named as ours": written(
		"UPDATE sqlite_schema SET sql = replace(sql, 'n + 1', 'n + 2') WHERE name = '_logs_counted'",
	),
	"written: reserved name": written(
		"INSERT INTO sqlite_schema VALUES ('view','sqlite_evil','sqlite_evil',0,'CREATE VIEW sqlite_evil AS SELECT 1')",
	),
	"written: reserved table": written("UPDATE sqlite_schema SET name = 'sqlite_webhooks', tbl_name = " +
		"'sqlite_webhooks', sql = replace(sql, 'webhooks', 'sqlite_webhooks') WHERE name = 'webhooks'"),
	"written: a check is missing": written(
		"UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'logs'",
	),
	"written: a generated column": written("UPDATE sqlite_schema SET sql = replace(sql, 'CREATE TABLE webhooks (', " +
		"'CREATE TABLE webhooks (evil TEXT AS (hex(zeroblob(400000000))) VIRTUAL,') WHERE name = 'webhooks'"),
	"written: a space":        written("UPDATE sqlite_schema SET sql = sql || ' ' WHERE name = 'webhooks'"),
	"written: a comment":      written("UPDATE sqlite_schema SET sql = sql || '--' WHERE name = 'contacts'"),
	"written: no SQL":         written("UPDATE sqlite_schema SET sql = 'nonsense' WHERE name = 'webhooks'"),
	"written: SQL is missing": written("UPDATE sqlite_schema SET sql = NULL WHERE name = 'contacts_email'"),
	"written: SQL as a blob": written(
		"UPDATE sqlite_schema SET sql = CAST(sql AS BLOB) WHERE name = 'contacts_email'",
	),
	"written: a blob as a name": written(
		"UPDATE sqlite_schema SET name = CAST(name AS BLOB) WHERE name = '_logs_counted'",
	),
	"written: long SQL": written("INSERT INTO sqlite_schema VALUES ('view','evil','evil',0,'CREATE VIEW evil AS " +
		"SELECT ' || hex(zeroblob(2000000)))"),
	"written: deep SQL": written("INSERT INTO sqlite_schema VALUES ('view','evil','evil',0,'CREATE VIEW evil AS " +
		"SELECT ' || replace(hex(zeroblob(400)),'0','(') || '1' || replace(hex(zeroblob(400)),'0',')'))"),
	"written: many objects": written("WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k " +
		"WHERE i < 100000) INSERT INTO sqlite_schema SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || " +
		"' AS SELECT ' || i FROM k"),
	"written: the same twice": written(
		"INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = '_logs_counted'",
	),
	"written: the schema as a table": written("UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'contacts'"),
	"written: pages of another table": written("UPDATE sqlite_schema SET rootpage = (SELECT rootpage " +
		"FROM sqlite_schema WHERE name = '_secrets') WHERE name = 'contacts'"),
	"written: pages beyond the end": written("UPDATE sqlite_schema SET rootpage = 1000000 WHERE name = 'contacts'"),
	"written: no pages":             written("UPDATE sqlite_schema SET rootpage = 0 WHERE name = 'contacts'"),
	"written: a page that is text":  written("UPDATE sqlite_schema SET rootpage = 'x' WHERE name = 'contacts'"),
	"written: pages of a trigger":   written("UPDATE sqlite_schema SET rootpage = 3 WHERE name = '_logs_counted'"),
	"written: empty":                written("DELETE FROM sqlite_schema"),
	"written: index of another": written(
		"UPDATE sqlite_schema SET tbl_name = 'logs' WHERE name = 'contacts_email'",
	),
	"written: unknown module": written(
		"INSERT INTO sqlite_schema VALUES ('table','evil','evil',0,'CREATE VIRTUAL TABLE evil USING nothing(x)')",
	),
	"written: a temporary object": written("INSERT INTO sqlite_schema VALUES ('trigger','evil','contacts',0,'CREATE " +
		"TEMP TRIGGER evil AFTER INSERT ON contacts BEGIN SELECT 1; END')"),
	"written: two statements": written("UPDATE sqlite_schema SET sql = sql || '; CREATE TRIGGER evil AFTER INSERT " +
		"ON contacts BEGIN SELECT 1; END' WHERE name = 'webhooks'"),
	"written: a table from a query": written(
		"INSERT INTO sqlite_schema VALUES ('table','evil','evil',2,'CREATE TABLE evil AS SELECT 1')",
	),
}

func written(change string) string { return "PRAGMA writable_schema = 1; " + change }

// byteAttacks change the header of a file.
var byteAttacks = map[string]func([]byte){
	"bytes: page size 1":         func(b []byte) { binary.BigEndian.PutUint16(b[16:], 1) },
	"bytes: page size 512":       func(b []byte) { binary.BigEndian.PutUint16(b[16:], 512) },
	"bytes: page size 3000":      func(b []byte) { binary.BigEndian.PutUint16(b[16:], 3000) },
	"bytes: UTF-16":              func(b []byte) { b[59] = 2 },
	"bytes: schema format":       func(b []byte) { b[47] = 200 },
	"bytes: reserved bytes":      func(b []byte) { b[20] = 255 },
	"bytes: version of the file": func(b []byte) { b[18], b[19] = 9, 9 },
	"bytes: no schema":           func(b []byte) { clear(b[100:4096]) },
}

// hostileFile creates the file of an attack.
func hostileFile(t *testing.T, honest, script string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hostile.db")
	copyClosed(t, path, honest)
	if err := rewrite(path, script); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every way in refuses a file whose schema is not the program's own.
func TestHostileFilesAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	honest := template(t, "Support")
	files := map[string][]byte{}
	for name, script := range schemaAttacks {
		files[name] = hostileFile(t, honest, script)
	}
	for name, change := range byteAttacks {
		data, err := os.ReadFile(honest)
		if err != nil {
			t.Fatal(err)
		}
		change(data)
		files[name] = data
	}
	if raceEnabled { // why a file is refused does not depend on this; a sample will do
		for name := range files {
			if len(files) <= 12 {
				break
			}
			delete(files, name)
		}
	}
	f := openFolder(t)
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			_, err := f.Import(t.Context(), bytes.NewReader(data), 1<<30, openMode)
			wantCodeOf(t, "import", err, agent.CodeInvalidFile)
			path := filepath.Join(t.TempDir(), "hostile.db")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = RestoreFile(t.Context(), f.Path(), path)
			wantCodeOf(t, "restore", err, agent.CodeInvalidFile)
		})
	}
	if n := fileCount(t, f.agentsPath()+"/*.db"); n != 1 {
		t.Errorf("%d files are left", n)
	}
	t.Run("adoption", func(t *testing.T) { refuseAdoption(t, files) })
	t.Logf("%d files", len(files))
}

// refuseAdoption puts files into the folder of a running server and of one that starts:
// each is left as it is and reported by doctor.
func refuseAdoption(t *testing.T, files map[string][]byte) {
	f := openFolder(t)
	names := map[string]string{}
	for name, data := range files {
		id := fmt.Sprintf("agent-%d", len(names))
		names[id] = name
		if err := os.WriteFile(f.filePath(id), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		for id, name := range names {
			if db, err := f.Agent(id); err == nil && db.Problem() == nil {
				t.Errorf("%s: %s was adopted", name, when)
			}
			if left, err := os.ReadFile(f.filePath(id)); err != nil || !bytes.Equal(left, files[name]) {
				t.Errorf("%s: %s was changed, %v", name, when, err)
			}
		}
	}
	pollFolder(f, 2)
	check("while the server runs")
	closeFolder(t, f)
	f = openAt(t, f.Path())
	check("at the start")
	findings, err := Doctor(f.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, name := range names {
		if !slices.ContainsFunc(findings, func(x agent.Finding) bool { return x.Subject == id+".db" && !x.OK }) {
			t.Errorf("%s: doctor finds nothing", name)
		}
	}
}

// A file that replaces that of an agent whose file is closed is checked too.
func TestHostileFileInAnAgentsPlace(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	if err := rewrite(
		db.path,
		"CREATE TRIGGER evil AFTER INSERT ON contacts BEGIN DELETE FROM contacts; END",
	); err != nil {
		t.Fatal(err)
	}
	before := hashOf(t, db.path)
	_, err := db.CreateContact(t.Context(), named("Ada"))
	wantCode(t, err, agent.CodeAgentDamaged)
	if !errors.Is(err, errForeign) || hashOf(t, db.path) != before {
		t.Errorf("%v; the file was changed: %v", err, hashOf(t, db.path) != before)
	}
}

// Valid files are accepted: of every version, as created and vacuumed, with vectors of
// several lengths.
func TestValidFilesAreAccepted(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	f := openFolder(t)
	files := map[string]string{"fresh": honestFile(t), "vectors": honestFile(t, 3, 8, 384, 512, 1536, MaxVectorLength)}
	for version := 1; version <= fileVersion(); version++ {
		path := filepath.Join(t.TempDir(), "fixture.db")
		unpackFixture(t, version, path)
		files[fmt.Sprintf("version %d", version)] = path
		vacuumed := filepath.Join(t.TempDir(), "vacuumed.db")
		copyClosed(t, vacuumed, path)
		if err := rewrite(vacuumed, "VACUUM"); err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("version %d, vacuumed", version)] = vacuumed
	}
	for name, path := range files {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Import(t.Context(), bytes.NewReader(data), 1<<30, openMode); err != nil {
				t.Errorf("import: %v", err)
			}
			g := openFolder(t)
			if _, err := RestoreFile(t.Context(), g.Path(), path); err != nil {
				t.Errorf("restore: %v", err)
			}
			copyClosed(t, g.filePath("copied"), path)
			pollFolder(g, 2)
			createContact(t, byName(t, g, "copied"), named("x"))
			if len(g.Agents()) != 3 {
				t.Errorf("%d agents", len(g.Agents()))
			}
		})
	}
}

// honestFile creates an agent's file that has tables for vectors of these lengths.
func honestFile(t *testing.T, lengths ...int) string {
	t.Helper()
	f := openFolder(t)
	db := createAgent(t, f, "Honest")
	for _, n := range lengths {
		if err := write(db, func(tx *Tx) error { return tx.makeVectors(n) }); err != nil {
			t.Fatal(err)
		}
	}
	closeFolder(t, f)
	return db.path
}

// A database that is not an agent's is recognized as such whatever its schema contains.
func TestForeignDatabaseWithABrokenSchema(t *testing.T) {
	t.Parallel()
	path := template(t, "Support")
	if err := rewrite(path, schemaAttacks["another program's file, broken"]); err != nil {
		t.Fatal(err)
	}
	if err := examine(t.Context(), path, unlockedSource(path)); !errors.Is(err, errNoAgent) {
		t.Error(err)
	}
}

// A file of an older version is compared with the schema of that version.
func TestSchemaOfAnotherVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.db")
	unpackFixture(t, 1, path)
	if err := rewrite(path, "DROP TRIGGER _logs_counted"); err != nil {
		t.Fatal(err)
	}
	err := examine(t.Context(), path, unlockedSource(path))
	if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), "_logs_counted") {
		t.Error(err)
	}
}
