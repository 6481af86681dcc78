package store

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/agent/links"
	"satchel/store/sqlite"
)

// Links returns the signer of links to browser sessions. Servers with the same master
// key accept each other's links.
func (folder *Folder) Links() *links.Signer { return folder.links }

// HideLinks replaces the links to browser sessions in a text by references. All text
// that is stored passes through it, so it is needed only before a text is used in
// another way.
func (db *DB) HideLinks(text string) string {
	return db.folder.links.Hide(text)
}

// HideLinksIn is HideLinks for bytes, which it does not change.
func (db *DB) HideLinksIn(raw []byte) []byte {
	return db.folder.links.HideBytes(raw)
}

// FillLinks replaces the references to this agent's takeovers in a text that is about to
// be sent by their links. Each time the result is the same. Other references stay, and
// those to takeovers that no longer exist.
func (db *DB) FillLinks(ctx context.Context, text string) (string, error) {
	if !links.Within(text) || !db.folder.links.Serves() {
		return text, nil
	}
	return Read(ctx, db, func(tx *Tx) (string, error) {
		var failed error
		filled := links.Fill(text, func(id string) string {
			found, err := all(tx, scanTakeover, "SELECT "+takeoverColumns+" FROM takeovers WHERE id = ?", id)
			if err != nil {
				failed = err
			}
			if len(found) == 0 {
				return ""
			}
			return db.folder.links.Takeover(&found[0])
		})
		return filled, failed
	})
}

// TextToSend returns the text of a message as it is sent: with links, except in answers
// of a model, which a stranger could ask to write any reference, and in messages that
// Immediate.KeepReferences marked.
func (db *DB) TextToSend(ctx context.Context, text string, metadata json.RawMessage) (string, error) {
	if !links.Within(text) {
		return text, nil
	}
	var by struct {
		Model *string `json:"model"`
		Keep  bool    `json:"keep_references"`
	}
	if err := json.Unmarshal(metadata, &by); err != nil || by.Model != nil || by.Keep {
		return text, nil //nolint:nilerr // metadata changed by SQL may be invalid
	}
	return db.FillLinks(ctx, text)
}

// FirstTrigger returns what started an execution, or the one that it retries, or the one
// whose workflow node started it; "" if that is no longer known.
func (db *DB) FirstTrigger(ctx context.Context, x *agent.Execution) (trigger string, err error) {
	before, derived := map[string]string{"retry": x.RetriedFrom, "workflow": x.ParentID}[x.Trigger]
	if !derived {
		return x.Trigger, nil
	}
	return Read(ctx, db, func(tx *Tx) (string, error) {
		err := tx.value(&trigger, firstTrigger, before)
		if errors.Is(err, sqlite.ErrNoRows) {
			err = nil
		}
		return trigger, err
	})
}

const firstTrigger = `WITH RECURSIVE line(trigger, before) AS (
		SELECT trigger, CASE trigger WHEN 'retry' THEN retried_from WHEN 'workflow' THEN parent_id END
			FROM executions WHERE id = ?
		UNION SELECT e.trigger, CASE e.trigger WHEN 'retry' THEN e.retried_from WHEN 'workflow' THEN e.parent_id END
			FROM line JOIN executions e ON e.id = line.before)
	SELECT trigger FROM line WHERE before IS NULL`

// hideParams returns parameters of SQL without links to browser sessions.
func (db *DB) hideParams(p Params) Params {
	for i, v := range p.List {
		if text, ok := v.(string); ok {
			p.List[i] = db.HideLinks(text)
		}
	}
	for name, v := range p.Named {
		if text, ok := v.(string); ok {
			p.Named[name] = db.HideLinks(text)
		}
	}
	return p
}

// requested returns a takeover as it stands in its event: with a reference in place of
// the link.
func requested(t agent.Takeover) agent.Takeover {
	t.TakeoverURL = links.Reference(t.ID)
	return t
}
