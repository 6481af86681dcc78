package store

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"satchel/agent"
	"satchel/store/sqlite"
)

// blank is a compressed database of the current version without records. It is
// created once per process, since the migrations take a hundred times as long
// as decompressing it.
var blank struct {
	mu     sync.Mutex
	of     [sha256.Size]byte // guarded by mu: the migrations that made it
	packed []byte            // guarded by mu
}

// blankImage returns the bytes of an agent's file without records.
func blankImage() ([]byte, error) {
	blank.mu.Lock()
	defer blank.mu.Unlock()
	of := sha256.Sum256([]byte(strings.Join(migrations, "\x00")))
	if blank.packed != nil && blank.of == of {
		return io.ReadAll(flate.NewReader(bytes.NewReader(blank.packed)))
	}
	image, err := makeBlank()
	if err != nil {
		return nil, fmt.Errorf("make a blank file: %w", err)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(image)
		err = errors.Join(err, w.Close())
	}
	blank.packed, blank.of = packed.Bytes(), of
	return image, err
}

func makeBlank() ([]byte, error) {
	c, err := openConn(sqlite.Source{Pragmas: []string{"auto_vacuum(2)"}})
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := errors.Join(migrate(c), c.script("PRAGMA incremental_vacuum")); err != nil {
		return nil, err
	}
	return c.sql.Image()
}

// setWALMode makes SQLite open an image in WAL mode, as journal_mode(WAL) does
// (https://www.sqlite.org/fileformat2.html#file_format_version_numbers).
func setWALMode(image []byte) {
	image[18], image[19] = 2, 2
}

// maker makes agents' files. It keeps a blank database open: a new file is an image
// of it, taken in a transaction that inserts the agent's rows and is then rolled
// back. So no schema is parsed for a new file, and no -wal is needed.
type maker struct {
	mu sync.Mutex
	c  *conn // guarded by mu; nil until it is needed
}

// open opens the blank database at path. The caller holds m.mu.
func (m *maker) open(path string) error {
	image, err := blankImage()
	if err == nil {
		err = os.WriteFile(path, image, 0o600)
	}
	if err != nil {
		return err
	}
	m.c, err = openConn(source(
		path, sqlite.ReadWrite, "journal_mode(MEMORY)", "synchronous(OFF)", "cache_spill(0)", "temp_store(MEMORY)",
	))
	if err != nil {
		return err
	}
	return m.c.watchTables()
}

// image returns the bytes of a new agent's file, whose rows insert writes.
func (m *maker) image(path string, insert func(*conn) error) (image []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.c == nil {
		if err := m.open(path); err != nil {
			return nil, err
		}
	}
	defer func() {
		if m.c.sql.InTransaction() {
			err = errors.Join(err, m.c.script("ROLLBACK"))
		}
		if err != nil {
			err = errors.Join(err, m.closeLocked())
		}
	}()
	if err := m.c.script("BEGIN"); err != nil {
		return nil, err
	}
	if err := guarded(insert, m.c); err != nil {
		return nil, err
	}
	return m.c.sql.Image()
}

// close closes the database until the next agent is made.
func (m *maker) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closeLocked()
}

func (m *maker) closeLocked() error {
	if m.c == nil {
		return nil
	}
	err := m.c.close()
	m.c = nil
	return err
}

// fill durably writes a file with the agent's own rows.
func (folder *Folder) fill(ctx context.Context, path string, a agent.Agent) (map[string]agent.Role, error) {
	image, err := folder.maker.image(folder.tempPath("blank"), func(c *conn) error {
		tx := newTx(ctx, c, newDB(folder, a.ID, path))
		tx.Now = a.CreatedAt
		err := errors.Join(tx.insertAgent(a, folder.mark()), tx.audit("agent created", map[string]any{"name": a.Name}))
		if err != nil || a.OwnerEmail == "" {
			return err
		}
		return tx.insertAdmin(&agent.Admin{
			ID:        agent.NewID(agent.KindAdmin),
			Email:     a.OwnerEmail,
			Role:      agent.RoleOwner,
			CreatedAt: a.CreatedAt,
		})
	})
	if err != nil {
		return nil, err
	}
	setWALMode(image)
	admins := map[string]agent.Role{}
	if a.OwnerEmail != "" {
		admins[a.OwnerEmail] = agent.RoleOwner
	}
	return admins, writeSynced(path, image)
}

// place moves a finished file to its place among the agents, durably. It never
// replaces another file, but returns fs.ErrExist. A -wal left behind by an earlier
// file of the same name would be read as part of the new one, so it is removed
// first.
func place(temp, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	if err := RemoveIfExists(path); err != nil {
		return err
	}
	err := os.Link(temp, path)
	switch {
	case err == nil:
		err = os.Remove(temp)
	case !errors.Is(err, fs.ErrExist): // the file system does not support links
		err = os.Rename(temp, path)
	}
	return errors.Join(err, SyncFolder(filepath.Dir(path)))
}

func (tx *Tx) insertAgent(a agent.Agent, folder string) error {
	_, err := tx.exec(`INSERT INTO _agent(id, folder, name, description, status, owner_email, settings_at, created_at, updated_at)
		VALUES (?,?,?,?,?,?,?,?,?)`, a.ID, folder, a.Name, a.Description, a.Status, a.OwnerEmail, a.CreatedAt, a.CreatedAt, a.UpdatedAt)
	return err
}
