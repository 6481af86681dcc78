package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"satchel/agent"
)

// CreateAgent makes an agent and its file. owner, when not empty, becomes its
// owner; it must be a normal email.
func (f *Folder) CreateAgent(ctx context.Context, a agent.Agent, owner string) (*DB, error) {
	a.ID, a.OwnerEmail, a.Status = agent.NewID(agent.KindAgent), owner, agent.StatusActive
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return f.create(ctx, a)
}

func (f *Folder) create(ctx context.Context, a agent.Agent) (*DB, error) {
	a.CreatedAt = agent.Now()
	a.UpdatedAt = a.CreatedAt
	release, err := f.reserve(a.Name, a.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	temp := f.tempPath(a.ID + ".db")
	if err := f.blank(temp); err != nil {
		return nil, explain(fmt.Errorf("make an agent's file: %w", err))
	}
	admins, err := f.fill(ctx, temp, a)
	if err == nil {
		err = f.place(temp, f.filePath(a.ID))
	}
	if err != nil {
		return nil, explain(errors.Join(fmt.Errorf("make an agent's file: %w", err), os.RemoveAll(temp)))
	}
	return f.enter(a.ID, row{record: record{agent: a, admins: admins}}), nil
}

// reserve keeps a name for an agent that is being made. Release it when done.
func (f *Folder) reserve(name, id string) (release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := agent.NameKey(name)
	if other, taken := f.names[key]; taken && other.id != id {
		return nil, nameExists(name)
	}
	holder := newDB(f, id, "")
	f.names[key] = holder
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.names[key] == holder {
			delete(f.names, key)
		}
	}, nil
}

func nameExists(name string) *agent.Error {
	return agent.Errorf(agent.CodeAgentNameExists, "an agent named %q exists already", agent.Clip(name, agent.MaxNameLength)).
		With("field", "name").With("issue", "is taken")
}

// blank makes an empty agent's file at path, copied from one that is made
// once a run.
func (f *Folder) blank(path string) error {
	f.blankOnce.Do(func() { f.blankErr = makeBlank(f.tempPath("blank")) })
	if f.blankErr != nil {
		return f.blankErr
	}
	return copyFile(path, f.tempPath("blank"))
}

func makeBlank(path string) error {
	c, err := openConn(dsn(path, "rwc", "auto_vacuum(2)", "journal_mode(WAL)", "synchronous(OFF)"))
	if err != nil {
		return err
	}
	return errors.Join(migrate(c), c.close())
}

// copyFile copies a file that no connection has open.
func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// fill writes the agent's own rows into a new file and closes it, so that it
// is whole without a -wal.
func (f *Folder) fill(ctx context.Context, path string, a agent.Agent) (map[string]agent.Role, error) {
	c, err := openConn(dsn(path, "rw", "synchronous(FULL)"))
	if err != nil {
		return nil, err
	}
	admins := map[string]agent.Role{}
	tx := newTx(ctx, c, newDB(f, a.ID, path))
	tx.Now = a.CreatedAt
	err = errors.Join(
		c.script("BEGIN IMMEDIATE"),
		tx.insertAgent(a, f.path),
		tx.audit("agent created", map[string]any{"name": a.Name}),
	)
	if err == nil && a.OwnerEmail != "" {
		admins[a.OwnerEmail] = agent.RoleOwner
		err = tx.insertAdmin(&agent.Admin{ID: agent.NewID(agent.KindAdmin), Email: a.OwnerEmail, Role: agent.RoleOwner, CreatedAt: a.CreatedAt})
	}
	if err == nil {
		err = c.script("COMMIT")
	}
	return admins, errors.Join(err, c.close())
}

// place moves a finished file among the agents, durably.
func (f *Folder) place(temp, path string) error {
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func (tx *Tx) insertAgent(a agent.Agent, folder string) error {
	_, err := tx.exec(`INSERT INTO _agent(id, folder, name, description, status, owner_email, settings_at, created_at, updated_at)
		VALUES (?,?,?,?,?,?,?,?,?)`, a.ID, folder, a.Name, a.Description, a.Status, a.OwnerEmail, a.CreatedAt, a.CreatedAt, a.UpdatedAt)
	return err
}

// UpdateAgent changes the given fields of an agent.
func (f *Folder) UpdateAgent(ctx context.Context, db *DB, change agent.AgentChange) (agent.Agent, error) {
	next := db.Agent()
	change.Apply(&next)
	if err := next.Validate(); err != nil {
		return next, err
	}
	if change.Name.Given {
		release, err := f.reserve(next.Name, db.id)
		if err != nil {
			return next, err
		}
		defer release()
	}
	var old string
	a, err := Write(ctx, db, func(tx *Tx) (agent.Agent, error) {
		a := db.Agent()
		old = a.Name
		change.Apply(&a)
		a.UpdatedAt = tx.Now
		_, err := tx.exec("UPDATE _agent SET name = ?, description = ?, status = ?, updated_at = ?", a.Name, a.Description, a.Status, tx.Now)
		return a, errors.Join(err, tx.emit(agent.EventAgentUpdated, map[string]any{"agent": a}),
			tx.audit("agent updated", map[string]any{"change": change.Fields()}))
	})
	if err != nil {
		return a, err
	}
	db.update(func(r *record) { r.agent = a })
	f.rename(db, old, a.Name)
	return a, nil
}

func (f *Folder) rename(db *DB, from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[agent.NameKey(from)] == db {
		delete(f.names, agent.NameKey(from))
	}
	f.names[agent.NameKey(to)] = db
}

// DeleteAgent removes an agent with all its data. It waits for running
// transactions; the default agent stays.
func (f *Folder) DeleteAgent(db *DB) error {
	if db.id == agent.DefaultID {
		return agent.Errorf(agent.CodeForbidden, "the default agent cannot be deleted")
	}
	err := db.closeWhenUnused(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(db.path + suffix); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	delete(f.byID, db.id)
	if key := agent.NameKey(db.Agent().Name); f.names[key] == db {
		delete(f.names, key)
	}
	if err != nil {
		return fmt.Errorf("delete agent: %w", err)
	}
	return syncFolder(f.agentsPath())
}

// Stats counts what the agent owns.
func (db *DB) Stats(ctx context.Context) (agent.Stats, error) {
	return Read(ctx, db, func(tx *Tx) (s agent.Stats, err error) {
		for name, dst := range map[string]*int{
			"workflows": &s.Workflows, "schedules": &s.Schedules, "contacts": &s.Contacts, "messages": &s.Messages,
		} {
			if err := tx.value(dst, "SELECT n FROM _counts WHERE name = ?", name); err != nil {
				return s, err
			}
		}
		return s, nil
	})
}

// restoreDefault makes the default agent anew when its file was taken away.
func (f *Folder) restoreDefault() {
	a := agent.Agent{ID: agent.DefaultID, Name: agent.DefaultID, Status: agent.StatusActive}
	if _, err := f.create(context.Background(), a); err != nil {
		f.log.Error("make the default agent", "error", err)
	}
}
