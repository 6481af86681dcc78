package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// open returns a server that has not joined yet.
func open(t *testing.T, url, path string) *Cluster {
	t.Helper()
	c, err := Open(t.Context(), Options{URL: url, MasterKeys: [][]byte{testKey}, Path: path, Name: "x", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A server that restarts is distinguished from another one with the same name and URL,
// even if its data folder was copied.
func testClone(t *testing.T, url string) {
	a := serve(t, url, "x", t.TempDir())
	before := filepath.Join(t.TempDir(), "before")
	if err := os.Link(lastSeenPath(a.path), before); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(before)
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.lastSeen.Beat = -1
	a.mu.Unlock()
	a.writeLastSeen()
	if kept, err := os.ReadFile(before); err != nil || !bytes.Equal(kept, first) {
		t.Errorf("the file is overwritten in place, not replaced: %s, %v", kept, err)
	}
	raw, err := os.ReadFile(lastSeenPath(a.path))
	if err != nil || bytes.Equal(raw, first) {
		t.Fatalf("%s, %v", raw, err)
	}
	copied := t.TempDir()
	if err := os.MkdirAll(filepath.Join(copied, "cluster"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lastSeenPath(copied), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	announced := func(path string) (other *peer) {
		t.Helper()
		c := open(t, url, path)
		c.self.URL = a.Self().URL
		if err := c.remember(t.Context()); err != nil {
			t.Fatal(err)
		}
		other, err := c.insertSelf(t.Context(), peer{}, false)
		if err != nil {
			t.Fatal(err)
		}
		return other
	}
	if other := announced(copied); other == nil || other.Session != a.Self().Session {
		t.Errorf("a copy of the server's folder: %v", other)
	}
	if other := announced(a.path); other != nil {
		t.Errorf("the server after it was killed: %v", other)
	}
}

// saveDatabase saves the contents of the database; the function that it returns restores
// them.
func saveDatabase(t *testing.T, c *Cluster) (restore func()) {
	t.Helper()
	tables := []string{"cluster", "node", "agent", "log", "base", "block", "api_key"}
	exec := func(statement string) {
		t.Helper()
		if _, err := c.pool.Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE SCHEMA saved")
	for _, table := range tables {
		exec("CREATE TABLE saved." + table + " AS SELECT * FROM satchel." + table)
	}
	return func() {
		t.Helper()
		text := "BEGIN;"
		for _, table := range tables {
			text += "DELETE FROM satchel." + table + "; INSERT INTO satchel." + table + " SELECT * FROM saved." +
				table + ";"
		}
		for _, statement := range strings.Split(strings.TrimSuffix(text, ";")+";COMMIT", ";") {
			if statement != "BEGIN" && statement != "COMMIT" {
				exec(statement)
			}
		}
	}
}

// After the database was restored from a backup, no server continues or starts until the
// operator has recovered, or given up, the newer commits in the servers' folders.
func testRestoredDatabase(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	kept := []string{mustWrite(t, db, "before")}
	restore := saveDatabase(t, a.Cluster)
	kept = append(kept, mustWrite(t, db, "after"), mustWrite(t, db, "the backup"))
	made := a.make(t, "Florist")
	inMade := mustWrite(t, made, "new")
	a.mu.Lock()
	a.lastSeen.Beat += 1000
	a.mu.Unlock()
	a.stepping.Lock() // no poll meanwhile
	restore()
	a.stepping.Unlock()
	for a.Ready() == nil || !errors.Is(a.Ready(), errRestored) {
		if err := a.step(t.Context()); err != nil && !errors.Is(err, errRestored) {
			t.Fatal(err)
		}
	}
	if len(a.f.Agents()) != 0 {
		t.Errorf("the server still has %d agents", len(a.f.Agents()))
	}
	a.end()
	again := open(t, url, a.path)
	if err := again.remember(t.Context()); !errors.Is(err, errRestored) {
		t.Errorf("the server restarts: %v", err)
	}
	operator := open(t, url, t.TempDir())
	if n, err := operator.Recover(t.Context(), a.path); err != nil || n != 2 {
		t.Fatalf("%d agents were recovered, %v", n, err)
	}
	if n, err := operator.Recover(t.Context(), a.path); err != nil || n != 0 {
		t.Errorf("%d agents were recovered a second time, %v", n, err)
	}
	if _, err := again.insertSelf(t.Context(), peer{}, false); !errors.Is(err, errRecovering) {
		t.Errorf("a server that joins meanwhile: %v", err)
	}
	if err := operator.Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Recover(t.Context(), a.path); err == nil {
		t.Error("recovered after the servers continued")
	}
	b := serve(t, url, "b", a.path)
	if lost := missing(t, b.agent(t, db.ID()), kept); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	if lost := missing(t, b.agent(t, made.ID()), []string{inMade}); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	mustWrite(t, b.agent(t, db.ID()), "goes on")
}

// After the database was lost, an empty one becomes that of the cluster by recovering the
// servers' folders into it; no server starts on it before.
func testLostDatabase(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	id, kept := db.ID(), []string{mustWrite(t, db, "kept")}
	b := serve(t, url, "b", t.TempDir())
	a.eventually(t, "to give the agent to b", func() bool { return a.Move(t.Context(), id, "b") == nil })
	taken := b.agent(t, id)
	kept = append(kept, mustWrite(t, taken, "and more"))
	b.stepping.Lock() // as while the commit waits
	b.expire(b.Self().Session)
	b.Refused(id, ErrUnavailable) // the last commit's outcome remained unknown
	b.stepping.Unlock()
	folders := []string{a.path, b.path}
	old := a.id
	b.end()
	a.end()
	if err := connectAndExec(t, url, "DROP SCHEMA satchel CASCADE"); err != nil {
		t.Fatal(err)
	}
	if err := open(t, url, a.path).remember(t.Context()); !errors.Is(err, errOther) {
		t.Errorf("a server that starts on the empty database: %v", err)
	}
	wrong, err := Open(t.Context(), Options{
		URL:        url,
		MasterKeys: [][]byte{testKey, bytes.Repeat([]byte{9}, 32)},
		Path:       t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wrong.Close)
	wrong.MasterKeys = wrong.MasterKeys[1:]
	if _, err := wrong.Recover(t.Context(), a.path); !errors.Is(err, errMasterKey) {
		t.Errorf("recovered with another master key: %v", err)
	}
	for _, folder := range folders {
		operator := open(t, url, t.TempDir())
		if n, err := operator.Recover(t.Context(), folder); err != nil || n == 0 || operator.id != old {
			t.Fatalf("%d agents were recovered, of cluster %s, %v", n, operator.id, err)
		}
	}
	if err := open(t, url, t.TempDir()).Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := serve(t, url, "a", a.path)
	back := again.agent(t, id)
	if lost := missing(t, back, kept); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	mustWrite(t, back, "goes on")
	other := open(t, url, t.TempDir())
	other.id = "another"
	if _, err := other.Recover(t.Context(), b.path); !errors.Is(err, errInUse) {
		t.Errorf("recovered into a database that is in use: %v", err)
	}
}

func connectAndExec(t *testing.T, url, statement string) error {
	t.Helper()
	pool, err := connect(url)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(t.Context(), statement)
	return err
}

// An agent of which the database lost a commit is stopped on all servers, and continues
// from its server's file once the operator has recovered that.
func testDatabaseWentBack(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	b := serve(t, url, "b", t.TempDir())
	db := a.make(t, "Bakery")
	kept := []string{mustWrite(t, db, "one"), mustWrite(t, db, "two")}
	if _, err := a.pool.Exec(
		t.Context(),
		"WITH l AS (DELETE FROM log WHERE agent = $1 AND seq = 3) UPDATE agent SET head = 2 WHERE id = $1",
		db.ID(),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := write(t.Context(), db, "three"); !errors.Is(err, errBehind) {
		t.Fatalf("a write after the database lost one: %v", err)
	}
	for _, s := range []*server{a, b} {
		s.eventually(t, "to stop the agent", func() bool {
			db, err := s.f.Agent(db.ID())
			return err == nil && errors.Is(db.Problem(), errBehind)
		})
	}
	a.end()
	operator := open(t, url, t.TempDir())
	if n, err := operator.Recover(t.Context(), a.path); err != nil || n != 1 {
		t.Fatalf("%d agents were recovered, %v", n, err)
	}
	if err := operator.Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	var resumed *store.DB
	b.eventually(t, "to have the agent again", func() bool {
		var err error
		resumed, err = b.f.Agent(db.ID())
		return err == nil && resumed.Problem() == nil
	})
	if lost := missing(t, resumed, kept); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	mustWrite(t, resumed, "goes on")
}
