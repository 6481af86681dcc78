package replica

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/store"
)

// While the bucket is unreachable nothing waits without a limit and writes continue; once
// it is back, a snapshot replaces what was dropped.
func TestBucketIsUnreachable(t *testing.T) {
	t.Parallel()
	f, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	f.setAway(true)
	s.contact(db, "kept")
	if _, err := s.r.upload(t.Context(), db.ID()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
	for n := range 40 { // half a megabyte each, hardly compressible
		insert := fmt.Sprintf("INSERT INTO contacts(id, name, notes) VALUES ('c-%d', 'x', hex(randomblob(250000)))", n)
		if _, err := db.SQL(t.Context(), insert, store.Params{}, store.Access{Write: true}); err != nil {
			t.Fatal(err)
		}
		db.Capture()
	}
	s.r.mu.Lock()
	waiting, restarts := s.r.waiting, s.r.agents[db.ID()].restarts
	s.r.mu.Unlock()
	if waiting > maxWaiting || !restarts {
		t.Errorf("%d bytes wait, a snapshot is planned: %v", waiting, restarts)
	}
	if _, err := s.r.snapshot(t.Context(), db.ID()); err == nil {
		t.Error("a snapshot is uploaded")
	}
	f.setAway(false)
	if n := s.snapshots(); n != 1 {
		t.Errorf("%d snapshots", n)
	}
	s.contact(db, "after")
	s.stop()
	wantRestored(t, s, db)
}

// Merges lose nothing, and the rest of a deleted agent is removed once its retention has
// passed.
func TestTidy(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := serveAt(t, t.TempDir(), target)
		db := s.create("Support")
		s.snapshots()
		for n := range 20 {
			s.contact(db, fmt.Sprint(n))
			s.r.flush(t.Context())
		}
		s.now = time.Now().Add(3 * 24 * time.Hour)
		for range 2 {
			if _, err := s.r.tidy(t.Context(), db.ID()); err != nil {
				t.Fatal(err)
			}
		}
		objects, err := listObjects(t.Context(), target.storage, db.ID()+"/")
		if err != nil || len(objects) > 3 { // a snapshot, and the commits merged into one or two hours
			t.Errorf("%v, %v", objects, err)
		}
		if got := contactsIn(t, restore(t, target, db.ID(), time.Time{})); got != 20 {
			t.Errorf("%d contacts", got)
		}
		if err := s.folder.DeleteAgent(db); err != nil {
			t.Fatal(err)
		}
		if _, err := s.r.upload(t.Context(), db.ID()); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			later time.Duration
			left  bool
		}{{29 * 24 * time.Hour, true}, {2 * 24 * time.Hour, false}} {
			s.now = s.now.Add(step.later)
			if _, err := s.r.tidy(t.Context(), db.ID()); err != nil {
				t.Fatal(err)
			}
			if _, err := Find(t.Context(), target, db.ID()); (err == nil) != step.left {
				t.Errorf("%v later: %v", step.later, err)
			}
		}
	})
}
