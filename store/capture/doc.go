// Package capture turns what a SQLite database in WAL mode commits into LTX
// files (https://github.com/superfly/ltx), from which the database file can be
// made again byte for byte: one for each group commit, and snapshots of the whole
// file. It runs in the turn of the file's writer, has no goroutine, and keeps
// nothing open.
//
// # What it relies on
//
// Committed frames leave the -wal only after a checkpoint has moved them into
// the database file, which changes that file's time of modification. The program
// therefore makes all checkpoints through File.Checkpoint, after everything in
// the -wal was captured. A -wal that was begun anew while the file is as that
// left it holds all that was committed since; in every other case, as when
// another program made a checkpoint or replaced the file, frames may be missing.
// Then the capture stops, the sink is told, and a new snapshot starts a new
// generation. The checksum of each frame is verified
// (https://www.sqlite.org/fileformat2.html#the_write_ahead_log).
package capture

// Commit is what one or more group commits changed.
type Commit struct {
	Generation string // of snapshots and commits that continue each other
	TXID       uint64 // 1 is the generation's first snapshot; each commit is one more
	Time       int64  // Unix milliseconds, ascending within a generation
	Data       []byte // the LTX file
}

// Position is how far a file was captured. The zero value is not at all.
type Position struct {
	Generation string `json:"generation"`
	TXID       uint64 `json:"txid"`
	Time       int64  `json:"time"`
	// Stamp identifies the state of the database file that has everything up to
	// this position in it, beside an empty -wal.
	Stamp string `json:"stamp"`
}

// Sink receives what was captured. Its methods are called in the turn of the
// file's writer and must be safe for concurrent use by several files.
type Sink interface {
	// Resume returns where the capture of a file stopped when it was closed.
	Resume(id string) Position
	// Commit takes a commit and reports whether it did. After a false, nothing
	// of the file is captured before its next snapshot.
	Commit(id string, c Commit) bool
	// Lost reports that a file has to begin anew with a snapshot.
	Lost(id string, reason error)
	// Closed reports that a file was closed, and where its capture stands.
	Closed(id string, at Position)
	// Deleted reports that the agent with this file was deleted.
	Deleted(id string)
}
