package store

import (
	"context"
	"slices"
	"time"
)

// Each connection holds the whole schema in memory, and reads it when it opens.
// So a file that is used by one at a time has one connection: a read runs on the
// writer when that is free. While a read has it, the read leads like a commit.

// borrowWait is how long a read waits for the writer before it opens its own
// connection, and how long a write waits for a read that has borrowed the
// writer before it opens another one: opening one takes about as much time, and
// half a megabyte. Background work waits longer.
const (
	borrowWait           = 50 * time.Millisecond
	backgroundBorrowWait = time.Second
)

// borrow returns the writer for a read, or nil when that takes too long, or
// others wait for it already. Return it with giveBack.
func (f *file) borrow(ctx context.Context) *conn {
	f.queueMu.Lock()
	switch {
	case !f.running && f.writer != nil:
		c := f.writer // a write that waits for too long takes it from the file
		f.running, f.lent = true, c
		f.queueMu.Unlock()
		c.sql.ReadOnly = true
		return c
	case !f.running, !isBackground(ctx) && (len(f.waiting) > 0 || len(f.queue) > 1):
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
		c = <-turn // it has been handed over since
	}
	replaced := f.lent != c
	f.queueMu.Unlock()
	if replaced { // by a write that has waited for too long
		_ = c.close()
		return nil
	}
	c.sql.ReadOnly = true
	return c
}

// nextRead gives the writer to a read that waits. The caller leads, and holds
// queueMu.
func (f *file) nextRead() {
	f.lent = f.writer
	f.waiting[0] <- f.writer
	f.waiting = f.waiting[1:]
}

// giveBack ends what borrow began. A connection in doubt is closed, and one that
// a write has not waited for.
func (f *file) giveBack(c *conn, sound bool) {
	c.sql.ReadOnly = false
	f.queueMu.Lock()
	replaced := f.lent != c
	if !replaced {
		f.lent = nil
		if !sound {
			f.writer = nil
		}
	}
	f.queueMu.Unlock()
	if replaced || !sound {
		_ = c.close()
	}
	if !replaced {
		f.pass(nil)
	}
}

// awaitLead reports whether a job that waits shall lead the next commit, and
// false when its outcome is there. A job behind a read alone does not wait for it
// for long.
func (f *file) awaitLead(j *job, behindRead bool) bool {
	if !behindRead {
		return <-j.turn
	}
	timer := time.NewTimer(borrowWait)
	defer timer.Stop()
	select {
	case lead := <-j.turn:
		return lead
	case <-timer.C:
	}
	f.queueMu.Lock()
	if f.lent == nil { // it has been returned since
		f.queueMu.Unlock()
		return <-j.turn
	}
	defer f.queueMu.Unlock()
	f.lent, f.writer = nil, nil
	return true
}

// ensureWriter opens the writer again where it was left to a read. The caller
// leads.
func (f *file) ensureWriter() error {
	if f.writer != nil {
		return nil
	}
	return f.openWriter(mustBeCurrent)
}
