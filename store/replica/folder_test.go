package replica

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A folder that was used before and is now empty, as when its disk is not mounted, is not
// written to, and receives everything once it is mounted again.
func TestFolderThatIsNotMounted(t *testing.T) {
	t.Parallel()
	mount := filepath.Join(t.TempDir(), "mount")
	target, err := Open(mount, testKeys)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	s.contact(db, "one")
	s.r.flush(t.Context())
	unmount := func(t *testing.T) {
		if err := errors.Join(os.Rename(mount, mount+"-away"), os.Mkdir(mount, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	wantRefused := func(t *testing.T) {
		t.Helper()
		_, err := s.r.upload(t.Context(), db.ID())
		if err == nil || !strings.Contains(err.Error(), "is its disk mounted?") {
			t.Errorf("%v", err)
		}
		if entries, err := os.ReadDir(mount); len(entries) > 0 || err != nil {
			t.Errorf("%v, %v", entries, err)
		}
		if f := (Commands{target}).Doctor(t.Context()); f.OK || !strings.Contains(f.Message, marker) {
			t.Errorf("%+v", f)
		}
	}
	unmount(t)
	s.contact(db, "not mounted")
	wantRefused(t)
	s.stop()
	s = serveAt(t, s.path, target)
	s.contact(s.byName("Support"), "not mounted at a start either")
	wantRefused(t)
	if status := s.r.Status(); status.Failure == nil {
		t.Errorf("%+v", status)
	}
	if err := errors.Join(os.Remove(mount), os.Rename(mount+"-away", mount)); err != nil {
		t.Fatal(err)
	}
	s.r.flush(t.Context())
	s.wantContacts(db.ID(), 3)
}

// A folder that cannot be made at the first start, as when the service may not write
// there yet, is used at the next one.
func TestFolderThatCannotBeMadeAtFirst(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "parent")
	if err := os.WriteFile(parent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := Open(filepath.Join(parent, "replicas"), testKeys)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, t.TempDir(), target)
	s.contact(s.create("Support"), "one")
	if status := s.r.Status(); status.Failure == nil {
		t.Errorf("%+v", status)
	}
	s.stop()
	if err := errors.Join(os.Remove(parent), os.Mkdir(parent, 0o700)); err != nil {
		t.Fatal(err)
	}
	s = serveAt(t, s.path, target)
	s.snapshots()
	s.r.flush(t.Context())
	s.wantContacts(s.byName("Support").ID(), 1)
}

// A folder with replicas from before there was a marker gets one, and loses what kills
// left there.
func TestFolderWithoutMarker(t *testing.T) {
	t.Parallel()
	target, err := Open(t.TempDir(), testKeys)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	s.stop()
	left := filepath.Join(target.name, db.ID(), "0123", "0", "x.ltx.partial")
	if err := errors.Join(
		os.Remove(filepath.Join(target.name, marker)),
		os.MkdirAll(filepath.Dir(left), 0o700),
		os.WriteFile(left, []byte("x"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	s = serveAt(t, s.path, target)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	s.contact(s.byName("Support"), "one")
	s.r.flush(t.Context())
	s.wantContacts(db.ID(), 1)
}

// The part of an upload that a kill left is removed, and is never listed as an object.
func TestPartialUploads(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	left := filepath.Join(path, partial, "left")
	if err := errors.Join(os.Mkdir(filepath.Dir(left), 0o700), os.WriteFile(left, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	target, err := Open(path, testKeys)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, t.TempDir(), target)
	db := s.create("Support")
	s.snapshots()
	if left, err := os.ReadDir(filepath.Dir(left)); len(left) > 0 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
	if all, err := Replicas(t.Context(), target); len(all) != 2 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	s.contact(db, "x")
	s.stop()
	wantRestored(t, s, db)
	restore(t, target, db.ID(), time.Time{})
}
