package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/store/sqlite"
)

// IncomingWebhook is the trigger that a call of a workflow's webhook fires.
type IncomingWebhook struct {
	NodeID string
	Auth   agent.IncomingAuth // with its secret, which must not reach a client
}

// IncomingWebhook finds the first trigger of an active workflow that its webhook or its
// form fires. If the workflow has none, or is not active, the error is NOT_FOUND.
func (db *DB) IncomingWebhook(ctx context.Context, workflowID, event string) (IncomingWebhook, error) {
	incoming, err := Read(ctx, db, func(tx *Tx) (h IncomingWebhook, err error) {
		found, err := all(
			tx,
			func(rows *sqlite.Rows) (auth []byte, err error) {
				return auth, rows.Scan(&h.NodeID, &auth)
			},
			"SELECT node_id, auth FROM _triggers WHERE workflow_id = ? AND event = ? ORDER BY position LIMIT 1",
			workflowID, event,
		)
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
		if json.Unmarshal(auth, &h.Auth) != nil || h.Auth.Type == "" { // written by SQL, in an unknown form
			h.Auth = agent.IncomingAuth{Type: "unknown"}
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
		err = agent.NotFound("active workflow with a "+event+" trigger", workflowID)
	case errors.Is(err, errLocked):
		err = agent.Errorf(
			agent.CodeExecution,
			"the secret of this webhook is locked: it was encrypted with another master key; set it again",
		).Because(err)
	}
	return incoming, err
}

// FormOf is a form and the workflow that it starts.
type FormOf struct {
	agent.Form
	WorkflowID   string               `json:"workflow_id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	WorkflowName string               `json:"workflow_name" example:"Contact form"`
	Status       agent.WorkflowStatus `json:"status" enum:"draft,active,paused,archived" example:"active"`
	Auth         string               `json:"auth" doc:"Who may use the form: the type of the trigger's auth; empty for those with the role admin." example:"none"`
	NodeID       string               `json:"node_id" example:"trigger"`
}

const selectForms = `SELECT w.id, w.name, w.status, n.value ->> '$.id', coalesce(n.value ->> '$.data.auth.type', ''), n.value -> '$.data'
	FROM workflows w, json_each(w.nodes) n
	WHERE n.value ->> '$.type' = 'trigger' AND n.value ->> '$.data.event' = 'form'`

func scanForm(rows *sqlite.Rows) (f FormOf, err error) {
	var data string
	if err := rows.Scan(&f.WorkflowID, &f.WorkflowName, &f.Status, &f.NodeID, &f.Auth, &data); err != nil {
		return f, err
	}
	_ = json.Unmarshal([]byte(data), &f.Form) // what SQL wrote is shown as far as it can be decoded
	if f.Title == "" {
		f.Title = f.WorkflowName
	}
	return f, nil
}

// maxForms limits the forms that are listed.
const maxForms = 1000

// Forms lists the forms of all workflows, newest first.
func (db *DB) Forms(ctx context.Context) ([]FormOf, error) {
	return Read(ctx, db, func(tx *Tx) ([]FormOf, error) {
		return all(tx, scanForm, selectForms+" ORDER BY w.created_at DESC, w.id DESC, n.key LIMIT ?", maxForms)
	})
}

// Form reads the form of a workflow's trigger.
func (db *DB) Form(ctx context.Context, workflowID, nodeID string) (FormOf, error) {
	return Read(ctx, db, func(tx *Tx) (f FormOf, err error) {
		found, err := all(tx, scanForm, selectForms+" AND w.id = ? AND n.value ->> '$.id' = ?", workflowID, nodeID)
		if err == nil && len(found) == 0 {
			return f, agent.NotFound("form", workflowID)
		} else if err != nil {
			return f, err
		}
		return found[0], nil
	})
}
