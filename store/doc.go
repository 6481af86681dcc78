// Package store keeps each agent in one SQLite file and contains all SQL.
//
// A Folder is the data folder: the lock that keeps a second server out, the
// master keys, and the catalog of agents, which it keeps in sync with the files
// in the folder. A DB is one agent's file; its connections open on first use
// and close when idle, so an idle agent uses disk space but no memory.
//
// Each read runs in its own transaction, on the writer while that is free or on
// one of a few readers. Writes to a file queue: one caller runs them one after
// another, and those that are waiting share one durable commit (WAL,
// synchronous=FULL), so an acknowledged write is on disk.
//
// Events are rows of the outbox, written in the transaction that they report. A
// dispatcher reads them after the commit, in order of their sequence number,
// and must tolerate getting one twice.
//
// A file that is open here must never be opened other than through SQLite:
// closing it would drop SQLite's locks.
package store
