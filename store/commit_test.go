package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// hold keeps the writer of an agent busy, so that writes queue behind it. It returns once
// it has the writer; queued waits until n writes are queued.
func hold(t testing.TB, db *DB) (queued func(n int), unblock func()) {
	t.Helper()
	held, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.alone(context.Background(), func(*conn) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	queued = func(n int) {
		for waiting := -1; waiting < n; runtime.Gosched() {
			db.file.queueMu.Lock()
			waiting = len(db.file.queue) - 1
			db.file.queueMu.Unlock()
		}
	}
	unblock = func() {
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return queued, unblock
}

func write(db *DB, fn func(tx *Tx) error) error {
	return db.Do(context.Background(), fn)
}

func insertLogs(tx *Tx, message string, n int) error {
	for range n {
		if err := tx.log(agent.LevelInfo, "test", message, nil); err != nil {
			return err
		}
	}
	return nil
}

func logCount(t testing.TB, db *DB, message string) int {
	t.Helper()
	return value[int](t, db, "SELECT count(*) FROM logs WHERE message = ?", message)
}

// walCommits counts the commits in the -wal of a file without other writers: a frame with
// a database size ends a commit, see
// https://www.sqlite.org/walformat.html#the_wal_file_format.
func walCommits(t testing.TB, f *Folder, db *DB) (commits int) {
	t.Helper()
	dir := t.TempDir()
	copyByChild(t, f.agentsPath(), dir)
	wal, err := os.ReadFile(filepath.Join(dir, db.id+".db-wal"))
	if err != nil || len(wal) < 32 {
		t.Fatalf("-wal of %d bytes: %v", len(wal), err)
	}
	page := int(binary.BigEndian.Uint32(wal[8:]))
	for at := 32; at+24+page <= len(wal); at += 24 + page {
		if bytes.Equal(wal[at+8:at+16], wal[16:24]) && binary.BigEndian.Uint32(wal[at+4:]) != 0 {
			commits++
		}
	}
	return commits
}

func TestWritersShareCommits(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
	queued, unblock := hold(t, db)
	var running sync.WaitGroup
	for n := range 50 {
		running.Go(func() {
			if err := write(db, func(tx *Tx) error { return insertLogs(tx, fmt.Sprint(n), 1) }); err != nil {
				t.Error(err)
			}
		})
	}
	queued(50)
	unblock()
	running.Wait()
	if n := value[int](t, db, "SELECT count(*) FROM logs"); n != 50 {
		t.Errorf("%d rows", n)
	}
	if n := walCommits(t, f, db); n != 1 {
		t.Errorf("50 writers needed %d commits", n)
	}
}

// When some jobs of a group fail, their changes are rolled back, and no others.
func TestFailingJobsUndoOnlyThemselves(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	taken := createContact(t, db, numberedContact(0))
	failure := errors.New("failure")
	kinds := map[string]func(tx *Tx) error{
		"good":  func(*Tx) error { return nil },
		"error": func(*Tx) error { return failure },
		"panic": func(*Tx) error { panic("oh no") },
		"sql": func(tx *Tx) error {
			_, err := tx.exec("INSERT INTO nowhere VALUES (1)")
			return err
		},
		"check": func(tx *Tx) error {
			_, err := tx.exec("INSERT INTO contacts(name, tags) VALUES ('x', '{}')")
			return err
		},
		"unique": func(tx *Tx) error {
			c := agent.Contact{Name: "x", Email: taken.Email, Tags: []string{"half"}, Metadata: []byte("{}")}
			return tx.insertContact(&c)
		},
	}
	for round := range 3 { // in the second and third, the leader is cautious
		queued, unblock := hold(t, db)
		var running sync.WaitGroup
		errs := map[string]*error{}
		for n := range 4 {
			for kind, fail := range kinds {
				outcome := new(error)
				errs[fmt.Sprint(kind, n)] = outcome
				running.Go(func() {
					*outcome = write(db, func(tx *Tx) error {
						if err := insertLogs(tx, kind, 1); err != nil {
							return err
						}
						return fail(tx)
					})
				})
			}
		}
		queued(len(errs))
		unblock()
		running.Wait()
		for name, err := range errs {
			if good := strings.HasPrefix(name, "good"); (*err == nil) != good {
				t.Errorf("round %d, %s: %v", round, name, *err)
			}
		}
		if !errors.Is(*errs["error0"], failure) ||
			agent.ErrorCode(*errs["unique0"]) != agent.CodeDuplicateContact ||
			!strings.Contains((*errs["panic0"]).Error(), "oh no") {
			t.Errorf("outcomes: %v; %v; %v", *errs["error0"], *errs["unique0"], *errs["panic0"])
		}
		for kind := range kinds {
			want := 0
			if kind == "good" {
				want = 4 * (round + 1)
			}
			if n := logCount(t, db, kind); n != want {
				t.Errorf("round %d: %d rows of %s, want %d", round, n, kind, want)
			}
		}
	}
	if n := value[int](t, db, "SELECT count(*) FROM contacts"); n != 1 {
		t.Errorf("%d contacts: a refused one left its row", n)
	}
	if n := value[int](t, db, "SELECT count(*) FROM _contact_tags WHERE tag = 'half'"); n != 0 {
		t.Errorf("a refused contact left %d tags", n)
	}
}

// A constraint that fails in the middle of a job keeps what the job wrote before, if the
// job continues.
func TestJobContinuesAfterAConstraint(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	createContact(t, db, numberedContact(0))
	err := write(db, func(tx *Tx) error {
		c := agent.Contact{Name: "x", Email: "contact0@example.com", Tags: []string{"half"}, Metadata: []byte("{}")}
		if err := tx.insertContact(&c); agent.ErrorCode(err) != agent.CodeDuplicateContact {
			return fmt.Errorf("no duplicate: %w", err)
		}
		return insertLogs(tx, "went on", 1)
	})
	if err != nil ||
		logCount(t, db, "went on") != 1 ||
		value[int](t, db, "SELECT count(*) FROM _contact_tags WHERE tag = 'half'") != 0 {
		t.Errorf("%v", err)
	}
}

func TestCancelledJobsAreNotRun(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	queued, unblock := hold(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	outcomes := make(chan error, 3)
	job := func(ctx context.Context) {
		err := db.Do(ctx, func(tx *Tx) error {
			ran++
			return insertLogs(tx, "ran", 1)
		})
		outcomes <- err
	}
	go job(ctx)
	queued(1)
	go job(ctx)
	queued(2)
	go job(t.Context())
	queued(3)
	cancel()
	unblock()
	canceled := 0
	for range 3 {
		if err := <-outcomes; errors.Is(err, context.Canceled) {
			canceled++
		} else if err != nil {
			t.Error(err)
		}
	}
	if canceled != 2 || ran != 1 || logCount(t, db, "ran") != 1 {
		t.Errorf("%d were cancelled, %d ran", canceled, ran)
	}
	if err := db.alone(ctx, func(*conn) error {
		ran = -1
		return nil
	}); !errors.Is(err, context.Canceled) || ran < 0 {
		t.Errorf("alone: %v", err)
	}
}

// A context that ends during the write does not hide its outcome.
func TestOutcomeIsReportedOnceAWriteRuns(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Do(ctx, func(tx *Tx) error {
		cancel()
		return insertLogs(tx, "ran", 1)
	})
	if err != nil || logCount(t, db, "ran") != 1 {
		t.Errorf("%v", err)
	}
}

func TestLongQueueIsServedInOrder(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	queued, unblock := hold(t, db)
	const n = 3*groupSize + 5
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			if err := write(db, func(tx *Tx) error {
				return tx.log(agent.LevelInfo, "test", "x", map[string]int{"i": i})
			}); err != nil {
				t.Error(err)
			}
		})
		queued(i + 1)
	}
	unblock()
	running.Wait()
	got, err := Read(t.Context(), db, func(tx *Tx) (s string, err error) {
		return s, tx.value(
			&s,
			"SELECT group_concat(i) FROM (SELECT json_extract(data,'$.i') AS i FROM logs ORDER BY id)",
		)
	})
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
	}
	if err != nil || got != strings.Join(want, ",") {
		t.Errorf("%v, order %s", err, got)
	}
}

// A read that panics must leave its connection usable for the next.
func TestPanickingReadsLeaveUsableReaders(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	createContact(t, db, named("x"))
	failure := errors.New("failure")
	for range 4 * readersPerFile {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = Read(t.Context(), db, func(tx *Tx) (int, error) { panic("oh no") })
		}()
		if _, err := Read(t.Context(), db, func(tx *Tx) (int, error) { return 0, failure }); !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
		createContact(t, db, named("y"))
	}
	if got, want := value[int](t, db, "SELECT count(*) FROM contacts"), 1+4*readersPerFile; got != want {
		t.Errorf("a reader sees %d contacts of %d", got, want)
	}
	if _, err := Read(t.Context(), db, func(tx *Tx) (int, error) {
		_, err := tx.exec("DELETE FROM contacts")
		return 0, err
	}); agent.ErrorCode(err) != agent.CodeReadOnly {
		t.Errorf("a write by a read: %v", err)
	}
}

func TestReadsWaitForAReaderWithinTheirContext(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	reading, proceed := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	for range readersPerFile + 1 { // the writer reads too
		running.Go(func() {
			_, err := Read(t.Context(), db, func(*Tx) (int, error) {
				reading <- struct{}{}
				<-proceed
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-reading
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Stats(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	createContact(t, db, named("writes go on"))
	close(proceed)
	running.Wait()
	if _, err := db.Stats(t.Context()); err != nil {
		t.Error(err)
	}
}

// A read sees one consistent state, whatever is written meanwhile.
func TestReadsAreConsistent(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	before, after := 0, 0
	_, err := Read(t.Context(), db, func(tx *Tx) (int, error) {
		if err := tx.value(&before, "SELECT count(*) FROM contacts"); err != nil {
			return 0, err
		}
		createContact(t, db, named("meanwhile"))
		return 0, tx.value(&after, "SELECT count(*) FROM contacts")
	})
	if err != nil || before != after {
		t.Errorf("%d, then %d, %v", before, after, err)
	}
}

// When the goroutine that leads a commit exits, the writes that share the commit fail, and
// later ones succeed.
func TestLeaderThatExits(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	queued, unblock := hold(t, db)
	var running sync.WaitGroup
	running.Go(func() {
		_ = write(db, func(tx *Tx) error {
			runtime.Goexit()
			return nil
		})
	})
	queued(1)
	outcome := make(chan error, 1)
	go func() {
		outcome <- write(db, func(tx *Tx) error { return insertLogs(tx, "shared its commit", 1) })
	}()
	queued(2)
	unblock()
	running.Wait()
	if err := <-outcome; !errors.Is(err, errCut) {
		t.Errorf("%v", err)
	}
	err := write(db, func(tx *Tx) error { return insertLogs(tx, "came later", 1) })
	if err != nil {
		err = write(db, func(tx *Tx) error { return insertLogs(tx, "came later", 1) })
	}
	if err != nil || logCount(t, db, "came later") != 1 || logCount(t, db, "shared its commit") != 0 {
		t.Errorf("%v", err)
	}
}
