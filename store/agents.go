package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"satchel/agent"
)

// CreateAgent makes an agent and its file. owner, when not empty, becomes its
// owner; it must be a normal email.
func (folder *Folder) CreateAgent(ctx context.Context, a agent.Agent, owner string) (*DB, error) {
	a.ID, a.OwnerEmail, a.Status = agent.NewID(agent.KindAgent), owner, agent.StatusActive
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return folder.create(ctx, a)
}

func (folder *Folder) create(ctx context.Context, a agent.Agent) (*DB, error) {
	if folder.ended.Load() {
		return nil, ErrClosed
	}
	a.CreatedAt = agent.Now()
	a.UpdatedAt = a.CreatedAt
	release, err := folder.reserveName(a.Name, a.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	unclaim, free := folder.claim(a.ID)
	if !free {
		return nil, agent.Errorf(agent.CodeConflict, "agent %s is already being created", a.ID)
	}
	defer unclaim()
	temp := folder.tempPath(a.ID + ".db")
	admins, err := folder.fill(ctx, temp, a)
	made := row{record: record{agent: a, admins: admins, attention: Attention{Holds: &Holdings{}}}}
	if err == nil && folder.cluster != nil {
		err = errors.Join(folder.cluster.Create(a.ID, temp, made.summary()), RemoveIfExists(folder.filePath(a.ID)))
	}
	if err == nil {
		err = place(temp, folder.filePath(a.ID))
	}
	if err != nil {
		return nil, explain(errors.Join(fmt.Errorf("make an agent's file: %w", err), RemoveIfExists(temp)))
	}
	folder.cache.note(a.ID, folder.filePath(a.ID), made.record)
	db := folder.register(a.ID, made)
	folder.captureNew(db)
	return db, nil
}

// reserveName reserves a name for an agent that is being created, renamed or imported.
// Release it once the catalog has the agent under that name.
func (folder *Folder) reserveName(name, id string) (release func(), err error) {
	folder.mu.Lock()
	defer folder.mu.Unlock()
	if !folder.nameFree(name, id) {
		return nil, agent.NameExists(name)
	}
	return folder.reserveNameLocked(name), nil
}

// reserveFreeName keeps the name, or name-2, name-3, … when another agent has it.
func (folder *Folder) reserveFreeName(name, id string) (free string, release func()) {
	folder.mu.Lock()
	defer folder.mu.Unlock()
	free = name
	for n := 2; !folder.nameFree(free, id); n++ {
		free = agent.NumberedName(name, n)
	}
	return free, folder.reserveNameLocked(free)
}

func (folder *Folder) reserveNameLocked(name string) (release func()) {
	key := agent.NameKey(name)
	folder.reserved[key] = true
	return sync.OnceFunc(func() {
		folder.mu.Lock()
		defer folder.mu.Unlock()
		delete(folder.reserved, key)
	})
}

// nameFree reports whether the agent with this id may have the name: no other agent
// has it as a name or id. The caller holds f.mu.
func (folder *Folder) nameFree(name, id string) bool {
	key := agent.NameKey(name)
	for _, other := range []*DB{folder.names[key], folder.byID[name], folder.byID[key]} {
		if other != nil && other.id != id {
			return false
		}
	}
	return !folder.reserved[key]
}

// claim marks a file that is being created, imported or removed, so that the watcher
// ignores it. ok is false if it is already claimed.
func (folder *Folder) claim(id string) (release func(), ok bool) {
	folder.mu.Lock()
	defer folder.mu.Unlock()
	if folder.making[id] {
		return nil, false
	}
	folder.making[id] = true
	return sync.OnceFunc(func() {
		folder.mu.Lock()
		defer folder.mu.Unlock()
		delete(folder.making, id)
	}), true
}

// UpdateAgent changes the given fields of an agent.
func (folder *Folder) UpdateAgent(ctx context.Context, db *DB, change agent.AgentChange) (agent.Agent, error) {
	db.changing.Lock()
	defer db.changing.Unlock()
	if err := db.Problem(); err != nil {
		return db.Agent(), err
	}
	old := db.Agent()
	next := old
	change.Apply(&next)
	if err := next.Validate(); err != nil {
		return next, err
	}
	if next.Name != old.Name {
		release, err := folder.reserveName(next.Name, db.id)
		if err != nil {
			return next, err
		}
		defer release()
		if folder.cluster != nil {
			if err := folder.cluster.Rename(db.id, next.Name); err != nil {
				return next, err
			}
		}
	}
	a, err := Write(ctx, db, func(tx *Tx) (agent.Agent, error) {
		a := next
		a.UpdatedAt = tx.Now
		tx.claimWork(workAll) // announced below, when the catalog has followed
		if _, err := tx.exec(
			"UPDATE _agent SET name = ?, description = ?, status = ?, updated_at = ?",
			a.Name, a.Description, a.Status, tx.Now,
		); err != nil {
			return a, err
		}
		if old.Status != agent.StatusActive && a.Status == agent.StatusActive {
			if err := tx.activateAgent(); err != nil {
				return a, err
			}
		}
		if err := tx.emit(agent.EventAgentUpdated, map[string]any{"agent": a}); err != nil {
			return a, err
		}
		return a, tx.audit("agent updated", map[string]any{"change": change.Fields()})
	})
	if err != nil {
		if folder.cluster != nil && next.Name != old.Name {
			err = errors.Join(err, folder.cluster.Rename(db.id, old.Name))
		}
		return a, err
	}
	db.update(func(r *record) { r.agent = a })
	folder.rename(db, old.Name, a.Name)
	db.notify(workAll, 0)
	return a, nil
}

func (folder *Folder) rename(db *DB, from, to string) {
	folder.mu.Lock()
	defer folder.mu.Unlock()
	if folder.byID[db.id] != db {
		return // it has been deleted since
	}
	folder.releaseName(db, from)
	if key := agent.NameKey(to); folder.names[key] == nil {
		folder.names[key] = db
	}
}

// releaseName releases the agent's name. The caller holds f.mu.
func (folder *Folder) releaseName(db *DB, name string) {
	if key := agent.NameKey(name); folder.names[key] == db {
		delete(folder.names, key)
	}
}

// DeleteAgent removes an agent with all its data. It waits for running transactions.
// The default agent cannot be deleted.
func (folder *Folder) DeleteAgent(db *DB) error {
	if db.id == agent.DefaultID {
		return agent.Errorf(agent.CodeForbidden, "the default agent cannot be deleted")
	}
	if db == folder.Linked() {
		return agent.Errorf(
			agent.CodeForbidden,
			"the agent's file was opened from outside of the data folder and is not deleted",
		)
	}
	unclaim, free := folder.claim(db.id)
	if !free {
		return agent.NotFound("agent", db.id)
	}
	defer unclaim()
	if known, err := folder.Agent(db.id); err != nil || known != db {
		return agent.NotFound("agent", db.id)
	}
	closing := db.closeWhenUnused(true)
	if folder.cluster != nil {
		if err := folder.cluster.Delete(db.id); err != nil {
			folder.register(db.id, row{record: *db.record.Load()}) // it is still there
			return fmt.Errorf("delete agent: %w", errors.Join(err, closing))
		}
	}
	if err := os.Remove(db.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		folder.register(db.id, row{record: *db.record.Load()}) // it is still there
		return fmt.Errorf("delete agent: %w", errors.Join(err, closing))
	}
	folder.mu.Lock()
	delete(folder.byID, db.id)
	folder.releaseName(db, db.Agent().Name)
	folder.mu.Unlock()
	db.notify(workAll, 0)
	if folder.sink != nil {
		folder.sink.Deleted(db.id)
	}
	if err := errors.Join(RemoveIfExists(db.path), SyncFolder(folder.agentsPath())); err != nil {
		return fmt.Errorf("delete agent: %w", err)
	}
	return nil
}

// Stats counts what the agent owns.
func (db *DB) Stats(ctx context.Context) (agent.Stats, error) {
	return Read(ctx, db, func(tx *Tx) (s agent.Stats, err error) {
		for name, dst := range map[string]*int{
			"workflows": &s.Workflows,
			"schedules": &s.Schedules,
			"contacts":  &s.Contacts,
			"messages":  &s.Messages,
		} {
			if err := tx.value(dst, "SELECT n FROM _counts WHERE name = ?", name); err != nil {
				return s, err
			}
		}
		return s, nil
	})
}

// makeDefault makes the built-in agent, under another name if its own is taken.
func (folder *Folder) makeDefault() error {
	folder.mu.RLock()
	a := agent.Agent{
		ID:     agent.DefaultID,
		Name:   agent.DefaultID,
		Status: agent.StatusActive,
	}
	for n := 2; !folder.nameFree(a.Name, a.ID); n++ {
		a.Name = fmt.Sprintf("%s-%d", agent.DefaultID, n)
	}
	folder.mu.RUnlock()
	if _, err := folder.create(context.Background(), a); err != nil {
		return fmt.Errorf("make the default agent: %w", err)
	}
	return nil
}
