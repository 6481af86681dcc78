package store

import (
	"context"
	"errors"
	"io"
	"time"

	"satchel/store/capture"
	"satchel/store/sqlsandbox"
)

// noCheckpoint is the pragma for connections to captured files, whose checkpoints
// the program makes itself; see package capture.
const noCheckpoint = "wal_autocheckpoint(0)"

// capturedSandbox is sandboxOptions for files that are captured.
var capturedSandbox = func() sqlsandbox.Options {
	o := sandboxOptions
	o.WriterPragmas = append(append([]string{}, o.WriterPragmas...), noCheckpoint)
	o.KeepWAL = true
	return o
}()

// noSync is the pragma for connections to files in a cluster: after a crash such a
// file is never trusted.
const noSync = "synchronous(OFF)"

// sharedSandbox is sandboxOptions for files that belong to a cluster.
var sharedSandbox = func() sqlsandbox.Options {
	o := capturedSandbox
	o.WriterPragmas = append(append([]string{}, o.WriterPragmas...), noSync)
	return o
}()

func sandboxOptionsOf(c *capture.File) *sqlsandbox.Options {
	switch {
	case c == nil:
		return &sandboxOptions
	case c.Durable():
		return &sharedSandbox
	}
	return &capturedSandbox
}

// newCapture returns the capture of the agent's file, which is about to be opened;
// nil if commits are not captured.
func (db *DB) newCapture() *capture.File {
	if !db.inPlace || db.folder.sink == nil {
		return nil
	}
	return capture.Open(
		db.id,
		db.path,
		func() string { return stampOf(db.path) },
		db.folder.sink,
	)
}

// captureNew starts capturing an agent that was just added.
func (folder *Folder) captureNew(db *DB) {
	if folder.sink != nil && folder.cluster == nil && db.Problem() == nil {
		folder.sink.Lost(db.id, nil)
	}
}

// captureCommitting notes that a commit is beginning. The caller leads.
func (f *file) captureCommitting() {
	if f.capture != nil {
		f.capture.Committing()
	}
}

// captureCommit captures what was committed. An error means that the cluster refused
// the commit, which then does not count. The caller leads.
func (f *file) captureCommit() error {
	if f.capture == nil {
		return nil
	}
	if err := f.capture.Commit(); err != nil {
		if f.refused != nil {
			f.refused(err)
		}
		return err
	}
	if f.capture.Due() {
		_, _ = f.capture.Checkpoint(f.writer.checkpoint, false) // the next commit tries again
	}
	return nil
}

// restartCapture starts the capture anew after a commit failed that may already have
// been captured, because the disk failed after SQLite had written it.
func (f *file) restartCapture(err error) {
	if code := sqliteCode(err) & 0xff; f.capture != nil && (code == codeIOErr || code == codeFull) {
		f.capture.Lose(err)
	}
}

// captureRest captures what remains of a file that is about to be closed and empties
// the -wal. The writer is its only connection.
func (f *file) captureRest() error {
	if f.capture == nil {
		return nil
	}
	if err := f.capture.Err(); err != nil {
		return nil // it can no longer be used
	}
	if err := f.ensureWriter(); err != nil {
		return err
	}
	return f.capture.Close(f.writer.checkpoint)
}

// emptyWAL moves the contents of the -wal into the file, unless it is in use. The
// caller leads.
func (f *file) emptyWAL(c *conn) (busy bool, err error) {
	if f.capture != nil {
		return f.capture.CheckpointIdle(c.checkpoint)
	}
	waits, _, _, err := c.checkpoint("TRUNCATE")
	return waits != 0, err
}

// checkpoint runs a checkpoint in one of the modes described at
// https://www.sqlite.org/pragma.html#pragma_wal_checkpoint.
func (c *conn) checkpoint(mode string) (busy, frames, moved int, err error) {
	err = c.row("PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &moved)
	return busy, frames, moved, err
}

// How long a snapshot waits until no reader uses an older state than the
// newest, and the time between two attempts. Some consecutive attempts block
// writes, so that no newer state is created meanwhile.
const (
	snapshotWait     = 10 * time.Second
	snapshotPause    = 200 * time.Millisecond
	snapshotInterval = 5 * time.Millisecond
	snapshotAttempts = 10
)

// Snapshot writes the agent's file as of one moment to out, as an LTX file, while
// the agent works. Later commits are captured; fresh begins a new generation with
// the snapshot. It needs a folder that was opened with a sink.
func (db *DB) Snapshot(ctx context.Context, out io.Writer, fresh bool) (capture.Position, error) {
	f, err := db.acquire(Background(ctx))
	if err != nil {
		return capture.Position{}, err
	}
	defer db.leave()
	if f.capture == nil {
		return capture.Position{}, errors.New("the commits of this file are not captured")
	}
	s, err := f.holdSnapshot(ctx, fresh)
	if err != nil {
		return capture.Position{}, explain(err)
	}
	defer s.Release()
	return s.At, s.Write(ctx, out, pageSize)
}

// holdSnapshot keeps the file unchanged for a snapshot.
func (f *file) holdSnapshot(ctx context.Context, fresh bool) (snapshot capture.Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotWait)
	defer cancel()
	hold := func(c *conn) (err error) {
		for n := 1; ; n++ {
			if snapshot, err = f.capture.Hold(c.checkpoint, fresh); !errors.Is(err, capture.ErrBusy) ||
				n == snapshotAttempts {
				return err
			}
			time.Sleep(snapshotInterval)
		}
	}
	for {
		err = f.submit(&job{
			ctx:   ctx,
			alone: true,
			run:   hold,
		})
		if !errors.Is(err, capture.ErrBusy) {
			return snapshot, err
		}
		select {
		case <-ctx.Done():
			return snapshot, err
		case <-time.After(snapshotPause):
		}
	}
}

// CaptureRest opens the agent's file unless it is open, so that what a kill left in
// its -wal is captured.
func (db *DB) CaptureRest(ctx context.Context) error {
	if _, err := db.acquire(Background(ctx)); err != nil {
		return err
	}
	db.leave()
	return nil
}

// Capture passes what has been committed to the agent's file since the last call to
// the sink of the folder's commits. It does not wait for writes, and does nothing if
// the file is closed: then everything has been captured.
func (db *DB) Capture() {
	db.mu.Lock()
	f := db.file
	if f == nil || f.capture == nil {
		db.mu.Unlock()
		return
	}
	db.users++
	db.mu.Unlock()
	defer db.leave()
	_ = f.capture.Capture() // the next write reports the error of a durable sink
}

// CapturedAt reports whether the agent's file is closed and in the state of this
// position.
func (db *DB) CapturedAt(at capture.Position) bool {
	if db.isOpen() {
		return true
	}
	now, whole := stamp(db.path)
	return whole && now == at.Stamp && at.WAL == (capture.WALPosition{})
}
