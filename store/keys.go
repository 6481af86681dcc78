package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"satchel/agent"
	"satchel/store/sqlite"
)

// apiKeys caches the API keys, which are rows in the default agent's file.
type apiKeys struct {
	loading sync.Mutex // held while they are read, so that the last read wins

	mu      sync.RWMutex
	byHash  map[string]*agent.Key
	hadKeys bool   // a key was created at some time, even if it has been revoked
	read    bool   // they were read successfully at least once
	stamp   string // of the default agent's file when they were read
}

const keyColumns = "id, name, prefix, hash, role, agents, maker, parent_id, created_at, expires_at"

func scanKey(rows *sqlite.Rows) (*agent.Key, error) {
	var k agent.Key
	var agents string
	if err := rows.Scan(&k.ID, &k.Name, &k.Prefix, &k.Hash, &k.Role, &agents, &k.CreatedBy, &k.Parent, &k.CreatedAt, &k.ExpiresAt); err != nil {
		return nil, err
	}
	return &k, json.Unmarshal([]byte(agents), &k.Agents)
}

// loadKeys reads all keys into the cache. It does not count as use of the agent.
func (f *Folder) loadKeys() error {
	f.apiKeys.loading.Lock()
	defer f.apiKeys.loading.Unlock()
	db := f.Default()
	defer db.lastUse.Store(db.lastUse.Load())
	stamp := f.stamp(db.id)
	keys, made, err := readKeys(db)
	if err != nil {
		return err
	}
	if f.cluster != nil {
		if err := f.cluster.SaveKeys(keys, made); err != nil {
			return err
		}
	}
	f.SetKeys(keys, made)
	f.apiKeys.mu.Lock()
	f.apiKeys.stamp = stamp
	f.apiKeys.mu.Unlock()
	return nil
}

// readKeys returns the keys that are not revoked, and whether one was ever created.
func readKeys(db *DB) (keys []*agent.Key, made bool, err error) {
	keys, err = Read(Background(context.Background()), db, func(tx *Tx) ([]*agent.Key, error) {
		if err := tx.value(&made, "SELECT EXISTS (SELECT 1 FROM _keys)"); err != nil {
			return nil, err
		}
		return all(tx, scanKey, "SELECT "+keyColumns+" FROM _keys WHERE revoked_at IS NULL ORDER BY created_at DESC, id DESC")
	})
	return keys, made, err
}

// reloadKeys reads the keys again if another process, such as "satchel key", may
// have written the default agent's file. While that file is refused, the keys read
// last stay in force.
func (f *Folder) reloadKeys() {
	db := f.Default()
	if db.gone.Load() || db.Problem() != nil {
		return
	}
	f.apiKeys.mu.RLock()
	same := f.apiKeys.read && f.apiKeys.stamp == f.stamp(db.id)
	f.apiKeys.mu.RUnlock()
	if same {
		return
	}
	if err := f.loadKeys(); err != nil {
		f.log.Error("read API keys", "error", err)
	}
}

// HasHadKeys reports whether an API key was ever created, which turns access control
// on. While the keys cannot be read it returns true, so that a damaged file does not
// turn access control off.
func (f *Folder) HasHadKeys() bool {
	f.apiKeys.mu.RLock()
	defer f.apiKeys.mu.RUnlock()
	return f.apiKeys.hadKeys || !f.apiKeys.read
}

// Key returns the valid key with a hash computed by HashKey, or nil. It must not be
// modified. For a key that is not known it looks whether another process, such as
// "satchel key", has created it.
func (f *Folder) Key(hash string) *agent.Key {
	k := f.cachedKey(hash)
	if k == nil && f.cluster == nil {
		f.reloadKeys()
		k = f.cachedKey(hash)
	}
	return k
}

func (f *Folder) cachedKey(hash string) *agent.Key {
	f.apiKeys.mu.RLock()
	defer f.apiKeys.mu.RUnlock()
	k := f.apiKeys.byHash[hash]
	if k == nil || k.Expired(agent.Now()) {
		return nil
	}
	return k
}

// Keys lists the keys that are not revoked, newest first.
func (f *Folder) Keys(ctx context.Context) ([]*agent.Key, error) {
	return Read(ctx, f.Default(), func(tx *Tx) ([]*agent.Key, error) {
		return all(tx, scanKey, "SELECT "+keyColumns+" FROM _keys WHERE revoked_at IS NULL ORDER BY created_at DESC, id DESC")
	})
}

// limitToParent limits a key's lifetime to that of the key that creates it, which
// must be valid.
func (tx *Tx) limitToParent(k *agent.Key) error {
	if k.Parent == "" {
		return nil
	}
	parents, err := all(tx, scanKey, "SELECT "+keyColumns+" FROM _keys WHERE id = ? AND revoked_at IS NULL", k.Parent)
	if err != nil {
		return err
	}
	if len(parents) == 0 || parents[0].Expired(tx.Now) {
		return agent.Errorf(agent.CodeUnauthorized, "the key that creates this one was revoked or has expired")
	}
	return k.LimitExpiry(parents[0])
}

// CreateKey creates an API key and returns it with the secret key, which cannot be
// read again. A key with a Parent expires no later than its parent and is revoked
// with it.
func (f *Folder) CreateKey(ctx context.Context, k agent.Key) (agent.Key, string, error) {
	if err := k.Validate(agent.Now()); err != nil {
		return k, "", err
	}
	var key string
	key, k.Prefix, k.Hash = agent.NewKeySecret()
	k.ID = agent.NewID(agent.KindKey)
	k, err := Write(ctx, f.Default(), func(tx *Tx) (agent.Key, error) {
		k.CreatedAt = tx.Now
		if err := tx.limitToParent(&k); err != nil {
			return k, err
		}
		agents, err := json.Marshal(k.Agents)
		if err != nil {
			return k, err
		}
		if _, err := tx.exec("INSERT INTO _keys("+keyColumns+") VALUES (?,?,?,?,?,?,?,?,?,?)",
			k.ID, k.Name, k.Prefix, k.Hash, k.Role, string(agents), k.CreatedBy, k.Parent, k.CreatedAt, k.ExpiresAt); err != nil {
			return k, err
		}
		return k, tx.audit("key created", map[string]any{"key": k.ID, "role": k.Role})
	})
	if err != nil {
		return k, "", err
	}
	return k, key, f.loadKeys()
}

// DeleteKey permanently revokes a key, the keys that it created, and those that
// they created.
func (f *Folder) DeleteKey(ctx context.Context, id string) error {
	_, err := Write(ctx, f.Default(), func(tx *Tx) (struct{}, error) {
		done, err := tx.exec(`UPDATE _keys SET revoked_at = ?1 WHERE revoked_at IS NULL AND id IN (
			WITH RECURSIVE ended(id) AS (SELECT id FROM _keys WHERE id = ?2 AND revoked_at IS NULL
				UNION SELECT k.id FROM _keys k JOIN ended ON k.parent_id = ended.id)
			SELECT id FROM ended)`, tx.Now, id)
		if err != nil {
			return struct{}{}, err
		}
		if done.Changes == 0 {
			return struct{}{}, agent.NotFound("key", id)
		}
		return struct{}{}, tx.audit("key revoked", map[string]any{"key": id, "keys_that_it_made": done.Changes - 1})
	})
	if err != nil {
		return err
	}
	return f.loadKeys()
}

// ExtendKey gives a key access to one more agent, which it created itself, and also
// to the keys that created that key, since none may have less access than what it
// created.
func (f *Folder) ExtendKey(ctx context.Context, k *agent.Key, agentID string) error {
	if k.Reaches(agentID) {
		return nil
	}
	_, err := Write(ctx, f.Default(), func(tx *Tx) (sqlite.Result, error) {
		return tx.exec(`UPDATE _keys SET agents = json_insert(agents, '$[#]', ?1)
			WHERE id IN (WITH RECURSIVE makers(id) AS (VALUES (?2)
				UNION SELECT k.parent_id FROM _keys k JOIN makers ON k.id = makers.id) SELECT id FROM makers)
			AND NOT EXISTS (SELECT 1 FROM json_each(agents) WHERE value IN (?1, ?3))`, agentID, k.ID, agent.AllAgents)
	})
	if err != nil {
		return err
	}
	return f.loadKeys()
}

// cleanSuffix ends the name of the new file that dropKeys writes.
const cleanSuffix = ".clean"

// dropKeys removes the API keys from a closed copy. Since remains could be left in
// free or rewritten pages, the copy is written anew. VACUUM INTO keeps the row
// numbers that other tables refer to.
func dropKeys(path string) error {
	c, err := openConn(source(path, sqlite.ReadWrite))
	if err != nil {
		return err
	}
	var some bool
	if err := c.value(&some, "SELECT EXISTS (SELECT 1 FROM _keys)"); err != nil || !some {
		return errors.Join(err, c.close())
	}
	clean := path + cleanSuffix
	err = c.script("BEGIN; DELETE FROM _keys; UPDATE logs SET data = json_remove(data, '$.prefix') WHERE source = 'audit' AND message = 'key created'; COMMIT")
	if err == nil {
		err = createPrivate(clean)
	}
	if err == nil {
		_, err = c.exec("VACUUM INTO ?", clean)
	}
	if err := errors.Join(err, c.close()); err != nil {
		return errors.Join(fmt.Errorf("remove the API keys from a copy: %w", err), RemoveIfExists(clean))
	}
	return os.Rename(clean, path)
}
