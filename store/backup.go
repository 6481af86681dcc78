package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	f, err := os.Open(temp)
	if err != nil {
		return nil, fmt.Errorf("open the copy: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Backup{File: f, Size: info.Size()}, db.Audit(ctx, "backup made", nil)
}

// copyTo copies the file through SQLite's backup interface, keeping it open.
func (db *DB) copyTo(path string) error {
	if _, err := db.acquire(); err != nil {
		return err
	}
	defer db.release()
	return explain(copyDatabase(path, db.path))
}

// copyDatabase copies a database as it is at one moment, whoever writes it
// meanwhile, in this process or another
// (https://www.sqlite.org/c3ref/backup_finish.html). The copy is whole
// without a -wal.
func copyDatabase(to, from string) error {
	src, err := openConn(dsn(from, "rw", "query_only(1)"))
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

// finishCopy opens a fresh copy once and closes it, so that what WAL mode
// left beside it is gone.
func finishCopy(path string) error {
	c, err := openConn(dsn(path, "rw"))
	if err != nil {
		return err
	}
	return errors.Join(checkHeader(c), c.close())
}

// Import takes in a backup as a new, paused agent: under its old id when that
// is free, and under its old name or name-2, name-3, …. owner, when not empty,
// becomes an owner of it. limit bounds the bytes read.
func (f *Folder) Import(ctx context.Context, r io.Reader, limit int64, owner string) (*DB, error) {
	temp := f.tempPath(agent.NewID("import"))
	err := receiveTemp(temp, r, limit)
	if err == nil {
		err = checkImport(temp)
	}
	if err != nil {
		return nil, errors.Join(err, removeIfThere(temp))
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

// checkImport refuses a file that is not a whole agent's file.
func checkImport(path string) error {
	refuse := func(issue string, err error) error {
		return agent.Invalid("file", issue).Because(err)
	}
	c, err := openConn(dsn(path, "rw", "query_only(1)"))
	if err != nil {
		return refuse("is not an agent's file", err)
	}
	defer c.close()
	err = checkHeader(c)
	switch {
	case agent.ErrorCode(err) == agent.CodeAgentNewer:
		return refuse("is of a newer version of Satchel", err)
	case err != nil:
		return refuse("is not an agent's file", err)
	}
	var verdict string
	if err := c.value(&verdict, "PRAGMA integrity_check(1)"); err != nil || verdict != "ok" {
		return refuse("is damaged", errors.Join(err, errors.New(verdict)))
	}
	if _, err := readRow(c); err != nil {
		return refuse("is not an agent's file", err)
	}
	return nil
}

// bringIn moves a checked copy among the agents and adopts it. name, when not
// empty, replaces the copy's own.
func (f *Folder) bringIn(ctx context.Context, temp, name, owner string) (*DB, error) {
	id, err := f.prepareCopy(ctx, temp, name, owner)
	if err == nil {
		err = f.place(temp, f.filePath(id))
	}
	if err != nil {
		return nil, explain(errors.Join(err, removeIfThere(temp)))
	}
	db := f.adopt(id)
	return db, db.Problem()
}

// prepareCopy marks a copy as lying nowhere, so that it is adopted as a copy
// even under its old id, and returns the id it is to have.
func (f *Folder) prepareCopy(ctx context.Context, path, name, owner string) (id string, err error) {
	c, err := openConn(dsn(path, "rw", writerPragmas...))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := migrate(c); err != nil {
		return "", err
	}
	found, err := readRow(c)
	if err != nil {
		return "", err
	}
	id = found.id
	f.mu.RLock()
	_, taken := f.byID[id]
	f.mu.RUnlock()
	if taken || name != "" || !fileName.MatchString(id) {
		id = agent.NewID(agent.KindAgent)
	}
	if name == "" {
		name = found.agent.Name
	}
	tx := newTx(ctx, c, newDB(f, id, path))
	if owner == "" {
		owner = found.agent.OwnerEmail
	} else if err := tx.makeOwner(owner); err != nil {
		return "", err
	}
	_, err = c.exec("UPDATE _agent SET folder = '', name = ?, owner_email = ?", name, owner)
	return id, err
}

func (tx *Tx) makeOwner(email string) error {
	_, err := tx.exec(`INSERT INTO _admins(id, email, role, created_at) VALUES (?,?,'owner',?)
		ON CONFLICT(email) DO UPDATE SET role = 'owner'`, agent.NewID(agent.KindAdmin), email, tx.Now)
	return err
}

// Fork copies an agent under a new name. The copy is paused.
func (f *Folder) Fork(ctx context.Context, db *DB, name, owner string) (*DB, error) {
	wanted := agent.Agent{Name: name, Status: agent.StatusPaused}
	if err := wanted.Validate(); err != nil {
		return nil, err
	}
	release, err := f.reserve(name, "")
	if err != nil {
		return nil, err
	}
	defer release()
	temp := f.tempPath(agent.NewID("fork"))
	if err := db.copyTo(temp); err != nil {
		return nil, errors.Join(err, removeIfThere(temp))
	}
	release()
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

// BackupFile copies an agent, found by id or name, to a file that must not
// exist, whether or not a server has the data folder open.
func BackupFile(folder, idOrName, to string) error {
	from, err := findFile(folder, idOrName)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists already", to)
	}
	temp := to + ".partial"
	if err := removeIfThere(temp); err != nil {
		return err
	}
	if err := copyDatabase(temp, from); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	return os.Rename(temp, to)
}

// findFile finds an agent's file in a data folder that is not open here.
func findFile(folder, idOrName string) (string, error) {
	f := &Folder{path: folder}
	ids, err := f.listFiles()
	if err != nil {
		return "", err
	}
	rows := f.inspectAll(ids)
	for i, id := range ids {
		if id == idOrName {
			return f.filePath(ids[i]), rows[i].problem
		}
	}
	for i := range ids {
		if rows[i].problem == nil && agent.NameKey(rows[i].agent.Name) == agent.NameKey(idOrName) {
			return f.filePath(ids[i]), nil
		}
	}
	return "", fmt.Errorf("no agent %q in %s", idOrName, filepath.Join(folder, "agents"))
}

// RestoreFile puts a backup among the agents of a data folder. A running
// server takes it in within two seconds, a stopped one when it starts; the
// agent is paused either way. It returns the agent's id.
func RestoreFile(ctx context.Context, folder, from string) (id string, err error) {
	path, err := makeFolder(folder)
	if err != nil {
		return "", err
	}
	f := &Folder{path: path, byID: map[string]*DB{}}
	ids, err := f.listFiles()
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		f.byID[id] = nil
	}
	temp := filepath.Join(path, agent.NewID("restore"))
	if err := copyDatabase(temp, from); err != nil {
		return "", errors.Join(err, removeIfThere(temp))
	}
	if err = checkImport(temp); err == nil {
		if id, err = f.prepareCopy(ctx, temp, "", ""); err == nil {
			err = f.place(temp, f.filePath(id))
		}
	}
	if err != nil {
		return "", errors.Join(err, removeIfThere(temp))
	}
	return id, nil
}
