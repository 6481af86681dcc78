package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"modernc.org/sqlite"

	"satchel/agent"
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

// Backup makes a copy of the agent's file as it is at one moment, while the
// agent works. The caller reads it and closes it.
func (db *DB) Backup(ctx context.Context) (*Backup, error) {
	temp := db.folder.tempPath(agent.NewID("backup"))
	if err := db.copyTo(temp); err != nil {
		return nil, errors.Join(err, removeIfThere(temp))
	}
	b, err := openBackup(temp)
	if err != nil {
		return nil, errors.Join(err, removeIfThere(temp))
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

// copyTo copies the file through SQLite's backup interface, keeping it open.
func (db *DB) copyTo(path string) error {
	if _, err := db.acquire(); err != nil {
		return err
	}
	defer db.release()
	return explain(copyDatabase(path, shared(db.path)))
}

// copyDatabase copies a database as it is at one moment, whoever writes it
// meanwhile, in this process or another
// (https://www.sqlite.org/c3ref/backup_finish.html). from is a DSN. The copy
// is whole without a -wal.
func copyDatabase(to, from string) error {
	if err := makePrivate(to); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	src, err := openConn(from)
	if err != nil {
		return err
	}
	defer src.close()
	err = src.sql.Raw(func(driverConn any) error {
		maker, ok := driverConn.(interface {
			NewBackup(string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the driver cannot make backups")
		}
		b, err := maker.NewBackup(dsn(to, "rwc"))
		if err != nil {
			return err
		}
		// All pages in one step: one read transaction, so one moment.
		more, err := b.Step(-1)
		if err == nil && more {
			err = errors.New("the copy is not complete")
		}
		return errors.Join(err, b.Finish())
	})
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return finishCopy(to)
}

// makePrivate makes an empty file that only its owner can read, as SQLite would
// not: what is copied into it is an agent's data.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// finishCopy opens a fresh copy once and closes it, so that what WAL mode
// left beside it is gone.
func finishCopy(path string) error {
	c, err := openConn(dsn(path, "rw"))
	if err != nil {
		return err
	}
	return errors.Join(checkHeader(c, path), c.close())
}

// Import takes in a backup as a new, paused agent: under its old id when that
// is free, and under its old name or name-2, name-3, …. owner, when not empty,
// becomes an owner of it. More than limit bytes are ErrTooLarge; what is no
// whole agent's file of a known version is a validation error.
func (f *Folder) Import(ctx context.Context, r io.Reader, limit int64, owner string) (*DB, error) {
	if f.ended.Load() {
		return nil, ErrClosed
	}
	temp := f.tempPath(agent.NewID("import"))
	err := receiveTemp(temp, r, limit)
	if err == nil {
		err = checkImport(ctx, temp)
	}
	if err != nil {
		return nil, explain(errors.Join(err, removeIfThere(temp)))
	}
	return f.bringIn(ctx, temp, "", owner)
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

// checkImport refuses a file that is not a whole agent's file, or whose
// schema is not ours: a trigger in it would run in our writes.
func checkImport(ctx context.Context, path string) error {
	refuse := func(issue string, err error) error {
		return agent.Invalid("file", issue).Because(err)
	}
	c, err := openConn(unlocked(path))
	if err != nil {
		return refuse("is not an agent's file", err)
	}
	defer c.close()
	err = checkHeader(c, path)
	switch {
	case agent.ErrorCode(err) == agent.CodeAgentNewer:
		return refuse("is of a newer version of Satchel", err)
	case err != nil:
		return refuse("is not an agent's file", err)
	}
	if err := checkSchema(c); err != nil {
		return refuse("is not an agent's file as Satchel makes them", err)
	}
	var verdict string
	err = c.sql.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || verdict != "ok" {
		return refuse("is damaged", errors.Join(err, errors.New(verdict)))
	}
	if _, err := readRow(c); err != nil {
		return refuse("is not an agent's file", err)
	}
	return nil
}

// bringIn moves a checked copy among the agents and adopts it, under its old
// id when that is free. name, when not empty, is kept for the copy by the
// caller, and the copy gets an id of its own.
func (f *Folder) bringIn(ctx context.Context, temp, name, owner string) (*DB, error) {
	found, err := prepareCopy(ctx, temp, owner)
	if err != nil {
		return nil, explain(errors.Join(err, removeIfThere(temp)))
	}
	id, unclaim := f.claimCopy(found.id, name != "")
	defer unclaim()
	err = place(temp, f.filePath(id))
	if err != nil {
		return nil, explain(errors.Join(err, removeIfThere(temp)))
	}
	take := func() *DB { return f.adopt(id, found) }
	if name != "" {
		take = func() *DB { return f.adoptAs(id, name, found) }
	}
	db := take()
	return db, db.Problem()
}

// claimCopy claims the id that a copy is to have: its old one when nothing
// has it and the copy is not to be another agent.
func (f *Folder) claimCopy(old string, another bool) (id string, unclaim func()) {
	if !another && fileName.MatchString(old) {
		if unclaim, free := f.claim(old); free {
			if _, err := os.Lstat(f.filePath(old)); errors.Is(err, fs.ErrNotExist) && f.known(old) == nil {
				return old, unclaim
			}
			unclaim()
		}
	}
	id = agent.NewID(agent.KindAgent)
	unclaim, _ = f.claim(id)
	return id, unclaim
}

// prepareCopy brings a copy up to date and marks it as lying nowhere, so that
// it is adopted as a copy even under its old id. It returns what the copy says
// of itself.
func prepareCopy(ctx context.Context, path, owner string) (found row, err error) {
	c, err := openConn(dsn(path, "rw", writerPragmas...))
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := migrate(c); err != nil {
		return row{}, err
	}
	if owner != "" {
		tx := newTx(ctx, c, nil)
		if err := tx.makeOwner(owner); err != nil {
			return row{}, err
		}
		if _, err := c.exec("UPDATE _agent SET owner_email = ?", owner); err != nil {
			return row{}, err
		}
	}
	if _, err := c.exec("UPDATE _agent SET folder = ''"); err != nil {
		return row{}, err
	}
	return readRow(c)
}

func (tx *Tx) makeOwner(email string) error {
	_, err := tx.exec(`INSERT INTO _admins(id, email, role, created_at) VALUES (?,?,'owner',?)
		ON CONFLICT(email) DO UPDATE SET role = 'owner'`, agent.NewID(agent.KindAdmin), email, tx.Now)
	return err
}

// Fork copies an agent under a new name. The copy is paused.
func (f *Folder) Fork(ctx context.Context, db *DB, name, owner string) (*DB, error) {
	if f.ended.Load() {
		return nil, ErrClosed
	}
	wanted := agent.Agent{Name: name, Status: agent.StatusPaused}
	if err := wanted.Validate(); err != nil {
		return nil, err
	}
	release, err := f.keep(name, "")
	if err != nil {
		return nil, err
	}
	defer release()
	temp := f.tempPath(agent.NewID("fork"))
	if err := db.copyTo(temp); err != nil {
		return nil, errors.Join(err, removeIfThere(temp))
	}
	return f.bringIn(ctx, temp, name, owner)
}

func removeIfThere(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
