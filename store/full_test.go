package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"satchel/agent"
)

// limitPages sets how many pages an agent's file may have, which fails writes as a full
// disk does; 0 removes the limit.
func limitPages(t testing.TB, db *DB, spare int) {
	t.Helper()
	err := db.alone(t.Context(), func(c *conn) error {
		var pages int
		if err := c.value(&pages, "PRAGMA page_count"); err != nil {
			return err
		}
		if spare == 0 {
			pages = 1 << 30
		}
		return c.script(fmt.Sprintf("PRAGMA max_page_count = %d", pages+spare))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A full disk fails the writes that need room, with an error that says so, does not
// affect reads, and writes succeed again once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	kept := createContact(t, db, numberedContact(0))
	big := strings.Repeat("x", 100<<10)
	for round := range 2 {
		limitPages(t, db, 20)
		queued, unblock := hold(t, db)
		var running sync.WaitGroup
		outcome := map[string]*error{}
		for n := range 6 {
			name, text := fmt.Sprintf("small-%d-%d", round, n), "x"
			if n == 2 || n == 4 {
				name, text = fmt.Sprintf("big-%d-%d", round, n), big
			}
			err := new(error)
			outcome[name] = err
			running.Go(func() {
				*err = write(db, func(tx *Tx) error {
					if err := insertLogs(tx, name, 1); err != nil {
						return err
					}
					return tx.log(agent.LevelInfo, "test", text, nil)
				})
			})
			queued(n + 1)
		}
		unblock()
		running.Wait()
		for name, err := range outcome {
			want, rows := agent.Code(""), 1
			if strings.HasPrefix(name, "big") {
				want, rows = agent.CodeDiskFull, 0
			}
			if agent.ErrorCode(*err) != want || logCount(t, db, name) != rows {
				t.Errorf("%s: %v, %d rows", name, *err, logCount(t, db, name))
			}
		}
		if got, err := db.Contact(t.Context(), kept.ID); err != nil || got.ID != kept.ID {
			t.Errorf("a read: %v", err)
		}
		if _, err := db.Backup(t.Context()); err != nil {
			t.Errorf("no backup of a full file: %v", err)
		}
		f.maintain(t.Context(), time.Now().Add(checkpointAfter))
		limitPages(t, db, 0)
		if err := write(db, func(tx *Tx) error { return tx.log(agent.LevelInfo, "test", big, nil) }); err != nil {
			t.Errorf("a write after there is room again: %v", err)
		}
	}
	closeFolder(t, f)
	if verdict := valueIn[string](t, f.filePath("default"), "PRAGMA integrity_check"); verdict != "ok" {
		t.Error(verdict)
	}
}

// The file system reports a full disk in its own words.
func TestFullDiskOutsideSQLite(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]agent.Code{
		syscall.ENOSPC: agent.CodeDiskFull,
		syscall.EDQUOT: agent.CodeDiskFull,
		syscall.EROFS:  agent.CodeReadOnly,
		syscall.EIO:    agent.CodeInternal,
	} {
		err := explain(fmt.Errorf("make an agent's file: %w", &fs.PathError{Op: "write", Path: "x", Err: cause}))
		if agent.ErrorCode(err) != want || !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}
