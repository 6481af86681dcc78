package store

import (
	"errors"
	"os"

	"satchel/agent"
)

// seen is how a file looked at the last look.
type seen struct {
	size    int64
	modTime int64
	settled bool // nothing more to do until it changes
}

// watch compares the folder with the catalog: files that appeared and have
// stopped growing are adopted, refused files that changed are tried again,
// agents whose files are gone are forgotten.
func (f *Folder) watch() {
	ids, err := f.listFiles()
	if err != nil {
		f.log.Error("the agents folder cannot be read", "error", err)
		return
	}
	present := make(map[string]bool, len(ids))
	for _, id := range ids {
		present[id] = true
		f.mu.RLock()
		db := f.byID[id]
		f.mu.RUnlock()
		if db == nil || db.Problem() != nil {
			f.consider(id, db)
		}
	}
	for id := range f.saved {
		if !present[id] {
			delete(f.saved, id)
		}
	}
	for _, db := range f.Agents() {
		if !present[db.id] {
			f.forget(db)
		}
	}
	f.reloadKeys()
}

// consider looks at a file that is new or was refused. It is taken once two
// looks found it alike, so that a file being copied is left alone.
func (f *Folder) consider(id string, refused *DB) {
	info, err := os.Stat(f.filePath(id))
	if err != nil {
		return
	}
	now := seen{size: info.Size(), modTime: info.ModTime().UnixNano()}
	before, known := f.saved[id]
	switch {
	case !known && refused != nil:
		now.settled = true // refused at start; wait for a change
	case known && before.size == now.size && before.modTime == now.modTime:
		if before.settled {
			return
		}
		now.settled = true
		f.take(id)
	}
	f.saved[id] = now
}

// take enters or adopts a file that appeared while the server runs.
func (f *Folder) take(id string) {
	f.mu.RLock()
	old := f.byID[id]
	f.mu.RUnlock()
	if old != nil && old.Problem() == nil {
		return // made here in the meantime
	}
	found := inspect(f.filePath(id))
	switch {
	case errors.Is(found.problem, errNoAgent):
		f.log.Warn("a database in the data folder is no agent's and is left alone", "file", id+".db")
	case found.problem == nil && (found.id != id || found.folder != f.path || f.nameTaken(found.agent.Name)):
		f.adopt(id)
	default:
		f.enter(id, found)
	}
}

func (f *Folder) nameTaken(name string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, taken := f.names[agent.NameKey(name)]
	return taken
}

// forget drops an agent whose file was taken away.
func (f *Folder) forget(db *DB) {
	if _, err := os.Lstat(db.path); err == nil {
		return // made since the folder was listed
	}
	f.mu.Lock()
	if f.byID[db.id] == db {
		delete(f.byID, db.id)
	}
	if key := agent.NameKey(db.Agent().Name); f.names[key] == db {
		delete(f.names, key)
	}
	f.mu.Unlock()
	f.log.Warn("an agent's file is gone", "agent", db.id)
	if err := db.closeWhenUnused(true); err != nil {
		f.log.Error("close an agent whose file is gone", "agent", db.id, "error", err)
	}
	if db.id == agent.DefaultID {
		f.restoreDefault()
	}
}
