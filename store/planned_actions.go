package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

const maxPlannedActions = 5_000

// PlannedActions returns the actions stored under a key, or nil, and marks them as
// used.
func (db *DB) PlannedActions(ctx context.Context, key []byte) (actions []agent.PlannedAction, err error) {
	found, err := Read(ctx, db, func(tx *Tx) ([]string, error) {
		return all(
			tx,
			func(rows *sqlite.Rows) (s string, err error) {
				return s, rows.Scan(&s)
			},
			"SELECT actions FROM _planned_actions WHERE key = ?",
			key,
		)
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if err := json.Unmarshal([]byte(found[0]), &actions); err != nil {
		return nil, err
	}
	_, err = Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec("UPDATE _planned_actions SET used_at = ? WHERE key = ?", tx.Now, key)
	})
	return actions, err
}

// SetPlannedActions stores actions under a key, dropping the least recently used
// ones. An empty list deletes the key.
func (db *DB) SetPlannedActions(ctx context.Context, key []byte, actions []agent.PlannedAction) error {
	raw, err := json.Marshal(actions)
	if err != nil {
		return err
	}
	_, err = Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		if len(actions) == 0 {
			return tx.exec("DELETE FROM _planned_actions WHERE key = ?", key)
		}
		if _, err := tx.exec(
			"INSERT OR REPLACE INTO _planned_actions(key, actions, used_at) VALUES (?,?,?)",
			key,
			string(raw),
			tx.Now,
		); err != nil {
			return sqlite.Result{}, err
		}
		return tx.exec(
			"DELETE FROM _planned_actions WHERE key IN (SELECT key FROM _planned_actions "+
				"ORDER BY used_at DESC, key LIMIT -1 OFFSET ?)",
			maxPlannedActions,
		)
	})
	return err
}
