package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// groupSize limits how many writes share a commit, so that the first does not wait
// long for the last.
const groupSize = 64

// savepointsFor is how many commits use savepoints after a job in a shared one failed,
// since failures come in runs.
const savepointsFor = 16

// job is a write that waits for its turn.
type job struct {
	ctx   context.Context
	run   func(*conn) error
	alone bool // runs outside a transaction and shares no commit
	err   error
	turn  chan bool // true: lead the next commit; false: the outcome is there
}

// submit queues j and returns its outcome. A job whose context ends before
// its turn is not run; once it runs, its outcome is always returned.
//
// Whoever finds the queue idle leads: it runs its own job and those that
// joined behind it in one commit, then hands the lead to the first in line.
func (f *file) submit(j *job) error {
	f.queueMu.Lock()
	f.queue = append(f.queue, j)
	waits := f.running
	f.running = true
	if waits {
		j.turn = make(chan bool, 1)
	}
	behindRead := f.reading != nil && len(f.queue) == 1
	f.queueMu.Unlock()
	if !waits || f.awaitLead(j, behindRead) {
		f.lead()
	}
	return j.err
}

// lead runs the jobs at the head of the queue, starting with the caller's own, and
// passes the lead on.
func (f *file) lead() {
	group := f.next()
	done := false
	defer func() {
		if !done { // a panic in SQLite itself, or runtime.Goexit
			f.markDirty()
			for _, j := range group {
				j.err = errCut
			}
		}
		f.pass(group)
	}()
	if err := errors.Join(f.refusedError(), f.ensureWriter()); err != nil {
		for _, j := range group {
			j.err = err
		}
	} else if j := group[0]; j.alone {
		if j.err = j.ctx.Err(); j.err == nil {
			j.err = f.runAlone(j)
		}
	} else {
		before := f.writer.sql.PagesWritten()
		f.commit(group)
		if f.writer.sql.PagesWritten() != before {
			f.markDirty()
		}
	}
	done = true
}

// runAlone runs a job outside a transaction. If the job subscribes to events, the
// cursors follow in another commit, and a crash between the two leaves earlier
// events for the subscriber.
func (f *file) runAlone(job *job) error {
	before, err := f.eventsBefore(f.writer)
	if err != nil {
		return err
	}
	g := f.holdAnswers()
	f.captureCommitting()
	err = guarded(job.run, f.writer)
	f.restartCapture(err)
	made := f.writer.collectWork()
	err = errors.Join(err, f.subscribe(f.writer, made.announced|made.claimed, before))
	refused := f.captureCommit()
	if f.release(g, refused); refused != nil {
		f.writer.rows = nil
		return errors.Join(refused, err)
	}
	f.operations.note(made.announced | made.claimed)
	f.announce(made)
	f.publishRows()
	return err
}

// errCut reports a write whose outcome is unknown.
var errCut = errors.New("the write was cut short")

// pass hands the lead to the first in line, or to a read if no write is waiting, and
// reports their outcomes to the group.
func (f *file) pass(group []*job) {
	f.queueMu.Lock()
	f.queue = f.queue[len(group):]
	switch {
	case len(f.queue) > 0:
		f.queue[0].turn <- true
	case len(f.waiting) > 0 && f.writer != nil:
		f.queue = nil
		f.nextRead()
	default:
		f.queue, f.running = nil, false
	}
	f.queueMu.Unlock()
	for _, j := range group[min(1, len(group)):] { // the first leads
		j.turn <- false
	}
}

// isWriting reports whether writes are running or waiting.
func (f *file) isWriting() bool {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	return len(f.queue) > 0 || f.running && f.reading == nil
}

// next returns the jobs of the next commit. They stay in the queue until they are
// done.
func (f *file) next() []*job {
	f.queueMu.Lock()
	defer f.queueMu.Unlock()
	n := 1
	for !f.queue[0].alone &&
		n < len(f.queue) &&
		n < groupSize &&
		!f.queue[n].alone {
		n++
	}
	return f.queue[:n:n]
}

// commit runs the jobs of a group and sets their outcomes. Savepoints, which undo a
// single job, cost as much as a write, so the jobs first run without them; if one
// fails, all run again with them. If the whole transaction is lost even so, perhaps
// because of one job, each gets its own.
func (f *file) commit(group []*job) {
	if len(group) > 1 {
		if f.savepointCommits == 0 {
			if f.attempt(group, false) || sqliteCode(group[0].err)&0xff == codeInterrupt {
				return
			}
			f.savepointCommits = savepointsFor
		}
		f.savepointCommits--
		if f.attempt(group, true) {
			return
		}
	}
	for i := range group {
		f.attempt(group[i:i+1], false)
	}
}

// attempt runs the jobs in one transaction. It returns false if the transaction was
// rolled back: then no job took effect, and all have an error.
func (f *file) attempt(group []*job, savepoints bool) bool {
	conn := f.writer
	lost := func(err error) bool {
		_ = conn.script("ROLLBACK") // fails when SQLite has rolled back already
		conn.rows = nil
		for _, j := range group {
			j.err = err
		}
		return false
	}
	if _, err := conn.exec("BEGIN IMMEDIATE"); err != nil {
		return lost(fmt.Errorf("begin: %w", err))
	}
	changes := conn.sql.TotalChanges()
	before, err := f.eventsBefore(conn)
	if err != nil {
		return lost(err)
	}
	conn.collectWork() // drop that of the jobs that were undone
	changed, made := false, newWork{}
	for _, job := range group {
		if job.err = job.ctx.Err(); job.err != nil {
			continue
		}
		if savepoints {
			before := len(conn.rows)
			if err := inSavepoint(conn, job); err != nil {
				return lost(err)
			}
			if job.err != nil {
				conn.rows = conn.rows[:before]
			}
		} else if job.err = guarded(job.run, conn); job.err != nil {
			return lost(job.err)
		}
		changed = changed || job.err == nil
		work := conn.collectWork()
		made = newWork{made.announced | work.announced, made.claimed | work.claimed}
	}
	if err := f.subscribe(conn, made.announced|made.claimed, before); err != nil {
		return lost(err)
	}
	end := "COMMIT"
	if !changed {
		end, made, conn.rows = "ROLLBACK", newWork{}, nil
	}
	answers := f.holdAnswers()
	f.captureCommitting()
	if _, err := conn.exec(end); err != nil {
		f.restartCapture(err)
		f.release(answers, nil)
		return lost(fmt.Errorf("commit: %w", err))
	}
	err = f.captureCommit()
	if f.release(answers, err); err != nil {
		lost(err) // what is in the file does not count
		return true
	}
	f.changes.Add(conn.sql.TotalChanges() - changes)
	f.operations.note(made.announced | made.claimed)
	f.announce(made)
	f.publishRows()
	return true
}

// publishRows passes on the rows that the writer changed.
func (f *file) publishRows() {
	if rows := f.writer.rows; len(rows) > 0 {
		f.writer.rows = nil
		f.changed(rows)
	}
}

// inSavepoint runs one job of a group. A returned error is not the job's own: it
// means that the whole transaction was rolled back.
func inSavepoint(w *conn, j *job) error {
	if _, err := w.exec("SAVEPOINT job"); err != nil {
		return err
	}
	if j.err = guarded(j.run, w); j.err != nil {
		w.forgetParts()
		if _, err := w.exec("ROLLBACK TO job"); err != nil {
			return errors.Join(j.err, err)
		}
	}
	_, err := w.exec("RELEASE job")
	return err
}

// guarded runs fn and turns a panic into an error, so that a bug in one write does
// not fail the others.
func guarded(fn func(*conn) error, c *conn) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", r, debug.Stack())
		}
	}()
	return fn(c)
}
