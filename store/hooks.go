package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Hook is the trigger that a call of a workflow's hook starts.
type Hook struct {
	NodeID string
	Auth   agent.HookAuth // with its secret; what it seals must not reach a client
}

// Hook finds the webhook trigger of an active workflow, the first of them. A
// workflow that has none, or that is not active, is a NOT_FOUND.
func (db *DB) Hook(ctx context.Context, workflowID string) (Hook, error) {
	h, err := Read(ctx, db, func(tx *Tx) (h Hook, err error) {
		found, err := all(tx, func(rows *sqlite.Rows) (auth []byte, err error) { return auth, rows.Scan(&h.NodeID, &auth) },
			"SELECT node_id, auth FROM _triggers WHERE workflow_id = ? AND event = 'webhook' ORDER BY position LIMIT 1", workflowID)
		if err != nil {
			return h, err
		}
		if len(found) == 0 {
			return h, sqlite.ErrNoRows
		}
		auth := found[0]
		if len(auth) == 0 || string(auth) == "null" {
			return h, nil
		}
		if json.Unmarshal(auth, &h.Auth) != nil || h.Auth.Type == "" { // by SQL: whom it means, nobody knows
			h.Auth = agent.HookAuth{Type: "unknown"}
			return h, nil
		}
		field, value := h.Auth.SecretField()
		if value == nil || *value != agent.Mask {
			return h, nil
		}
		*value, err = tx.secret(workflowID, agent.NodeSecret(h.NodeID, "auth."+field))
		return h, err
	})
	switch {
	case errors.Is(err, sqlite.ErrNoRows):
		err = agent.NotFound("active workflow with a webhook trigger", workflowID)
	case errors.Is(err, errLocked):
		err = agent.Errorf(agent.CodeExecution, "the secret of this hook is locked: it was sealed with another master key; set it again").Because(err)
	}
	return h, err
}
