package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/testenv"
	"satchel/store/sqlite"
)

// template creates an agent with a contact and a credential in a folder of its own,
// closes the folder, and returns the agent's file.
func template(t testing.TB, name string, keys ...[]byte) string {
	t.Helper()
	f := openAt(t, t.TempDir(), keys...)
	db := createAgent(t, f, name)
	createContact(t, db, numberedContact(0))
	setCredential(t, db, "sk-1")
	closeFolder(t, f)
	return db.path
}

func TestCopiesInTheSameFolder(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	long := strings.Repeat("x", agent.MaxNameLength)
	a, b := createAgent(t, f, "Support"), createAgent(t, f, long)
	setCredential(t, a, "sk-1")
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
	for n := range 3 {
		dir := t.TempDir()
		copyByChild(t, f.agentsPath(), dir)
		copyClosed(t, f.filePath(fmt.Sprintf("copy-%d", n)), filepath.Join(dir, a.id+".db"))
		copyClosed(t, f.filePath(fmt.Sprintf("long-%d", n)), filepath.Join(dir, b.id+".db"))
		pollFolder(f, 2)
	}
	for n, want := range []string{"Support-2", "Support-3", "Support-4"} {
		db := byName(t, f, fmt.Sprintf("copy-%d", n))
		if got := db.Agent(); got.Name != want || got.Status != agent.StatusPaused || byName(t, f, want) != db {
			t.Errorf("%+v", got)
		}
		if got, err := db.SettingsCredential(
			t.Context(),
			"openai_api_key",
			agent.OpenAIAPI,
		); got != "sk-1" || err != nil {
			t.Errorf("credential %q, %v", got, err)
		}
		if got, want :=
			byName(t, f, fmt.Sprintf("long-%d", n)).Agent().Name,
			long[:agent.MaxNameLength-2]+fmt.Sprintf("-%d", n+2); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if a.Agent().Status != agent.StatusActive || byName(t, f, "support") != a {
		t.Errorf("the original: %+v", a.Agent())
	}
}

func TestCopyIntoAFolderWithAnotherKey(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	f := openFolder(t)
	closeFolder(t, f)
	copyClosed(t, f.filePath("agent-new"), file)
	f = openAt(t, f.Path())
	db := byName(t, f, "Support")
	if db.Agent().Status != agent.StatusPaused || db.Problem() != nil {
		t.Errorf("%+v, %v", db.Agent(), db.Problem())
	}
	s, err := db.Settings(t.Context())
	if err != nil || !slices.Equal(s.Locked, []string{"openai_api_key"}) {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = db.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI)
	wantCode(t, err, agent.CodeConflict)
	createContact(t, db, named("works"))
}

// In a data folder that was moved, every agent counts as a copy: it keeps its name and
// credentials, and stays paused until somebody activates it.
func TestMovedFolder(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	for n := range 3 {
		setCredential(t, createAgent(t, f, fmt.Sprintf("a%d", n)), "sk-1")
	}
	setCredential(t, f.Default(), "sk-0")
	closeFolder(t, f)
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(f.Path(), moved); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		g := openAt(t, moved)
		if len(g.Agents()) != 4 || g.Default().Agent().Name != "default" {
			t.Fatalf("%d agents, %+v", len(g.Agents()), g.Default().Agent())
		}
		for n := range 3 {
			db := byName(t, g, fmt.Sprintf("a%d", n))
			want := agent.StatusPaused
			if round == 1 && n == 0 {
				want = agent.StatusActive
			}
			if got := db.Agent().Status; got != want {
				t.Errorf("round %d: %s is %s", round, db.Agent().Name, got)
			}
			if got, err := db.SettingsCredential(
				t.Context(),
				"openai_api_key",
				agent.OpenAIAPI,
			); got != "sk-1" || err != nil {
				t.Errorf("credential %q, %v", got, err)
			}
		}
		if _, err := g.UpdateAgent(t.Context(), byName(t, g, "a0"), agent.AgentChange{
			Status: agent.Some(agent.StatusActive),
		}); err != nil {
			t.Fatal(err)
		}
		closeFolder(t, g)
	}
}

// Unexpected entries of the agents folder are ignored, symbolic links in particular: one
// file must not be served as two agents.
func TestUnexpectedEntriesAreIgnored(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	f := openFolder(t)
	odd := []string{
		"..db", ".db", "a b.db", "-x.db", "ü.db", "x.db.partial", "x.DB", strings.Repeat("y", 101) + ".db", "note.txt",
		"a.b.db",
	}
	for _, name := range odd {
		copyClosed(t, filepath.Join(f.agentsPath(), name), file)
	}
	if err := errors.Join(
		os.Mkdir(f.filePath("folder"), 0o700),
		os.Symlink(f.filePath("default"), f.filePath("link")),
	); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 3)
	if len(f.Agents()) != 1 {
		t.Errorf("%d agents", len(f.Agents()))
	}
	closeFolder(t, f)
	f = openAt(t, f.Path())
	if len(f.Agents()) != 1 || f.Default().Agent().Status != agent.StatusActive {
		t.Errorf("after a restart %d agents, %+v", len(f.Agents()), f.Default().Agent())
	}
	for _, name := range odd {
		if hashOf(t, filepath.Join(f.agentsPath(), name)) != hashOf(t, file) {
			t.Errorf("%s was changed", name)
		}
	}
}

// An adopted file's invalid name or status is replaced by a valid one.
func TestAdoptedFileWithInvalidFields(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for say, want := range map[string]string{
		"name = '<script>alert(1)</script>'": "script-alert-1-script",
		"name = ''":                          "agent",
		"name = '--'":                        "agent",
		"name = '日本'":                        "agent",
		"name = '" + strings.Repeat("ab ", 100) + "'": strings.TrimSuffix(strings.Repeat("ab-", 22)[:64], "-"),
		"status = 'evil'": "Support",
		"description = '" + strings.Repeat("x", 600) + "'": "Support",
	} {
		file := template(t, "Support")
		c, err := openConn(source(file, sqlite.ReadWrite))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.script("UPDATE _agent SET "+say), c.close()); err != nil {
			t.Fatal(err)
		}
		f := openFolder(t)
		copyClosed(t, f.filePath("agent-new"), file)
		pollFolder(f, 2)
		a := byName(t, f, "agent-new").Agent()
		if a.Name != want || a.Validate() != nil {
			t.Errorf("%.40s: %+v, %v", say, a, a.Validate())
		}
		closeFolder(t, f)
		if again := byName(t, openAt(t, f.Path()), "agent-new").Agent(); again.Name != want {
			t.Errorf("%.40s: after a restart %+v", say, again)
		}
	}
}

// Of two files with the same agent name in a folder that no server was watching, the
// older keeps the name.
func TestNamesCollideAtStart(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	a, b := createAgent(t, f, "one"), createAgent(t, f, "two")
	closeFolder(t, f)
	c, err := openConn(source(b.path, sqlite.ReadWrite))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script("UPDATE _agent SET name = 'ONE'"), c.close()); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	if got := byName(t, f, "one").id; got != a.id {
		t.Errorf("one is %s", got)
	}
	if got := byName(t, f, b.id).Agent(); got.Name != "ONE-2" || got.Status != agent.StatusPaused {
		t.Errorf("%+v", got)
	}
}

// The default agent is created even if another agent has its name.
func TestDefaultAgentNameIsTaken(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	if _, err := f.UpdateAgent(t.Context(), f.Default(), agent.AgentChange{Name: agent.Some("home")}); err != nil {
		t.Fatal(err)
	}
	db := createAgent(t, f, "one")
	closeFolder(t, f)
	c, err := openConn(source(db.path, sqlite.ReadWrite))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		c.script("UPDATE _agent SET name = 'Default'"),
		c.close(),
		os.Remove(f.filePath("default")),
	); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	if got := f.Default().Agent().Name; got != "default-2" {
		t.Errorf("the default agent is called %s", got)
	}
}

// TestNotificationsNameAgentsOfTheCatalog checks that notifications about a copy pass its
// handle of the catalog, never the one that prepared the file.
func TestNotificationsNameAgentsOfTheCatalog(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, numberedContact(0)) // an event from before the copy
	data := backupOf(t, db)
	var mu sync.Mutex
	notified := map[*DB]bool{}
	note := func(db *DB) {
		mu.Lock()
		defer mu.Unlock()
		notified[db] = true
	}
	f.OnPending(func(db *DB, _ Pending) { note(db) })
	fork, err := f.Fork(t.Context(), db, "Fork", "")
	if err != nil {
		t.Fatal(err)
	}
	imported, err := f.Import(t.Context(), bytes.NewReader(data), 1<<30, openMode)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.filePath("adopted"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 2)
	for _, copied := range []*DB{fork, imported, byName(t, f, "adopted")} {
		createContact(t, copied, numberedContact(1))
		if !notified[copied] {
			t.Errorf("no notification about %s", copied.Agent().Name)
		}
	}
	for db := range notified {
		if f.known(db.id) != db {
			t.Errorf("a notification has another handle of %s", db.id)
		}
	}
}

// A hard link of an agent's file, and a symbolic one, are left alone and named by doctor;
// once it is the only name of the file, it is adopted.
func TestLinksAreNotAdopted(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	outside := template(t, "Outside")
	if err := errors.Join(
		os.Link(db.path, f.filePath("hard")),
		os.Link(outside, f.filePath("far")),
		os.Symlink(db.path, f.filePath("soft")),
	); err != nil {
		testenv.Need(t, "a file system with links", err)
	}
	for round := range 2 {
		pollFolder(f, 3)
		createContact(t, byName(t, f, "Support"), numberedContact(round))
		if got := byName(t, f, "Support"); len(f.Agents()) != 2 ||
			got.id != db.id ||
			got.Agent().Status != agent.StatusActive {
			t.Errorf("%d agents, %+v", len(f.Agents()), got.Agent())
		}
		closeFolder(t, f)
		f = openAt(t, f.Path())
	}
	findings, err := Doctor(f.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"hard.db": "hard link",
		"far.db":  "hard link",
		"soft.db": "symbolic link",
	} {
		if !slices.ContainsFunc(findings, func(x agent.Finding) bool {
			return x.Subject == name && !x.OK && strings.Contains(x.Message, want)
		}) {
			t.Errorf("doctor does not name %s: %+v", name, findings)
		}
	}
	if err := os.Remove(outside); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 3)
	if got := byName(t, f, "far").Agent(); got.Name != "Outside" || got.Status != agent.StatusPaused {
		t.Errorf("%+v", got)
	}
}

// A default agent whose file is a hard link of another data folder's is refused, so that
// the other folder's agent is not written to, until it is the only name.
func TestDefaultAgentThatIsALink(t *testing.T) {
	t.Parallel()
	f, other := openFolder(t), t.TempDir()
	createContact(t, f.Default(), numberedContact(1))
	closeFolder(t, f)
	if err := os.Mkdir(filepath.Join(other, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(f.Default().path, filepath.Join(other, "agents", "default.db")); err != nil {
		testenv.Need(t, "a file system with links", err)
	}
	copied := openAt(t, other)
	pollFolder(copied, 1)
	wantCode(t, copied.Default().Problem(), agent.CodeAgentDamaged)
	if err := os.Remove(f.Default().path); err != nil {
		t.Fatal(err)
	}
	pollFolder(copied, 3)
	if err := copied.Default().Problem(); err != nil {
		t.Error(err)
	}
	createContact(t, copied.Default(), numberedContact(2))
}
