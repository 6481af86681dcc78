package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/capture"
	"satchel/store/sqlite"
)

// Whatever wrote to it, the file can be rebuilt from the snapshot and the commits after
// it.
func TestCapturedCommitsRebuildTheFile(t *testing.T) {
	t.Parallel()
	s, path := newCaptures(), t.TempDir()
	f := openCaptured(t, path, s)
	db := createAgent(t, f, "Support")
	snapshot, at := snapshotOf(t, db, false)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		switch random.IntN(7) {
		case 0, 1:
			for i := range random.IntN(20) {
				createContact(t, db, numberedContact(round*100+i))
			}
		case 2: // by the SQL sandbox's own connection
			if _, err := db.SQL(
				t.Context(),
				fmt.Sprintf("INSERT INTO contacts(id, name) VALUES ('c-%d', 'by SQL')", round),
				Params{},
				Access{Write: true},
			); err != nil {
				t.Fatal(err)
			}
		case 3: // grows and shrinks
			big := strings.Repeat("x", 400_000)
			for _, query := range []string{
				"INSERT INTO contacts(id, name, notes) VALUES ('big', 'big', '" + big + "')",
				"DELETE FROM contacts WHERE id = 'big'",
			} {
				if _, err := Write(t.Context(), db, func(tx *Tx) (any, error) { return tx.exec(query) }); err != nil {
					t.Fatal(err)
				}
			}
		case 4: // rolled back
			_, _ = Write(t.Context(), db, func(tx *Tx) (any, error) {
				_, err := tx.exec("DELETE FROM contacts")
				return nil, errors.Join(err, errors.New("no"))
			})
		case 5:
			wantCaptured(t, f, db, s, snapshot, at)
		case 6: // closed and opened again, by the same server or another
			if random.IntN(2) == 0 {
				f.maintain(t.Context(), time.Now().Add(closeAfter))
			} else {
				closeFolder(t, f)
				f = openCaptured(t, path, s)
				db = byName(t, f, "Support")
			}
			createContact(t, db, numberedContact(round*100+99))
		}
	}
	wantCaptured(t, f, db, s, snapshot, at)
	if n := s.losses(db.id); n != 2 { // when it was created, and when it was opened
		t.Errorf("%d losses: %v", n, s.lost[db.id])
	}
	later, then := snapshotOf(t, db, false)
	if then.Generation != at.Generation || then.TXID <= at.TXID {
		t.Errorf("the second snapshot is at %+v", then)
	}
	createContact(t, db, named("after"))
	wantCaptured(t, f, db, s, later, then)
	wantCaptured(t, f, db, s, snapshot, at)
}

// A snapshot is consistent while others write, and their writes follow it.
func TestSnapshotDuringWrites(t *testing.T) {
	t.Parallel()
	s, f, db := openNewCaptured(t)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for range 3 {
		writing.Go(func() {
			for ctx.Err() == nil {
				createContact(t, db, agent.ContactChange{
					Name:  agent.Some("x"),
					Notes: agent.Some(strings.Repeat("n", 5000)),
				})
			}
		})
	}
	type taken struct {
		data []byte
		at   capture.Position
	}
	var all []taken
	for n := range 8 {
		data, at := snapshotOf(t, db, n%3 == 0)
		all = append(all, taken{data, at})
		checkpointIdle(t, f, db)
	}
	stop()
	writing.Wait()
	last := all[len(all)-1].at.Generation
	for _, got := range all {
		if got.at.Generation == last {
			wantCaptured(t, f, db, s, got.data, got.at)
		}
	}
	if n := s.losses(db.id); n != 2 {
		t.Errorf("%d losses: %v", n, s.lost[db.id])
	}
}

// foreignWrite writes to a file as another program would, with a checkpoint.
func foreignWrite(t *testing.T, path, mode string) {
	t.Helper()
	c, err := openConn(source(path, sqlite.ReadWrite, "busy_timeout(5000)"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.script("INSERT INTO contacts(id, name) VALUES (hex(randomblob(8)), 'foreign')"); err != nil {
		t.Fatal(err)
	}
	if mode != "" {
		if _, _, _, err := c.checkpoint(mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
}

// Commits of other programs are captured too; after their checkpoints, which can discard
// frames, a new snapshot begins.
func TestCaptureNoticesOtherPrograms(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, f *Folder, db *DB)
		losses int
	}{
		"commit": {func(t *testing.T, f *Folder, db *DB) { foreignWrite(t, db.path, "") }, 0},
		"commit, then idle": {func(t *testing.T, f *Folder, db *DB) {
			foreignWrite(t, db.path, "")
			db.file.markDirty()
			checkpointIdle(t, f, db)
		}, 0},
		"checkpoint":   {func(t *testing.T, f *Folder, db *DB) { foreignWrite(t, db.path, "RESTART") }, 1},
		"emptied -wal": {func(t *testing.T, f *Folder, db *DB) { foreignWrite(t, db.path, "TRUNCATE") }, 1},
		"while it is closed": {func(t *testing.T, f *Folder, db *DB) {
			f.maintain(t.Context(), time.Now().Add(closeAfter))
			foreignWrite(t, db.path, "")
		}, 1},
		"a kill": {func(t *testing.T, f *Folder, db *DB) { // leaves a -wal, which the next start reads
			createContact(t, db, named("in the -wal"))
			dir := t.TempDir()
			copyClosed(t, filepath.Join(dir, "x.db"), db.path)
			copyClosed(t, filepath.Join(dir, "x.db-wal"), db.path+"-wal")
			f.maintain(t.Context(), time.Now().Add(closeAfter))
			copyClosed(t, db.path, filepath.Join(dir, "x.db"))
			copyClosed(t, db.path+"-wal", filepath.Join(dir, "x.db-wal"))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f, db := openNewCaptured(t)
			snapshot, at := snapshotOf(t, db, false)
			createContact(t, db, named("before"))
			wantCaptured(t, f, db, s, snapshot, at)
			before := s.losses(db.id)
			test.change(t, f, db)
			createContact(t, db, named("after"))
			db.Capture()
			if n := s.losses(db.id) - before; n != test.losses {
				t.Fatalf("%d losses: %v", n, s.lost[db.id])
			}
			if test.losses > 0 {
				snapshot, at = snapshotOf(t, db, false)
			}
			createContact(t, db, named("later"))
			wantCaptured(t, f, db, s, snapshot, at)
		})
	}
}

// After a kill, capturing continues after any commit that is proven to be in the -wal,
// and only there.
func TestCaptureContinuesAfterAKill(t *testing.T) {
	t.Parallel()
	s, path := newCaptures(), t.TempDir()
	f := openCaptured(t, path, s)
	db := createAgent(t, f, "Support")
	snapshot, at := snapshotOf(t, db, false)
	createContact(t, db, named("moved into the file"))
	checkpointIdle(t, f, db)
	whole := s.closed[db.id]
	for n := range 6 {
		createContact(t, db, numberedContact(n))
		db.Capture()
	}
	killed := t.TempDir() // the folder as a kill leaves it
	if err := os.CopyFS(killed, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	commits := slices.Clone(s.commits[at.Generation])
	third := commits[3].Position
	closeFolder(t, f)
	cut := func(t *testing.T, wal string) {
		if err := os.Truncate(wal, third.WAL.Offset-1); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(t *testing.T, wal string) {
		raw, err := os.ReadFile(wal)
		if err == nil {
			raw[100] ^= 1
			err = os.WriteFile(wal, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	with := func(change func(*capture.Position)) capture.Position {
		p := third
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		at     capture.Position
		damage func(t *testing.T, wal string)
		losses int
	}{
		"in the middle":       {third, nil, 0},
		"at the end":          {commits[len(commits)-1].Position, nil, 0},
		"a checkpoint":        {whole, nil, 0},
		"another -wal":        {with(func(p *capture.Position) { p.WAL.Salt++ }), nil, 1},
		"another checksum":    {with(func(p *capture.Position) { p.WAL.Sum[1]++ }), nil, 1},
		"within a frame":      {with(func(p *capture.Position) { p.WAL.Offset-- }), nil, 1},
		"a shorter -wal":      {third, cut, 1},
		"a damaged beginning": {third, flip, 1},
		"no -wal":             {third, func(t *testing.T, wal string) { _ = os.Remove(wal) }, 1},
		"another file's stamp": {
			capture.Position{Generation: whole.Generation, TXID: whole.TXID, Time: whole.Time, Stamp: "1/2/3"},
			nil,
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(path), os.CopyFS(path, os.DirFS(killed))); err != nil {
				t.Fatal(err)
			}
			if tc.damage != nil {
				tc.damage(t, db.path+"-wal")
			}
			if tc.at == whole { // the copy counts as the file
				tc.at.Stamp = stampOf(db.path)
			}
			next := newCaptures()
			next.closed[db.id] = tc.at
			for _, c := range commits {
				if c.TXID <= tc.at.TXID {
					next.commits[at.Generation] = append(next.commits[at.Generation], c)
				}
			}
			f := openCaptured(t, path, next)
			db := byName(t, f, "Support")
			if err := db.CaptureRest(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := next.losses(db.id); n != tc.losses {
				t.Fatalf("%d losses: %v", n, next.lost[db.id])
			}
			from, since := snapshot, at
			if tc.losses > 0 {
				from, since = snapshotOf(t, db, false)
			}
			createContact(t, db, named("after"))
			wantCaptured(t, f, db, next, from, since)
			closeFolder(t, f)
		})
	}
}

// An idle file keeps its -wal until the contents are uploaded.
func TestCheckpointWaitsForTheUpload(t *testing.T) {
	t.Parallel()
	s, f, db := openNewCaptured(t)
	snapshot, at := snapshotOf(t, db, false)
	createContact(t, db, named("x"))
	s.uploading = true
	if checkpointIdle(t, f, db); !HasWAL(db.path) {
		t.Error("the -wal is empty before the upload")
	}
	s.uploading = false
	wantCaptured(t, f, db, s, snapshot, at)
}

// A sink that refuses a commit receives none before the next snapshot, and meanwhile the
// -wal does not grow without a bound.
func TestCaptureRefused(t *testing.T) {
	t.Parallel()
	s, f, db := openNewCaptured(t)
	_, at := snapshotOf(t, db, false)
	s.refuse = true
	for n := range 2 * 300 {
		createContact(t, db, numberedContact(n))
	}
	if n := len(s.commits[at.Generation]); n != 1 {
		t.Errorf("%d commits", n)
	}
	if info, err := os.Stat(db.path + "-wal"); err != nil || info.Size() > 20<<20 {
		t.Errorf("the -wal: %v, %v", info, err)
	}
	s.refuse = false
	snapshot, at := snapshotOf(t, db, false)
	createContact(t, db, named("after"))
	wantCaptured(t, f, db, s, snapshot, at)
}

// A snapshot waits for a read that began before the newest commit, but no longer than its
// context.
func TestSnapshotWaitsForReads(t *testing.T) {
	t.Parallel()
	s, f, db := openNewCaptured(t)
	createContact(t, db, named("before"))
	began, end := make(chan struct{}), make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		_, err := Read(t.Context(), db, func(tx *Tx) (n int, err error) {
			err = tx.value(&n, "SELECT count(*) FROM contacts")
			close(began)
			<-end
			return n, err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-began
	createContact(t, db, named("after"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := db.Snapshot(ctx, io.Discard, true); !errors.Is(err, capture.ErrBusy) {
		t.Errorf("%v", err)
	}
	close(end)
	reading.Wait()
	snapshot, at := snapshotOf(t, db, true)
	createContact(t, db, named("later"))
	wantCaptured(t, f, db, s, snapshot, at)
}

// When a read closes the only connection, as after an error of unknown effect, it makes
// no checkpoint that the capture does not know of.
func TestCaptureOutlivesTheLastConnection(t *testing.T) {
	t.Parallel()
	s, f, db := openNewCaptured(t)
	snapshot, at := snapshotOf(t, db, false)
	createContact(t, db, numberedContact(1))
	losses := s.losses(db.id)
	if err := db.file.sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	db.file.shrink()
	db.file.releaseWriter(db.file.acquireWriter(t.Context()), false)
	createContact(t, db, numberedContact(2))
	if n := s.losses(db.id); n != losses {
		t.Errorf("%d losses: %v", n-losses, s.lost[db.id])
	}
	closeFolder(t, f)
	if HasWAL(db.path) {
		t.Error("the -wal stays")
	}
	wantCaptured(t, f, db, s, snapshot, at)
}
