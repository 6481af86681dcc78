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

// apiKeys caches the API keys and the choice of an owner about access, which are rows in
// the default agent's file.
type apiKeys struct {
	loading sync.Mutex // held while they are read, so that the last read wins

	mu      sync.RWMutex
	byHash  map[string]*agent.Key
	hadKeys bool        // a key was created at some time, even if it has been revoked
	choice  *agent.Role // see agent.Access
	read    bool        // they were read successfully at least once
	stamp   string      // of the default agent's file when they were read
	failure string      // why they could not be read the last time
}

const keyColumns = "id, name, prefix, hash, role, agents, maker, parent_id, created_at, expires_at"

func scanKey(rows *sqlite.Rows) (*agent.Key, error) {
	var k agent.Key
	var agents string
	if err := rows.Scan(
		&k.ID, &k.Name, &k.Prefix, &k.Hash, &k.Role, &agents, &k.CreatedBy, &k.Parent, &k.CreatedAt, &k.ExpiresAt,
	); err != nil {
		return nil, err
	}
	return &k, json.Unmarshal([]byte(agents), &k.Agents)
}

// loadAccess reads keys and choice into the cache. It does not count as use of the agent.
func (folder *Folder) loadAccess() error {
	folder.apiKeys.loading.Lock()
	defer folder.apiKeys.loading.Unlock()
	db := folder.Default()
	defer db.lastUse.Store(db.lastUse.Load())
	stamp := folder.stamp(db.id)
	a, err := readAccess(db)
	if err != nil {
		return err
	}
	if folder.cluster != nil {
		if err := folder.cluster.SaveAccess(a); err != nil {
			return err
		}
	}
	folder.SetAccess(a)
	folder.apiKeys.mu.Lock()
	folder.apiKeys.stamp = stamp
	folder.apiKeys.mu.Unlock()
	return nil
}

// readAccess returns what the default agent's file records about access.
func readAccess(db *DB) (agent.Access, error) {
	return Read(Background(context.Background()), db, func(tx *Tx) (a agent.Access, err error) {
		if a.KeyMade, a.Choice, err = accessDecisions(tx.conn); err != nil {
			return a, err
		}
		a.Keys, err = all(
			tx,
			scanKey,
			"SELECT "+keyColumns+" FROM _keys WHERE revoked_at IS NULL ORDER BY created_at DESC, id DESC",
		)
		return a, err
	})
}

// accessDecisions returns whether a key was ever created, and the choice of an owner. The
// file may be of a version that stores none.
func accessDecisions(c *conn) (keyMade bool, choice *agent.Role, err error) {
	var stored bool
	var name string
	err = errors.Join(
		c.value(&keyMade, "SELECT EXISTS (SELECT 1 FROM _keys)"),
		c.value(&stored, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_access')"),
	)
	if err == nil && stored {
		err = c.value(&name, "SELECT coalesce((SELECT value FROM _access WHERE name = 'default_role'), '')")
	}
	if role, invalid := agent.ParseChoice(name); invalid == nil {
		choice = &role
	}
	return keyMade, choice, err
}

// reloadAccess reads the keys again if another process, such as "satchel key", may
// have written the default agent's file. While that file is refused, the keys read
// last stay in force.
func (folder *Folder) reloadAccess() {
	db := folder.Default()
	if db.closed.Load() || db.Problem() != nil {
		return
	}
	folder.apiKeys.mu.RLock()
	same := folder.apiKeys.read && folder.apiKeys.stamp == folder.stamp(db.id)
	folder.apiKeys.mu.RUnlock()
	if same {
		return
	}
	err := folder.loadAccess()
	folder.apiKeys.mu.Lock()
	repeated := fmt.Sprint(err) == folder.apiKeys.failure
	folder.apiKeys.failure = fmt.Sprint(err)
	folder.apiKeys.mu.Unlock()
	if err != nil && !repeated { // this runs all the time
		folder.log.Error("read API keys", "error", err)
	}
}

// HasHadKeys reports whether an API key was ever created, which turns access control
// on. While the keys cannot be read it returns true, so that a damaged file does not
// turn access control off.
func (folder *Folder) HasHadKeys() bool {
	folder.apiKeys.mu.RLock()
	defer folder.apiKeys.mu.RUnlock()
	return folder.apiKeys.hadKeys || !folder.apiKeys.read
}

// AccessChoice returns the role that an owner chose for callers without an identity on
// the default agent; nil if none was chosen.
func (folder *Folder) AccessChoice() *agent.Role {
	folder.apiKeys.mu.RLock()
	defer folder.apiKeys.mu.RUnlock()
	return folder.apiKeys.choice
}

// ChooseAccess stores that role; nil removes the choice.
func (folder *Folder) ChooseAccess(ctx context.Context, choice *agent.Role) error {
	err := folder.Default().Do(ctx, func(tx *Tx) error {
		return tx.chooseAccess(choice)
	})
	if err != nil {
		return err
	}
	return folder.loadAccess()
}

func (tx *Tx) chooseAccess(choice *agent.Role) error {
	if choice == nil {
		if _, err := tx.exec("DELETE FROM _access WHERE name = 'default_role'"); err != nil {
			return err
		}
		return tx.audit("choice about access removed", nil)
	}
	name := agent.DefaultRole{Role: *choice}.Name()
	if _, err := tx.exec("INSERT OR REPLACE INTO _access(name, value) VALUES ('default_role', ?)", name); err != nil {
		return err
	}
	return tx.audit("access chosen", map[string]any{"default_role": name})
}

// Key returns the valid key with a hash computed by HashKey, or nil. It must not be
// modified. For a key that is not known it looks whether another process, such as
// "satchel key", has created it.
func (folder *Folder) Key(hash string) *agent.Key {
	k := folder.cachedKey(hash)
	if k == nil && folder.cluster == nil {
		folder.reloadAccess()
		k = folder.cachedKey(hash)
	}
	return k
}

// KeyByID returns the valid key with an id, or nil. It must not be modified.
func (folder *Folder) KeyByID(id string) *agent.Key {
	folder.apiKeys.mu.RLock()
	defer folder.apiKeys.mu.RUnlock()
	for _, k := range folder.apiKeys.byHash {
		if k.ID == id && !k.Expired(agent.Now()) {
			return k
		}
	}
	return nil
}

func (folder *Folder) cachedKey(hash string) *agent.Key {
	folder.apiKeys.mu.RLock()
	defer folder.apiKeys.mu.RUnlock()
	k := folder.apiKeys.byHash[hash]
	if k == nil || k.Expired(agent.Now()) {
		return nil
	}
	return k
}

// Keys lists the keys that are not revoked, newest first.
func (folder *Folder) Keys(ctx context.Context) ([]*agent.Key, error) {
	return Read(ctx, folder.Default(), func(tx *Tx) ([]*agent.Key, error) {
		return all(
			tx,
			scanKey,
			"SELECT "+keyColumns+" FROM _keys WHERE revoked_at IS NULL ORDER BY created_at DESC, id DESC",
		)
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
func (folder *Folder) CreateKey(ctx context.Context, k agent.Key) (agent.Key, string, error) {
	return folder.CreateKeyChoosing(ctx, k, nil)
}

// CreateKeyChoosing is CreateKey, and in the same transaction ChooseAccess unless choice is
// nil, so that the key that closes the server never does so undecided.
func (folder *Folder) CreateKeyChoosing(
	ctx context.Context,
	k agent.Key,
	choice *agent.Role,
) (agent.Key, string, error) {
	if err := k.Validate(agent.Now()); err != nil {
		return k, "", err
	}
	var key string
	key, k.Prefix, k.Hash = agent.NewKeySecret()
	k.ID = agent.NewID(agent.KindKey)
	k, err := Write(ctx, folder.Default(), func(tx *Tx) (agent.Key, error) {
		k.CreatedAt = tx.Now
		if err := tx.limitToParent(&k); err != nil {
			return k, err
		}
		agents, err := json.Marshal(k.Agents)
		if err != nil {
			return k, err
		}
		if _, err := tx.exec(
			"INSERT INTO _keys("+keyColumns+") VALUES (?,?,?,?,?,?,?,?,?,?)",
			k.ID, k.Name, k.Prefix, k.Hash, k.Role, string(agents), k.CreatedBy, k.Parent, k.CreatedAt, k.ExpiresAt,
		); err != nil {
			return k, err
		}
		if choice != nil {
			if err := tx.chooseAccess(choice); err != nil {
				return k, err
			}
		}
		return k, tx.audit("key created", map[string]any{"key": k.ID, "role": k.Role})
	})
	if err != nil {
		return k, "", err
	}
	return k, key, folder.loadAccess()
}

// DeleteKey permanently revokes a key, the keys that it created, and those that
// they created.
func (folder *Folder) DeleteKey(ctx context.Context, id string) error {
	err := folder.Default().Do(ctx, func(tx *Tx) error {
		done, err := tx.exec(`UPDATE _keys SET revoked_at = ?1 WHERE revoked_at IS NULL AND id IN (
			WITH RECURSIVE ended(id) AS (SELECT id FROM _keys WHERE id = ?2 AND revoked_at IS NULL
				UNION SELECT k.id FROM _keys k JOIN ended ON k.parent_id = ended.id)
			SELECT id FROM ended)`, tx.Now, id)
		if err != nil {
			return err
		}
		if done.Changes == 0 {
			return agent.NotFound("key", id)
		}
		return tx.audit("key revoked", map[string]any{"key": id, "keys_that_it_made": done.Changes - 1})
	})
	if err != nil {
		return err
	}
	return folder.loadAccess()
}

// ExtendKey gives a key access to one more agent, which it created itself, and also
// to the keys that created that key, since none may have less access than what it
// created.
func (folder *Folder) ExtendKey(ctx context.Context, k *agent.Key, agentID string) error {
	if k.Reaches(agentID) {
		return nil
	}
	_, err := Write(ctx, folder.Default(), func(tx *Tx) (sqlite.Result, error) {
		return tx.exec(`UPDATE _keys SET agents = json_insert(agents, '$[#]', ?1)
			WHERE id IN (WITH RECURSIVE makers(id) AS (VALUES (?2)
				UNION SELECT k.parent_id FROM _keys k JOIN makers ON k.id = makers.id) SELECT id FROM makers)
			AND NOT EXISTS (SELECT 1 FROM json_each(agents) WHERE value IN (?1, ?3))`, agentID, k.ID, agent.AllAgents)
	})
	if err != nil {
		return err
	}
	return folder.loadAccess()
}

// cleanSuffix ends the name of the new file that dropAccess writes.
const cleanSuffix = ".clean"

// dropAccess removes the API keys and the choice about access from a closed copy. Since remains could be left in
// free or rewritten pages, the copy is written anew. VACUUM INTO keeps the row
// numbers that other tables refer to.
func dropAccess(path string) error {
	conn, err := openConn(source(path, sqlite.ReadWrite))
	if err != nil {
		return err
	}
	made, choice, err := accessDecisions(conn)
	if err != nil || !made && choice == nil {
		return errors.Join(err, conn.close())
	}
	clean := path + cleanSuffix
	forget := ""
	if choice != nil {
		forget = "DELETE FROM _access;"
	}
	err = conn.script("BEGIN; DELETE FROM _keys; " + forget + " UPDATE logs SET data = json_remove(data, '$.prefix') " +
		"WHERE source = 'audit' AND message = 'key created'; COMMIT")
	if err == nil {
		err = createPrivate(clean)
	}
	if err == nil {
		_, err = conn.exec("VACUUM INTO ?", clean)
	}
	if err := errors.Join(err, conn.close()); err != nil {
		return errors.Join(
			fmt.Errorf("remove API keys and decisions about access from a copy: %w", err),
			RemoveIfExists(clean),
		)
	}
	return os.Rename(clean, path)
}
