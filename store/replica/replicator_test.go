package replica

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// replicated is a data folder with a Replicator whose steps the test runs.
type served struct {
	t      *testing.T
	folder *store.Folder
	r      *Replicator
	path   string
	target Target
	now    time.Time // zero: the real time
}

func serveAt(t *testing.T, path string, target Target) *served {
	t.Helper()
	s := &served{t: t, path: path, target: target}
	s.r = New(Options{
		Target: target,
		Path:   path,
		Keep:   30 * 24 * time.Hour,
		Log:    slog.New(slog.DiscardHandler),
		Now: func() time.Time {
			if s.now.IsZero() {
				return time.Now()
			}
			return s.now
		},
	})
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler), Capture: s.r})
	if err != nil {
		t.Fatal(err)
	}
	s.folder = folder
	s.r.folder = folder
	t.Cleanup(func() { _ = folder.Close() })
	return s
}

// stop ends it as the program does.
func (s *served) stop() {
	s.t.Helper()
	if err := s.folder.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.r.flush(s.t.Context())
	s.r.save()
}

// snapshots makes the snapshots that are needed, and returns their number.
func (s *served) snapshots() int {
	s.t.Helper()
	s.r.compare(s.t.Context())
	ids := s.r.ids(func(a *replicated) bool { return a.restarts })
	for _, id := range ids {
		if next, err := s.r.snapshot(s.t.Context(), id); err != nil || next.Again {
			s.t.Fatal(next, err)
		}
	}
	return len(ids)
}

func (s *served) create(name string) *store.DB {
	s.t.Helper()
	db, err := s.folder.CreateAgent(s.t.Context(), agent.Agent{Name: name}, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

func (s *served) byName(name string) *store.DB {
	s.t.Helper()
	db, err := s.folder.Agent(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

func (s *served) contact(db *store.DB, notes string) {
	s.t.Helper()
	if _, err := db.CreateContact(s.t.Context(), agent.ContactChange{
		Name:  agent.Some("x"),
		Notes: agent.Some(notes),
	}); err != nil {
		s.t.Fatal(err)
	}
}

// contacts counts the contacts of the agent in a restored file, whose integrity it
// checks.
func contactsIn(t *testing.T, path string) int {
	t.Helper()
	folder := t.TempDir()
	id, err := store.RestoreFile(t.Context(), folder, path) // checks the file's integrity
	if err != nil {
		t.Fatal(err)
	}
	f, err := store.Open(store.Options{Path: folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	db, err := f.Agent(id)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := db.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stats.Contacts
}

// restore restores an agent and returns the file's path.
func restore(t *testing.T, target Target, id string, at time.Time) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), id+".db")
	if _, err := Restore(t.Context(), target, id, at, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantRestored fails unless the newest state in the target equals the agent's file, which
// must be closed.
func wantRestored(t *testing.T, s *served, db *store.DB) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(s.path, "agents", db.ID()+".db"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(restore(t, s.target, db.ID(), time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%d restored bytes differ from the file's %d", len(got), len(want))
	}
}

func eachTarget(t *testing.T, test func(*testing.T, Target)) {
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		_, target := newFakeS3(t)
		test(t, target)
	})
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		target, err := Open(t.TempDir(), testKeys)
		if err != nil {
			t.Fatal(err)
		}
		test(t, target)
	})
}

// A replica follows its agent, also across restarts, and an agent without changes needs
// nothing at a start.
func TestReplicaFollows(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		path := t.TempDir()
		s := serveAt(t, path, target)
		db := s.create("Support")
		if n := s.snapshots(); n != 2 { // with the default agent
			t.Errorf("%d snapshots", n)
		}
		for n := range 20 {
			s.contact(db, fmt.Sprint(n))
		}
		s.stop()
		wantRestored(t, s, db)
		for round := range 3 {
			s = serveAt(t, path, target)
			db = s.byName("Support")
			if n := s.snapshots(); n != 0 {
				t.Errorf("%d snapshots at start %d", n, round)
			}
			s.contact(db, "again")
			s.stop()
			wantRestored(t, s, db)
		}
		if r, err := Find(t.Context(), target, "support"); err != nil || r.ID != db.ID() {
			t.Errorf("%+v, %v", r, err)
		}
		all, err := Replicas(t.Context(), target)
		if err != nil ||
			len(all) != 2 ||
			all[0].Name != "Support" && all[1].Name != "Support" ||
			all[0].From.IsZero() ||
			all[0].To.Before(all[0].From) {
			t.Errorf("%+v, %v", all, err)
		}
		if _, err := Find(t.Context(), target, "nobody"); err == nil {
			t.Error("an agent that does not exist is found")
		}
	})
}

// Every moment that was uploaded can be restored.
func TestRestoreAtATime(t *testing.T) {
	t.Parallel()
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	before := time.Now().Add(-time.Second)
	s.snapshots()
	var times []time.Time
	for range 3 {
		for range 3 {
			s.contact(db, strings.Repeat("n", 2000))
		}
		s.r.flush(t.Context())
		objects, err := listObjects(t.Context(), target.storage, db.ID()+"/")
		if err != nil {
			t.Fatal(err)
		}
		c := chain(objects, endOfTime)
		times = append(times, time.UnixMilli(c[len(c)-1].at))
	}
	for n, at := range times {
		if got := contactsIn(t, restore(t, target, db.ID(), at)); got != 3*(n+1) {
			t.Errorf("%d contacts after %d steps", got, n+1)
		}
	}
	if _, err := Restore(t.Context(), target, db.ID(), before, filepath.Join(t.TempDir(), "x.db")); err == nil {
		t.Error("a time before the first snapshot was restored")
	}
}

// A file that another program changes while the server is down gets a new snapshot, even
// if nobody uses the agent.
func TestChangedWhileDown(t *testing.T) {
	t.Parallel()
	target, err := Open(t.TempDir(), testKeys)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	s := serveAt(t, path, target)
	db := s.create("Support")
	s.snapshots()
	s.contact(db, "before")
	s.stop()

	other, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)}) // without replication
	if err != nil {
		t.Fatal(err)
	}
	changed, err := other.Agent("Support")
	if err == nil {
		_, err = changed.CreateContact(t.Context(), agent.ContactChange{Name: agent.Some("unseen")})
	}
	if err != nil || other.Close() != nil {
		t.Fatal(err)
	}
	s = serveAt(t, path, target)
	if n := s.snapshots(); n != 1 {
		t.Errorf("%d snapshots", n)
	}
	s.stop()
	wantRestored(t, s, db)
}

// A replica that does not end where the file was closed, because somebody restored an
// older folder, starts over.
func TestReplicaIsAheadOfTheFolder(t *testing.T) {
	t.Parallel()
	target, err := Open(t.TempDir(), testKeys)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	s := serveAt(t, path, target)
	db := s.create("Support")
	s.snapshots()
	s.contact(db, "one")
	s.stop()
	s.r.mu.Lock()
	at := s.r.agents[db.ID()].at
	s.r.mu.Unlock()
	ahead := object{at.Generation, levelCommits, at.TXID + 1, at.TXID + 1, at.Time + 1}
	if err := target.storage.put(t.Context(), db.ID()+"/"+ahead.name(), strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	s = serveAt(t, path, target)
	s.contact(s.byName("Support"), "two")
	s.r.flush(t.Context())
	if n := s.snapshots(); n != 1 {
		t.Errorf("%d snapshots", n)
	}
	s.contact(s.byName("Support"), "three")
	s.stop()
	wantRestored(t, s, db)
}

// An agent that was just created is uploaded at once, even if nobody uses it.
func TestNewAgentsAreUploaded(t *testing.T) {
	t.Parallel()
	target, err := Open(t.TempDir(), testKeys)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, t.TempDir(), target)
	s.snapshots()
	db := s.create("Support")
	copied, err := db.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	imported, err := s.folder.Import(t.Context(), copied, 64<<20, agent.Identity{Open: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{db.ID(), imported.ID()} {
		if next, err := s.r.snapshot(t.Context(), id); err != nil || next.Again {
			t.Fatal(next, err)
		}
		if n := contactsIn(t, restore(t, target, id, time.Time{})); n != 0 {
			t.Errorf("%d contacts", n)
		}
	}
}

// A replica has the agent's name, also after a change of name, and nothing waits for a
// deleted agent.
func TestReplicaHasTheName(t *testing.T) {
	t.Parallel()
	target, err := Open(t.TempDir(), testKeys)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	if _, err := s.folder.UpdateAgent(t.Context(), db, agent.AgentChange{Name: agent.Some("Sales")}); err != nil {
		t.Fatal(err)
	}
	s.r.flush(t.Context())
	if r, err := Find(t.Context(), target, "sales"); err != nil || r.ID != db.ID() {
		t.Errorf("%+v, %v", r, err)
	}
	s.r.Lost("agent-gone", nil)
	if _, err := s.r.snapshot(t.Context(), "agent-gone"); err != nil || s.r.Status().Snapshots != 0 {
		t.Errorf("%+v, %v", s.r.Status(), err)
	}
}

// With its queues running, a replica is complete once the server has stopped.
func TestReplicatorRuns(t *testing.T) {
	t.Parallel()
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	s.r.Start(context.Background(), s.folder)
	db := s.create("Support")
	for n := range 50 {
		s.contact(db, fmt.Sprint(n))
	}
	s.r.Lost(db.ID(), nil)
	for s.r.Status().Snapshots > 0 {
		if err := s.r.snapshots.Wait(t.Context(), db.ID()); err != nil {
			t.Fatal(err)
		}
		if err := s.r.snapshots.Wait(t.Context(), agent.DefaultID); err != nil {
			t.Fatal(err)
		}
	}
	s.contact(db, "last")
	s.r.Stop()
	if err := s.folder.Close(); err != nil {
		t.Fatal(err)
	}
	s.r.Close()
	wantRestored(t, s, db)
	if status := s.r.Status(); status.Failure != nil || status.Behind != 0 {
		t.Errorf("%+v", status)
	}
}
