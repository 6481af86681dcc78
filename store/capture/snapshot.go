package capture

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrBusy is returned if a snapshot cannot begin because of a reader or writer.
var ErrBusy = errors.New("the file is in use")

// Hold makes the database file complete and keeps it unchanged until Release, so
// that a snapshot can be made of it; commits go to the -wal meanwhile. A fresh
// snapshot begins a generation. If it has to be tried again, the error is ErrBusy.
func (f *File) Hold(run Checkpointer, fresh bool) (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.captureLocked(); err != nil {
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
	f.checkpointedLocked(int64(frames), int64(moved))
	if moved < frames {
		return Snapshot{}, ErrBusy
	}
	if fresh {
		if err := f.begin(int64(frames)); err != nil {
			return Snapshot{}, err
		}
	} else if f.failed != nil {
		return Snapshot{}, f.failed
	} else if f.at.Generation == "" { // just lost
		return Snapshot{}, ErrBusy
	}
	f.held.Add(1)
	return Snapshot{file: f, At: f.completePosition()}, nil
}

// begin begins a generation after this many frames of the -wal.
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
		if behind, err = w.positionAfter(frames); err != nil {
			return err
		}
		f.frameSize = w.frameSize()
	}
	now := time.Now()
	f.at = Position{
		Generation: newGeneration(now),
		TXID:       1,
		Time:       now.UnixMilli(),
		Stamp:      f.stamp(),
		WAL:        behind,
	}
	return nil
}

// newGeneration returns a unique name that sorts by time.
func newGeneration(at time.Time) string {
	random := make([]byte, 5)
	_, _ = rand.Read(random)
	return fmt.Sprintf("%011x", at.UnixMilli()) + hex.EncodeToString(random)
}

// Snapshot is a database file that is kept unchanged.
type Snapshot struct {
	file *File
	At   Position
}

// Write writes the file as LTX. It may be called once, by any goroutine.
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
