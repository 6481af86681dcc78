package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"satchel/agent"
)

// catalogCache holds what each file said of its agent when it was last closed,
// so that a start need not open ten thousand files. It is a cache: a file that
// looks different from then is read again, and a missing or broken cache costs
// time only.
type catalogCache struct {
	path string // of the cache

	mu      sync.Mutex
	entries map[string]catalogEntry
	changed bool
	written time.Time
}

// catalogEntry describes one file as of its last close.
type catalogEntry struct {
	Stamp   string                `json:"stamp"`
	Agent   agent.Agent           `json:"agent"`
	Admins  map[string]agent.Role `json:"admins,omitempty"`
	Pending Pending               `json:"pending,omitzero"`

	Attention Attention `json:"attention,omitzero"`
	Trimmed   time.Time `json:"trimmed,omitzero"`
}

// catalogFile is the content of the cache. It applies to one folder only.
type catalogFile struct {
	Folder  string                  `json:"folder"`
	Version int                     `json:"file_version"`
	Agents  map[string]catalogEntry `json:"agents"`
}

// cacheInterval is how often a changed cache is written while the server runs.
const cacheInterval = time.Minute

func cachePath(folder string) string { return filepath.Join(folder, "catalog.json") }

// openCatalogCache reads the cache of a folder. If it cannot be read, it is empty.
func openCatalogCache(folder string) *catalogCache {
	r := &catalogCache{
		path:    cachePath(folder),
		entries: map[string]catalogEntry{},
		written: time.Now(),
	}
	raw, err := os.ReadFile(r.path)
	var stored catalogFile
	if err == nil &&
		json.Unmarshal(raw, &stored) == nil &&
		stored.Folder == folder &&
		stored.Version == fileVersion() &&
		stored.Agents != nil {
		r.entries = stored.Agents
	}
	return r
}

// stamp identifies a state of a file: which file it is, its length and its time of
// change. ok is false for a file with a -wal, whose state cannot be cached.
func stamp(path string) (string, bool) {
	s := stampOf(path)
	return s, s != "" && !HasWAL(path)
}

// stampOf is stamp regardless of a -wal; "" if there is no file.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d", fileNumber(info), info.Size(), info.ModTime().UnixNano())
}

// find returns what an unchanged file said of its agent.
func (r *catalogCache) find(id, path, folder string) (row, bool) {
	r.mu.Lock()
	entry, ok := r.entries[id]
	r.mu.Unlock()
	if !ok {
		return row{}, false
	}
	if now, whole := stamp(path); !whole || now != entry.Stamp {
		return row{}, false
	}
	if entry.Admins == nil {
		entry.Admins = map[string]agent.Role{}
	}
	return row{
		record: record{
			agent:     entry.Agent,
			admins:    entry.Admins,
			pending:   entry.Pending,
			attention: entry.Attention,
			trimmed:   entry.Trimmed,
		},
		id:     id,
		folder: folder,
	}, true
}

// matches reports whether a file is unchanged since it was noted.
func (r *catalogCache) matches(id, path string) bool {
	r.mu.Lock()
	m, ok := r.entries[id]
	r.mu.Unlock()
	if !ok {
		return false
	}
	now, whole := stamp(path)
	return whole && now == m.Stamp
}

// note remembers a file that has just been closed or read.
func (r *catalogCache) note(id, path string, rec record) {
	now, whole := stamp(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !whole || rec.problem != nil || rec.agent.Name == "" {
		delete(r.entries, id)
		r.changed = true
		return
	}
	rec.agent.ID = id
	r.entries[id] = catalogEntry{
		Stamp:     now,
		Agent:     rec.agent,
		Admins:    rec.admins,
		Pending:   rec.pending,
		Attention: rec.attention,
		Trimmed:   rec.trimmed,
	}
	r.changed = true
}

// drop makes a file's entry match no state of it until its next close. The entry keeps
// the agent's admins, as they are now: if the file is damaged, it cannot say them.
func (r *catalogCache) drop(id string, admins map[string]agent.Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, known := r.entries[id]; known && (m.Stamp != "" || !maps.Equal(m.Admins, admins)) {
		m.Stamp, m.Admins = "", admins
		r.entries[id] = m
		r.changed = true
	}
}

// admins returns the admins that an agent had when its file could last be read; nil if
// that is unknown.
func (r *catalogCache) admins(id string) map[string]agent.Role {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, known := r.entries[id]
	if known && m.Admins == nil {
		return map[string]agent.Role{}
	}
	return m.Admins
}

// save writes the cache if it has changed; keep reports which agents still exist.
func (r *catalogCache) save(folder string, keep func(id string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.changed {
		return nil
	}
	for id := range r.entries {
		if !keep(id) {
			delete(r.entries, id)
		}
	}
	raw, err := json.Marshal(catalogFile{
		Folder:  folder,
		Version: fileVersion(),
		Agents:  r.entries,
	})
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

// saveCacheWhenDue writes the cache from time to time, so that the next start after
// a kill is not slow.
func (folder *Folder) saveCacheWhenDue(now time.Time) {
	folder.cache.mu.Lock()
	due := folder.cache.changed && now.Sub(folder.cache.written) >= cacheInterval
	folder.cache.mu.Unlock()
	if due {
		folder.saveCache()
	}
}

func (folder *Folder) saveCache() {
	err := folder.cache.save(folder.path, func(id string) bool {
		folder.mu.RLock()
		defer folder.mu.RUnlock()
		return folder.byID[id] != nil
	})
	if err != nil {
		folder.log.Warn("write catalog cache; the next start will be slower", "error", err)
	}
}
