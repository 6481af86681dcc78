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

// Access implements store.Cluster.
func (cluster *Cluster) Access() (agent.Access, error) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	a, _, err := cluster.readAccess(ctx)
	return a, err
}

func (cluster *Cluster) readAccess(ctx context.Context) (access agent.Access, version int64, err error) {
	defer func() {
		if err != nil {
			access, version, err = agent.Access{}, 0, fmt.Errorf("read the API keys of the cluster: %w", err)
		}
	}()
	tx, err := cluster.pool.Snapshot(ctx)
	if err != nil {
		return access, 0, err
	}
	defer tx.Rollback(ctx)
	var choice string
	if err := tx.QueryRow(
		ctx,
		"SELECT keys_version, key_made, default_role FROM cluster",
	).Scan(&version, &access.KeyMade, &choice); err != nil {
		return access, 0, err
	}
	if role, invalid := agent.ParseChoice(choice); invalid == nil {
		access.Choice = &role
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
			return access, 0, err
		}
		k.Key.CreatedBy, k.Key.Hash = k.Maker, k.Hash
		access.Keys = append(access.Keys, &k.Key)
	}
	return access, version, nil
}

// followAccess updates the folder's copy of the cluster's API keys and of its decisions
// about access after they changed.
func (cluster *Cluster) followAccess(ctx context.Context, version int64) error {
	cluster.mu.Lock()
	same := cluster.keys == version
	cluster.mu.Unlock()
	if same || cluster.folder == nil {
		return nil
	}
	a, version, err := cluster.readAccess(ctx)
	if err != nil {
		return err
	}
	cluster.folder.SetAccess(a)
	cluster.mu.Lock()
	cluster.keys = version
	cluster.mu.Unlock()
	return nil
}

// SaveAccess implements store.Cluster.
func (cluster *Cluster) SaveAccess(access agent.Access) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	err := cluster.pool.Transact(ctx, func(tx *pg.Tx) error {
		// The row of the cluster is locked, so that the last writer wins as a whole.
		done, err := tx.Exec(ctx, `UPDATE cluster SET keys_version = keys_version + 1, key_made = key_made OR $1, default_role = $2
			WHERE EXISTS (SELECT 1 FROM agent WHERE id = $3 AND owner = $4 AND NOT deleted)`, access.KeyMade, choiceName(access), agent.DefaultID, cluster.Self().Session)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return agent.NotFound("agent", agent.DefaultID).Because(ErrNotOwner)
		}
		return replaceKeys(ctx, tx, access.Keys)
	})
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: the change of the API keys is not known to all servers: %w", ErrUnavailable, err)
	}
	return nil
}

// choiceName returns what the database stores of an owner's choice: "" if there is none.
func choiceName(a agent.Access) string {
	if a.Choice == nil {
		return ""
	}
	return agent.DefaultRole{Role: *a.Choice}.Name()
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

// importAccess makes the API keys and the choice of a folder those of the cluster, which
// has no default agent yet. They are stored before that agent, so that no server ever
// considers the cluster to be without access control.
func (cluster *Cluster) importAccess(ctx context.Context, a agent.Access) error {
	return cluster.pool.Transact(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(
			ctx,
			"UPDATE cluster SET keys_version = keys_version + 1, key_made = key_made OR $1, default_role = $2",
			a.KeyMade,
			choiceName(a),
		); err != nil {
			return err
		}
		return replaceKeys(ctx, tx, a.Keys)
	})
}
