// Package store keeps each agent in one SQLite file and holds all SQL.
//
// A Folder is the data folder: the lock that keeps a second server out, the
// master keys, and the catalog of agents, which it keeps in sync with the
// files in the folder. A DB is one agent's file; its connections open on
// first use and close when idle, so that agents cost disk, not memory.
//
// Each read runs in its own transaction, on the writer while that is free or
// on a few readers.
// Writes of one file run one after another, by the first caller, and
// those that are waiting share one durable commit (WAL, synchronous=FULL):
// a write that was acknowledged is on disk.
//
// Events are rows of the outbox, written in the transaction of what they report.
// A dispatcher reads them after the commit, in order of their sequence number,
// and must be ready to see one twice.
//
// A file that is open here must never be opened by other means than SQLite:
// closing it would drop SQLite's locks.
package store
