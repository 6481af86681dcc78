package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// groupSize bounds how many writes share a commit, so that the first of them
// does not wait long for the last.
const groupSize = 64

// job is a write that waits for its turn.
type job struct {
	ctx   context.Context
	run   func(*conn) error
	alone bool // runs outside a transaction and shares no commit
	err   error
	done  chan struct{}
}

// submit queues j and returns its outcome. A job whose context ends before
// its turn is not run; once it runs, its outcome is always told.
func (f *file) submit(j *job) error {
	j.done = make(chan struct{})
	f.queueMu.Lock()
	f.queue = append(f.queue, j)
	start := !f.running
	f.running = true
	f.queueMu.Unlock()
	if start {
		go f.drain()
	}
	<-j.done
	return j.err
}

// drain runs queued jobs until none is left. It ends by itself, and callers
// hold the file open as long as a job of theirs is queued.
func (f *file) drain() {
	for {
		group := f.next()
		if group == nil {
			return
		}
		if group[0].alone {
			group[0].err = guarded(group[0].run, f.writer)
		} else if err := f.commit(group); err != nil && len(group) > 1 {
			// The shared transaction was lost, perhaps for one job's sake:
			// give each its own.
			for i := range group {
				_ = f.commit(group[i : i+1])
			}
		}
		for _, j := range group {
			close(j.done)
		}
	}
}

// next takes the jobs of the next commit off the queue; nil means there are
// none and drain has to end.
func (f *file) next() []*job {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	if len(f.queue) == 0 {
		f.running = false
		f.queue = nil
		return nil
	}
	n := 1
	for !f.queue[0].alone && n < len(f.queue) && n < groupSize && !f.queue[n].alone {
		n++
	}
	group := f.queue[:n:n]
	f.queue = f.queue[n:]
	f.dirty = f.dirty || !group[0].alone
	return group
}

// commit runs the jobs in one transaction and sets their outcomes. A job that
// fails is undone alone; an error is returned when the transaction itself was
// lost and no job of the group took effect.
func (f *file) commit(group []*job) error {
	w := f.writer
	lost := func(err error) error {
		_ = w.script("ROLLBACK") // fails when SQLite has rolled back already
		for _, j := range group {
			if j.err == nil || len(group) > 1 {
				j.err = err
			}
		}
		return err
	}
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return lost(fmt.Errorf("begin: %w", err))
	}
	changed := false
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if len(group) == 1 {
			if j.err = guarded(j.run, w); j.err != nil {
				return lost(j.err)
			}
			changed = true
			break
		}
		if err := inSavepoint(w, j); err != nil {
			return lost(err)
		}
		changed = changed || j.err == nil
	}
	end := "COMMIT"
	if !changed {
		end = "ROLLBACK"
	}
	if _, err := w.exec(end); err != nil {
		return lost(fmt.Errorf("commit: %w", err))
	}
	return nil
}

// inSavepoint runs one job of a group. The error is not the job's own: it
// means that the whole transaction is gone.
func inSavepoint(w *conn, j *job) error {
	if _, err := w.exec("SAVEPOINT job"); err != nil {
		return err
	}
	if j.err = guarded(j.run, w); j.err != nil {
		if _, err := w.exec("ROLLBACK TO job"); err != nil {
			return errors.Join(j.err, err)
		}
	}
	_, err := w.exec("RELEASE job")
	return err
}

// guarded runs fn and turns a panic into an error, so that a fault in one
// write is not everybody's.
func guarded(fn func(*conn) error, c *conn) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", r, debug.Stack())
		}
	}()
	return fn(c)
}
