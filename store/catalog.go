package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"satchel/agent"
	"satchel/store/sqlite"
)

var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// isFileName reports whether an agent's file may have this name, which is its id.
func isFileName(id string) bool {
	return len(id) <= 100 && fileName.MatchString(id)
}

// row is what a file says of its agent.
type row struct {
	record
	id, folder string // the mark: whose file it is, and where it lay
	locked     bool   // its credentials stay encrypted as they are
}

// load fills the catalog at start: files in their own place first, then
// copies, whose names give way; then the default agent, made when missing.
func (folder *Folder) load() error {
	ids, err := folder.listFiles()
	if err != nil {
		return err
	}
	copies := map[string]row{}
	for i, found := range folder.inspectAll(ids) {
		id := ids[i]
		switch {
		case errors.Is(found.problem, errNoAgent) && id != agent.DefaultID:
			folder.warnForeign(id)
		case found.problem == nil && folder.mustAdopt(id, found):
			copies[id] = found
		default:
			folder.register(id, found)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startCheckTime)
	defer cancel()
	for _, id := range slices.Sorted(maps.Keys(copies)) {
		folder.adoptChecked(ctx, id, copies[id])
	}
	if folder.Default() == nil {
		if err := folder.makeDefault(); err != nil {
			return err
		}
	}
	folder.reloadAccess()
	return nil
}

func (folder *Folder) warnForeign(id string) {
	folder.log.Warn("ignore a database that does not belong to an agent", "file", id+".db")
}

// mustAdopt reports whether a sound file is not simply an agent in its own
// place: it was copied here, or what it says of itself is not valid.
func (folder *Folder) mustAdopt(id string, found row) bool {
	folder.mu.RLock()
	defer folder.mu.RUnlock()
	return found.id != id ||
		found.folder != folder.path ||
		found.agent.Validate() != nil ||
		!folder.nameFree(found.agent.Name, id)
}

// listFiles returns the ids of the files in the agents folder, sorted. Links
// are ignored, because one file must not be two agents.
func (folder *Folder) listFiles() ([]string, error) {
	entries, err := os.ReadDir(folder.agentsPath())
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		if id, ok := agentFile(e); ok {
			ids = append(ids, id)
		}
	}
	return folder.withLinked(ids), nil
}

// agentFile reports whether an entry of the agents folder may be an agent's
// file, and of which id.
func agentFile(e fs.DirEntry) (id string, ok bool) {
	id, ok = strings.CutSuffix(e.Name(), ".db")
	return id, ok && e.Type().IsRegular() && isFileName(id)
}

// inspectAll reads many files at once, on as many processors as there are.
func (folder *Folder) inspectAll(ids []string) []row {
	rows := make([]row, len(ids))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(ids), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			var readers fileReaders
			defer readers.close()
			for i := range next {
				rows[i] = folder.cachedRow(ids[i], &readers)
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	workers.Wait()
	forgetTemplates()
	return rows
}

// cachedRow reads what a file says of its agent, unless it has not changed
// since it was last read.
func (folder *Folder) cachedRow(id string, readers *fileReaders) row {
	path := folder.filePath(id)
	if folder.cache != nil {
		if r, ok := folder.cache.find(id, path, folder.path); ok {
			return r
		}
	}
	r, ok := readers.read(path)
	if !ok {
		r = inspect(path)
	}
	if folder.cache != nil &&
		r.problem == nil &&
		r.id == id &&
		r.folder == folder.path {
		folder.cache.note(id, path, r.record)
	}
	return r
}

// inspect reads what a file says of its agent, without changing it.
func inspect(path string) row {
	r := inspectBy(path, unlockedSource(path))
	if agent.ErrorCode(r.problem) == agent.CodeAgentDamaged &&
		!errors.Is(r.problem, errNoAgent) &&
		!HasWAL(path) {
		// Someone may have been writing it, such as "satchel key".
		r = inspectBy(path, sharedSource(path))
	}
	return r
}

func inspectBy(path string, file sqlite.Source) row {
	var r row
	err := examineAndRead(context.Background(), path, file, func(c *conn) (err error) {
		r, err = readRow(c)
		return err
	})
	if err != nil {
		return row{record: record{problem: err}}
	}
	return r
}

func readRow(conn *conn) (row, error) {
	var r row
	a := &r.agent
	err := conn.row(
		"SELECT id, folder, name, description, status, owner_email, created_at, updated_at FROM _agent",
	).Scan(
		&r.id, &r.folder, &a.Name, &a.Description, &a.Status, &a.OwnerEmail, &a.CreatedAt, &a.UpdatedAt,
	)
	if err != nil {
		return r, err
	}
	if r.pending, err = conn.pending(); err != nil {
		return r, err
	}
	rows, err := conn.query("SELECT email, role FROM _admins")
	if err != nil {
		return r, err
	}
	defer rows.Close()
	r.admins = map[string]agent.Role{}
	for rows.Next() {
		var email string
		var role agent.Role
		if err := rows.Scan(&email, &role); err != nil {
			return r, err
		}
		r.admins[email] = role
	}
	return r, rows.Err()
}

// register adds a file that is in its own place to the catalog. A refused
// file is registered by its id alone, so that requests for it fail with the reason.
func (folder *Folder) register(id string, found row) *DB {
	db := newDB(folder, id, folder.filePath(id))
	db.inPlace = true
	found.agent.ID = id
	db.record.Store(&found.record)
	if found.problem != nil {
		if found.admins == nil && folder.cache != nil {
			found.admins = folder.cache.admins(id)
		}
		folder.log.Error("refuse agent file", "agent", id, "error", found.problem)
	}
	if found.problem == nil {
		defer db.publish(found.pending)
	}
	folder.mu.Lock()
	defer folder.mu.Unlock()
	if old := folder.byID[id]; old != nil {
		folder.releaseName(old, old.Agent().Name)
	}
	folder.byID[id] = db
	if found.problem == nil {
		folder.names[agent.NameKey(found.agent.Name)] = db
	}
	return db
}

// adoptChecked is adopt for a file that someone put into the folder: a damaged one is
// refused and left as it is. What cannot be checked in time is adopted.
//
// A file that has other names (hard links) is left alone: what is written to it would be
// written to those, and one of them may be an agent, here or in another data folder.
func (folder *Folder) adoptChecked(ctx context.Context, id string, found row) {
	if hasOtherNames(folder.filePath(id)) {
		if id == agent.DefaultID { // it cannot be absent
			folder.register(id, row{record: record{problem: errHardLink}})
			return
		}
		folder.log.Warn(
			"ignore a file that has another name elsewhere (a hard link); copy it instead",
			"file",
			id+".db",
		)
		return
	}
	if err := folder.checkArrived(ctx, id); err != nil {
		folder.register(id, row{record: record{problem: err}})
		return
	}
	folder.adopt(id, found)
}

// checkArrived returns why a file that someone put into the folder is refused; nil if it is
// sound, or too long to be checked in time.
func (folder *Folder) checkArrived(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, adoptCheckTime)
	defer cancel()
	err := checkWhole(ctx, folder.filePath(id))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		folder.log.Warn("accept a file before all of it was checked; satchel doctor checks it", "file", id+".db")
		return nil
	}
	return damaged(err)
}

var errHardLink = agent.Errorf(
	agent.CodeAgentDamaged,
	"this agent's file has another name elsewhere (a hard link), and was left as it is: put a copy in its place",
)

// hasOtherNames reports whether a file has hard links.
func hasOtherNames(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && linkCount(info) > 1
}

// adopt adds a file that was copied here: it is paused so that it does nothing
// twice, and gets another name if its own is taken.
func (folder *Folder) adopt(id string, found row) *DB {
	name := cleanName(found.agent.Name)
	if folder.cluster != nil {
		free, err := folder.cluster.FreeName(name)
		if err != nil {
			return folder.removeRefused(id, err)
		}
		name = free
	}
	name, release := folder.reserveFreeName(name, id)
	defer release()
	return folder.adoptAs(id, name, found)
}

// adoptAs adds a copied file under a name that is reserved for it. Its secrets
// are encrypted for its new folder.
func (folder *Folder) adoptAs(id, name string, found row) *DB {
	from := found.agent
	found.agent.ID, found.agent.Name, found.agent.Status = id, name, agent.StatusPaused
	found.agent.Description = agent.Clip(from.Description, agent.MaxDescriptionLength)
	db := newDB(folder, id, folder.filePath(id))
	err := db.Do(context.Background(), func(tx *Tx) (err error) {
		a := &found.agent
		a.UpdatedAt = tx.Now
		if !found.locked {
			if err := folder.reseal(tx, found.id, id); err != nil {
				return err
			}
		}
		if err := tx.unconfirmCredentials(); err != nil {
			return err
		}
		if err := tx.forgetUndelivered(); err != nil {
			return err
		}
		if err := tx.dropPlans(); err != nil {
			return err
		}
		if _, err := tx.exec(
			"UPDATE _agent SET id = ?, folder = ?, name = ?, description = ?, status = ?, updated_at = ?",
			id,
			folder.mark(),
			a.Name, a.Description, a.Status, tx.Now,
		); err != nil {
			return err
		}
		if _, err := tx.exec("DELETE FROM sessions"); err != nil {
			return err
		}
		if _, err := tx.exec("UPDATE executions SET paused = 1 WHERE status IN ('queued','running')"); err != nil {
			return err
		}
		if found.pending, err = tx.pending(); err != nil {
			return err
		}
		if found.attention, err = tx.attention(tx.Now); err != nil {
			return err
		}
		return tx.log(
			agent.LevelWarn,
			"store",
			"this file was copied here and starts paused",
			map[string]any{"copied_from": found.id},
		)
	})
	if err == nil {
		db.record.Store(&found.record)
	}
	err = errors.Join(err, db.closeWhenUnused(true))
	if folder.cluster != nil {
		if err == nil {
			err = folder.cluster.Create(id, db.path, found.summary())
		}
		if err != nil {
			return folder.removeRefused(id, err)
		}
	}
	if err != nil {
		return folder.register(id, row{record: record{problem: refused(err)}})
	}
	folder.log.Info("adopt copy of agent, paused", "agent", id, "name", name)
	db = folder.register(id, found)
	folder.captureNew(db)
	return db
}

// removeRefused returns an agent that the cluster did not take, and removes its file.
func (folder *Folder) removeRefused(id string, err error) *DB {
	db := newDB(folder, id, folder.filePath(id))
	db.record.Store(&record{agent: agent.Agent{ID: id}, problem: errors.Join(err, RemoveIfExists(db.path))})
	db.closed.Store(true)
	return db
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// cleanName makes an agent's name of what a foreign file says it is.
func cleanName(name string) string {
	name = notInNames.ReplaceAllString(agent.Clip(name, 4*agent.MaxNameLength), "-")
	name = strings.Trim(name, "-")
	name = strings.TrimRight(name[:min(len(name), agent.MaxNameLength)], "-")
	if name == "" {
		return "agent"
	}
	return name
}

// reseal encrypts every secret of a file for another agent id. Secrets that
// cannot be decrypted are left as they are and shown as locked.
func (folder *Folder) reseal(tx *Tx, from, to string) error {
	secrets, err := all(tx, scanSecret, "SELECT "+secretColumns+" FROM _secrets")
	if err != nil {
		return err
	}
	for _, s := range secrets {
		plain, err := folder.keys.open(from, s)
		if err != nil {
			continue
		}
		keyID, sealed := folder.keys.seal(to, s, plain)
		if _, err := tx.exec(
			"UPDATE _secrets SET key_id = ?, sealed = ? WHERE owner = ? AND field = ?",
			keyID, sealed, s.owner, s.field,
		); err != nil {
			return err
		}
	}
	return nil
}
