package store

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"satchel/agent"
	"satchel/store/capture"
	"satchel/store/sqlite"
	"satchel/store/sqlsandbox"
)

// readersPerFile bounds the reader connections of one open file.
const readersPerFile = 3

// file is an agent's file while it is open: a writer, and readers when many read
// at a time. See lend.go for when a read runs on the writer.
type file struct {
	path   string
	info   os.FileInfo // to notice another file in its place; nil: unknown
	writer *conn       // the leader's; nil when it has to be opened again

	slots     chan struct{} // one token a reader that may exist
	examining chan struct{} // holds a token while a search examines rows that are not indexed

	idleMu  sync.Mutex
	idle    []*conn // readers that wait for work
	queueMu sync.Mutex
	queue   []*job
	running bool         // someone leads a commit, or reads on the writer
	waiting []chan *conn // guarded by queueMu: reads that wait for the writer
	reading *conn        // guarded by queueMu: the writer while a read has it
	dirty   bool         // guarded by queueMu: written since the last checkpoint
	written bool         // guarded by queueMu: since it was opened

	changes atomic.Int64 // rows that were changed since the file was opened
	parts   fileParts    // maintain's own, but for inserts

	savepointCommits int // the leader's: how many commits still use savepoints

	announce func(newWork)  // passes on what a commit may have made
	changed  func([]Change) // passes on what a commit changed
	watched  func() bool    // reports whether there is a watcher

	sandbox *sqlsandbox.Pool // connections for SQL of clients

	unsubscribed unsubscribed
	operations   operationCache

	capture *capture.File // the leader's; nil when commits are not captured
	answers atomic.Pointer[answers]
	hide    func(text string) string // replaces secrets in text that is stored
	refused func(error)              // is called when a cluster did not take a commit; nil without one
}

// openFile opens an existing agent's file and migrates it to the current
// version. It does not write to a file that is damaged, newer or not an
// agent's. A file that has not changed since this program, or another server of
// the cluster, closed it needs no check.
func openFile(path string, unchanged bool, captured *capture.File) (*file, error) {
	if !unchanged {
		if err := checkFile(path); err != nil {
			return nil, err
		}
	}
	f := &file{
		path:      path,
		slots:     make(chan struct{}, readersPerFile),
		examining: make(chan struct{}, 1),
		dirty:     !unchanged,
		announce:  func(newWork) {},
		changed:   func([]Change) {},
		watched:   func() bool { return false },
		sandbox:   sqlsandbox.New(path, sandboxOptionsOf(captured)),
		capture:   captured,
	}
	check := migrateChecked
	if unchanged {
		check = ensureCurrent
	}
	if err := f.openWriter(check); err != nil {
		return nil, err
	}
	if captured != nil && (!unchanged || captured.Durable()) {
		if err := captured.Capture(); err != nil {
			return nil, errors.Join(err, f.writer.close())
		}
	}
	f.info, _ = os.Stat(path)
	for range readersPerFile {
		f.slots <- struct{}{}
	}
	return f, nil
}

// source names the file for a connection. A read that had the writer may end while
// there is no other: where commits are captured, only the capture makes checkpoints.
func (f *file) source(pragmas ...string) sqlite.Source {
	s := source(f.path, sqlite.ReadWrite, pragmas...)
	s.KeepWAL = f.capture != nil
	return s
}

// openWriter opens the connection that writes, and checks the file by it. The caller
// leads, or is alone.
func (f *file) openWriter(check func(*conn) error) error {
	pragmas := append([]string{"journal_mode(WAL)"}, writerPragmas...)
	if f.capture != nil {
		pragmas = append(pragmas, noCheckpoint)
		if f.capture.Durable() {
			pragmas = append(pragmas, noSync)
		}
	}
	w, err := openConn(f.source(pragmas...))
	if err != nil {
		return explain(err)
	}
	w.writes, w.parts.inserts = true, &f.parts.inserts
	if err := check(w); err != nil {
		return errors.Join(explain(err), w.close())
	}
	if err := w.watchTables(); err != nil {
		return errors.Join(explain(err), w.close())
	}
	w.watchRows(f.watched())
	w.sql.Text = f.hide
	f.writer = w
	return nil
}

// ensureCurrent migrates a file unless it has the current version.
func ensureCurrent(c *conn) error {
	var version int
	if err := c.value(&version, "PRAGMA user_version"); err != nil || version == fileVersion() {
		return err
	}
	return migrateChecked(c)
}

// migrateChecked migrates a file whose schema is that of its version.
func migrateChecked(c *conn) error {
	if err := checkSchema(c); errors.Is(err, errForeign) {
		return foreign(err)
	} else if err != nil {
		return err
	}
	return migrate(c)
}

// close waits for nothing: the caller knows that no one uses the file.
// SQLite checkpoints and removes the -wal file with its last connection.
func (f *file) close() error {
	f.idleMu.Lock()
	defer f.idleMu.Unlock()
	var errs []error
	for _, r := range f.idle {
		errs = append(errs, r.close())
	}
	f.idle = nil
	errs = append(errs, f.sandbox.Close(), f.captureRest())
	if f.writer != nil {
		errs = append(errs, f.writer.sql.KeepWAL(false), f.writer.close()) // it removes the -wal
	}
	if f.capture != nil {
		f.capture.Closed()
	}
	return errors.Join(errs...)
}

// reader returns a connection for a read: a reader that is free, the writer, or a
// new reader, for which it waits within ctx.
func (f *file) reader(ctx context.Context) (*conn, error) {
	if r := f.idleReader(); r != nil {
		return r, nil
	}
	if w := f.acquireWriter(ctx); w != nil {
		return w, nil
	}
	select {
	case <-f.slots:
	default:
		select {
		case <-f.slots:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if r := f.popReader(); r != nil {
		return r, nil
	}
	r, err := openConn(f.source(readerPragmas...))
	if err != nil {
		f.slots <- struct{}{}
		return nil, err
	}
	return r, nil
}

// idleReader returns a reader that waits for work, or nil.
func (f *file) idleReader() *conn {
	select {
	case <-f.slots:
	default:
		return nil
	}
	if r := f.popReader(); r != nil {
		return r
	}
	f.slots <- struct{}{}
	return nil
}

func (f *file) popReader() *conn {
	f.idleMu.Lock()
	defer f.idleMu.Unlock()
	n := len(f.idle)
	if n == 0 {
		return nil
	}
	r := f.idle[n-1]
	f.idle = f.idle[:n-1]
	return r
}

// putBack returns what reader gave; a connection in doubt, which may still be in
// its transaction, is closed instead.
func (f *file) putBack(r *conn, sound bool) {
	switch {
	case r.writes:
		f.releaseWriter(r, sound)
		return
	case sound:
		f.idleMu.Lock()
		f.idle = append(f.idle, r)
		f.idleMu.Unlock()
	default:
		_ = r.close()
	}
	f.slots <- struct{}{}
}

// shrink closes all idle readers, and the SQL sandbox's.
func (f *file) shrink() {
	_ = f.sandbox.Close()
	f.idleMu.Lock()
	extra := f.idle
	f.idle = nil
	f.idleMu.Unlock()
	for _, r := range extra {
		_ = r.close()
	}
}

// Tx is a transaction on one agent's file. Now is fixed at its start.
type Tx struct {
	*conn
	db    *DB
	Now   agent.Time
	actor string // who made the request, for the audit log; empty: the program itself
}

type actorKey struct{}

// actorContext is a context with the label of an actor. Each request has one,
// and context.WithValue would allocate two objects for it.
type actorContext struct {
	context.Context
	label string
}

// Value returns the context itself for actorKey.
func (c *actorContext) Value(key any) any {
	if key == (actorKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithActor returns a context whose writes are audited as made by label.
func WithActor(ctx context.Context, label string) context.Context {
	return &actorContext{ctx, label}
}

// Actor is the label that WithActor set, "" for the program itself.
func Actor(ctx context.Context) string {
	if c, ok := ctx.Value(actorKey{}).(*actorContext); ok {
		return c.label
	}
	return ""
}

func newTx(ctx context.Context, c *conn, db *DB) *Tx {
	return &Tx{
		conn:  c,
		db:    db,
		Now:   agent.Now(),
		actor: Actor(ctx),
	}
}

// Read runs fn in a read transaction: everything it reads is from the same
// moment.
func Read[T any](ctx context.Context, db *DB, fn func(*Tx) (T, error)) (T, error) {
	return onReader(ctx, db, true, fn)
}

// ReadOne is Read for a single statement, which sees one moment without a
// transaction.
func ReadOne[T any](ctx context.Context, db *DB, fn func(*Tx) (T, error)) (T, error) {
	return onReader(ctx, db, false, fn)
}

// onReader and Write are compiled for each type, so they only pass on the result.
func onReader[T any](ctx context.Context, db *DB, transaction bool, fn func(*Tx) (T, error)) (result T, err error) {
	err = db.read(ctx, transaction, func(tx *Tx) (err error) {
		result, err = fn(tx)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return result, nil
}

// read runs fn on a reader connection.
func (db *DB) read(ctx context.Context, transaction bool, fn func(*Tx) error) error {
	file, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.release(ctx)
	conn, err := file.reader(ctx)
	if err != nil {
		return explain(err)
	}
	sound := false // in no transaction any more
	defer func() { file.putBack(conn, sound) }()
	tx := newTx(ctx, conn, db)
	if transaction {
		sound, err = tx.inTransaction(fn)
	} else {
		err = fn(tx)
		sound = true
	}
	if err == nil {
		err = file.awaitShipped(ctx)
	}
	return explain(err)
}

// inTransaction runs fn in a read transaction, and reports whether that has ended.
func (tx *Tx) inTransaction(fn func(*Tx) error) (ended bool, err error) {
	if _, err := tx.exec("BEGIN"); err != nil {
		return false, err
	}
	err = fn(tx)
	_, e := tx.exec("COMMIT")
	if err == nil {
		err = e
	}
	return e == nil, err
}

// Write runs fn in a write transaction and returns once it is durable. fn may
// run twice and must only change what it can change again; it must not wait
// for anything outside. When it fails, nothing of it remains.
func Write[T any](ctx context.Context, db *DB, fn func(*Tx) (T, error)) (result T, err error) {
	err = db.Do(ctx, func(tx *Tx) (err error) {
		result, err = fn(tx)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return result, nil
}

// Do is Write for a change without a result.
func (db *DB) Do(ctx context.Context, fn func(*Tx) error) error {
	f, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.release(ctx)
	return explain(f.submit(&job{ctx: ctx, run: func(c *conn) error {
		tx := newTx(ctx, c, db)
		return tx.chained(ChainOf(ctx), func() error { return fn(tx) })
	}}))
}

// alone runs fn on the writer outside any transaction, while no write runs.
func (db *DB) alone(ctx context.Context, fn func(*conn) error) error {
	f, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.release(ctx)
	return f.submit(&job{ctx: ctx, run: fn, alone: true})
}
