package store

import (
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store/sqlite"
)

// update writes the fixtures of the current version again:
//
//	go test ./store -run TestFixtures -update
//
// A fixture of a version that was released must never change.
var update = flag.Bool("update", false, "make testdata/vN.db.gz of the present version anew")

func fixturePath(version int) string { return fmt.Sprintf("testdata/v%d.db.gz", version) }

func TestSchemaApplies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%.db")
	c, err := openConn(source(path, sqlite.Create, "auto_vacuum(2)", "journal_mode(WAL)"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := errors.Join(migrate(c), migrate(c), checkSchema(c), c.watchTables()); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		`INSERT INTO contacts(name,email,tags) VALUES ('Ada','ada@example.com','["vip","x"]')`,
		`UPDATE contacts SET email='b@x.y'`,
		`INSERT INTO sources(id,type,name,status,created_at,updated_at) ` +
			`VALUES('s','file','n','ready','2026-01-31T09:00:00.000Z','2026-01-31T09:00:00.000Z')`,
		`INSERT INTO chunks(id,source_id,position,content) VALUES('c','s',0,'hello world')`,
		`DELETE FROM sources`,
		`DELETE FROM contacts`,
	} {
		if _, err := c.exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	var n int
	if err := c.value(&n, "SELECT count(*) FROM _events"); err != nil || n != 3 {
		t.Fatalf("events: %d, %v", n, err)
	}
}

// SQLite 3.40, which Debian 12 has, reports NULL values in a sound WITHOUT ROWID table
// whose key is not its first columns.
func TestKeyColumnsComeFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "blank.db")
	writeBlank(t, path)
	// An index's columns by rank; those of a primary key's index are the table's key.
	const misplaced = `SELECT count(*) FROM pragma_table_list l, pragma_index_list(l.name) i, pragma_index_info(i.name) k
		WHERE l.type = 'table' AND l.wr AND i.origin = 'pk' AND (l.name = ?1 OR ?1 = '') AND (k.cid <> k.seqno OR ?1 <> '')`
	c, err := openConn(unlockedSource(path))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for table, want := range map[string]int{"": 0, "logs": 2} {
		var n int
		if err := c.value(&n, misplaced, table); err != nil || n != want {
			t.Errorf("table %q: %d columns, want %d; %v", table, n, want, err)
		}
	}
}

// Every table in _counts has the triggers that count its rows.
func TestCountedTables(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	makeAllWritingParts(t, db)
	const uncounted = `SELECT coalesce(group_concat(c.name), '') FROM _counts c WHERE name <> 'vectors_gone' AND 2 <>
		(SELECT count(*) FROM sqlite_schema s WHERE s.tbl_name = c.name AND s.name IN ('_' || c.name || '_counted', '_' || c.name || '_uncounted'))`
	if got := value[string](t, db, uncounted); got != "" {
		t.Errorf("without triggers: %s", got)
	}
}

// The log of a file of version 1 keeps its rows, their order and their count.
func TestMigratedLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.db")
	unpackFixture(t, 1, path)
	c, err := openConn(source(path, sqlite.ReadWrite, writerPragmas...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	const digest = "SELECT group_concat(concat_ws('|', id, level, source, message, data, created_at), char(10)) " +
		"FROM (SELECT * FROM logs ORDER BY created_at, id)"
	if err := c.script(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
		INSERT INTO logs(level, source, message, data, created_at)
		SELECT 'info', 'test', 'row ' || i, json_object('i', i), '2026-01-01T00:00:' || printf('%02d', i % 60) || '.000Z' FROM n`); err != nil {
		t.Fatal(err)
	}
	var before, after string
	if err := errors.Join(c.value(&before, digest), migrate(c), c.value(&after, digest), checkSchema(c)); err != nil {
		t.Fatal(err)
	}
	if before != after || len(before) < 5000 {
		t.Errorf("the log changed: %d bytes before, %d after", len(before), len(after))
	}
	if err := c.script("DELETE FROM logs WHERE message = 'row 7'; INSERT INTO logs(level, source, message, " +
		"created_at) VALUES ('info', 'test', 'a', 'b'), ('info', 'test', 'c', 'd')"); err != nil {
		t.Fatal(err)
	}
	var rows, counted int
	if err := errors.Join(
		c.value(&rows, "SELECT count(*) FROM logs"),
		c.value(&counted, "SELECT n FROM _counts WHERE name = 'logs'"),
	); err != nil || rows != counted || rows < 5001 {
		t.Errorf("%d rows, counted as %d, %v", rows, counted, err)
	}
}

// TestMigratedAnswers checks that messages that were to be answered when the program was
// replaced still are, and no others, and that messages that were being sent then are due.
func TestMigratedAnswers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.db")
	unpackFixture(t, 1, path)
	c, err := openConn(source(path, sqlite.ReadWrite, writerPragmas...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	const at = "2026-01-31T09:00:00.000Z"
	old := `DELETE FROM messages; DELETE FROM _answers; DELETE FROM _outgoing;
		UPDATE _cursors SET seq = (SELECT max(seq) FROM _events) WHERE consumer = 'answers';
		INSERT INTO gateways(id, type, name, status, created_at, updated_at) VALUES ('g','email','g','active','` + at + `','` + at + `');
		INSERT INTO conversations(id, gateway_id, created_at, updated_at) VALUES ('open','g','` + at + `','` + at + `'), ('muted','g','` + at + `','` + at + `');
		UPDATE conversations SET muted = 1 WHERE id = 'muted'`
	for n, m := range []struct{ conversation, metadata string }{
		{"open", `{"external_id":"1"}`},
		{"muted", `{"external_id":"2"}`},
		{"open", `{"external_id":"3","auto_submitted":"yes"}`},
		{"open", `{}`},
		{"open", `{"external_id":"5"}`},
		{"open", `{"external_id":"6"}`},
	} {
		old += fmt.Sprintf(
			";INSERT INTO messages(id, conversation_id, role, content, metadata) VALUES (%d,'%s','user','hello','%s')",
			101+n, m.conversation, m.metadata,
		)
	}
	old += `;UPDATE conversations SET muted = id = 'muted';
		INSERT INTO _answers(message_id, conversation_id, created_at) VALUES (105,'open','` + at + `'), (106,'open','` + at + `');
		INSERT INTO _outgoing(message_id, conversation_id, gateway_id, key, status, created_at) VALUES (103,'open','g',NULL,'sending','` + at + `'), (104,'open','g','answer:106','pending','` + at + `')`
	var left string
	if err := errors.Join(
		c.script(old),
		migrate(c),
		checkSchema(c),
		c.value(&left, "SELECT group_concat(message_id) FROM (SELECT * FROM _answers ORDER BY message_id)"),
	); err != nil {
		t.Fatal(err)
	}
	if left != "101,105" {
		t.Errorf("%s are to be answered", left)
	}
	var due string
	if err := c.value(
		&due,
		"SELECT group_concat(message_id || ' ' || status) FROM _outgoing WHERE next_attempt_at < '2000'",
	); err != nil || due != "103 sending" {
		t.Errorf("due are %s, %v", due, err)
	}
}

// TestMigratedTemperature checks that the default of earlier versions, which many models
// refuse, becomes unset, and that a temperature that was chosen is kept.
func TestMigratedTemperature(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		`{"llm_temperature":0.7,"llm_model":"m"}`: `{"llm_model":"m"}`,
		`{"llm_temperature":0}`:                   `{"llm_temperature":0,"llm_temperature_set":true}`,
		`{"llm_temperature":0.2}`:                 `{"llm_temperature":0.2,"llm_temperature_set":true}`,
		`{"llm_model":"m"}`:                       `{"llm_model":"m"}`,
	} {
		path := filepath.Join(t.TempDir(), "old.db")
		unpackFixture(t, 6, path)
		c, err := openConn(source(path, sqlite.ReadWrite, writerPragmas...))
		if err != nil {
			t.Fatal(err)
		}
		var got string
		err = errors.Join(
			c.script("UPDATE _agent SET settings = '"+stored+"'"),
			migrate(c),
			c.value(&got, "SELECT settings FROM _agent"),
		)
		c.close()
		if err != nil || got != want {
			t.Errorf("%s becomes %s, %v", stored, got, err)
		}
	}
}

// fixtureKey seals the credential of the fixtures.
var fixtureKey = []byte("fixture key of thirty-two bytes.")

func makeFixture(t *testing.T, path string) {
	t.Helper()
	f := openAt(t, t.TempDir(), fixtureKey)
	db, err := f.CreateAgent(
		WithActor(t.Context(), "ada@example.com"),
		agent.Agent{Name: "Fixture", Description: "of version " + strconv.Itoa(fileVersion())},
		"ada@example.com",
	)
	if err != nil {
		t.Fatal(err)
	}
	c := createContact(t, db, numberedContact(1))
	setCredential(t, db, "sk-fixture")
	conversation, err := db.CreateConversation(t.Context(), agent.ConversationChange{ContactID: agent.Some(c.ID)})
	if err != nil {
		t.Fatal(err)
	}
	say(t, db, conversation.ID, agent.MessageUser, "hello from the past")
	closeFolder(t, f)
	raw, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = packed.Write(raw)
	if err := errors.Join(err, packed.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func unpackFixture(t *testing.T, version int, to string) {
	t.Helper()
	in, err := os.Open(fixturePath(version))
	if err != nil {
		t.Fatalf("%v; a fixture is written with -update before its version is released", err)
	}
	defer in.Close()
	raw, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(raw)
	if err := errors.Join(err, os.WriteFile(to, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Files of every version that was ever released open, with all their data.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	if *update {
		makeFixture(t, fixturePath(fileVersion()))
	}
	for version := 1; version <= fileVersion(); version++ {
		f := openAt(t, t.TempDir(), fixtureKey)
		path := f.filePath("agent-fixture")
		unpackFixture(t, version, path)
		if got := valueIn[int](t, path, "PRAGMA user_version"); got != version {
			t.Fatalf("the fixture of version %d has version %d", version, got)
		}
		pollFolder(f, 2)
		db := byName(t, f, "Fixture")
		if a := db.Agent(); db.Problem() != nil ||
			a.Description != fmt.Sprintf("of version %d", version) ||
			a.OwnerEmail != "ada@example.com" ||
			db.Roles()["ada@example.com"] != agent.RoleOwner {
			t.Errorf("%+v, %v", a, db.Problem())
		}
		c, err := db.ResolveContact(t.Context(), "phone", "+1 555 0000001")
		if err != nil || c.Name != "Contact 1" || len(c.Tags) != 1 {
			t.Errorf("%+v, %v", c, err)
		}
		if got, err := db.SettingsCredential(
			t.Context(),
			"openai_api_key",
			agent.OpenAIAPI,
		); got != "sk-fixture" || err != nil {
			t.Errorf("credential %q, %v", got, err)
		}
		if s, err := db.Stats(t.Context()); err != nil || s.Contacts != 1 || s.Messages != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		closeFolder(t, f)
		conn, err := openConn(unlockedSource(path))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.close()
		if err := checkSchema(conn); err != nil {
			t.Errorf("%v; while version %d is not released, write its fixture again with -update", err, version)
		}
	}
}

// futureSteps are two more migrations, as lists of statements.
var futureSteps = [][]string{
	{
		"CREATE TABLE future(a TEXT)",
		"INSERT INTO future SELECT name FROM contacts",
		"ALTER TABLE contacts ADD COLUMN score INTEGER",
		"UPDATE contacts SET score = length(name)",
	},
	{"ALTER TABLE future ADD COLUMN b TEXT", "UPDATE future SET b = upper(a)", "DROP TABLE tools"},
}

// withFuture adds the future's migrations for one test.
func withFuture(t *testing.T, steps [][]string) {
	t.Helper()
	released := migrations
	t.Cleanup(func() { migrations = released })
	for _, step := range steps {
		migrations = append(migrations[:len(migrations):len(migrations)], strings.Join(step, ";\n")+";")
	}
}

func init() { children["migrate"] = migrateAndDie }

// migrateAndDie begins a migration as migrate does, and is killed in the middle, after
// pages were written to the -wal.
func migrateAndDie() {
	n, err := strconv.Atoi(os.Getenv("MIGRATE_STATEMENTS"))
	if err != nil {
		panic(err)
	}
	c, err := openConn(source(os.Getenv("MIGRATE_FILE"), sqlite.ReadWrite, "journal_mode(WAL)", "cache_size(1)"))
	if err != nil {
		panic(err)
	}
	step := futureSteps[0]
	if before, err := strconv.Atoi(os.Getenv("MIGRATE_BEFORE")); err == nil {
		step = statements(migrations[before])
	}
	script := append([]string{"BEGIN IMMEDIATE"}, step...)[:n+1]
	if err := c.script(strings.Join(script, ";")); err != nil {
		panic(err)
	}
	me, err := os.FindProcess(os.Getpid())
	if err != nil {
		panic(err)
	}
	if err := me.Kill(); err != nil {
		panic(err)
	}
	select {}
}

// statements returns the statements of a script, whose comments have lines of their own
// or end a line of a statement.
func statements(script string) (list []string) {
	text := ""
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "--") || strings.TrimSpace(line) == "" {
			continue
		}
		text += line
		end, trigger := strings.TrimSpace(line), strings.HasPrefix(text, "CREATE TRIGGER")
		if strings.HasSuffix(end, ";") && (!trigger || strings.HasSuffix(end, "END;")) {
			list = append(list, strings.TrimSuffix(strings.TrimSpace(text), ";"))
			text = ""
		}
	}
	return list
}

// A migration that is killed at any statement leaves the file complete at its old
// version, and the next start migrates it. This cuts the migrations from version 3 on.
func TestKilledMigrations(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	f := openAt(t, t.TempDir(), fixtureKey)
	closeFolder(t, f)
	path := f.filePath("agent-fixture")
	for before := 3; before < fileVersion(); before++ {
		steps := len(statements(migrations[before]))
		cuts := min(steps, cutsOfMigration)
		for i := range cuts + 1 {
			cutMigration(t, path, before, i*steps/max(1, cuts))
		}
	}
}

// cutMigration kills the migration from a version after n statements, and checks the file
// then, and after the next migration.
func cutMigration(t *testing.T, path string, before, n int) {
	t.Helper()
	unpackFixture(t, before, path)
	var died *exec.ExitError
	if err := child(
		t,
		"migrate",
		fmt.Sprintf("MIGRATE_BEFORE=%d", before),
		"MIGRATE_FILE="+path,
		fmt.Sprintf("MIGRATE_STATEMENTS=%d", n),
	).Run(); !errors.As(err, &died) || died.ExitCode() != -1 {
		t.Fatalf("the child was to be killed: %v", err)
	}
	c, err := openConn(source(path, sqlite.ReadWrite))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkSchema(c); err != nil || valueOn[int](t, c, "PRAGMA user_version") != before {
		t.Errorf("after %d statements from version %d on: %v", n, before, err)
	}
	if err := errors.Join(migrate(c), checkSchema(c)); err != nil ||
		valueOn[string](t, c, "PRAGMA integrity_check") != "ok" ||
		valueOn[int](t, c, "SELECT count(*) FROM contacts") != 1 {
		t.Errorf("after %d statements from version %d on, then the whole migration: %v", n, before, err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
}

func valueOn[T any](t *testing.T, c *conn, query string) (v T) {
	t.Helper()
	if err := c.value(&v, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// cutsOfMigration is how many times a migration is killed, at evenly spaced statements.
const cutsOfMigration = 12

// A file whose migration is killed at any statement has the version before the step,
// complete, and the next start migrates it to the current one.
func TestKilledMigrationStep(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	current := fileVersion()
	for n := range len(futureSteps[0]) + 1 {
		f := openAt(t, t.TempDir(), fixtureKey)
		closeFolder(t, f)
		path := f.filePath("agent-fixture")
		unpackFixture(t, 1, path)
		var died *exec.ExitError
		if err := child(
			t,
			"migrate",
			"MIGRATE_FILE="+path,
			fmt.Sprintf("MIGRATE_STATEMENTS=%d", n),
		).Run(); !errors.As(err, &died) || died.ExitCode() != -1 {
			t.Fatalf("the child was to be killed: %v", err)
		}
		if got := valueIn[int](t, path, "PRAGMA user_version"); got != 1 {
			t.Fatalf("after %d statements the file has version %d", n, got)
		}
		if got := valueIn[int](t, path, "SELECT count(*) FROM sqlite_schema WHERE name = 'future'"); got != 0 {
			t.Errorf("after %d statements half of the step was applied", n)
		}
		withFuture(t, futureSteps)
		f = openAt(t, f.Path(), fixtureKey)
		db := byName(t, f, "Fixture")
		if got := value[string](t, db, "SELECT b || score FROM future, contacts"); got != "CONTACT 19" {
			t.Errorf("after %d statements: %q", n, got)
		}
		if got := value[int](t, db, "PRAGMA user_version"); got != current+2 {
			t.Errorf("version %d", got)
		}
		closeFolder(t, f)
		migrations = migrations[:current]
		f = openAt(t, f.Path(), fixtureKey)
		if e := wantCode(
			t,
			byName(t, f, "agent-fixture").Problem(),
			agent.CodeAgentNewer,
		); e.Details["file_version"] != current+2 ||
			e.Details["program_version"] != current {
			t.Errorf("after a downgrade: %+v", e)
		}
	}
}

// A step that fails leaves its agent's file at the version before, and only that agent is
// refused.
func TestMigrationFails(t *testing.T) {
	f := openAt(t, t.TempDir(), fixtureKey)
	closeFolder(t, f)
	path := f.filePath("agent-fixture")
	unpackFixture(t, 1, path)
	current := fileVersion()
	broken := [][]string{futureSteps[0], {"ALTER TABLE future ADD COLUMN b TEXT", "UPDATE future SET nowhere = 1"}}
	withFuture(t, broken)
	f = openAt(t, f.Path(), fixtureKey)
	if byName(t, f, "agent-fixture").Problem() == nil || !f.HasHadKeys() {
		t.Errorf("refused: %v, access control: %v", byName(t, f, "agent-fixture").Problem(), f.HasHadKeys())
	}
	closeFolder(t, f)
	if got := valueIn[string](t, path, "SELECT group_concat(name) FROM pragma_table_info('future')"); got != "a" {
		t.Errorf("the table has the columns %s", got)
	}
	if got := valueIn[int](t, path, "PRAGMA user_version"); got != current+1 {
		t.Errorf("version %d", got)
	}
}

// TestReleasedMigrations checks that the scripts of released versions have not changed,
// since files of those versions exist.
func TestReleasedMigrations(t *testing.T) {
	for version, want := range map[int]string{
		1: "aeaa7ed584d7a1174ed833e5830cf9ace06f04a490787665bfa3899d88a54e11",
		2: "79a24f7cae05439e67c2a4e0a662bffa1475ddc4acfd6cb77f13c0ea30a6f4ce",
		3: "0f2dc86efc946d7e4600a9ff80524dd0fba5b0e5fd35e79851a8edd910e7cf39",
		4: "c08d4392fd28138d85cbb34f6650899e9e67a3a066ad54819e947d512105531c",
		5: "8c1ee84358b4ca1884827ed274d0ba57ab1417489c1342f9001231dd0eaeaa2b",
		6: "cedee5e1bbf180ca63795760b45f8cbb6a0697da8fd670c323b1766209b1c311",
	} {
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(migrations[version-1]))); got != want {
			t.Errorf(
				"migration %d has the SHA-256 %s, and was released with %s: add to the newest one",
				version, got, want,
			)
		}
	}
}

// TestReleasedParts checks that the released parts of the schema have not changed, since
// files have them. New parts come after them.
func TestReleasedParts(t *testing.T) {
	const released, want = 68, "0d3f96444e69ca9d7e1c0080ce2dda56b3acac86a9b097af0f9266f5a1433991"
	var text strings.Builder
	for _, p := range schemaParts[:released] {
		fmt.Fprintf(&text, "%s %s\n%s", p.name, p.table, p.script)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(text.String()))); got != want {
		t.Errorf("the parts have the SHA-256 %s, and were released with %s", got, want)
	}
}

// Files with all the parts that their version creates open, and keep them.
func TestFilesWithPartsOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for version := 1; version <= fileVersion(); version++ {
		f := openAt(t, t.TempDir(), fixtureKey)
		path := f.filePath("agent-fixture")
		unpackFixture(t, version, path)
		c, err := openConn(source(path, sqlite.ReadWrite))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range partsOf(version) {
			if err := c.script(p.script); err != nil && !strings.Contains(err.Error(), "already exists") {
				t.Fatalf("version %d, part %s: %v", version, p.name, err)
			}
		}
		if err := errors.Join(checkSchema(c), migrate(c), checkSchema(c), c.close()); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
		pollFolder(f, 2)
		if problem := byName(t, f, "Fixture").Problem(); problem != nil {
			t.Errorf("version %d: %v", version, problem)
		}
		closeFolder(t, f)
	}
}

// Users' own tables whose names resemble Satchel's objects are unchanged after a
// migration.
func TestTablesOutliveMigrations(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for version := 4; version < fileVersion(); version++ { // the first that was released with tables
		f := openAt(t, t.TempDir(), fixtureKey)
		path := f.filePath("agent-fixture")
		unpackFixture(t, version, path)
		c, err := openConn(source(path, sqlite.ReadWrite))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"orders", "logs", "things_moved"} {
			table := agent.Table{
				Name:    name,
				Columns: []agent.TableColumn{{Name: "n", Type: agent.ColumnNumber, Unique: true}},
			}
			err := errors.Join(
				c.script(tableSQL(&table, tablePrefix+name)),
				(&Tx{conn: c}).makeParts(&table),
				c.script("INSERT INTO _counts VALUES ('data_"+name+"', 0); INSERT INTO data_"+name+"(n) VALUES (1)"),
			)
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(checkSchema(c), migrate(c), checkSchema(c), c.close()); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
		pollFolder(f, 2)
		db := byName(t, f, "Fixture")
		if problem := db.Problem(); problem != nil {
			t.Fatalf("version %d: %v", version, problem)
		}
		do(t, db, "INSERT INTO data_orders(n) VALUES (2)")
		if n := value[int](t, db, "SELECT n FROM _counts WHERE name = 'data_orders'"); n != 2 {
			t.Errorf("version %d: %d rows are counted", version, n)
		}
		closeFolder(t, f)
	}
}
