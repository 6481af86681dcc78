package store

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"satchel/agent"
)

// folderWatcher is what the watcher remembers between checks.
type folderWatcher struct {
	saved  map[string]fileState // files that are not working agents
	folder time.Time            // the folder's modification time if the last check was thorough; else zero
	checks int
}

func newFolderWatcher() folderWatcher { return folderWatcher{saved: map[string]fileState{}} }

// fileState is the state of a file at the last check.
type fileState struct {
	stamp   string
	settled bool // nothing more to do until it changes
}

// retryEvery is how many checks pass before a file is tried again that could not be
// loaded for a reason outside it, such as a full disk.
const retryEvery = 60

// mtimeGrace is how long after a change to the folder its modification time is not
// trusted: several changes can share one.
const mtimeGrace = 2 * time.Second

// watch compares the folder with the catalog: new files that have stopped growing
// are adopted, refused files that have changed are tried again, and agents whose
// files are gone are forgotten.
func (folder *Folder) watch() {
	folder.watcher.checks++
	folder.forgetReplaced()
	if folder.cluster != nil {
		return // no file makes an agent
	}
	if folder.folderChanged() {
		folder.compare()
	}
	for _, id := range slices.Sorted(maps.Keys(folder.watcher.saved)) {
		folder.consider(id)
	}
	folder.reloadAccess()
}

// folderChanged reports whether files may have been added or removed since the last
// check, so that ten thousand idle agents cost only one check of the folder.
func (folder *Folder) folderChanged() bool {
	info, err := os.Stat(folder.agentsPath())
	if err != nil {
		return true
	}
	changed := info.ModTime()
	if changed.Equal(folder.watcher.folder) {
		return false
	}
	folder.watcher.folder = time.Time{}
	if time.Since(changed) > mtimeGrace {
		folder.watcher.folder = changed
	}
	return true
}

// compare lists the folder: files that are not in the catalog are checked from now
// on, and agents whose files are gone are forgotten.
func (folder *Folder) compare() {
	ids, err := folder.listFiles()
	if err != nil {
		folder.log.Error("read agents folder", "error", err)
		return
	}
	present := make(map[string]bool, len(ids))
	for _, id := range ids {
		present[id] = true
		if _, known := folder.watcher.saved[id]; known {
			continue
		}
		switch db := folder.known(id); {
		case db == nil || db.closed.Load():
			folder.watcher.saved[id] = fileState{}
		case db.Problem() != nil: // refused at start: wait for a change
			folder.watcher.saved[id] = fileState{stamp: folder.stamp(id), settled: true}
		}
	}
	for id := range folder.watcher.saved {
		if !present[id] {
			delete(folder.watcher.saved, id)
		}
	}
	for _, db := range folder.Agents() {
		if !present[db.id] {
			folder.forget(db)
		}
	}
}

func (folder *Folder) known(id string) *DB {
	folder.mu.RLock()
	defer folder.mu.RUnlock()
	return folder.byID[id]
}

// stamp changes with a file's size and time, and those of its -wal. It is "" if the
// file does not exist.
func (folder *Folder) stamp(id string) string {
	info, err := os.Stat(folder.filePath(id))
	if err != nil {
		return ""
	}
	stamp := fileStamp(info)
	if wal, err := os.Stat(folder.filePath(id) + "-wal"); err == nil && wal.Size() > 0 {
		stamp += " " + fileStamp(wal)
	}
	return stamp
}

func fileStamp(info os.FileInfo) string {
	stamp := info.ModTime().UTC().Format(time.RFC3339Nano) + "/" + strconv.FormatInt(info.Size(), 36)
	if names := linkCount(info); names > 1 {
		stamp += "/" + strconv.FormatUint(names, 10)
	}
	return stamp
}

// consider checks a file that is new or was refused. It is loaded once two checks
// find it unchanged, so that a file being copied is left alone.
func (folder *Folder) consider(id string) {
	db := folder.known(id)
	if db != nil && db.Problem() == nil && !db.closed.Load() {
		delete(folder.watcher.saved, id)
		return
	}
	before, now := folder.watcher.saved[id], fileState{stamp: folder.stamp(id)}
	switch {
	case now.stamp == "" || now.stamp != before.stamp:
	case before.settled &&
		!(folder.watcher.checks%retryEvery == 0 && db != nil && errors.Is(db.Problem(), errExternalCause)):
		return
	default:
		now.settled = folder.take(id)
	}
	folder.watcher.saved[id] = now
}

// take registers or adopts a file that appeared while the server is running. It returns
// false if something else is being done with the file at the moment.
func (folder *Folder) take(id string) bool {
	unclaim, free := folder.claim(id)
	if !free {
		return false
	}
	defer unclaim()
	if db := folder.known(id); db != nil && db.Problem() == nil && !db.closed.Load() {
		return true // created here in the meantime
	}
	found := inspect(folder.filePath(id))
	switch {
	case errors.Is(found.problem, errNoAgent) && id != agent.DefaultID:
		folder.warnForeign(id)
	case found.problem == nil && folder.mustAdopt(id, found):
		folder.adoptChecked(context.Background(), id, found)
	case found.problem == nil: // a copy of its own file, as it was earlier
		found.problem = folder.checkArrived(context.Background(), id)
		folder.register(id, found)
	default:
		folder.register(id, found)
	}
	return true
}

// forget drops an agent whose file was removed.
func (folder *Folder) forget(db *DB) {
	unclaim, free := folder.claim(db.id)
	if !free {
		return // it is being created or deleted
	}
	if _, err := os.Lstat(db.path); err == nil {
		unclaim() // created since the folder was listed
		return
	}
	folder.log.Warn("agent file is missing", "agent", db.id)
	folder.drop(db)
	unclaim()
	if db.id != agent.DefaultID {
		return
	}
	if err := folder.makeDefault(); err != nil {
		folder.log.Error("default agent is missing", "error", err)
		folder.watcher.folder = time.Time{} // try again at the next check
	}
}

// forgetReplaced drops agents whose file was replaced while it was open, so that
// nothing more is written to the old one. The new file is then loaded like any other
// that appears.
func (folder *Folder) forgetReplaced() {
	for _, db := range folder.openDBs() {
		if !db.replaced() {
			continue
		}
		if unclaim, free := folder.claim(db.id); free {
			folder.log.Warn("agent file was replaced", "agent", db.id)
			folder.drop(db)
			folder.watcher.saved[db.id] = fileState{}
			unclaim()
		}
	}
}

// drop permanently closes an agent's file and removes the agent from the catalog.
// The default agent stays there, closed, until another takes its place. The caller
// has claimed the file.
func (folder *Folder) drop(db *DB) {
	if err := db.closeWhenUnused(true); err != nil {
		folder.log.Error("close agent whose file is missing", "agent", db.id, "error", err)
	}
	defer db.notify(workAll, 0)
	folder.mu.Lock()
	defer folder.mu.Unlock()
	folder.releaseName(db, db.Agent().Name)
	if folder.byID[db.id] == db && db.id != agent.DefaultID {
		delete(folder.byID, db.id)
	}
}
