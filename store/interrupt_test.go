package store

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

const endlessCount = endless + "SELECT count(*) FROM c"

// Whatever statements run, a folder closes once their time limit has passed: their writes
// are rolled back, earlier writes are kept, and no -wal is left.
func TestEndlessStatementsEnd(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	made := createContact(t, db, numberedContact(0))
	running, ended := make(chan struct{}), make(chan error)
	write := func(change string) {
		_, err := Write(t.Context(), db, func(tx *Tx) (n int, err error) {
			if _, err := tx.exec(change); err != nil {
				return 0, err
			}
			running <- struct{}{}
			return n, tx.value(&n, endlessCount)
		})
		ended <- err
	}
	go write("DELETE FROM contacts")
	<-running
	for range 2 { // wait in the queue
		go func() {
			_, err := Write(t.Context(), db, func(tx *Tx) (n int, err error) { return n, tx.value(&n, endlessCount) })
			ended <- err
		}()
	}
	for range readersPerFile {
		go func() {
			_, err := Read(t.Context(), db, func(tx *Tx) (n int, err error) {
				running <- struct{}{}
				return n, tx.value(&n, endlessCount)
			})
			ended <- err
		}()
		<-running
	}
	f.InterruptAt(time.Now())
	for range 3 + readersPerFile {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	closeFolder(t, f)
	if n := fileCount(t, db.path+"-*"); n != 0 {
		t.Errorf("%d files are left next to the agent's", n)
	}
	f = openAt(t, f.Path())
	if c, err := byName(t, f, "Support").Contact(t.Context(), made.ID); err != nil || c.Name != made.Name {
		t.Errorf("%+v, %v", c, err)
	}
}

// Another folder of the process keeps running.
func TestEndingOneFolderEndsNoOther(t *testing.T) {
	f, other := openFolder(t), openFolder(t)
	f.InterruptAt(time.Now())
	closeFolder(t, f)
	f.interrupt()
	createContact(t, other.Default(), numberedContact(0))
	if db := other.Default(); db.file.writer.sql.Interrupted() {
		t.Error("the other folder's writer was interrupted")
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Default().Backup(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(f.tempPath("")); err != nil || len(left) > 1 {
		t.Errorf("%v, %v", left, err)
	}
}
