package store

import (
	"context"
	"errors"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/store/sqlite"
)

// connections returns how many connections an agent's file has.
func connections(db *DB) (n int) {
	openConns.Range(func(c, _ any) bool {
		if c.(*conn).path == db.path {
			n++
		}
		return true
	})
	return n
}

// A file with one user at a time needs one connection.
func TestOneConnectionForOneUser(t *testing.T) {
	db := openFolder(t).Default()
	for range 10 {
		createContact(t, db, named("x"))
		if n := value[int](t, db, "SELECT count(*) FROM contacts"); n == 0 {
			t.Error("a read does not see what was written before")
		}
	}
	if n := connections(db); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A read on the writer's connection cannot write, and leaves it usable.
func TestReadOnTheWriterOnlyReads(t *testing.T) {
	db := openFolder(t).Default()
	for _, statement := range []string{
		"DELETE FROM contacts",
		"CREATE TABLE t(x)",
		"BEGIN IMMEDIATE",
		"PRAGMA user_version = 9",
	} {
		_, err := ReadOne(t.Context(), db, func(tx *Tx) (sqlite.Result, error) { return tx.exec(statement) })
		if agent.ErrorCode(err) != agent.CodeReadOnly {
			t.Errorf("%s: %v", statement, err)
		}
	}
	_, err := ReadOne(t.Context(), db, func(tx *Tx) (int, error) { return 0, tx.script("DELETE FROM contacts") })
	if agent.ErrorCode(err) != agent.CodeReadOnly {
		t.Errorf("a script: %v", err)
	}
	createContact(t, db, named("x"))
	if n := connections(db); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A long read on the writer's connection delays neither writes nor other reads.
func TestLongReadsDelayNothing(t *testing.T) {
	db := openFolder(t).Default()
	reading, proceed := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		n, err := Read(t.Context(), db, func(tx *Tx) (n int, err error) {
			if err := tx.value(&n, "SELECT count(*) FROM contacts"); err != nil {
				return 0, err
			}
			reading <- struct{}{}
			<-proceed
			return n, tx.value(&n, "SELECT count(*) FROM contacts")
		})
		if err != nil || n != 0 {
			t.Errorf("%d, %v: the read is not consistent", n, err)
		}
	})
	<-reading
	createContact(t, db, named("x"))
	createContact(t, db, named("y"))
	if n := value[int](t, db, "SELECT count(*) FROM contacts"); n != 2 {
		t.Errorf("%d contacts", n)
	}
	close(proceed)
	running.Wait()
	createContact(t, db, named("z"))
	if n := connections(db); n > 2 {
		t.Errorf("%d connections are left", n)
	}
}

// Concurrent reads and writes, some of which fail or are cancelled, all end.
func TestReadsAndWritesShareTheWriter(t *testing.T) {
	db := openFolder(t).Default()
	failure := errors.New("failure")
	var running sync.WaitGroup
	for w := range 8 {
		running.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				switch (w + i) % 4 {
				case 0:
					createContact(t, db, named("x"))
				case 1:
					cancel()
					fallthrough
				case 2:
					_, _ = Read(ctx, db, func(tx *Tx) (n int, err error) {
						return n, tx.value(&n, "SELECT count(*) FROM contacts")
					})
				case 3:
					if _, err := Read(ctx, db, func(*Tx) (int, error) { return 0, failure }); !errors.Is(err, failure) {
						t.Error(err)
					}
				}
				cancel()
			}
		})
	}
	running.Wait()
	if n := value[int](t, db, "SELECT count(*) FROM contacts"); n != 200 {
		t.Errorf("%d contacts", n)
	}
	if n := connections(db); n > 1+readersPerFile {
		t.Errorf("%d connections", n)
	}
}

// A file that has not changed since it was closed opens without a check, and one that
// another program wrote is checked.
func TestUnchangedFilesAreNotCheckedAgain(t *testing.T) {
	db := openFolder(t).Default()
	createContact(t, db, named("x"))
	reopen := func() {
		t.Helper()
		if closed, err := db.closeIdle(); !closed || err != nil {
			t.Fatal(closed, err)
		}
	}
	reopen()
	if !db.folder.cache.matches(db.id, db.path) {
		t.Error("a file that was just closed looks changed")
	}
	value[int](t, db, "SELECT count(*) FROM contacts")
	reopen()
	if !db.folder.cache.matches(db.id, db.path) {
		t.Error("a file that was read looks changed")
	}
	c, err := openConn(source(db.path, sqlite.ReadWrite))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script("CREATE TABLE foreign_table(x)"), c.close()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Stats(t.Context()); !errors.Is(err, errForeign) {
		t.Errorf("a file with a foreign table was opened: %v", err)
	}
}

func TestOpenFilesFor(t *testing.T) {
	for memory, want := range map[int64]int{0: 256, 64 << 20: 32, 1 << 30: 256, 4 << 30: 1024, 1 << 40: 2000} {
		if got := openFilesFor(memory); got != want {
			t.Errorf("%d MB: %d files, want %d", memory>>20, got, want)
		}
	}
}
