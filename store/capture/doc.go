// Package capture converts the commits of a SQLite database in WAL mode into LTX
// files (https://github.com/superfly/ltx), from which the database file can be
// restored byte for byte: one for all commits within about a second, with each
// changed page once, and snapshots of the whole file. It has no goroutine and keeps
// no files open.
//
// # What it relies on
//
// Committed frames leave the -wal only after a checkpoint has moved them into the
// database file, which changes that file's modification time. The program therefore
// checkpoints only through File.Checkpoint, after everything in the -wal has been
// captured. If a -wal was restarted while the file is as that checkpoint left it, it
// contains everything committed since; in every other case, for example if another
// program made a checkpoint or replaced the file, frames may be missing. Then the
// capture stops, the sink is notified, and a new snapshot starts a new generation.
//
// So commits need not be captured before the next checkpoint, and the -wal can be
// read while the next transaction is being appended to it: SQLite only appends, and
// the end of the last commit is marked in its frame. A commit that fails after it
// was written, because the disk fails, ends the generation.
//
// A position of the capture also records the place in the -wal. After a kill, the
// capture continues from there if the -wal has that salt and, up to that place, that
// checksum: since SQLite only appends to it, everything committed since follows. If
// everything up to the position was in the database file, and that file is
// unchanged, the whole -wal is newer. In every other case a new generation starts.
// The checksum of each frame is verified
// (https://www.sqlite.org/fileformat2.html#the_write_ahead_log).
package capture

// Commit is the result of one or more group commits.
type Commit struct {
	Position        // after it
	First    uint64 `json:"first"` // its transactions are First to TXID; nearly always just one
	Began    int64  `json:"began"` // Unix milliseconds, when the first of the group commits was made
	Data     []byte `json:"data"`  // the LTX file
}

// Position is how far a file has been captured. The zero value means not at all.
type Position struct {
	Generation string `json:"generation"` // of snapshots and commits that continue each other
	TXID       uint64 `json:"txid"`       // 1 is the generation's first snapshot; each Commit is one more
	Time       int64  `json:"time"`       // Unix milliseconds, ascending within a generation
	// Stamp identifies the state of the database file after the last checkpoint. If
	// WAL is zero, the file contains everything up to this position.
	Stamp string      `json:"stamp"`
	WAL   WALPosition `json:"wal,omitzero"`
}

// Sink receives what was captured. Its methods must be safe for concurrent use and
// must not call those of a File.
type Sink interface {
	// Resume returns where the capture of a file stopped: at its close or, after a
	// kill, at a position reported earlier. In that case used is the last
	// transaction after it that may be known elsewhere, or 0: the first commit
	// includes everything in those transactions, and takes their numbers and the
	// next one.
	Resume(id string) (at Position, used uint64)
	// Committed reports a commit that has not been captured yet. The sink makes
	// File.Capture capture it; until then Committed is not called again.
	Committed(id string)
	// Commit passes on a commit and reports whether it was accepted. If not, nothing
	// of the file is captured until its next snapshot.
	Commit(id string, c Commit) bool
	// Uploading reports whether commits of a file will soon be where a kill cannot
	// lose them. The checkpoint of an idle file waits for that, since until then
	// they are only in the -wal and in memory.
	Uploading(id string) bool
	// Checkpointed reports that the database file contains everything up to a
	// position, and that there are no later commits yet.
	Checkpointed(id string, at Position)
	// Lost reports that a file needs a new snapshot; reason is nil if it has not
	// been captured before.
	Lost(id string, reason error)
	// Closed reports that a file was closed, and its capture's position.
	Closed(id string, at Position)
	// Deleted reports that the agent with this file was deleted.
	Deleted(id string)
}

// Durable is a Sink that must accept each commit. If a commit could not be captured,
// or was refused, the file can no longer be used, because it contains data that is
// stored nowhere else. So such a file always starts where Resume says and never
// begins a new generation; Committed, Commit and Lost are not called.
type Durable interface {
	Sink
	// Append stores a commit durably before it returns.
	Append(id string, c Commit) error
}
