package replica

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// A file is restored as it was, and never over another; restoring an agent creates a
// paused copy.
func TestCommands(t *testing.T) {
	t.Parallel()
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	s.contact(db, "one")
	s.stop()
	c, to := Commands{target}, t.TempDir()
	id, last, err := c.Put(t.Context(), "Support", time.Time{}, to)
	if err != nil || id != db.ID() || last.IsZero() {
		t.Fatal(id, last, err)
	}
	want, err := os.ReadFile(filepath.Join(s.path, "agents", id+".db"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "agents", id+".db")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d, %v", len(got), len(want), err)
	}
	if _, _, err := c.Put(t.Context(), id, time.Time{}, to); err == nil ||
		!strings.Contains(err.Error(), "already exists") {
		t.Error(err)
	}
	s = serveAt(t, s.path, target)
	s.contact(s.byName("Support"), "two")
	if id, _, err = c.Restore(t.Context(), "support", time.Time{}, s.path); err != nil || id == db.ID() {
		t.Fatal(id, err)
	}
	s.stop()
	s = serveAt(t, s.path, target)
	if a := s.byName(id).Agent(); a.Name != "Support-2" || a.Status != agent.StatusPaused {
		t.Errorf("%+v", a)
	}
	if left, _ := filepath.Glob(filepath.Join(s.path, "restore-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if f := c.Doctor(t.Context()); !f.OK || !strings.Contains(f.Message, "2 agents") {
		t.Errorf("%+v", f)
	}
}

// A name that a deleted agent had does not identify a replica: the error lists the ids.
func TestNameOfADeletedAgent(t *testing.T) {
	t.Parallel()
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	old := s.create("Support")
	s.snapshots()
	if err := s.folder.DeleteAgent(old); err != nil {
		t.Fatal(err)
	}
	if _, err := s.r.upload(t.Context(), old.ID()); err != nil {
		t.Fatal(err)
	}
	again := s.create("Support")
	s.snapshots()
	c := Commands{target}
	if _, _, err := c.Put(t.Context(), "Support", time.Time{}, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), old.ID()+" (deleted ") ||
		!strings.Contains(err.Error(), again.ID()) {
		t.Error(err)
	}
	for _, id := range []string{old.ID(), again.ID()} {
		if _, _, err := c.Put(t.Context(), id, time.Time{}, t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}
