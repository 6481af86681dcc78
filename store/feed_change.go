package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
)

// SourceChange is a change to a source.
type SourceChange struct {
	Name *string // nil: unchanged

	// Config, if not nil, replaces the config of a source of type database or api.
	// Secrets are the new ones, by the names of the fields that Config shows masked;
	// the stored ones named in Keep are kept.
	Config  any
	Secrets map[string]string
	Keep    []string
}

// UpdateSource changes a source. Its config cannot be changed while the source is
// being processed: CONFLICT.
func (db *DB) UpdateSource(ctx context.Context, id string, change SourceChange) (agent.Source, error) {
	if change.Name != nil {
		if err := agent.CheckSourceName(*change.Name); err != nil {
			return agent.Source{}, err
		}
	}
	return Write(ctx, db, func(tx *Tx) (agent.Source, error) {
		source, err := tx.source(id)
		if err != nil {
			return source, err
		}
		if change.Name != nil {
			if _, err := tx.exec(
				"UPDATE sources SET name = ?, updated_at = ? WHERE id = ?",
				*change.Name,
				tx.Now,
				id,
			); err != nil {
				return source, err
			}
		}
		if change.Config != nil {
			if source.Status != agent.SourceReady && source.Status != agent.SourceFailed {
				return source, agent.Errorf(
					agent.CodeConflict,
					"this source is being processed; change its config when it is done",
				).With("status", source.Status)
			}
			if err := tx.changeConfig(source, change); err != nil {
				return source, err
			}
		}
		if err := tx.audit("source updated", map[string]any{"source_id": id}); err != nil {
			return source, err
		}
		return tx.source(id)
	})
}

func (tx *Tx) changeConfig(source agent.Source, change SourceChange) error {
	raw, err := json.Marshal(change.Config)
	if err != nil {
		return err
	}
	config, given := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := unmarshalInto(rawJSON(source.Config), &config); err != nil {
		return err
	}
	if err := unmarshalInto(rawJSON(raw), &given); err != nil {
		return err
	}
	delete(config, "body") // the only field that is omitted when empty
	for name, value := range given {
		config[name] = value
	}
	if err := tx.checkNewCredential(raw, source.Config); err != nil {
		return err
	}
	if raw, err = json.Marshal(config); err != nil {
		return err
	}
	if _, err := tx.exec(
		"UPDATE sources SET config = ?, updated_at = ? WHERE id = ?",
		string(raw),
		tx.Now,
		source.ID,
	); err != nil {
		return err
	}
	return tx.changeSecrets(source.ID, addressOf(raw), change.Secrets, change.Keep)
}
