package replica

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"satchel/store"
	"satchel/store/capture"
)

// After a kill, an agent's commits that were not uploaded are read from its -wal, without
// a new snapshot.
func TestReplicaContinuesAfterAKill(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		path := t.TempDir()
		s := serveAt(t, path, target)
		db := s.create("Support")
		s.snapshots()
		for round := range 3 {
			s.contact(db, "uploaded")
			s.r.flush(t.Context())
			s.contact(db, "not uploaded")
			s = s.kill(func() {})
			s.r.flush(t.Context())
			if n := contactsIn(t, restore(t, target, db.ID(), time.Time{})); n != 2*(round+1) {
				t.Errorf("%d contacts were restored after kill %d", n, round+1)
			}
			db = s.byName("Support")
		}
		objects, err := listObjects(t.Context(), target.storage, db.ID()+"/")
		if n := len(byGeneration(objects)); n != 1 || err != nil {
			t.Errorf("%d generations, %v", n, err)
		}
		s.stop()
		wantRestored(t, s, db)
	})
}

// left is the content and modification time of a file at a kill.
type left struct {
	content []byte
	at      time.Time
}

// filesIn reads all files of a data folder except temporary ones.
func filesIn(t *testing.T, folder string) map[string]left {
	t.Helper()
	files := map[string]left{}
	if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "tmp" {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = left{content, info.ModTime()}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// kill restores the folder as a kill at this moment would leave it, and restarts the
// server. It calls later before it restores the folder.
func (s *served) kill(later func()) *served {
	s.t.Helper()
	killed := filesIn(s.t, s.path)
	later()
	if err := s.folder.Close(); err != nil {
		s.t.Fatal(err)
	}
	for path := range filesIn(s.t, s.path) {
		if _, was := killed[path]; !was {
			if err := os.Remove(path); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	for path, f := range killed { // overwritten in place, so that it counts as the same file
		if err := errors.Join(os.WriteFile(path, f.content, 0o600), os.Chtimes(path, f.at, f.at)); err != nil {
			s.t.Fatal(err)
		}
	}
	next := serveAt(s.t, s.path, s.target)
	next.r.compare(s.t.Context())
	return next
}

// wantContacts fails unless an agent's replica has n contacts and is still of its first
// generation.
func (s *served) wantContacts(id string, n int) {
	s.t.Helper()
	objects, err := listObjects(s.t.Context(), s.target.storage, id+"/")
	if generations := len(byGeneration(objects)); generations != 1 || err != nil {
		s.t.Errorf("%d generations, %v", generations, err)
	}
	if got := contactsIn(s.t, restore(s.t, s.target, id, time.Time{})); got != n {
		s.t.Errorf("%d contacts were restored, want %d", got, n)
	}
}

// checkpoint moves everything from an agent's -wal into its file.
func (s *served) checkpoint(db *store.DB) {
	s.t.Helper()
	if _, err := db.Snapshot(s.t.Context(), io.Discard, false); err != nil {
		s.t.Fatal(err)
	}
}

// Commits that a checkpoint allows to leave the -wal before they are uploaded survive a
// kill, whatever follows the checkpoint.
func TestCheckpointedCommitsSurviveAKill(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := serveAt(t, t.TempDir(), target)
		db := s.create("Support")
		s.snapshots()
		s.contact(db, "waits")
		s.checkpoint(db)
		s = s.kill(func() {})
		s.contact(s.byName("Support"), "begins the -wal anew")
		s = s.kill(func() {})
		s.r.flush(t.Context())
		s.wantContacts(db.ID(), 2)
		if _, err := os.Stat(s.r.savedPath(db.ID())); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("uploaded commits are still kept: %v", err)
		}
		db = s.byName("Support")
		s.contact(db, "waits again")
		s.checkpoint(db)
		s.r.batch(db.ID())
		s.r.append(db.ID())
		s = s.kill(func() { s.r.flush(t.Context()) }) // the upload was in progress
		s.contact(s.byName("Support"), "later")
		s.r.flush(t.Context())
		s.wantContacts(db.ID(), 4)
		s.stop()
		wantRestored(t, s, s.byName("Support"))
	})
}

// An upload that was in progress at a kill may have reached the replica, or reach it
// later: in both cases replication continues, and the merged result is correct.
func TestUploadInProgressAtAKill(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]func(s *served, send func()) *served{
		"before the start": func(s *served, send func()) *served { return s.kill(send) },
		"never":            func(s *served, _ func()) *served { return s.kill(func() {}) },
		"late": func(s *served, send func()) *served {
			s = s.kill(func() {})
			s.r.flush(s.t.Context())
			send()
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, target := newFakeS3(t)
			s := serveAt(t, t.TempDir(), target)
			db := s.create("Support")
			s.snapshots()
			s.contact(db, "one")
			db.Capture()
			s.contact(db, "two")
			db.Capture()
			batch, _ := s.r.batch(db.ID())
			s.r.append(db.ID())
			o := object{batch[0].Generation, levelCommits, batch[0].First, batch[1].TXID, batch[1].Time}
			raw, err := mergeCommits(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			s.contact(db, "three")
			s = arrives(s, func() {
				if err := target.storage.put(
					t.Context(),
					db.ID()+"/"+o.name(),
					bytes.NewReader(raw),
					int64(len(raw)),
				); err != nil {
					t.Fatal(err)
				}
			})
			s.r.flush(t.Context())
			s.contact(s.byName("Support"), "four")
			s.r.flush(t.Context())
			s.wantContacts(db.ID(), 4)
			s.now = time.Now().Add(10 * time.Minute)
			if _, err := s.r.tidy(t.Context(), db.ID()); err != nil {
				t.Fatal(err)
			}
			s.wantContacts(db.ID(), 4)
			s.now = time.Time{}
			s.stop()
			wantRestored(t, s, s.byName("Support"))
		})
	}
}

// A checkpoint is saved before the next commit, which may restart the -wal.
func TestCheckpointsAreSaved(t *testing.T) {
	t.Parallel()
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	s.contact(db, "x")
	s.r.flush(t.Context())
	saved := func() capture.Position {
		raw, err := os.ReadFile(s.r.positionsPath())
		if err != nil {
			t.Fatal(err)
		}
		all, err := decodePositions(append(raw, `{"agents":{"cut sh`...))
		if err != nil {
			t.Fatal(err)
		}
		return all.Agents[db.ID()].At
	}
	before := saved()
	if before.WAL.Offset == 0 {
		t.Fatalf("after an upload: %+v", before)
	}
	if _, err := db.Snapshot(t.Context(), io.Discard, false); err != nil { // makes a checkpoint
		t.Fatal(err)
	}
	if after := saved(); after.WAL.Offset != 0 || after.TXID != before.TXID || after.Stamp == before.Stamp {
		t.Errorf("after a checkpoint: %+v, before %+v", after, before)
	}
}

// What a server could not upload before it stopped is uploaded by one that starts later,
// without a new snapshot.
func TestBucketIsUnreachableDuringARestart(t *testing.T) {
	t.Parallel()
	bucket, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	bucket.setAway(true)
	for range 2 {
		s.contact(s.byName("Support"), "the bucket is away")
		s.stop()
		s = serveAt(t, s.path, target)
		if n := s.snapshots(); n != 0 {
			t.Errorf("%d snapshots are needed", n)
		}
	}
	bucket.setAway(false)
	s.r.flush(t.Context())
	s.wantContacts(db.ID(), 2)
	s.stop()
	wantRestored(t, s, s.byName("Support"))
}
