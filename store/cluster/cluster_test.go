package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/cluster/pgtest"
)

// TestCluster runs all tests of servers in one process against one PostgreSQL.
func TestCluster(t *testing.T) {
	pg := pgtest.Start(t)
	for name, test := range map[string]func(*testing.T, string){
		"takeover":     testTakeover,
		"restore":      testRestoredEqual,
		"names":        testNamesAreUnique,
		"keys":         testKeysAreEverywhere,
		"move":         testMove,
		"lost answers": testLostAnswers,
		"refused":      testRefusedCommits,
		"cut off":      testRestoreIsCutOff,
		"went back":    testDatabaseWentBack,
		"master key":   testMasterKey,
		"restored":     testRestoredDatabase,
		"lost":         testLostDatabase,
		"same URL":     testSameURL,
		"clone":        testClone,
		"transfer":     testImportAndExport,
		"attention":    testAttention,
		"reads wait":   testReadsWaitForTheCluster,
		"follow":       testFollow,
		"lifetime":     testLifetime,
		"no changes":   testDatabaseTakesNoChanges,
		"format":       testFormat,
		"rights":       testRights,
		"full disk":    testFullDisk,
		"settings":     testSettings,
	} {
		t.Run(name, func(t *testing.T) { test(t, pg.Database("t"+strings.ReplaceAll(name, " ", "_"))) })
	}
}

// Of two servers that both believe they own an agent, the one that does not is refused.
func testTakeover(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	id := db.ID()
	b := serve(t, url, "b", t.TempDir())
	if n, found, err := b.Owner(t.Context(), "bakery"); err != nil || found != id || n.Name != "a" {
		t.Fatalf("the owner is %v, %q, %v", n, found, err)
	}
	var ids []string
	for n := range 20 {
		ids = append(ids, mustWrite(t, db, strings.Repeat("note ", n*50)))
	}
	old := a.Self().Session
	if _, err := b.pool.Exec(
		t.Context(),
		"UPDATE agent SET owner = $1, changed = clock_timestamp() WHERE id = $2",
		b.Self().Session,
		id,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := write(t.Context(), db, "too late"); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("a write of a server that lost the agent: %v", err)
	}
	if s := a.Stats(); s.Fences != 1 || s.Lag <= 0 {
		t.Errorf("the server that lost the agent counts %+v", s)
	}
	if _, err := b.Refresh(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := b.Await(t.Context(), id); err != nil || !b.has(id)() {
		t.Errorf("the agent does not arrive: %v", err)
	}
	if err := a.Await(t.Context(), id); err != nil && !errors.Is(err, ErrNotOwner) {
		t.Errorf("an agent of another server: %v", err)
	}
	taken := b.agent(t, id)
	if lost := missing(t, taken, ids); lost != nil {
		t.Errorf("acknowledged writes are lost: %v", lost)
	}
	if _, n, err := taken.Contacts(t.Context(), nil, store.Page{Limit: 1}); err != nil || n != len(ids) {
		t.Errorf("%d contacts of %d, %v", n, len(ids), err)
	}
	a.eventually(t, "to give up the agent", func() bool {
		_, err := a.f.Agent(id)
		return errors.Is(err, ErrNotOwner)
	})
	if a.Self().Session != old {
		t.Error("a server that lost one agent started a new session")
	}
	a.die(t)
	a.eventually(t, "to start a new session", func() bool { return a.Self().Session != old && a.Ready() == nil })
	if n, _, err := b.Owner(t.Context(), id); err != nil || !n.Self {
		t.Errorf("the owner is %v, %v", n, err)
	}
	mustWrite(t, taken, "goes on")
	b.end() // takes over all its agents
	again := a.agent(t, id)
	if s := a.Stats(); s.Claims < 2 || s.Owned != 2 { // with the default agent
		t.Errorf("the server that took over counts %+v", s)
	}
	if lost := missing(t, again, ids); lost != nil {
		t.Errorf("acknowledged writes are lost: %v", lost)
	}
	mustWrite(t, again, "and on")
}

// The cluster's copy of an agent equals its file byte for byte, before and after the log
// was folded into it.
func testRestoredEqual(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	db := a.agent(t, agent.DefaultID)
	old, other := olderCopy{path: filepath.Join(t.TempDir(), "older")}, filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, bytes.Repeat([]byte("not a file of this agent"), 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	compare := func(when string) {
		t.Helper()
		s, err := db.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Release()
		copied := filepath.Join(t.TempDir(), "copy.db")
		head, logged, err := a.Cluster.write(t.Context(), db.ID(), copied, olderCopy{})
		if err != nil || uint64(head) != s.At.TXID {
			t.Fatalf("%s: restored at %d of %d: %v", when, head, s.At.TXID, err)
		}
		want, e1 := os.ReadFile(a.f.FilePath(db.ID()))
		got, e2 := os.ReadFile(copied)
		if e1 != nil || e2 != nil || !bytes.Equal(want, got) {
			t.Errorf("%s: the restored file differs (%d and %d bytes; %v, %v)", when, len(want), len(got), e1, e2)
		}
		t.Logf("%s: %d bytes, %d in the log", when, len(want), logged)
		for _, from := range []olderCopy{old, {path: old.path}, {path: other}, {}} {
			onto := filepath.Join(t.TempDir(), "onto.db")
			if _, n, err := a.Cluster.write(t.Context(), db.ID(), onto, from); err != nil || n < logged {
				t.Errorf("%s: restored from an older copy with %d bytes of %d in the log: %v", when, n, logged, err)
			}
			if got, err := os.ReadFile(onto); err != nil || !bytes.Equal(want, got) {
				t.Errorf("%s: the file restored from a copy at %d differs: %v", when, from.head, err)
			}
		}
		if err := os.WriteFile(old.path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		old.head, old.logged = head, logged
	}
	var ids []string
	for n := range 60 {
		ids = append(ids, mustWrite(t, db, strings.Repeat(fmt.Sprint(n, " "), n*100)))
	}
	compare("written")
	for _, id := range ids[:40] {
		if err := db.DeleteContact(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	compare("deleted")
	if err := a.fold(t.Context(), db.ID()); err != nil {
		t.Fatal(err)
	}
	compare("folded")
	mustWrite(t, db, "after the fold")
	compare("written after the fold")
	if err := a.fold(t.Context(), db.ID()); err != nil {
		t.Fatal(err)
	}
	if due := a.dueFolds(a.full); slices.Contains(due, db.ID()) {
		t.Error("a folded log is due again")
	}
	compare("folded again")
}

// Every server knows what needs attention in the agents of the others while they are
// open.
func testAttention(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	b := serve(t, url, "b", t.TempDir())
	db := a.make(t, "Bakery")
	if _, err := db.CreateConversation(t.Context(), agent.ConversationChange{
		ContactID:   agent.Some(mustWrite(t, db, "")),
		InboxChange: agent.InboxChange{NeedsHuman: agent.Some(true)},
	}); err != nil {
		t.Fatal(err)
	}
	a.noteWritten(t.Context(), time.Now())
	if err := a.flushNotes(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.eventually(t, "to know what needs attention", func() bool {
		all, err := b.Agents(t.Context())
		return err == nil &&
			slices.ContainsFunc(all, func(e Entry) bool { return e.Agent.ID == db.ID() && e.Attention.Waiting == 1 })
	})
}

func testNamesAreUnique(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	b := serve(t, url, "b", t.TempDir())
	db := a.make(t, "Bakery")
	for _, name := range []string{"bakery", db.ID(), "default"} {
		if _, err := b.f.CreateAgent(
			t.Context(),
			agent.Agent{Name: name},
			"",
		); agent.ErrorCode(err) != agent.CodeAgentNameExists {
			t.Errorf("a second %s: %v", name, err)
		}
	}
	other := b.make(t, "Florist")
	if _, err := b.f.UpdateAgent(t.Context(), other, agent.AgentChange{
		Name: agent.Some("BAKERY"),
	}); agent.ErrorCode(err) != agent.CodeAgentNameExists {
		t.Errorf("renamed to a name that is taken: %v", err)
	}
	if err := a.f.DeleteAgent(db); err != nil {
		t.Fatal(err)
	}
	if _, err := b.f.UpdateAgent(t.Context(), other, agent.AgentChange{Name: agent.Some("Bakery")}); err != nil {
		t.Errorf("renamed to a name that became free: %v", err)
	}
	a.eventually(t, "to know the new name", func() bool {
		n, id, err := a.Owner(t.Context(), "bakery")
		return err == nil && id == other.ID() && n.Name == "b"
	})
	a.eventually(t, "to list the remaining agents", func() bool {
		all, err := a.Agents(t.Context())
		return err == nil && len(all) == 2
	})
	if _, _, err := a.Owner(t.Context(), db.ID()); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the owner of a deleted agent: %v", err)
	}
}

func testKeysAreEverywhere(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	b := serve(t, url, "b", t.TempDir())
	if b.f.HasHadKeys() {
		t.Error("a key was created")
	}
	made, secret, err := a.f.CreateKey(t.Context(), agent.Key{
		Name:      "k",
		Role:      agent.RoleAdmin,
		Agents:    []string{"*"},
		CreatedBy: "ada@example.com",
	})
	if err != nil {
		t.Fatal(err)
	}
	hash := agent.HashKey(secret)
	b.eventually(t, "to know the key", func() bool { return b.f.Key(hash) != nil })
	if k := b.f.Key(hash); k.ID != made.ID ||
		k.Role != agent.RoleAdmin ||
		k.CreatedBy != "ada@example.com" ||
		!slices.Equal(k.Agents, []string{"*"}) ||
		!k.ExpiresAt.IsZero() ||
		!b.f.HasHadKeys() {
		t.Errorf("the key is %+v", k)
	}
	no := agent.RoleNone
	if err := a.f.ChooseAccess(t.Context(), &no); err != nil {
		t.Fatal(err)
	}
	b.eventually(t, "to know the choice about access", func() bool {
		return b.f.AccessChoice() != nil && *b.f.AccessChoice() == no
	})
	if _, _, err := b.f.CreateKey(t.Context(), agent.Key{
		Name:   "k",
		Role:   agent.RoleAdmin,
		Agents: []string{"*"},
	}); !errors.Is(err, ErrNotOwner) {
		t.Errorf("a key created by a server that does not have them: %v", err)
	}
	if err := a.f.DeleteKey(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	b.eventually(t, "to forget the key", func() bool { return b.f.Key(hash) == nil })
	late := serve(t, url, "late", t.TempDir())
	if !late.f.HasHadKeys() || late.f.Key(hash) != nil {
		t.Error("a server that joins does not know that there was a key")
	}
}

func testMove(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	id := db.ID()
	ids := []string{mustWrite(t, db, "here")}
	b := serve(t, url, "b", t.TempDir())
	a.eventually(t, "to see b", func() bool {
		_, err := a.target("b")
		return err == nil
	})
	if err := a.Move(t.Context(), id, "nobody"); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("moved to a server that does not exist: %v", err)
	}
	c := serveAt(t, url, "b", "http://other", t.TempDir())
	a.eventually(t, "to see another b", func() bool {
		_, err := a.target(c.Self().Session)
		return err == nil
	})
	if err := a.Move(t.Context(), id, "b"); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("moved to one of two servers with the same name: %v", err)
	}
	c.end()
	a.eventually(t, "to see one b", func() bool {
		_, err := a.target("b")
		return err == nil
	})
	if err := a.Move(t.Context(), id, "b"); err != nil {
		t.Fatal(err)
	}
	if err := a.Move(t.Context(), id, "b"); !errors.Is(err, ErrNotOwner) {
		t.Errorf("moved by a server that does not have it: %v", err)
	}
	moved := b.agent(t, id)
	ids = append(ids, mustWrite(t, moved, "there"))
	b.eventually(t, "to see a", func() bool {
		_, err := b.target("a")
		return err == nil
	})
	if err := b.Move(t.Context(), id, a.Self().Session); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, mustWrite(t, a.agent(t, id), "back"))
	if lost := missing(t, a.agent(t, id), ids); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	a.eventually(t, "to see b", func() bool {
		_, err := a.target("b")
		return err == nil
	})
	if err := a.Drain(t.Context(), Drained); err != nil {
		t.Fatal(err)
	}
	if lost := missing(t, b.agent(t, id), ids); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	if len(a.f.Agents()) > 0 {
		t.Error("a server that was drained still has agents")
	}
	// An agent that is assigned to it before the others know that it is leaving is moved
	// on.
	if _, err := a.pool.Exec(
		t.Context(),
		"UPDATE agent SET owner = $1, changed = clock_timestamp() WHERE id = $2",
		a.Self().Session,
		id,
	); err != nil {
		t.Fatal(err)
	}
	a.eventually(t, "to get an agent and move it on", func() bool {
		n, err := a.Refresh(t.Context(), id)
		return err == nil && n.Name == "b"
	})
	if lost := missing(t, b.agent(t, id), ids); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	b.eventually(t, "to see that a is leaving", func() bool {
		_, err := b.target("a")
		return err != nil
	})
	if err := b.Drain(t.Context(), Drained); err == nil {
		t.Error("the last server was drained")
	}
}

// A server with another master key than the cluster's does not start, unless it also has
// the cluster's, which it replaces.
func testMasterKey(t *testing.T, url string) {
	open := func(keys ...[]byte) error {
		c, err := Open(t.Context(), Options{URL: url, MasterKeys: keys, Path: t.TempDir()})
		if err == nil {
			c.Close()
		}
		return err
	}
	next := bytes.Repeat([]byte{8}, 32)
	if err := open(testKey); err != nil {
		t.Fatal(err)
	}
	if err := open(next); !errors.Is(err, errMasterKey) {
		t.Errorf("another master key: %v", err)
	}
	if err := open(next, testKey); err != nil {
		t.Errorf("a key that replaces the cluster's: %v", err)
	}
	if err := open(next); err != nil {
		t.Errorf("the key that replaced it: %v", err)
	}
	if err := open(testKey); !errors.Is(err, errMasterKey) {
		t.Errorf("the key that was replaced: %v", err)
	}
}

// Agents that are imported and exported again are unchanged except for their owner.
func testImportAndExport(t *testing.T, url string) {
	own, log := t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil))
	options := store.Options{Path: own, MasterKeys: [][]byte{testKey}, Log: log}
	f, err := store.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "Bakery"}, "owner@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{LLMKey: agent.Some("sk-secret")}); err != nil {
		t.Fatal(err)
	}
	id, ids := db.ID(), []string{mustWrite(t, db, "before the cluster")}
	no := agent.RoleNone
	_, secret, err := f.CreateKeyChoosing(
		t.Context(),
		agent.Key{Name: "k", Role: agent.RoleAdmin, Agents: []string{"*"}},
		&no,
	)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), Options{URL: url, MasterKeys: [][]byte{testKey}, Path: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []int{2, 0} { // the second time there is nothing left to do
		if n, err := c.Import(t.Context(), own); err != nil || n != want {
			t.Fatalf("%d agents were imported, of %d: %v", n, want, err)
		}
	}
	// Servers that start now have access control on, before any of them has the default
	// agent.
	if a, err := c.Access(); len(a.Keys) != 1 ||
		a.Keys[0].Hash != agent.HashKey(secret) ||
		!a.KeyMade ||
		a.Choice == nil ||
		*a.Choice != agent.RoleNone ||
		err != nil {
		t.Errorf("the access to the cluster is %+v, %v", a, err)
	}
	if _, err := store.Open(store.Options{
		Path:       own,
		MasterKeys: [][]byte{testKey},
		Log:        log,
		Cluster:    c,
	}); !errors.Is(err, store.ErrOwnAgents) {
		t.Errorf("a folder with agents of its own was used for a cluster: %v", err)
	}
	a := serve(t, url, "a", t.TempDir())
	shared := a.agent(t, id)
	if lost := missing(t, shared, ids); lost != nil {
		t.Errorf("lost: %v", lost)
	}
	if a.f.Key(agent.HashKey(secret)) == nil {
		t.Error("the server does not know the API key")
	}
	if shared.Agent().Status != agent.StatusActive {
		t.Errorf("the agent is %s", shared.Agent().Status)
	}
	ids = append(ids, mustWrite(t, shared, "in the cluster"))
	out := filepath.Join(t.TempDir(), "data")
	if n, err := c.Export(t.Context(), out); err != nil || n != 2 {
		t.Fatalf("%d agents were exported: %v", n, err)
	}
	options.Path = out
	if f, err = store.Open(options); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if db, err = f.Agent(id); err != nil || db.Agent().Status != agent.StatusActive || db.Agent().Name != "Bakery" {
		t.Fatalf("exported: %+v, %v", db, err)
	}
	if lost := missing(t, db, ids); lost != nil || f.Key(agent.HashKey(secret)) == nil {
		t.Errorf("lost: %v, or the key", lost)
	}
	if _, err := store.Open(store.Options{Path: a.path, MasterKeys: [][]byte{testKey}, Log: log}); err == nil {
		t.Error("the folder of a server of a cluster was opened without it")
	}
}

// A server does not join with the URL of another that is running, but does with that of
// one that has died.
func testSameURL(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	path := t.TempDir()
	b, err := Open(t.Context(), Options{URL: url, MasterKeys: [][]byte{testKey}, Path: path, Name: "b", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := store.Open(store.Options{Path: path, MasterKeys: [][]byte{testKey}, Cluster: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = f.Close()
		b.Close()
	})
	if err := b.Start(t.Context(), f, "http://a"); !errors.Is(err, errSameURL) ||
		!strings.Contains(err.Error(), "--cluster-url") {
		t.Errorf("a second server of a URL: %v", err)
	}
	if err := a.step(t.Context()); err != nil || a.Ready() != nil {
		t.Errorf("the first server: %v, %v", err, a.Ready())
	}
	b.mu.Lock()
	b.self.URL = "http://c"
	b.mu.Unlock()
	if _, err := b.pool.Exec(
		t.Context(),
		"INSERT INTO node(session, name, url, version, file_version) VALUES ('killed', 'c', 'http://c', '1', 1)",
	); err != nil {
		t.Fatal(err)
	}
	if err := b.announce(t.Context(), 0); err != nil {
		t.Errorf("the server that had the URL was killed: %v", err)
	}
	var alive bool
	if err := b.pool.QueryRow(
		t.Context(),
		"SELECT alive FROM node WHERE session = 'killed'",
	).Scan(&alive); err != nil || alive {
		t.Errorf("a server without a heartbeat: %v, %v", alive, err)
	}
}
