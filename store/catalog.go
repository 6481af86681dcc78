package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"

	"satchel/agent"
)

// fileName is what an agent's file may be called: its id.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// row is what a file says of its agent.
type row struct {
	record
	id, folder string // the mark: whose file it is, and where it lay
}

// load fills the catalog at start: files in their own place first, then
// copies, whose names give way; then the default agent, made when missing.
func (f *Folder) load() error {
	ids, err := f.listFiles()
	if err != nil {
		return err
	}
	var copies []string
	for i, found := range f.inspectAll(ids) {
		id := ids[i]
		switch {
		case errors.Is(found.problem, errNoAgent):
			f.log.Warn("a database in the data folder is no agent's and is left alone", "file", id+".db")
		case found.problem == nil && (found.id != id || found.folder != f.path):
			copies = append(copies, id)
		default:
			f.enter(id, found)
		}
	}
	for _, id := range copies {
		f.adopt(id)
	}
	if f.Default() == nil {
		if _, err := f.create(context.Background(), agent.Agent{ID: agent.DefaultID, Name: agent.DefaultID, Status: agent.StatusActive}); err != nil {
			return fmt.Errorf("make the default agent: %w", err)
		}
	}
	return f.loadKeys()
}

// listFiles returns the ids of the files in the agents folder, sorted.
func (f *Folder) listFiles() ([]string, error) {
	dir, err := os.Open(f.agentsPath())
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".db"); ok && fileName.MatchString(id) {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids, nil
}

// inspectAll reads many files at once, on as many processors as there are.
func (f *Folder) inspectAll(ids []string) []row {
	rows := make([]row, len(ids))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(ids), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				rows[i] = inspect(f.filePath(ids[i]))
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	workers.Wait()
	return rows
}

// inspect reads what a file says of its agent, without changing it.
func inspect(path string) row {
	c, err := openConn(dsn(path, "rw", "query_only(1)"))
	if err != nil {
		return row{record: record{problem: damaged(err)}}
	}
	defer c.close()
	if err := checkHeader(c); err != nil {
		return row{record: record{problem: err}}
	}
	r, err := readRow(c)
	if err != nil {
		return row{record: record{problem: damaged(err)}}
	}
	return r
}

func readRow(c *conn) (row, error) {
	var r row
	a := &r.agent
	q := `SELECT id, folder, name, description, status, owner_email, created_at, updated_at,
		EXISTS (SELECT 1 FROM sources WHERE status NOT IN ('ready','error')) OR EXISTS (SELECT 1 FROM _purge) FROM _agent`
	s, err := c.prepare(q)
	if err != nil {
		return r, err
	}
	err = s.QueryRow().Scan(&r.id, &r.folder, &a.Name, &a.Description, &a.Status, &a.OwnerEmail, &a.CreatedAt, &a.UpdatedAt, &r.working)
	if err != nil {
		return r, err
	}
	rows, err := c.query("SELECT email, role FROM _admins")
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

// enter puts a file that lies in its own place into the catalog. A refused
// file is entered by its id alone, so that requests for it hear why.
func (f *Folder) enter(id string, found row) *DB {
	db := newDB(f, id, f.filePath(id))
	found.agent.ID = id
	db.record.Store(&found.record)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[id] = db
	if found.problem != nil {
		f.log.Error("an agent's file is refused", "agent", id, "error", found.problem)
		return db
	}
	key := agent.NameKey(found.agent.Name)
	if other, taken := f.names[key]; !taken || other.id == id {
		f.names[key] = db
	}
	return db
}

// adopt takes in a file that was copied here: its secrets are sealed for its
// new place, it is paused so that it does nothing twice, and its name gives
// way when it is taken.
func (f *Folder) adopt(id string) *DB {
	db := newDB(f, id, f.filePath(id))
	f.mu.Lock()
	defer f.mu.Unlock()
	found, err := Write(context.Background(), db, func(tx *Tx) (row, error) {
		r, err := readRow(tx.conn)
		if err != nil {
			return r, err
		}
		if err := f.reseal(tx, r.id, id); err != nil {
			return r, err
		}
		r.agent.Name = f.freeName(r.agent.Name, id)
		r.agent.Status, r.agent.UpdatedAt = agent.StatusPaused, tx.Now
		_, err = tx.exec("UPDATE _agent SET id = ?, folder = ?, name = ?, status = ?, updated_at = ?",
			id, f.path, r.agent.Name, r.agent.Status, tx.Now)
		if err != nil {
			return r, err
		}
		return r, tx.log(agent.LevelWarn, "store", "this file was copied here and starts paused",
			map[string]any{"copied_from": r.id})
	})
	if err != nil {
		found.problem = explain(err)
		f.log.Error("an agent's file is refused", "agent", id, "error", err)
	} else {
		f.names[agent.NameKey(found.agent.Name)] = db
		f.log.Info("a copied agent was taken in and is paused", "agent", id, "name", found.agent.Name)
	}
	found.agent.ID = id
	db.record.Store(&found.record)
	f.byID[id] = db
	return db
}

// freeName returns name, or name-2, name-3, … when another agent has it. The
// caller holds f.mu.
func (f *Folder) freeName(name, id string) string {
	for n := 1; ; n++ {
		candidate := name
		if n > 1 {
			suffix := fmt.Sprintf("-%d", n)
			candidate = strings.TrimRight(name[:min(len(name), agent.MaxNameLength-len(suffix))], "-") + suffix
		}
		if other, taken := f.names[agent.NameKey(candidate)]; !taken || other.id == id {
			return candidate
		}
	}
}

// reseal seals every secret of a file for another agent id. What cannot be
// opened stays as it is and reads as locked.
func (f *Folder) reseal(tx *Tx, from, to string) error {
	secrets, err := all(tx, scanSecret, "SELECT owner, field, key_id, sealed FROM _secrets")
	if err != nil {
		return err
	}
	for _, s := range secrets {
		plain, err := f.keys.open(from, s.owner, s.field, s.keyID, s.sealed)
		if err != nil {
			continue
		}
		keyID, sealed := f.keys.seal(to, s.owner, s.field, plain)
		if _, err := tx.exec("UPDATE _secrets SET key_id = ?, sealed = ? WHERE owner = ? AND field = ?", keyID, sealed, s.owner, s.field); err != nil {
			return err
		}
	}
	return nil
}

type secret struct {
	owner, field, keyID string
	sealed              []byte
}

func scanSecret(rows *sql.Rows) (s secret, err error) {
	return s, rows.Scan(&s.owner, &s.field, &s.keyID, &s.sealed)
}
