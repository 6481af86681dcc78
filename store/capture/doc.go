// Package capture converts the commits of a SQLite database in WAL mode into LTX
// files (https://github.com/superfly/ltx), from which the database file can be
// restored byte for byte: one for all commits within about a second, with each
// changed page once, and snapshots of the whole file. It has no goroutine and keeps
// no files open.
//
// # What it relies on
//
// Committed frames leave the -wal only after a checkpoint has moved them into
// the database file, which changes that file's time of modification. The program
// therefore checkpoints only through File.Checkpoint, after everything in
// the -wal was captured. A -wal that was started again while the file is as that
// left it has everything committed since; in every other case, as when
// another program made a checkpoint or replaced the file, frames may be missing.
// Then the capture stops, the sink is notified, and a new snapshot starts a new
// generation.
//
// So commits need not be captured before the next checkpoint, and the -wal
// can be read while the next transaction is written behind it: SQLite only appends,
// and the end of the last commit is marked in its frame. A commit that fails
// after it was written, because the disk fails, ends the generation.
//
// A position of the capture also says where it is in the -wal. After a kill the
// capture continues after it if the -wal has that salt and, up to there, that
// checksum: SQLite only appends to it, so that everything committed since is
// after it. If everything up to the position was in the database file, which is as it
// was then, all of the -wal is newer. In every other case a new generation starts.
// The checksum of each frame is verified
// (https://www.sqlite.org/fileformat2.html#the_write_ahead_log).
package capture

// Commit is what one or more group commits changed.
type Commit struct {
	Position        // behind it
	First    uint64 `json:"first"` // its transactions are First to TXID; nearly always one
	Began    int64  `json:"began"` // Unix milliseconds, when the first of the group commits was made
	Data     []byte `json:"data"`  // the LTX file
}

// Position is how far a file was captured. The zero value is not at all.
type Position struct {
	Generation string `json:"generation"` // of snapshots and commits that continue each other
	TXID       uint64 `json:"txid"`       // 1 is the generation's first snapshot; each Commit is one more
	Time       int64  `json:"time"`       // Unix milliseconds, ascending within a generation
	// Stamp identifies the state of the database file after the last checkpoint. If
	// WAL is zero, everything up to this position is in it.
	Stamp string      `json:"stamp"`
	WAL   WALPosition `json:"wal,omitzero"`
}

// Sink receives what was captured. Its methods must be safe for concurrent use and
// must not call those of a File.
type Sink interface {
	// Resume returns where the capture of a file stopped: when it was closed or,
	// after a kill, a position that was reported before. Then used is the last
	// transaction behind it that may be known elsewhere, or 0: the first commit has
	// all that those had, and takes their numbers and the next one.
	Resume(id string) (at Position, used uint64)
	// Committed reports that something was committed, which is not captured yet. The
	// sink has it captured by File.Capture; until then it is not called again.
	Committed(id string)
	// Commit takes a commit and reports whether it did. After a false, nothing
	// of the file is captured before its next snapshot.
	Commit(id string, c Commit) bool
	// Uploading reports whether commits of a file are soon to be where a kill cannot
	// lose them. A checkpoint of a file at rest waits for that: until then they are
	// only in the -wal and in memory.
	Uploading(id string) bool
	// Checkpointed reports that everything up to a position is in the database file;
	// commits after it were not made yet.
	Checkpointed(id string, at Position)
	// Lost reports that a file has to start again with a snapshot; reason is nil when
	// nothing of it was captured yet.
	Lost(id string, reason error)
	// Closed reports that a file was closed, and where its capture stands.
	Closed(id string, at Position)
	// Deleted reports that the agent with this file was deleted.
	Deleted(id string)
}

// Durable is a Sink that must accept each commit. If a commit of a file could
// not be captured, or was refused, the file can no longer be used, because it
// has data that is stored nowhere else. Such a file therefore starts only where
// Resume says, and never begins a new generation; Committed, Commit and Lost
// are not called.
type Durable interface {
	Sink
	// Append stores a commit durably before it returns.
	Append(id string, c Commit) error
}
