package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Backup is a finished copy of an agent's file. Close removes it.
type Backup struct {
	*os.File
	Size int64
}

// Close closes the copy and removes it.
func (b *Backup) Close() error {
	return errors.Join(b.File.Close(), os.Remove(b.Name()))
}

// Backup makes a consistent copy of the agent's file while the agent works. The
// caller reads and closes it.
func (db *DB) Backup(ctx context.Context) (*Backup, error) {
	temp := db.folder.tempPath(agent.NewID("backup"))
	if err := db.copyTo(ctx, temp); err != nil {
		return nil, errors.Join(err, RemoveIfExists(temp))
	}
	b, err := openBackup(temp)
	if err != nil {
		return nil, errors.Join(err, RemoveIfExists(temp))
	}
	if err := db.Audit(ctx, "backup made", nil); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func openBackup(path string) (*Backup, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the copy: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the copy: %w", err), f.Close())
	}
	return &Backup{File: f, Size: info.Size()}, nil
}

// copyTo copies the file, without its API keys, through SQLite's backup interface,
// keeping it open.
func (db *DB) copyTo(ctx context.Context, path string) error {
	f, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.release(ctx)
	if err := copyDatabase(ctx, path, sharedSource(db.path)); err != nil {
		return explain(err)
	}
	if err := f.awaitShipped(ctx); err != nil {
		return errors.Join(err, RemoveIfExists(path))
	}
	return explain(dropAccess(path))
}

// copyDatabase copies a database as of one moment, even while this process or
// another one writes to it (https://www.sqlite.org/c3ref/backup_finish.html).
// The copy is complete without a -wal.
func copyDatabase(ctx context.Context, to string, from sqlite.Source) error {
	if err := createPrivate(to); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	src, err := openConn(from)
	if err != nil {
		return err
	}
	defer src.close()
	var version int
	err = src.script("BEGIN") // one read transaction, so one moment
	if err == nil {
		err = src.value(&version, "PRAGMA user_version") // begins to read
	}
	if err == nil {
		err = src.sql.CopyTo(ctx, source(to, sqlite.Create))
	}
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return finishCopy(to)
}

// createPrivate makes an empty file that only its owner can read. SQLite would not,
// and what is copied into it is an agent's data.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// finishCopy opens and closes a new copy, which removes the remains of WAL mode.
func finishCopy(path string) error {
	c, err := openConn(source(path, sqlite.ReadWrite))
	if err != nil {
		return err
	}
	return errors.Join(checkHeader(c, path), c.close())
}

// Import adds a backup as a new, paused agent: under its old id if that is free, and
// under its old name or name-2, name-3, …. owner, if not empty, becomes an owner of
// it. A file larger than limit bytes is ErrTooLarge; anything but a complete agent's
// file of a known version, with the schema of that version, is INVALID_FILE.
func (folder *Folder) Import(ctx context.Context, reader io.Reader, limit int64, by agent.Identity) (*DB, error) {
	if folder.ended.Load() {
		return nil, ErrClosed
	}
	temp := folder.tempPath(agent.NewID("import"))
	err := receiveTemp(temp, reader, limit)
	if err == nil {
		err = checkImport(ctx, temp)
	}
	if err == nil {
		err = dropAccess(temp)
	}
	if err != nil {
		return nil, explain(errors.Join(err, RemoveIfExists(temp)))
	}
	db, err := folder.addCopy(ctx, temp, arrival{
		owner:    by.Email,
		entitled: func(id string) bool { return folder.hasOwnRole(by, id) },
	})
	return db, invalidFileError(err)
}

// hasOwnRole reports whether someone has a role of their own on the agent with this
// id. The admins that a file lists prove nothing.
func (folder *Folder) hasOwnRole(by agent.Identity, id string) bool {
	db := folder.known(id)
	return by.Open || db != nil && by.RoleOn(id, db.Roles(), agent.RoleNone) != agent.RoleNone
}

func receiveTemp(path string, r io.Reader, limit int64) error {
	dst, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("receive a file: %w", err)
	}
	n, err := io.Copy(dst, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = ErrTooLarge
	}
	return errors.Join(err, dst.Sync(), dst.Close())
}

// checkImport refuses a file that is not a complete agent's file as this program
// makes them: a trigger in it, for example, would run in every write.
func checkImport(ctx context.Context, path string) error {
	return invalidFileError(checkCopy(ctx, path))
}

// checkCopy is checkImport for a copy of one of the folder's agents.
func checkCopy(ctx context.Context, path string) error {
	err := examineAndRead(ctx, path, unlockedSource(path), func(c *conn) error {
		_, err := readRow(c)
		return err
	})
	if err == nil {
		err = checkWithin(ctx, path)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return damaged(err)
	}
	return nil
}

// invalidFileError turns the reason for refusing a file into an error for the client; other
// errors are returned unchanged.
func invalidFileError(err error) error {
	var found damage
	switch code := agent.ErrorCode(err); {
	case code == agent.CodeAgentNewer:
		return invalidFile("is of a newer version of Satchel", err)
	case errors.Is(err, errForeign):
		return invalidFile("has a schema that is not as Satchel makes it", err)
	case errors.As(err, &found):
		return invalidFile("is damaged: "+string(found), err)
	case errors.Is(err, errShort):
		return invalidFile("is damaged: it is shorter than its header says", err)
	case sqliteCode(err)&0xff == codeCorrupt:
		return invalidFile("is damaged", err)
	case code == agent.CodeAgentDamaged && !errors.Is(err, errExternalCause):
		return invalidFile("is not an agent's file", err)
	}
	return err
}

func invalidFile(issue string, cause error) error {
	return agent.Errorf(agent.CodeInvalidFile, "file %s", issue).
		With("field", "file").
		With("issue", issue).
		Because(cause)
}

// arrival specifies how a copy becomes an agent.
type arrival struct {
	name     string               // reserved for the copy, which gets a new id; empty: the original's name
	owner    string               // becomes an owner of the copy; empty: no one
	entitled func(id string) bool // reports whether the credentials of the agent with this id may be used in the copy
}

// addCopy moves a checked copy among the agents and adopts it, under its old id if
// that is free.
func (folder *Folder) addCopy(ctx context.Context, temp string, arrival arrival) (*DB, error) {
	found, err := prepareCopy(ctx, temp, arrival.owner)
	if err != nil {
		return nil, explain(errors.Join(err, RemoveIfExists(temp)))
	}
	// Under its old id the credentials could be decrypted: they are encrypted for
	// that id.
	found.locked = !arrival.entitled(found.id)
	id, unclaim := folder.claimCopy(found.id, arrival.name != "" || found.locked)
	defer unclaim()
	err = place(temp, folder.filePath(id))
	if err != nil {
		return nil, explain(errors.Join(err, RemoveIfExists(temp)))
	}
	take := func() *DB { return folder.adopt(id, found) }
	if arrival.name != "" {
		take = func() *DB {
			return folder.adoptAs(id, arrival.name, found)
		}
	}
	db := take()
	if err := db.Problem(); err != nil {
		return nil, errors.Join(err, folder.discard(db))
	}
	return db, nil
}

// discard removes a copy that could not be adopted, so that nothing of it is left. The
// caller has claimed its file.
func (folder *Folder) discard(db *DB) error {
	err := db.closeWhenUnused(true)
	folder.mu.Lock()
	if folder.byID[db.id] == db {
		delete(folder.byID, db.id)
	}
	folder.mu.Unlock()
	return errors.Join(err, RemoveIfExists(db.path))
}

// claimCopy claims an id for a copy: its old one if that is free and the copy need
// not become another agent.
func (folder *Folder) claimCopy(old string, another bool) (id string, unclaim func()) {
	if !another && isFileName(old) {
		if unclaim, free := folder.claim(old); free {
			if _, err := os.Lstat(folder.filePath(old)); errors.Is(err, fs.ErrNotExist) && folder.known(old) == nil {
				return old, unclaim
			}
			unclaim()
		}
	}
	id = agent.NewID(agent.KindAgent)
	unclaim, _ = folder.claim(id)
	return id, unclaim
}

// prepareCopy migrates a copy to the current version and clears its location, so
// that it is adopted as a copy even under its old id. It returns what the copy says
// about its agent.
func prepareCopy(ctx context.Context, path, owner string) (found row, err error) {
	conn, err := openConn(source(path, sqlite.ReadWrite, writerPragmas...))
	if err != nil {
		return row{}, err
	}
	defer func() {
		err = errors.Join(err, conn.close())
	}()
	if err := migrate(conn); err != nil {
		return row{}, refused(err)
	}
	if owner != "" {
		tx := newTx(ctx, conn, nil)
		if err := tx.insertOwner(owner); err != nil {
			return row{}, err
		}
		if _, err := conn.exec("UPDATE _agent SET owner_email = ?", owner); err != nil {
			return row{}, err
		}
	}
	if _, err := conn.exec("UPDATE _agent SET folder = ''"); err != nil {
		return row{}, err
	}
	return readRow(conn)
}

func (tx *Tx) insertOwner(email string) error {
	_, err := tx.exec(`INSERT INTO _admins(id, email, role, created_at) VALUES (?,?,'owner',?)
		ON CONFLICT(email) DO UPDATE SET role = 'owner'`, agent.NewID(agent.KindAdmin), email, tx.Now)
	return err
}

// Fork copies an agent under a new name. The copy is paused.
func (folder *Folder) Fork(ctx context.Context, db *DB, name, owner string) (*DB, error) {
	if folder.ended.Load() {
		return nil, ErrClosed
	}
	wanted := agent.Agent{Name: name, Status: agent.StatusPaused}
	if err := wanted.Validate(); err != nil {
		return nil, err
	}
	release, err := folder.reserveName(name, "")
	if err != nil {
		return nil, err
	}
	defer release()
	temp := folder.tempPath(agent.NewID("fork"))
	err = db.copyTo(ctx, temp)
	if err == nil {
		err = checkCopy(ctx, temp)
	}
	if err != nil {
		return nil, errors.Join(err, RemoveIfExists(temp))
	}
	return folder.addCopy(ctx, temp, arrival{
		name:     name,
		owner:    owner,
		entitled: func(id string) bool { return id == db.id },
	})
}

// RemoveIfExists removes a file and the files that SQLite keeps next to a database of
// that name.
func RemoveIfExists(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
