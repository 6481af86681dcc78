package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
)

// openMode is everyone's identity without access control.
var openMode = agent.Identity{Open: true}

func TestImportBringsAnAgentBack(t *testing.T) {
	t.Parallel()
	key := randomKey()
	f := openAt(t, t.TempDir(), key)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "Support", Description: "helps"}, "ada@x.y")
	if err != nil {
		t.Fatal(err)
	}
	made := createContact(t, db, numberedContact(0))
	setCredential(t, db, "sk-1")
	data := backupOf(t, db)

	check := func(f *Folder, id, name, owner string) *DB {
		t.Helper()
		by := agent.Identity{Email: owner, Open: owner == ""}
		got, err := f.Import(t.Context(), bytes.NewReader(data), int64(len(data)), by)
		if err != nil {
			t.Fatal(err)
		}
		a := got.Agent()
		if id != "" && a.ID != id ||
			a.Name != name ||
			a.Status != agent.StatusPaused ||
			a.Description != "helps" ||
			byName(t, f, name) != got {
			t.Errorf("%+v", a)
		}
		if owner == "" {
			owner = "ada@x.y"
		}
		if a.OwnerEmail != owner || got.Roles()[owner] != agent.RoleOwner || got.Roles()["ada@x.y"] != agent.RoleOwner {
			t.Errorf("owner %s, roles %v", a.OwnerEmail, got.Roles())
		}
		if c, err := got.Contact(t.Context(), made.ID); err != nil || c.Email != made.Email {
			t.Errorf("%+v, %v", c, err)
		}
		if n := fileCount(t, f.tempPath("import*")); n != 0 {
			t.Errorf("%d files are left in tmp", n)
		}
		return got
	}
	second := check(f, "", "Support-2", "")
	if second.id == db.id {
		t.Error("the copy has the id of the original")
	}
	third := check(f, "", "Support-3", "ada@x.y")
	for _, copied := range []*DB{second, third} {
		if got, err := copied.SettingsCredential(
			t.Context(),
			"openai_api_key",
			agent.OpenAIAPI,
		); got != "sk-1" || err != nil {
			t.Errorf("credential %q, %v", got, err)
		}
	}
	if err := f.DeleteAgent(db); err != nil {
		t.Fatal(err)
	}
	check(f, db.id, "Support", "") // its id and name are free again
	pollFolder(f, 3)
	if len(f.Agents()) != 4 {
		t.Errorf("%d agents", len(f.Agents()))
	}
	elsewhere := check(openFolder(t), db.id, "Support", "")
	_, err = elsewhere.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI)
	wantCode(t, err, agent.CodeConflict)
	closeFolder(t, f)
	if again := openAt(t, f.Path(), key); byName(t, again, db.id).Agent().Status != agent.StatusPaused ||
		len(again.Agents()) != 4 {
		t.Error("after a restart something is missing")
	}
}

func TestImportsAtOnceGetIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(template(t, "Support"))
	if err != nil {
		t.Fatal(err)
	}
	f := openFolder(t)
	var running sync.WaitGroup
	var mu sync.Mutex
	ids, names := map[string]bool{}, map[string]bool{}
	for range 6 {
		running.Go(func() {
			db, err := f.Import(t.Context(), bytes.NewReader(data), 1<<30, openMode)
			if err != nil {
				t.Error(err)
				return
			}
			createContact(t, db, named("x"))
			mu.Lock()
			defer mu.Unlock()
			ids[db.id], names[db.Agent().Name] = true, true
		})
	}
	running.Wait()
	if len(ids) != 6 || len(names) != 6 || len(f.Agents()) != 7 {
		t.Errorf("ids %v, names %v, %d agents", ids, names, len(f.Agents()))
	}
}

func TestImportRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	file := template(t, "Support")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(script string) []byte {
		path := filepath.Join(t.TempDir(), "changed.db")
		copyClosed(t, path, file)
		if err := rewrite(path, script); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	torn := bytes.Clone(good)
	root := valueIn[int](t, file, "SELECT rootpage FROM sqlite_schema WHERE name = 'contacts_email'")
	copy(torn[(root-1)*4096:], bytes.Repeat([]byte{0xa5}, 4096))
	f := openFolder(t)
	for name, data := range map[string][]byte{
		"empty":             {},
		"text":              []byte("name,email\nAda,ada@example.com\n"),
		"cut":               good[:len(good)/2],
		"cut by a byte":     good[:len(good)-1],
		"header only":       good[:100],
		"torn page":         torn,
		"newer":             changed("PRAGMA user_version = 99"),
		"no agent's":        changed("PRAGMA application_id = 7"),
		"no row":            changed("DELETE FROM _agent"),
		"a table missing":   changed("DROP TABLE webhooks"),
		"another table":     changed("DROP TABLE contacts; CREATE TABLE contacts(id)"),
		"a foreign trigger": changed("CREATE TRIGGER evil AFTER UPDATE ON _agent BEGIN DELETE FROM contacts; END"),
		"a changed trigger": changed(
			"DROP TRIGGER _logs_counted; CREATE TRIGGER _logs_counted AFTER INSERT ON logs BEGIN DELETE FROM logs; END",
		),
		"a view as table": changed("DROP TABLE _agent; CREATE VIEW _agent AS WITH RECURSIVE k(i) AS (SELECT 1 " +
			"UNION ALL SELECT i FROM k) SELECT i AS id, i AS folder, i AS name, '' AS description, '' AS status, " +
			"'' AS owner_email, '' AS created_at, '' AS updated_at FROM k WHERE i > 1"),
		"an index missing": changed("DROP INDEX contacts_email"),
	} {
		_, err := f.Import(t.Context(), bytes.NewReader(data), 1<<30, openMode)
		if e := wantCodeOf(t, name, err, agent.CodeInvalidFile); e != nil && e.Details["field"] != "file" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, err := f.Import(
		t.Context(),
		bytes.NewReader(good),
		int64(len(good))-1,
		openMode,
	); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	broken := io.MultiReader(bytes.NewReader(good[:5000]), errReader{})
	if _, err := f.Import(t.Context(), broken, 1<<30, openMode); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an upload that was cut off: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Import(ctx, bytes.NewReader(good), 1<<30, openMode); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that left: %v", err)
	}
	if len(f.Agents()) != 1 || fileCount(t, f.tempPath("*import*")) != 0 || fileCount(t, f.agentsPath()+"/*.db") != 1 {
		t.Error("something is left of a refused file")
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// wantCodeOf is wantCode for one of several cases.
func wantCodeOf(t *testing.T, name string, err error, code agent.Code) *agent.Error {
	t.Helper()
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: got %v, want %s", name, err, code)
		return nil
	}
	return e
}

// An id or name that a file claims is used only if it is valid and free.
func TestImportedIDs(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	file := template(t, "Support")
	for id, kept := range map[string]bool{
		"agent-ok": true, "default": false, "../../evil": false, "a/b": false, "": false, ".hidden": false, "ä": false,
		strings.Repeat("x", 101): false, "x\x00y": false,
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		copyClosed(t, path, file)
		if err := rewrite(
			path,
			"UPDATE _agent SET id = '"+strings.ReplaceAll(id, "\x00", "' || char(0) || '")+"', name = '"+
				strings.Repeat("a.b", 40)+"'",
		); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := openFolder(t)
		db, err := f.Import(t.Context(), bytes.NewReader(data), 1<<30, openMode)
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		if a := db.Agent(); (db.id == id) != kept || !fileName.MatchString(db.id) || a.Validate() != nil {
			t.Errorf("%q became %+v", id, a)
		}
		if filepath.Dir(db.path) != f.agentsPath() {
			t.Errorf("%q is at %s", id, db.path)
		}
	}
}

// A backup opens its credentials only for those who have a role on the original agent,
// whatever the file says about its admins and its id.
func TestCredentialsOfAnImportedCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "Support"}, "ada@x.y")
	if err != nil {
		t.Fatal(err)
	}
	addViewer(t, db, "vi@x.y")
	setCredential(t, db, "sk-1")
	other, err := f.CreateAgent(t.Context(), agent.Agent{Name: "Other"}, "eve@x.y")
	if err != nil {
		t.Fatal(err)
	}
	data := backupOf(t, db)
	edited := func(script string) []byte {
		path := filepath.Join(t.TempDir(), "edited.db")
		if err := errors.Join(os.WriteFile(path, data, 0o600), rewrite(path, script)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	key := func(maker string, reaches ...string) agent.Identity {
		return agent.Identity{Key: &agent.Key{Role: agent.RoleAdmin, Agents: reaches, CreatedBy: maker}}
	}
	eve := agent.Identity{Email: "eve@x.y"}
	check := func(name string, by agent.Identity, data []byte, opens bool) *DB {
		t.Helper()
		got, err := f.Import(t.Context(), bytes.NewReader(data), 1<<30, by)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := got.Settings(t.Context())
		secret, failed := got.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI)
		if err != nil || (secret == "sk-1") != opens || (failed == nil) != opens || (len(s.Locked) == 0) != opens {
			t.Errorf("%s: credential %q, %v; locked %v, %v", name, secret, failed, s.Locked, err)
		}
		return got
	}
	check("the owner", agent.Identity{Email: "ada@x.y"}, data, true)
	check("a viewer", agent.Identity{Email: "vi@x.y"}, data, true)
	check("open mode", openMode, data, true)
	check("a key for all agents", key("", "*"), data, true)
	check("a key for this agent", key("", db.id), data, true)
	check("a key for another agent", key("", other.id), data, false)
	check("a stranger's key", agent.Identity{Email: "eve@x.y", Key: key("eve@x.y", "*").Key}, data, false)
	check("a stranger", eve, data, false)
	check("nobody", agent.Identity{}, data, false)
	check(
		"a stranger who adds herself as an owner",
		eve,
		edited("INSERT INTO _admins(id, email, role, created_at) VALUES ('admin-evil', 'eve@x.y', 'owner', "+
			"'2026-01-01T00:00:00.000Z')"),
		false,
	)
	check("a stranger who claims her own agent's id", eve, edited("UPDATE _agent SET id = '"+other.id+"'"), false)
	check("a stranger who claims an unknown id", eve, edited("UPDATE _agent SET id = 'agent-nobodys'"), false)
	if err := f.DeleteAgent(db); err != nil {
		t.Fatal(err)
	}
	first := check("a stranger, after the agent was deleted", eve, data, false)
	if first.id == db.id || f.known(db.id) != nil {
		t.Error("a stranger has the id of the deleted agent")
	}
	check("the same stranger again", eve, data, false)
	check("the copy of a copy", eve, backupOf(t, first), false)
	check("the former owner", agent.Identity{Email: "ada@x.y"}, data, false)
	back := check("the operator", openMode, data, true)
	if back.id != db.id {
		t.Errorf("the operator's copy has the id %s", back.id)
	}
}

func addViewer(t *testing.T, db *DB, email string) {
	t.Helper()
	if _, err := db.CreateAdmin(t.Context(), agent.Admin{Email: email, Role: agent.RoleViewer}); err != nil {
		t.Fatal(err)
	}
}
