package store

import (
	"errors"
	"fmt"
	"testing"
)

// Commits that are too large to be captured at once are captured one after the other.
func TestCaptureOfLargeCommits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 50 MB")
	}
	s, f, db := openNewCaptured(t)
	snapshot, at := snapshotOf(t, db, false)
	losses := s.losses(db.id)
	for n := range 20 {
		if _, err := Write(t.Context(), db, func(tx *Tx) (any, error) {
			return tx.exec(
				"INSERT INTO contacts(id, name, notes) VALUES (?, 'large', hex(randomblob(1000000)))",
				fmt.Sprint("c-", n),
			)
		}); err != nil {
			t.Fatal(err)
		}
	}
	db.Capture()
	if n := len(s.commits[at.Generation]); n < 2 || n > 10 || s.losses(db.id) != losses {
		t.Errorf("%d captures, %v", n, s.lost[db.id])
	}
	wantCaptured(t, f, db, s, snapshot, at)
}

// After a commit that failed but may have been captured, capturing starts over with a new
// snapshot.
func TestCaptureAfterAnUncertainCommit(t *testing.T) {
	t.Parallel()
	s, f, db := openNewCaptured(t)
	_, at := snapshotOf(t, db, false)
	losses := s.losses(db.id)
	db.file.capture.Lose(errors.New("disk I/O error"))
	createContact(t, db, named("x"))
	db.Capture()
	if n := len(s.commits[at.Generation]); n != 0 || s.losses(db.id) != losses+1 {
		t.Errorf("%d captures, %v", n, s.lost[db.id])
	}
	snapshot, at := snapshotOf(t, db, false)
	wantCaptured(t, f, db, s, snapshot, at)
}
