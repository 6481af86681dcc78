package replica

import (
	"fmt"
	"testing"
	"time"
)

// Commits between two uploads are captured once, each page once, and restored with the
// time of the last commit.
func TestCommitsAreCapturedTogether(t *testing.T) {
	t.Parallel()
	_, target := newFakeS3(t)
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	s.contact(db, "one")
	s.r.flush(t.Context())
	objects := func() []object {
		all, err := listObjects(t.Context(), target.storage, db.ID()+"/")
		if err != nil {
			t.Fatal(err)
		}
		return chain(all, endOfTime)
	}
	one := objects()
	began := time.Now().UnixMilli()
	for n := range 40 {
		s.contact(db, fmt.Sprint(n))
	}
	last := time.Now().UnixMilli()
	if n := len(s.r.agents[db.ID()].pending); n != 0 || !s.r.hasPending(db.ID()) || s.r.Status().Behind <= 0 {
		t.Errorf("%d captures before the upload, %+v", n, s.r.Status())
	}
	s.r.flush(t.Context())
	all := objects()
	if o := all[len(all)-1]; len(all) != len(one)+1 || o.first != o.last || o.at < began || o.at > last {
		t.Errorf("%+v, committed from %d to %d", all, began, last)
	}
	for at, want := range map[int64]int{one[len(one)-1].at: 1, all[len(all)-1].at - 1: 1, all[len(all)-1].at: 41} {
		if got := contactsIn(t, restore(t, target, db.ID(), time.UnixMilli(at))); got != want {
			t.Errorf("%d contacts as of %d, want %d", got, at, want)
		}
	}
	if s.r.hasPending(db.ID()) || s.r.Status().Behind != 0 {
		t.Errorf("%+v", s.r.Status())
	}
}
