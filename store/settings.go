package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"satchel/agent"
)

// settingsOwner owns the credentials of the agent's settings in _secrets.
const settingsOwner = "settings"

// Settings are an agent's settings with the names of its credentials.
type Settings struct {
	agent.Settings
	Configured []string // credentials that are there, sorted
	Locked     []string // of these, the ones that cannot be opened
	UpdatedAt  agent.Time
}

func (tx *Tx) settings() (agent.Settings, error) {
	settings := agent.DefaultSettings()
	var raw string
	if err := tx.value(&raw, "SELECT settings FROM _agent"); err != nil {
		return settings, err
	}
	if err := json.Unmarshal([]byte(raw), &settings); err != nil {
		return settings, fmt.Errorf("stored settings: %w", err)
	}
	return settings, nil
}

// Timezone reads the agent's time zone, an IANA name.
func (db *DB) Timezone(ctx context.Context) (string, error) {
	return Read(ctx, db, func(tx *Tx) (string, error) {
		settings, err := tx.settings()
		return settings.Timezone, err
	})
}

func (tx *Tx) allSettings() (s Settings, err error) {
	if s.Settings, err = tx.settings(); err != nil {
		return s, err
	}
	if err := tx.value(&s.UpdatedAt, "SELECT settings_at FROM _agent"); err != nil {
		return s, err
	}
	secrets, err := all(tx, scanSecret, "SELECT owner, field, key_id, sealed FROM _secrets WHERE owner = ? ORDER BY field", settingsOwner)
	s.Configured, s.Locked = []string{}, []string{}
	for _, x := range secrets {
		s.Configured = append(s.Configured, x.field)
		if _, err := tx.db.folder.keys.open(tx.db.id, x.owner, x.field, x.keyID, x.sealed); err != nil {
			s.Locked = append(s.Locked, x.field)
		}
	}
	return s, err
}

// Embedding reads which model makes the agent's vectors.
func (db *DB) Embedding(ctx context.Context) (agent.Embedding, error) {
	return Read(ctx, db, func(tx *Tx) (agent.Embedding, error) {
		s, err := tx.settings()
		return s.Embedding(), err
	})
}

// Secrets opens the secrets of a record by the names of their fields; one that
// was sealed with another master key is an error that says so.
func (db *DB) Secrets(ctx context.Context, owner string) (map[string]string, error) {
	return Read(ctx, db, func(tx *Tx) (map[string]string, error) {
		sealed, err := all(tx, scanSecret, "SELECT owner, field, key_id, sealed FROM _secrets WHERE owner = ?", owner)
		opened := map[string]string{}
		for _, s := range sealed {
			plain, failure := db.folder.keys.open(db.id, s.owner, s.field, s.keyID, s.sealed)
			if failure != nil {
				return nil, agent.Errorf(agent.CodeConflict, "%s is locked: it was sealed with another master key; set it again", s.field).Because(failure)
			}
			opened[s.field] = plain
		}
		return opened, err
	})
}

// Settings reads the agent's settings.
func (db *DB) Settings(ctx context.Context) (Settings, error) {
	return Read(ctx, db, (*Tx).allSettings)
}

// UpdateSettings changes the given settings and credentials, all or none.
func (db *DB) UpdateSettings(ctx context.Context, change agent.SettingsChange) (Settings, error) {
	if err := change.Validate(); err != nil {
		return Settings{}, err
	}
	return Write(ctx, db, func(tx *Tx) (s Settings, err error) {
		settings, err := tx.settings()
		if err != nil {
			return s, err
		}
		before := settings.Embedding()
		change.Apply(&settings)
		if err := settings.Validate(); err != nil {
			return s, err
		}
		if err := tx.keepsItsHost(before, settings.Embedding(), change); err != nil {
			return s, err
		}
		raw, err := json.Marshal(settings)
		if err != nil {
			return s, err
		}
		if _, err := tx.exec("UPDATE _agent SET settings = ?, settings_at = ?", string(raw), tx.Now); err != nil {
			return s, err
		}
		given := change.Credentials()
		names := slices.Sorted(maps.Keys(given))
		for _, name := range names {
			value := given[name]
			if err := tx.putSecret(settingsOwner, name, value); err != nil {
				return s, err
			}
		}
		if err := tx.audit("settings updated", map[string]any{"credentials": names}); err != nil {
			return s, err
		}
		return tx.allSettings()
	})
}

// keepsItsHost refuses to let a key that is stored go to another host than it
// was given for: who may change settings cannot read the key by that.
func (tx *Tx) keepsItsHost(before, after agent.Embedding, change agent.SettingsChange) error {
	if change.EmbeddingKey.Given || before.Host() == after.Host() || after.BaseURL == "" {
		return nil
	}
	var stored bool
	err := tx.value(&stored, "SELECT EXISTS (SELECT 1 FROM _secrets WHERE owner = ? AND field = 'embedding_api_key')", settingsOwner)
	if err == nil && stored {
		return agent.Invalid("embedding_api_key", "must be given again, or removed with null, when embedding_base_url leads to another host")
	}
	return err
}

// putSecret seals a secret and stores it; an empty one is removed.
func (tx *Tx) putSecret(owner, field, value string) error {
	if value == "" {
		_, err := tx.exec("DELETE FROM _secrets WHERE owner = ? AND field = ?", owner, field)
		return err
	}
	keyID, sealed := tx.db.folder.keys.seal(tx.db.id, owner, field, value)
	_, err := tx.exec(`INSERT INTO _secrets(owner, field, key_id, sealed, updated_at) VALUES (?,?,?,?,?)
		ON CONFLICT DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed, updated_at = excluded.updated_at`,
		owner, field, keyID, sealed, tx.Now)
	return err
}

// putSecrets seals and stores secrets of a record by the names of their fields.
func (tx *Tx) putSecrets(owner string, secrets map[string]string) error {
	for field, value := range secrets {
		if err := tx.putSecret(owner, field, value); err != nil {
			return err
		}
	}
	return nil
}

// changeSecrets stores the secrets given and removes all others of the record
// but those to keep.
func (tx *Tx) changeSecrets(owner string, given map[string]string, keep []string) error {
	kept, err := json.Marshal(append([]string{}, keep...))
	if err != nil {
		return err
	}
	if _, err := tx.exec("DELETE FROM _secrets WHERE owner = ? AND field NOT IN (SELECT value FROM json_each(?))", owner, string(kept)); err != nil {
		return err
	}
	return tx.putSecrets(owner, given)
}

// Credential opens one credential of the settings. It is "" when there is
// none; a credential sealed with another master key is an error that says so.
func (db *DB) Credential(ctx context.Context, name string) (string, error) {
	return Read(ctx, db, func(tx *Tx) (string, error) {
		secrets, err := all(tx, scanSecret, "SELECT owner, field, key_id, sealed FROM _secrets WHERE owner = ? AND field = ?", settingsOwner, name)
		if err != nil || len(secrets) == 0 {
			return "", err
		}
		s := secrets[0]
		plain, err := db.folder.keys.open(db.id, s.owner, s.field, s.keyID, s.sealed)
		if errors.Is(err, errLocked) {
			return "", agent.Errorf(agent.CodeConflict, "%s is locked: it was sealed with another master key; set it again", name).Because(err)
		}
		return plain, err
	})
}
