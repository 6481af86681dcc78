package capture

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Limits: the frames captured at a time, and in one commit, beyond which a snapshot
// is made; the length of the -wal at which Due returns true; how many commits Due
// lets pass while nothing is captured; and for how many commits, and how long, a
// capture is postponed.
const (
	maxFrames         = 8192
	maxDurable        = 32768 // like maxFrames, if no snapshot can be made instead
	checkpointAfter   = 2000
	uncapturedAfter   = 256
	maxPendingCommits = 256
	maxPendingTime    = 2 * time.Second
)

// Checkpointer runs PRAGMA wal_checkpoint in a mode and returns its result.
type Checkpointer func(mode string) (busy, frames, moved int, err error)

// File captures one database file while it is open. Its methods, except Capture and
// Release, are called in the turn of the file's writer.
type File struct {
	id, path string
	stamp    func() string // identifies the state of the database file; "" if there is none
	sink     Sink
	durable  Durable // the sink, if commits do not count without it; else nil

	mu         sync.Mutex // guards what follows but held, and is held while the -wal is read
	failed     error      // of a durable sink: why the file can no longer be used
	at         Position   // Generation is "" while nothing has been captured
	used       uint64     // transactions up to this one are combined into one commit, see Sink.Resume
	frameSize  int64
	uncaptured int // commits since the last checkpoint, while nothing is captured
	pending    pendingCommits

	held atomic.Int32 // snapshots that read the database file
}

// pendingCommits are the commits since the last capture.
type pendingCommits struct {
	n           int
	first, last time.Time
	writing     bool // another one may already be in the -wal
}

// Open returns the capture of a file that is about to be opened, or nil if sink is
// nil. Call Capture once it is open: a kill may have left commits in the -wal.
func Open(id, path string, stamp func() string, sink Sink) *File {
	if sink == nil {
		return nil
	}
	file := &File{id: id, path: path, stamp: stamp, sink: sink}
	file.durable, _ = sink.(Durable)
	at, used := sink.Resume(id)
	switch {
	case file.durable != nil:
		if file.failed = file.continueError(at); file.failed == nil {
			file.at = at
		}
	case at.Generation == "":
		sink.Lost(id, nil)
	case file.continues(at):
		file.at, file.used = at, used
	default:
		sink.Lost(id, errors.New("the file has changed since it was captured"))
	}
	return file
}

// continueError returns why a file with a durable sink does not continue from a
// position, at which it was closed; nil if it does.
func (f *File) continueError(at Position) error {
	w, err := openWAL(f.path)
	if w != nil {
		w.close()
	}
	if err != nil ||
		w != nil ||
		at.Generation == "" ||
		at.WAL != (WALPosition{}) ||
		at.Stamp != f.stamp() {
		return errors.Join(errors.New("the file has changed since it was closed"), err)
	}
	return nil
}

// continues reports whether everything committed after a position is in the -wal:
// after the same place in the same -wal or, if the database file is in the state in
// which it contained everything up to the position, in any -wal.
func (f *File) continues(at Position) bool {
	if at.WAL == (WALPosition{}) {
		return at.Stamp == f.stamp()
	}
	w, err := openWAL(f.path)
	if err != nil || w == nil {
		return false
	}
	defer w.close()
	return w.contains(at.WAL)
}

// Committing notes that a commit is beginning. Commit follows if it succeeds.
func (f *File) Committing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending.writing = true
}

// Commit notes that something was committed, which is captured soon: by the sink's
// Capture, or here after many commits or some time. With a durable sink it is
// captured immediately; an error is that sink's, and final.
func (f *File) Commit() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.at.Generation == "":
		f.uncaptured++
		return f.failed
	case f.durable != nil:
		return f.captureLocked()
	}
	now := time.Now()
	if f.pending.n++; f.pending.n == 1 {
		f.pending.first = now
		f.sink.Committed(f.id)
	}
	f.pending.last, f.pending.writing = now, false
	if f.pending.n >= maxPendingCommits || now.Sub(f.pending.first) >= maxPendingTime {
		return f.captureLocked()
	}
	return nil
}

// Capture captures what was committed since the last call. An error is a durable
// sink's, and final.
func (f *File) Capture() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.captureLocked()
}

func (f *File) captureLocked() error {
	for more := true; more && f.at.Generation != ""; {
		var err error
		if more, err = f.captureSome(); err != nil {
			f.loseLocked(err)
		}
	}
	f.pending = pendingCommits{writing: f.pending.writing}
	return f.failed
}

// Durable reports whether commits only count once the sink has accepted them.
func (f *File) Durable() bool { return f.durable != nil }

// Err returns why a file with a durable sink can no longer be used, or nil.
func (f *File) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// captureSome captures commits with a limited number of frames as one, and reports
// whether there may be more.
func (f *File) captureSome() (more bool, err error) {
	wal, err := openWAL(f.path)
	if err != nil || wal == nil {
		return false, err
	}
	defer wal.close()
	from := f.at.WAL
	if wal.salt != from.Salt {
		if f.stamp() != f.at.Stamp {
			return false, errors.New("another program changed the file")
		}
		from = wal.begin()
	}
	limit := maxFrames
	if f.durable != nil {
		limit = maxDurable
	}
	s, err := wal.read(from, limit)
	if err != nil {
		return false, err
	}
	f.at.WAL, f.frameSize = s.end, wal.frameSize()
	if len(s.frames) == 0 {
		return false, nil
	}
	return s.more, f.take(wal, s)
}

// take passes a span on as one commit.
func (f *File) take(wal *wal, span span) error {
	commit := Commit{
		Position: f.at,
		First:    f.at.TXID + 1,
		Began:    time.Now().UnixMilli(),
	}
	commit.Time = commit.Began
	if f.pending.n > 0 {
		commit.Began = f.pending.first.UnixMilli()
	}
	if f.pending.n > 0 && !f.pending.writing {
		commit.Time = f.pending.last.UnixMilli()
	}
	commit.TXID, commit.Time = max(commit.First, f.used+1), max(commit.Time, f.at.Time+1)
	var err error
	if commit.Data, err = encode(wal, span, commit.First, commit.TXID, commit.Time); err != nil {
		return err
	}
	f.at, f.used = commit.Position, 0
	if f.durable != nil {
		return f.durable.Append(f.id, commit)
	}
	if !f.sink.Commit(f.id, commit) {
		f.at = Position{}
	}
	return nil
}

// Lose abandons the generation: what was captured may never have been committed.
func (f *File) Lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.durable == nil && f.at.Generation != "" {
		f.loseLocked(err)
	}
}

func (f *File) loseLocked(err error) {
	f.at, f.pending = Position{}, pendingCommits{}
	if f.durable != nil {
		f.failed = err
		return
	}
	f.sink.Lost(f.id, err)
}

// Due reports whether the -wal has become so long that a checkpoint is due.
func (f *File) Due() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.Generation == "" {
		return f.uncaptured >= uncapturedAfter
	}
	return f.frames() >= checkpointAfter
}

// frames returns the number of frames in the -wal.
func (f *File) frames() int64 {
	if f.at.WAL.Offset == 0 || f.frameSize == 0 {
		return 0
	}
	return (f.at.WAL.Offset - walHeader) / f.frameSize
}

// Checkpoint captures new commits and moves them into the database file; with
// truncate it also empties the -wal. busy reports that not everything could be
// moved, because of a reader or a snapshot.
func (f *File) Checkpoint(run Checkpointer, truncate bool) (busy bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.captureLocked(); err != nil {
		return false, err
	}
	if f.held.Load() > 0 {
		return true, nil
	}
	mode := "PASSIVE"
	if truncate {
		mode = "RESTART"
	}
	f.uncaptured = 0
	blocked, frames, moved, err := run(mode)
	if err != nil {
		return false, err
	}
	f.checkpointedLocked(int64(frames), int64(moved))
	if !truncate || blocked != 0 || f.failed != nil {
		return blocked != 0 || moved < frames, f.failed
	}
	// The file has not changed unless another program wrote to it.
	if blocked, _, _, err = run("TRUNCATE"); err != nil || blocked != 0 {
		return blocked != 0, err
	}
	f.at.WAL = WALPosition{}
	return false, nil
}

// CheckpointIdle is Checkpoint for an idle file: it empties the -wal once all of it is
// uploaded; busy reports that it has to be tried again.
func (f *File) CheckpointIdle(run Checkpointer) (busy bool, err error) {
	if err := f.Capture(); err != nil {
		return false, err
	}
	if f.sink.Uploading(f.id) {
		return true, nil
	}
	return f.Checkpoint(run, true)
}

// checkpointedLocked records a checkpoint of a -wal with this many frames, of which
// moved are now in the file. All must have been captured: another program may have
// written some.
func (f *File) checkpointedLocked(frames, moved int64) {
	if f.at.Generation == "" {
		return
	}
	stamp := f.stamp()
	if frames != f.frames() {
		_ = f.captureLocked() // a loss is detected below
	}
	switch {
	case f.at.Generation == "":
	case frames != f.frames():
		f.loseLocked(fmt.Errorf("%d frames were moved into the file, but %d were captured", frames, f.frames()))
	default:
		f.at.Stamp = stamp
		if moved == frames {
			f.sink.Checkpointed(f.id, f.completePosition())
		}
	}
}

// completePosition returns the position if the database file contains everything up to it.
func (f *File) completePosition() Position {
	at := f.at
	at.WAL = WALPosition{}
	return at
}

// Close captures what is left and empties the -wal. The caller has closed all
// connections except that of run, and calls Closed once it is closed too.
func (f *File) Close(run Checkpointer) error {
	_, err := f.Checkpoint(run, true)
	return err
}

// Closed reports the capture's position to the sink.
func (f *File) Closed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.Generation != "" && f.at.Stamp != f.stamp() {
		f.loseLocked(errors.New("another program changed the file"))
	}
	f.sink.Closed(f.id, f.at)
}
