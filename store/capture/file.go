package capture

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Limits: the frames of one commit that are captured, beyond which a snapshot is
// made; the length of the -wal from which Due reports true; and how many commits
// Due lets pass while nothing is captured.
const (
	maxFrames       = 8192
	maxDurable      = 32768 // as maxFrames, where no snapshot can be made instead
	checkpointAfter = 2000
	uncapturedAfter = 256
)

// Checkpointer runs PRAGMA wal_checkpoint in a mode and returns what that answers.
type Checkpointer func(mode string) (busy, frames, moved int, err error)

// File captures one database file while it is open. Its methods are called in the
// turn of the file's writer, but Release.
type File struct {
	id, path string
	stamp    func() string // identifies the state of the database file; "" if there is none
	sink     Sink
	durable  Durable // the sink, when commits do not count without it; else nil
	failed   error   // of a durable sink: why the file is of no use any more

	at         Position // Generation is "" while nothing is captured
	used       uint64   // transactions up to this one are not given to one commit alone, see Sink.Resume
	frameSize  int64
	uncaptured int // commits since the last checkpoint

	held atomic.Int32 // snapshots that read the database file
}

// Open returns the capture of a file that is about to be opened, or nil if sink is
// nil. Call Commit once it is open: a kill may have left commits in the -wal.
func Open(id, path string, stamp func() string, sink Sink) *File {
	if sink == nil {
		return nil
	}
	f := &File{id: id, path: path, stamp: stamp, sink: sink}
	f.durable, _ = sink.(Durable)
	at, used := sink.Resume(id)
	switch {
	case f.durable != nil:
		if f.failed = f.mustContinue(at); f.failed == nil {
			f.at = at
		}
	case at.Generation == "":
		sink.Lost(id, nil)
	case f.continues(at):
		f.at, f.used = at, used
	default:
		sink.Lost(id, errors.New("the file is not as it was when it was captured"))
	}
	return f
}

// mustContinue reports why a file with a durable sink does not continue a position,
// at which it was closed; nil: it does.
func (f *File) mustContinue(at Position) error {
	w, err := openWAL(f.path)
	if w != nil {
		w.close()
	}
	if err != nil || w != nil || at.Generation == "" || at.WAL != (WALPosition{}) || at.Stamp != f.stamp() {
		return errors.Join(errors.New("the file is not as it was left"), err)
	}
	return nil
}

// continues reports whether all that was committed behind a position lies in the
// -wal: behind the same place of the same -wal, or in any if the database file is
// as it was with everything up to the position in it.
func (f *File) continues(at Position) bool {
	if at.WAL == (WALPosition{}) {
		return at.Stamp == f.stamp()
	}
	w, err := openWAL(f.path)
	if err != nil || w == nil {
		return false
	}
	defer w.close()
	return w.holds(at.WAL)
}

// Commit captures what was committed since the last call. The error is a durable
// sink's, and final.
func (f *File) Commit() error {
	if f.at.Generation == "" {
		f.uncaptured++
		return f.failed
	}
	if err := f.commit(); err != nil {
		f.lose(err)
	}
	return f.failed
}

// Durable reports whether the sink is one that commits do not count without.
func (f *File) Durable() bool { return f.durable != nil }

// Err returns why a file with a durable sink is of no use any more; nil: it is.
func (f *File) Err() error { return f.failed }

func (f *File) commit() error {
	w, err := openWAL(f.path)
	if err != nil || w == nil {
		return err
	}
	defer w.close()
	from := f.at.WAL
	if w.salt != from.Salt {
		if f.stamp() != f.at.Stamp {
			return errors.New("another program changed the file")
		}
		from = w.begin()
	}
	limit := maxFrames
	if f.durable != nil {
		limit = maxDurable
	}
	s, err := w.read(from, limit)
	if err != nil {
		return err
	}
	f.at.WAL, f.frameSize = s.end, w.frameSize()
	if len(s.frames) == 0 {
		return nil
	}
	first, at := f.at.TXID+1, max(time.Now().UnixMilli(), f.at.Time+1)
	last := max(first, f.used+1)
	data, err := encode(w, s, first, last, at)
	if err != nil {
		return err
	}
	f.at.TXID, f.at.Time, f.used = last, at, 0
	if f.durable != nil {
		return f.durable.Append(f.id, Commit{f.at, first, data})
	}
	if !f.sink.Commit(f.id, Commit{f.at, first, data}) {
		f.at = Position{}
	}
	return nil
}

func (f *File) lose(err error) {
	f.at = Position{}
	if f.durable != nil {
		f.failed = err
		return
	}
	f.sink.Lost(f.id, err)
}

// Due reports whether the -wal has become so long that a checkpoint is due.
func (f *File) Due() bool {
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

// Checkpoint captures what was committed and moves it into the database file; with
// truncate set it also empties the -wal. busy reports that not all was moved, since
// somebody reads, or a snapshot holds the file.
func (f *File) Checkpoint(run Checkpointer, truncate bool) (busy bool, err error) {
	if err := f.Commit(); err != nil {
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
	f.checkpointed(int64(frames), int64(moved))
	if !truncate || blocked != 0 || f.failed != nil {
		return blocked != 0 || moved < frames, f.failed
	}
	// The file has not changed unless another program wrote meanwhile.
	if blocked, _, _, err = run("TRUNCATE"); err != nil || blocked != 0 {
		return blocked != 0, err
	}
	f.at.WAL = WALPosition{}
	return false, nil
}

// Rest is Checkpoint of a file that nobody uses at present, which empties the -wal
// once all of it is uploaded; busy reports that it is to be tried again.
func (f *File) Rest(run Checkpointer) (busy bool, err error) {
	if err := f.Commit(); err != nil {
		return false, err
	}
	if f.sink.Uploading(f.id) {
		return true, nil
	}
	return f.Checkpoint(run, true)
}

// checkpointed notes a checkpoint of a -wal with this many frames, all of which
// must have been captured: another program may have written some. So many were
// moved into the file.
func (f *File) checkpointed(frames, moved int64) {
	if f.at.Generation == "" {
		return
	}
	stamp := f.stamp()
	if frames != f.frames() {
		_ = f.Commit() // what it loses is seen below
	}
	switch {
	case f.at.Generation == "":
	case frames != f.frames():
		f.lose(fmt.Errorf("%d frames were moved into the file, of %d that were captured", frames, f.frames()))
	default:
		f.at.Stamp = stamp
		if moved == frames {
			f.sink.Checkpointed(f.id, f.whole())
		}
	}
}

// whole returns the position if everything up to it is in the database file.
func (f *File) whole() Position {
	at := f.at
	at.WAL = WALPosition{}
	return at
}

// ErrBusy says that a snapshot cannot begin, since somebody reads or writes.
var ErrBusy = errors.New("the file is in use")

// Hold makes the database file complete and keeps it as it is until Release, so
// that a snapshot can be made of it; commits go to the -wal meanwhile. A fresh
// snapshot begins a generation. It returns ErrBusy when it is to be tried again.
func (f *File) Hold(run Checkpointer, fresh bool) (Snapshot, error) {
	if err := f.Commit(); err != nil {
		return Snapshot{}, err
	}
	if f.held.Load() > 0 {
		return Snapshot{}, ErrBusy
	}
	fresh = f.durable == nil && (fresh || f.at.Generation == "")
	_, frames, moved, err := run("PASSIVE")
	if err != nil {
		return Snapshot{}, err
	}
	f.checkpointed(int64(frames), int64(moved))
	if moved < frames {
		return Snapshot{}, ErrBusy
	}
	if fresh {
		if err := f.begin(int64(frames)); err != nil {
			return Snapshot{}, err
		}
	} else if f.failed != nil {
		return Snapshot{}, f.failed
	} else if f.at.Generation == "" { // lost just now
		return Snapshot{}, ErrBusy
	}
	f.held.Add(1)
	return Snapshot{file: f, At: f.whole()}, nil
}

// begin begins a generation behind this many frames of the -wal.
func (f *File) begin(frames int64) error {
	var behind WALPosition
	if frames > 0 {
		w, err := openWAL(f.path)
		if err != nil {
			return err
		}
		if w == nil {
			return ErrBusy
		}
		defer w.close()
		if behind, err = w.behind(frames); err != nil {
			return err
		}
		f.frameSize = w.frameSize()
	}
	now := time.Now()
	f.at = Position{Generation: newGeneration(now), TXID: 1, Time: now.UnixMilli(), Stamp: f.stamp(), WAL: behind}
	return nil
}

// newGeneration returns a name that sorts by time and is used once.
func newGeneration(at time.Time) string {
	random := make([]byte, 5)
	_, _ = rand.Read(random)
	return fmt.Sprintf("%011x", at.UnixMilli()) + hex.EncodeToString(random)
}

// Snapshot is a database file that is kept as it is.
type Snapshot struct {
	file *File
	At   Position
}

// Write writes the file as LTX. It may be called once, from any goroutine.
func (s Snapshot) Write(ctx context.Context, out io.Writer, pageSize int) error {
	if err := writeSnapshot(ctx, out, s.file.path, uint32(pageSize), s.At.TXID, s.At.Time); err != nil {
		return err
	}
	if s.file.stamp() != s.At.Stamp {
		return errors.New("another program changed the file")
	}
	return nil
}

// Release lets checkpoints change the file again.
func (s Snapshot) Release() { s.file.held.Add(-1) }

// Close captures what is left and empties the -wal. The caller has closed all
// connections but that of run, and calls Closed when this is closed too.
func (f *File) Close(run Checkpointer) error {
	_, err := f.Checkpoint(run, true)
	return err
}

// Closed reports to the sink where the capture stands.
func (f *File) Closed() {
	if f.at.Generation != "" && f.at.Stamp != f.stamp() {
		f.lose(errors.New("another program changed the file"))
	}
	f.sink.Closed(f.id, f.at)
}
