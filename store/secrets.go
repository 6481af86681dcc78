package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// secret is a row of _secrets. hosts are the origins that it may be sent to, see
// agent.Origin, separated by spaces; "" for a secret that is not sent anywhere. They
// are authenticated with it, so that editing the file does not release it to another
// host.
type secret struct {
	owner, field, keyID string
	sealed              []byte
	hosts               string
}

const secretColumns = "owner, field, key_id, sealed, coalesce(hosts, '')"

func scanSecret(rows *sqlite.Rows) (s secret, err error) {
	return s, rows.Scan(&s.owner, &s.field, &s.keyID, &s.sealed, &s.hosts)
}

// isForHost reports whether the secret was given for the host of an address.
func (s secret) isForHost(address string) bool {
	origin := agent.Origin(address)
	return origin != "" && slices.Contains(strings.Fields(s.hosts), origin)
}

// errOtherHost reports that a secret was given for another host.
var errOtherHost = errors.New("given for another host")

// openFor decrypts a secret that is about to be sent to an address; the error is
// errOtherHost if it was given for another host.
func (db *DB) openFor(s secret, address string) (string, error) {
	plain, err := db.folder.keys.open(db.id, s)
	if err == nil && !s.isForHost(address) {
		return "", errOtherHost
	}
	return plain, err
}

// unusable returns an error that says why a secret cannot be used.
func unusable(code agent.Code, field string, err error) error {
	if errors.Is(err, errOtherHost) {
		return agent.Errorf(code, "%s was given for another host and is not sent to this one; give it again", field).
			With("field", field).
			Because(err)
	}
	return agent.Errorf(code, "%s is locked: it was encrypted with another master key; set it again", field).
		With("field", field).
		Because(err)
}

// secrets reads the encrypted secrets of a record.
func (tx *Tx) secrets(owner string) ([]secret, error) {
	return all(tx, scanSecret, "SELECT "+secretColumns+" FROM _secrets WHERE owner = ?", owner)
}

// sealedSecret reads an encrypted secret of a record; ok is false if there is none.
func (tx *Tx) sealedSecret(owner, field string) (s secret, ok bool, err error) {
	found, err := all(
		tx,
		scanSecret,
		"SELECT "+secretColumns+" FROM _secrets WHERE owner = ? AND field = ?",
		owner,
		field,
	)
	if err != nil || len(found) == 0 {
		return s, false, err
	}
	return found[0], true, nil
}

// secret decrypts a secret of a record that is not sent anywhere, or that itself
// says where to; "" if there is none. If it was encrypted with another master key,
// the error wraps errLocked.
func (tx *Tx) secret(owner, field string) (string, error) {
	s, ok, err := tx.sealedSecret(owner, field)
	if err != nil || !ok {
		return "", err
	}
	return tx.db.folder.keys.open(tx.db.id, s)
}

// secretFor is secret for a secret that is about to be sent to an address.
func (tx *Tx) secretFor(owner, field, address string) (string, error) {
	s, ok, err := tx.sealedSecret(owner, field)
	if err != nil || !ok {
		return "", err
	}
	return tx.db.openFor(s, address)
}

// checkSameHost refuses to send a stored secret to a host other than the one that it was
// set for, so that changing an address does not reveal the secret. name is the field
// that the client has to set again.
func (tx *Tx) checkSameHost(owner, field, address, name string) error {
	s, ok, err := tx.sealedSecret(owner, field)
	if err != nil || !ok || s.isForHost(address) {
		return err
	}
	return agent.Invalid(
		name,
		"must be given again or removed, because it was given for another host than the one it would now be sent to",
	)
}

// putSecret encrypts and stores a secret that is not sent anywhere, or that itself
// says where to; an empty one is removed.
func (tx *Tx) putSecret(owner, field, value string) error {
	return tx.putSecretFor("", owner, field, value)
}

// putSecretFor encrypts and stores a secret that may only be sent to hosts; an empty
// one is removed.
func (tx *Tx) putSecretFor(hosts, owner, field, value string) error {
	if value == "" {
		_, err := tx.exec("DELETE FROM _secrets WHERE owner = ? AND field = ?", owner, field)
		return err
	}
	keyID, sealed := tx.db.folder.keys.seal(
		tx.db.id,
		secret{owner: owner, field: field, hosts: hosts},
		value,
	)
	_, err := tx.exec(
		`INSERT INTO _secrets(owner, field, key_id, sealed, updated_at, hosts) VALUES (?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed, updated_at = excluded.updated_at, hosts = excluded.hosts`,
		owner, field, keyID, sealed, tx.Now, hosts,
	)
	return err
}

// putSecrets encrypts and stores the secrets of a record by their fields. They may
// be sent to the host of an address.
func (tx *Tx) putSecrets(owner, address string, secrets map[string]string) error {
	for field, value := range secrets {
		if err := tx.putSecretFor(agent.Origin(address), owner, field, value); err != nil {
			return err
		}
	}
	return nil
}

// changeSecrets stores the given secrets, which may be sent to the host of an
// address, and removes all others of the record except those to keep. These must
// have been given for that host too; otherwise the error names a field of config.
func (tx *Tx) changeSecrets(owner, address string, given map[string]string, keep []string) error {
	for _, field := range keep {
		if err := tx.checkSameHost(owner, field, address, "config."+field); err != nil {
			return err
		}
	}
	kept, err := json.Marshal(append([]string{}, keep...))
	if err != nil {
		return err
	}
	if _, err := tx.exec(
		"DELETE FROM _secrets WHERE owner = ? AND field NOT IN (SELECT value FROM json_each(?))",
		owner,
		string(kept),
	); err != nil {
		return err
	}
	return tx.putSecrets(owner, address, given)
}

// Secrets decrypts the secrets of a record, by the names of their fields, to be sent
// to an address. If one was encrypted with another master key, or given for another
// host, the error says so.
func (db *DB) Secrets(ctx context.Context, owner, address string) (map[string]string, error) {
	return Read(ctx, db, func(tx *Tx) (map[string]string, error) {
		sealed, err := tx.secrets(owner)
		opened := map[string]string{}
		for _, s := range sealed {
			plain, failure := db.openFor(s, address)
			if failure != nil {
				return nil, unusable(agent.CodeConflict, s.field, failure)
			}
			opened[s.field] = plain
		}
		return opened, err
	})
}

// addressOf returns the address in the config of a tool or a source.
func addressOf(config []byte) string {
	var c struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(config, &c) // an invalid config has no address
	return c.URL
}

// bindSecrets binds the secrets of a file that was just opened to their hosts.
func (db *DB) bindSecrets(file *file) error {
	var unbound bool
	if err := file.writer.value(
		&unbound,
		"SELECT EXISTS (SELECT 1 FROM _secrets WHERE hosts IS NULL)",
	); err != nil || !unbound {
		return explain(err)
	}
	tx := newTx(context.Background(), file.writer, db)
	if _, err := tx.exec("BEGIN IMMEDIATE"); err != nil {
		return explain(err)
	}
	err := tx.bindSecrets()
	if err == nil {
		_, err = tx.exec("COMMIT")
	}
	if err != nil {
		_, _ = tx.exec("ROLLBACK")
	}
	return explain(err)
}

// bindSecrets records the hosts of secrets stored before hosts were: those that
// their addresses have now. Secrets encrypted with another master key get none.
func (tx *Tx) bindSecrets() error {
	unbound, err := all(tx, scanSecret, "SELECT "+secretColumns+" FROM _secrets WHERE hosts IS NULL")
	if err != nil {
		return err
	}
	for _, s := range unbound {
		hosts, err := tx.currentHosts(s)
		if err != nil {
			return err
		}
		plain, err := tx.db.folder.keys.open(tx.db.id, s)
		if err != nil {
			continue
		}
		if err := tx.putSecretFor(hosts, s.owner, s.field, plain); err != nil {
			return err
		}
	}
	return nil
}

// currentHosts returns the origins that a stored secret would currently be sent to.
func (tx *Tx) currentHosts(secret secret) (string, error) {
	if secret.owner == settingsOwner {
		settings, err := tx.settings()
		if err != nil {
			return "", err
		}
		return tx.credentialHosts(settings, secret.field)
	}
	texts, err := all(
		tx,
		func(rows *sqlite.Rows) (config []byte, err error) {
			return config, rows.Scan((*rawJSON)(&config))
		},
		"SELECT config FROM tools WHERE id = ?1 UNION ALL SELECT config FROM sources WHERE id = ?1",
		secret.owner,
	)
	if err != nil || len(texts) > 0 {
		return agent.Origin(addressOf(slices.Concat(texts...))), err
	}
	w, err := tx.workflow(secret.owner)
	if err != nil {
		return "", nil // secrets that are not sent anywhere, or that say where to
	}
	_, secrets, _ := agent.TakeNodeSecrets(w.Nodes) // what it refuses is not sent anywhere
	return agent.Origin(secrets.Addresses[secret.field]), nil
}
