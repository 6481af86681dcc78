package store

import (
	"context"

	"satchel/agent"
)

// DeleteSources deletes several sources in one commit, like DeleteSource. It returns
// the ids of those that existed.
func (db *DB) DeleteSources(ctx context.Context, ids []string) ([]string, error) {
	return Write(ctx, db, func(tx *Tx) ([]string, error) {
		deleted := []string{}
		for _, id := range ids {
			err := tx.deleteRow("sources", "source", id)
			if agent.ErrorCode(err) == agent.CodeNotFound {
				continue
			} else if err != nil {
				return nil, err
			}
			deleted = append(deleted, id)
		}
		return deleted, tx.audit("sources deleted", map[string]any{"source_ids": deleted})
	})
}

// ReindexSources processes finished sources again, in one commit. It returns the ids
// of those that it restarted; sources that are being processed or do not exist are
// skipped.
func (db *DB) ReindexSources(ctx context.Context, ids []string) ([]string, error) {
	return Write(ctx, db, func(tx *Tx) ([]string, error) {
		restarted := []string{}
		for _, id := range ids {
			s, err := tx.source(id)
			if err == nil {
				_, err = tx.restartSource(id, agent.ReindexStatus(s.Type))
			}
			switch agent.ErrorCode(err) {
			case agent.CodeNotFound, agent.CodeConflict:
				continue
			}
			if err != nil {
				return nil, err
			}
			restarted = append(restarted, id)
		}
		return restarted, nil
	})
}
