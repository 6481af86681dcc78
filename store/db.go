package store

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/store/search"
)

// DB is one agent: what the catalog knows of it, and its file, which opens on
// first use. A DB is safe for concurrent use and stays valid until the agent
// is deleted; then every call answers that it is not found.
type DB struct {
	folder *Folder
	id     string
	path   string
	record atomic.Pointer[record]

	inPlace bool // in the catalog: its file says so

	// Times of the last use, in Unix nanoseconds: by anyone, and by a client.
	lastUse, lastClient atomic.Int64

	closed atomic.Bool // permanently closed

	anchors anchorCache   // of lists
	chunks  search.Memory // while the file is open

	// Parts of the schema that were requested, by name, and whether creating or
	// filling them has to continue.
	wanted   sync.Map
	partsDue atomic.Bool

	indexing atomic.Bool // much is left to index for searches

	recent atomic.Uint32 // workKinds that were announced since the file was opened

	sourceChanges broadcast // see awaitSources

	watcher atomic.Pointer[func([]Change)] // see Watch

	// changing is held while the agent's own rows change, until the catalog
	// has followed, so that it follows in the order of the commits.
	changing sync.Mutex

	mu             sync.Mutex
	file           *file
	users          int
	unused         *sync.Cond      // users became 0
	failedAt       time.Time       // maintain's own: when it last failed
	checkpointedAt time.Time       // maintain's own: when the file was last checkpointed
	trimmed        time.Time       // when retention last found nothing left to do
	uploads        map[string]bool // uploads in progress
}

// record is what the catalog keeps in memory of each agent.
type record struct {
	agent   agent.Agent
	admins  map[string]agent.Role
	problem error   // why the file is refused; the agent is then just a name
	pending Pending // when the file was read or closed last

	attention Attention // when the file was closed last

	trimmed time.Time // see DB, when the file was closed
}

func newDB(folder *Folder, id, path string) *DB {
	db := &DB{folder: folder, id: id, path: path}
	db.unused = sync.NewCond(&db.mu)
	db.record.Store(&record{agent: agent.Agent{ID: id}})
	return db
}

// ID returns the agent's id, which is the name of its file.
func (db *DB) ID() string { return db.id }

// Agent returns the agent as the catalog knows it, without using the file.
func (db *DB) Agent() agent.Agent {
	return db.record.Load().agent
}

// Roles maps the emails of the agent's admins to their roles. It is nil if the agent's
// file is refused and the catalog does not know them. The map must not be changed.
func (db *DB) Roles() map[string]agent.Role {
	return db.record.Load().admins
}

// Problem returns why the agent's file is refused, or nil.
func (db *DB) Problem() error {
	return db.record.Load().problem
}

type backgroundKey struct{}

// Background returns a context for the program's own work. Like any use it keeps a
// file open, but only use by clients postpones the checkpoint that makes the file
// complete: what a client wrote must be in it soon afterwards.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

func isBackground(ctx context.Context) bool {
	return ctx.Value(backgroundKey{}) != nil
}

// used notes a use of the file.
func (db *DB) used(ctx context.Context) {
	now := time.Now().UnixNano()
	db.lastUse.Store(now)
	if !isBackground(ctx) {
		db.lastClient.Store(now)
	}
}

// acquire opens the file if need be and keeps it open until release.
func (db *DB) acquire(ctx context.Context) (*file, error) {
	db.used(ctx)
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed.Load() && db.folder.ended.Load() {
		return nil, ErrClosed
	}
	if db.closed.Load() && db.folder.cluster != nil {
		return nil, notOwner(db.id)
	}
	if db.closed.Load() {
		return nil, agent.NotFound("agent", db.id)
	}
	if err := db.Problem(); err != nil {
		return nil, err
	}
	if db.file == nil {
		err := db.open()
		if outOfDescriptors(err) && db.folder.closeForDescriptors() {
			err = db.open()
		}
		if err != nil {
			return nil, explain(err)
		}
		db.folder.opened(db)
	}
	db.users++
	return db.file, nil
}

// open opens the file. The caller holds db.mu.
func (db *DB) open() error {
	shared := db.inPlace && db.folder.cluster != nil
	if shared {
		if err := db.folder.cluster.Fetch(db.id, db.path); err != nil {
			return err
		}
	}
	unchanged := db.inPlace && db.folder.cache != nil && db.folder.cache.matches(db.id, db.path)
	file, err := openFile(db.path, unchanged || shared, db.newCapture())
	if err != nil {
		return err
	}
	if !unchanged {
		err = db.verify(file)
	}
	if err := errors.Join(err, db.bindSecrets(file)); err != nil {
		return errors.Join(err, file.close())
	}
	file.hide = db.HideLinks
	file.writer.sql.Text = file.hide
	if shared {
		file.refused = func(err error) {
			db.folder.cluster.Refused(db.id, err)
		}
	}
	if db.inPlace { // others are being made, and have no work before
		file.announce = func(made newWork) {
			db.notify(file.unsubscribed.announce(made.announced)&workAll, made.claimed&workAll)
		}
		file.changed = db.changed
		file.watched = func() bool { return db.watcher.Load() != nil }
		file.writer.watchRows(file.watched())
	}
	if db.trimmed.IsZero() {
		db.trimmed = db.record.Load().trimmed
	}
	db.file = file
	return nil
}

// verify compares a file that has just been opened with the catalog, since it may
// have been replaced while it was closed. A file of the same agent, such as a
// restored copy, is accepted; any other is left to the watcher.
func (db *DB) verify(file *file) error {
	if !db.inPlace {
		return nil
	}
	found, err := readRow(file.writer)
	if err != nil {
		return refused(err)
	}
	known := db.record.Load()
	found.agent.ID = db.id
	if found.id != db.id ||
		found.folder != db.folder.mark() ||
		found.agent.Validate() != nil {
		db.closed.Store(true)
		return agent.Errorf(
			agent.CodeConflict,
			"this agent's file was replaced by another, which will be loaded within two seconds",
		)
	}
	if found.agent == known.agent && maps.Equal(found.admins, known.admins) && found.pending == known.pending {
		return nil
	}
	if db.record.CompareAndSwap(known, &record{
		agent:     found.agent,
		admins:    found.admins,
		pending:   found.pending,
		attention: known.attention,
	}) {
		db.folder.rename(db, known.agent.Name, found.agent.Name)
	}
	if found.pending != known.pending {
		db.publish(found.pending)
	}
	return nil
}

func (db *DB) release(ctx context.Context) {
	db.used(ctx)
	db.leave()
}

// leave is a release that does not count as use.
func (db *DB) leave() {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.users--; db.users == 0 {
		db.unused.Broadcast()
	}
}

// closeIdle closes the file unless it is in use.
func (db *DB) closeIdle() (closed bool, err error) {
	if !db.mu.TryLock() {
		return false, nil
	}
	defer db.mu.Unlock()
	if db.file == nil || db.users > 0 {
		return false, nil
	}
	return true, db.closeLocked()
}

// closeWhenUnused waits until the file is no longer in use, then closes it. With
// forever, it cannot be opened again.
func (db *DB) closeWhenUnused(forever bool) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if forever {
		db.closed.Store(true)
		defer db.folder.vectors.Drop(db)
	}
	for db.users > 0 {
		db.unused.Wait()
	}
	if db.file == nil {
		return nil
	}
	return db.closeLocked()
}

func (db *DB) closeLocked() error {
	known := db.record.Load()
	rec := *known
	rec.trimmed = db.trimmed
	db.chunks.Forget()
	unknown := db.file.summarize(&rec)
	err := db.file.close()
	db.file = nil
	db.folder.closed(db)
	if err != nil {
		return errors.Join(errors.New("close agent "+db.id), err)
	}
	if unknown != nil {
		return nil
	}
	db.recent.Store(0)
	if c := db.folder.cluster; c != nil && db.inPlace {
		c.Note(db.id, rec.summary(), true)
	}
	changed := !db.record.CompareAndSwap(known, &rec)
	if db.folder.cache != nil {
		db.folder.cache.note(db.id, db.path, rec)
		if changed {
			db.folder.cache.drop(db.id, db.Roles())
		}
	}
	return nil
}

// summarize reads what the catalog keeps of a file that is about to be closed. If
// nothing was written, the catalog has it already.
func (f *file) summarize(rec *record) (err error) {
	if !f.written && rec.attention.known() && !f.unsubscribed.isBehind() {
		return nil
	}
	if err := f.ensureWriter(); err != nil {
		return err
	}
	if err := f.passAllUnsubscribed(f.writer); err != nil {
		return err
	}
	if rec.pending, err = f.writer.pending(); err != nil {
		return err
	}
	if a, err := f.writer.attention(agent.Now()); err == nil {
		rec.attention = a
	}
	return nil
}

// replaced reports whether the path of the open file now belongs to another file.
func (db *DB) replaced() bool {
	db.mu.Lock()
	f := db.file
	db.mu.Unlock()
	if f == nil || f.info == nil {
		return false
	}
	info, err := os.Stat(db.path)
	return err == nil && !os.SameFile(info, f.info)
}

// isOpen reports whether connections are open.
func (db *DB) isOpen() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.file != nil
}

// update changes the catalog's record of the agent.
func (db *DB) update(change func(*record)) {
	for {
		old := db.record.Load()
		next := *old
		change(&next)
		if db.record.CompareAndSwap(old, &next) {
			if db.folder.cache != nil {
				db.folder.cache.drop(db.id, next.admins)
			}
			if c := db.folder.cluster; c != nil && db.inPlace {
				c.Note(db.id, next.summary(), false)
			}
			return
		}
	}
}
