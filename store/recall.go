package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"satchel/agent"
)

// recall remembers what each file said of its agent when it was last closed,
// so that a start need not open ten thousand files. It is a cache: a file that
// looks different from then is read again, and a missing or broken cache costs
// time only.
type recall struct {
	path string // of the cache

	mu      sync.Mutex
	memos   map[string]memo
	changed bool
	written time.Time
}

// memo is one file as it was left.
type memo struct {
	Stamp   string                `json:"stamp"`
	Agent   agent.Agent           `json:"agent"`
	Admins  map[string]agent.Role `json:"admins,omitempty"`
	Pending Pending               `json:"pending,omitzero"`
}

// remembered is what the cache holds. It is of no use to another folder.
type remembered struct {
	Folder  string          `json:"folder"`
	Version int             `json:"file_version"`
	Agents  map[string]memo `json:"agents"`
}

// rememberEvery is how often a changed cache is written while the server runs.
const rememberEvery = time.Minute

func cachePath(folder string) string { return filepath.Join(folder, "catalog.json") }

// openRecall reads the cache of a folder; whatever is wrong with it, it is
// empty then.
func openRecall(folder string) *recall {
	r := &recall{path: cachePath(folder), memos: map[string]memo{}, written: time.Now()}
	raw, err := os.ReadFile(r.path)
	var was remembered
	if err == nil && json.Unmarshal(raw, &was) == nil && was.Folder == folder && was.Version == fileVersion() && was.Agents != nil {
		r.memos = was.Agents
	}
	return r
}

// stamp tells one state of a file from another: which file, how long, and
// when it was written. A file with a -wal is in no state to be remembered.
func stamp(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return "", false
	}
	return fmt.Sprintf("%d/%d/%d", fileNumber(info), info.Size(), info.ModTime().UnixNano()), true
}

// find returns what an unchanged file said of its agent.
func (r *recall) find(id, path, folder string) (row, bool) {
	r.mu.Lock()
	m, ok := r.memos[id]
	r.mu.Unlock()
	if !ok {
		return row{}, false
	}
	if now, whole := stamp(path); !whole || now != m.Stamp {
		return row{}, false
	}
	if m.Admins == nil {
		m.Admins = map[string]agent.Role{}
	}
	return row{record: record{agent: m.Agent, admins: m.Admins, pending: m.Pending}, id: id, folder: folder}, true
}

// note remembers a file that has just been closed or read.
func (r *recall) note(id, path string, rec record) {
	now, whole := stamp(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !whole || rec.problem != nil || rec.agent.Name == "" {
		r.dropLocked(id)
		return
	}
	rec.agent.ID = id
	r.memos[id] = memo{Stamp: now, Agent: rec.agent, Admins: rec.admins, Pending: rec.pending}
	r.changed = true
}

// drop forgets a file, whose next close notes it again.
func (r *recall) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(id)
}

func (r *recall) dropLocked(id string) {
	if _, known := r.memos[id]; known {
		delete(r.memos, id)
		r.changed = true
	}
}

// save writes the cache when it changed; keep names the agents that are left.
func (r *recall) save(folder string, keep func(id string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.changed {
		return nil
	}
	for id := range r.memos {
		if !keep(id) {
			delete(r.memos, id)
		}
	}
	raw, err := json.Marshal(remembered{Folder: folder, Version: fileVersion(), Agents: r.memos})
	if err != nil {
		return fmt.Errorf("remember the catalog: %w", err)
	}
	temp := r.path + ".new"
	if err := os.WriteFile(temp, raw, 0o600); err != nil {
		return fmt.Errorf("remember the catalog: %w", err)
	}
	if err := os.Rename(temp, r.path); err != nil {
		return fmt.Errorf("remember the catalog: %w", err)
	}
	r.changed, r.written = false, time.Now()
	return nil
}

// remember writes the cache from time to time, so that a kill costs the next
// start little.
func (f *Folder) remember(now time.Time) {
	f.recall.mu.Lock()
	due := f.recall.changed && now.Sub(f.recall.written) >= rememberEvery
	f.recall.mu.Unlock()
	if due {
		f.saveRecall()
	}
}

func (f *Folder) saveRecall() {
	err := f.recall.save(f.path, func(id string) bool {
		f.mu.RLock()
		defer f.mu.RUnlock()
		return f.byID[id] != nil
	})
	if err != nil {
		f.log.Warn("the next start will take longer", "error", err)
	}
}
