package store

import (
	"context"
	"slices"
	"time"
)

// Each connection reads the whole schema when it opens and holds it in memory. So a
// file that is used by one caller at a time has a single connection: a read runs on
// the writer if that is free. While a read has it, the read leads like a commit.

// borrowWait is how long a read waits for the writer before it opens a connection of
// its own, and how long a write waits for a read that has borrowed the writer before
// it opens another. Opening one takes about as long, and half a megabyte. Background
// work waits longer.
const (
	borrowWait           = 50 * time.Millisecond
	backgroundBorrowWait = time.Second
)

// maxReadsWaiting is how many reads may wait for the writer before the next opens a
// connection of its own: most reads take far less time than opening one.
const maxReadsWaiting = 3

// acquireWriter returns the writer for a read, or nil if that takes too long or many are
// already waiting for it. Return it with releaseWriter.
func (f *file) acquireWriter(ctx context.Context) *conn {
	f.queueMu.Lock()
	switch {
	case !f.running && f.writer != nil:
		c := f.writer // a write that has waited too long replaces it
		f.running, f.reading = true, c
		f.queueMu.Unlock()
		c.sql.ReadOnly = true
		return c
	case !f.running, !isBackground(ctx) && (len(f.waiting) >= maxReadsWaiting || len(f.queue) > 1):
		f.queueMu.Unlock()
		return nil
	}
	turn := make(chan *conn, 1)
	f.waiting = append(f.waiting, turn)
	f.queueMu.Unlock()
	return f.awaitTurn(ctx, turn)
}

// awaitTurn returns the writer, or nil if it does not become free in time.
func (f *file) awaitTurn(ctx context.Context, turn chan *conn) *conn {
	wait := borrowWait
	if isBackground(ctx) {
		wait = backgroundBorrowWait
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var c *conn
	select {
	case c = <-turn:
	case <-timer.C:
	case <-ctx.Done():
	}
	f.queueMu.Lock()
	if i := slices.Index(f.waiting, turn); i >= 0 {
		f.waiting = slices.Delete(f.waiting, i, i+1)
		f.queueMu.Unlock()
		return nil
	}
	if c == nil {
		c = <-turn // it has been handed over in the meantime
	}
	replaced := f.reading != c
	f.queueMu.Unlock()
	if replaced { // by a write that waited too long
		_ = c.close()
		return nil
	}
	c.sql.ReadOnly = true
	return c
}

// nextRead gives the writer to a waiting read. The caller leads and holds queueMu.
func (f *file) nextRead() {
	f.reading = f.writer
	f.waiting[0] <- f.writer
	f.waiting = f.waiting[1:]
}

// releaseWriter returns what acquireWriter returned. A connection that may be unsound is closed, and
// so is one that a write has replaced.
func (f *file) releaseWriter(conn *conn, sound bool) {
	conn.sql.ReadOnly = false
	f.queueMu.Lock()
	replaced := f.reading != conn
	if !replaced {
		f.reading = nil
		if !sound {
			f.writer = nil
		}
	}
	f.queueMu.Unlock()
	if replaced || !sound {
		_ = conn.close()
	}
	if !replaced {
		f.pass(nil)
	}
}

// awaitLead reports whether a waiting job has to lead the next commit; false means
// that its outcome is known. A job behind only a read does not wait for it for long.
func (f *file) awaitLead(job *job, behindRead bool) bool {
	if !behindRead {
		return <-job.turn
	}
	timer := time.NewTimer(borrowWait)
	defer timer.Stop()
	select {
	case lead := <-job.turn:
		return lead
	case <-timer.C:
	}
	f.queueMu.Lock()
	if f.reading == nil { // it was returned in the meantime
		f.queueMu.Unlock()
		return <-job.turn
	}
	defer f.queueMu.Unlock()
	f.reading, f.writer = nil, nil
	return true
}

// ensureWriter opens a new writer if the old one was left to a read. The caller
// leads.
func (f *file) ensureWriter() error {
	if f.writer != nil {
		return nil
	}
	return f.openWriter(ensureCurrent)
}
