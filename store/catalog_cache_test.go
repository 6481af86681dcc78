package store

import (
	"fmt"
	"os"
	"testing"

	"satchel/agent"
	"satchel/store/sqlite"
)

// restart closes a folder and opens it again.
func restart(t *testing.T, f *Folder) *Folder {
	t.Helper()
	path := f.Path()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return again
}

// TestCatalogCache checks that a start uses what was cached, and nothing that is out of
// date.
func TestCatalogCache(t *testing.T) {
	f, err := Open(Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := f.CreateAgent(t.Context(), agent.Agent{Name: fmt.Sprint("a", i)}, "ada@example.com"); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := f.Agent("a1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.UpdateAgent(t.Context(), changed, agent.AgentChange{
		Description: agent.Some("changed"),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := changed.CreateAdmin(t.Context(), agent.Admin{
		Email: "bob@example.com",
		Role:  agent.RoleViewer,
	}); err != nil {
		t.Fatal(err)
	}
	f = restart(t, f)
	for i := range 5 {
		db, err := f.Agent(fmt.Sprint("a", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := f.cache.find(db.ID(), db.path, f.path); !ok {
			t.Errorf("%s is not cached", db.Agent().Name)
		}
		if db.Roles()["ada@example.com"] != agent.RoleOwner {
			t.Errorf("%s has lost its owner", db.Agent().Name)
		}
	}
	db, _ := f.Agent("a1")
	if db.Agent().Description != "changed" || db.Roles()["bob@example.com"] != agent.RoleViewer {
		t.Errorf("a1 is cached as %+v %v", db.Agent(), db.Roles())
	}
	path, id := f.Path(), db.ID()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	writeRaw(t, db.path, "UPDATE _agent SET description = 'by hand'")
	f, err = Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if db, _ := f.Agent(id); db.Agent().Description != "by hand" {
		t.Errorf("a file that was written since is cached as %q", db.Agent().Description)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cachePath(path), []byte(`{"folder":`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err = Open(Options{Path: path})
	if err != nil {
		t.Fatal("with a broken cache:", err)
	}
	defer f.Close()
	if len(f.Agents()) != 6 {
		t.Errorf("%d agents with a broken cache", len(f.Agents()))
	}
}

// TestCatalogCacheKeepsPendingWork restarts while a source waits to be read.
func TestCatalogCacheKeepsPendingWork(t *testing.T) {
	f, err := Open(Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	err = db.Do(t.Context(), func(tx *Tx) error {
		_, err := tx.exec(
			"INSERT INTO sources(type, name, status, created_at, updated_at) VALUES ('file','n','processing',?,?)",
			tx.Now, tx.Now,
		)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f = restart(t, f)
	if db, _ := f.Agent("a"); db.Pending().Sources.IsZero() {
		t.Error("pending work was lost")
	}
}

func writeRaw(t *testing.T, path, statement string) {
	t.Helper()
	c, err := openConn(source(path, sqlite.ReadWrite))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.script(statement); err != nil {
		t.Fatal(err)
	}
}

// What changes after a file was closed must not stay in the cache as it was.
func TestCatalogCacheForgetsChangedFiles(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "a")
	createContact(t, db, named("x"))
	if _, err := db.closeIdle(); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.cache.find(db.id, db.path, f.path); !ok {
		t.Fatal("a closed file is not cached")
	}
	db.update(func(r *record) { r.admins = map[string]agent.Role{} })
	if _, ok := f.cache.find(db.id, db.path, f.path); ok {
		t.Error("cached with the old roles")
	}
}

// An adopted copy is cached under its new name.
func TestCatalogCacheOfAnAdoptedCopy(t *testing.T) {
	file := template(t, "Support")
	f := openFolder(t)
	createAgent(t, f, "support")
	copyClosed(t, f.filePath("agent-new"), file)
	pollFolder(f, 2)
	f = restart(t, f)
	if _, ok := f.cache.find("agent-new", f.filePath("agent-new"), f.path); !ok {
		t.Error("not cached")
	}
	if a := byName(t, f, "agent-new").Agent(); a.Name != "Support-2" || a.CreatedAt.IsZero() {
		t.Errorf("%+v", a)
	}
}
