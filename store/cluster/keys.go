package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"satchel/agent"
	"satchel/store/cluster/pg"
)

// storedKey is an API key as stored in the database.
type storedKey struct {
	agent.Key
	Maker string `json:"maker"`
	Hash  string `json:"hash"`
}

// Keys implements store.Cluster.
func (c *Cluster) Keys() (keys []*agent.Key, made bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	keys, made, _, err = c.readKeys(ctx)
	return keys, made, err
}

func (c *Cluster) readKeys(ctx context.Context) (keys []*agent.Key, made bool, version int64, err error) {
	defer func() {
		if err != nil {
			keys, made, version, err = nil, false, 0, fmt.Errorf("read the API keys of the cluster: %w", err)
		}
	}()
	tx, err := c.pool.Snapshot(ctx)
	if err != nil {
		return nil, false, 0, err
	}
	defer tx.Rollback(ctx)
	if err := tx.QueryRow(ctx, "SELECT keys_version, key_made FROM cluster").Scan(&version, &made); err != nil {
		return nil, false, 0, err
	}
	for row, err := range tx.Query(ctx, "SELECT key FROM api_key") {
		var text string
		var k storedKey
		if err == nil {
			err = row.Scan(&text)
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &k)
		}
		if err != nil {
			return nil, false, 0, err
		}
		k.Key.CreatedBy, k.Key.Hash = k.Maker, k.Hash
		keys = append(keys, &k.Key)
	}
	return keys, made, version, nil
}

// followKeys updates the folder's copy of the cluster's API keys after they
// changed.
func (c *Cluster) followKeys(ctx context.Context, version int64) error {
	c.mu.Lock()
	same := c.keys == version
	c.mu.Unlock()
	if same || c.folder == nil {
		return nil
	}
	keys, made, version, err := c.readKeys(ctx)
	if err != nil {
		return err
	}
	c.folder.SetKeys(keys, made)
	c.mu.Lock()
	c.keys = version
	c.mu.Unlock()
	return nil
}

// SaveKeys implements store.Cluster.
func (c *Cluster) SaveKeys(keys []*agent.Key, made bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	err := c.pool.Transact(ctx, func(tx *pg.Tx) error {
		// The row of the cluster is locked, so that the last writer wins as a whole.
		done, err := tx.Exec(ctx, `UPDATE cluster SET keys_version = keys_version + 1, key_made = key_made OR $1
			WHERE EXISTS (SELECT 1 FROM agent WHERE id = $2 AND owner = $3 AND NOT deleted)`, made, agent.DefaultID, c.Self().Session)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return agent.NotFound("agent", agent.DefaultID).Because(ErrNotOwner)
		}
		return replaceKeys(ctx, tx, keys)
	})
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: the change of the API keys is not known to all servers: %w", ErrUnavailable, err)
	}
	return nil
}

func replaceKeys(ctx context.Context, tx *pg.Tx, keys []*agent.Key) error {
	var hashes, texts []string
	for _, k := range keys {
		raw, err := json.Marshal(storedKey{*k, k.CreatedBy, k.Hash})
		if err != nil {
			return err
		}
		hashes, texts = append(hashes, k.Hash), append(texts, string(raw))
	}
	if _, err := tx.Exec(ctx, "DELETE FROM api_key"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO api_key(hash, key) SELECT * FROM unnest($1::text[], $2::text[])", hashes, texts)
	return err
}

// importKeys makes the API keys of a folder those of the cluster, which has no default
// agent yet. The keys are stored before that agent, so that no server ever considers the
// cluster to be without access control.
func (c *Cluster) importKeys(ctx context.Context, keys []*agent.Key, made bool) error {
	return c.pool.Transact(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE cluster SET keys_version = keys_version + 1, key_made = key_made OR $1", made); err != nil {
			return err
		}
		return replaceKeys(ctx, tx, keys)
	})
}
