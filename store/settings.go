package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// settingsOwner is the owner in _secrets of the credentials in the agent's settings.
const settingsOwner = "settings"

// Settings are an agent's settings with the names of the credentials that are set.
type Settings struct {
	agent.Settings
	Configured []string // credentials that are set, sorted
	Locked     []string // those that cannot be decrypted
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

func (tx *Tx) allSettings() (settings Settings, err error) {
	if settings.Settings, err = tx.settings(); err != nil {
		return settings, err
	}
	if err := tx.value(&settings.UpdatedAt, "SELECT settings_at FROM _agent"); err != nil {
		return settings, err
	}
	secrets, err := all(
		tx,
		scanSecret,
		"SELECT "+secretColumns+" FROM _secrets WHERE owner = ? ORDER BY field",
		settingsOwner,
	)
	settings.Configured, settings.Locked = []string{}, []string{}
	for _, x := range secrets {
		settings.Configured = append(settings.Configured, x.field)
		if _, err := tx.db.folder.keys.open(tx.db.id, x); err != nil {
			settings.Locked = append(settings.Locked, x.field)
		}
	}
	return settings, err
}

// Embedding reads which model computes the agent's vectors.
func (db *DB) Embedding(ctx context.Context) (agent.Embedding, error) {
	return Read(ctx, db, func(tx *Tx) (agent.Embedding, error) {
		s, err := tx.settings()
		return s.Embedding(), err
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
		before := settings
		change.Apply(&settings)
		if err := settings.Validate(); err != nil {
			return s, err
		}
		if err := tx.checkSameHosts(before, settings, change.Credentials()); err != nil {
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
			hosts, err := tx.credentialHosts(settings, name)
			if err != nil {
				return s, err
			}
			if err := tx.putSecretFor(hosts, settingsOwner, name, value); err != nil {
				return s, err
			}
		}
		if err := tx.audit("settings updated", map[string]any{"credentials": names}); err != nil {
			return s, err
		}
		return tx.allSettings()
	})
}

// checkSameHosts refuses a change after which a stored credential would be sent to
// another host, unless it is given again.
func (tx *Tx) checkSameHosts(before, after agent.Settings, given map[string]string) error {
	for _, name := range agent.Credentials {
		if _, ok := given[name]; ok {
			continue
		}
		from, wasSent := before.CredentialAddress(name)
		to, sent := after.CredentialAddress(name)
		if !sent || to == "" || wasSent && agent.Origin(from) == agent.Origin(to) {
			continue
		}
		if err := tx.checkSameHost(settingsOwner, name, to, name); err != nil {
			return err
		}
	}
	return nil
}

// telegramToken is the credential that Telegram gateways without a token of
// their own use.
const telegramToken = "chatbot_a_token"

// credentialHosts returns the origins that a credential of the settings is for if it
// is given now. Telegram's is also for the gateways that rely on it.
func (tx *Tx) credentialHosts(settings agent.Settings, name string) (string, error) {
	address, _ := settings.CredentialAddress(name)
	hosts := []string{agent.Origin(address)}
	if name != telegramToken {
		return hosts[0], nil
	}
	ids, err := all(
		tx,
		func(rows *sqlite.Rows) (id string, err error) {
			return id, rows.Scan(&id)
		},
		"SELECT id FROM gateways WHERE type = ? ORDER BY id",
		agent.GatewayTelegram,
	)
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		o, err := tx.storedGateway(id)
		if err != nil {
			return "", err
		}
		if !o.Locked && o.Config.BotToken == "" {
			hosts = append(hosts, agent.Origin(o.Config.APIAddress(o.Type)))
		}
	}
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), " "), nil
}

// SettingsCredential decrypts one credential of the settings, to be sent to an
// address. It is "" if there is none; for one that was encrypted with another
// master key, or set for another host, the error says so.
func (db *DB) SettingsCredential(ctx context.Context, name, address string) (string, error) {
	return Read(ctx, db, func(tx *Tx) (string, error) {
		plain, err := tx.secretFor(settingsOwner, name, address)
		if errors.Is(err, errLocked) || errors.Is(err, errOtherHost) {
			return "", unusable(agent.CodeConflict, name, err)
		}
		return plain, err
	})
}
