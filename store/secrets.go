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

// secret is a row of _secrets. hosts are the origins that it may be sent to,
// see agent.Origin, with spaces between; "" for a secret that is sent nowhere.
// They are authenticated with it: a file that was edited does not open it for
// another host.
type secret struct {
	owner, field, keyID string
	sealed              []byte
	hosts               string
}

const secretColumns = "owner, field, key_id, sealed, coalesce(hosts, '')"

func scanSecret(rows *sqlite.Rows) (s secret, err error) {
	return s, rows.Scan(&s.owner, &s.field, &s.keyID, &s.sealed, &s.hosts)
}

// isFor reports whether the secret was given for the host of an address.
func (s secret) isFor(address string) bool {
	origin := agent.Origin(address)
	return origin != "" && slices.Contains(strings.Fields(s.hosts), origin)
}

// errOtherHost reports that a secret was given for another host.
var errOtherHost = errors.New("given for another host")

// openFor opens a secret that is about to be sent to an address: errOtherHost
// when it was given for another host.
func (db *DB) openFor(s secret, address string) (string, error) {
	plain, err := db.folder.keys.open(db.id, s)
	if err == nil && !s.isFor(address) {
		return "", errOtherHost
	}
	return plain, err
}

// unusable is an error that says why a secret cannot be used.
func unusable(code agent.Code, field string, err error) error {
	if errors.Is(err, errOtherHost) {
		return agent.Errorf(code, "%s was given for another host and is not sent to this one; give it again", field).With("field", field).Because(err)
	}
	return agent.Errorf(code, "%s is locked: it was encrypted with another master key; set it again", field).With("field", field).Because(err)
}

// secrets reads the sealed secrets of a record.
func (tx *Tx) secrets(owner string) ([]secret, error) {
	return all(tx, scanSecret, "SELECT "+secretColumns+" FROM _secrets WHERE owner = ?", owner)
}

// sealedSecret reads a record's sealed secret; ok is false when there is none.
func (tx *Tx) sealedSecret(owner, field string) (s secret, ok bool, err error) {
	found, err := all(tx, scanSecret, "SELECT "+secretColumns+" FROM _secrets WHERE owner = ? AND field = ?", owner, field)
	if err != nil || len(found) == 0 {
		return s, false, err
	}
	return found[0], true, nil
}

// secret opens a record's sealed secret that is not to be sent, or that says
// itself where to; "" when there is none, errLocked in the chain when another
// master key sealed it.
func (tx *Tx) secret(owner, field string) (string, error) {
	s, ok, err := tx.sealedSecret(owner, field)
	if err != nil || !ok {
		return "", err
	}
	return tx.db.folder.keys.open(tx.db.id, s)
}

// secretFor is secret for one that is about to be sent to an address.
func (tx *Tx) secretFor(owner, field, address string) (string, error) {
	s, ok, err := tx.sealedSecret(owner, field)
	if err != nil || !ok {
		return "", err
	}
	return tx.db.openFor(s, address)
}

// keepsHost refuses to send a stored secret to another host than it was set
// for, so that changing an address does not reveal the secret. name is the
// field that the client has to set again.
func (tx *Tx) keepsHost(owner, field, address, name string) error {
	s, ok, err := tx.sealedSecret(owner, field)
	if err != nil || !ok || s.isFor(address) {
		return err
	}
	return agent.Invalid(name, "must be given again, or removed, for it was given for another host than it would be sent to now")
}

// putSecret seals and stores a secret that is sent nowhere, or that says itself
// where to; an empty one is removed.
func (tx *Tx) putSecret(owner, field, value string) error {
	return tx.putSecretFor("", owner, field, value)
}

// putSecretFor seals and stores a secret that may be sent to hosts and nowhere
// else; an empty one is removed.
func (tx *Tx) putSecretFor(hosts, owner, field, value string) error {
	if value == "" {
		_, err := tx.exec("DELETE FROM _secrets WHERE owner = ? AND field = ?", owner, field)
		return err
	}
	keyID, sealed := tx.db.folder.keys.seal(tx.db.id, secret{owner: owner, field: field, hosts: hosts}, value)
	_, err := tx.exec(`INSERT INTO _secrets(owner, field, key_id, sealed, updated_at, hosts) VALUES (?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed, updated_at = excluded.updated_at, hosts = excluded.hosts`,
		owner, field, keyID, sealed, tx.Now, hosts)
	return err
}

// putSecrets seals and stores the secrets of a record, by the names of their
// fields, which may be sent to the host of an address.
func (tx *Tx) putSecrets(owner, address string, secrets map[string]string) error {
	for field, value := range secrets {
		if err := tx.putSecretFor(agent.Origin(address), owner, field, value); err != nil {
			return err
		}
	}
	return nil
}

// changeSecrets stores the secrets given, which may be sent to the host of an
// address, and removes all others of the record but those to keep. These must
// be for that host too; the error names a field of config.
func (tx *Tx) changeSecrets(owner, address string, given map[string]string, keep []string) error {
	for _, field := range keep {
		if err := tx.keepsHost(owner, field, address, "config."+field); err != nil {
			return err
		}
	}
	kept, err := json.Marshal(append([]string{}, keep...))
	if err != nil {
		return err
	}
	if _, err := tx.exec("DELETE FROM _secrets WHERE owner = ? AND field NOT IN (SELECT value FROM json_each(?))", owner, string(kept)); err != nil {
		return err
	}
	return tx.putSecrets(owner, address, given)
}

// Secrets opens the secrets of a record, by the names of their fields, to be
// sent to an address. One that was encrypted with another master key, or given for
// another host, is an error that says so.
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

// addressOf reads the address out of a config of a tool or a source.
func addressOf(config []byte) string {
	var c struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(config, &c) // what is no config names no address
	return c.URL
}

// bindSecrets brings the secrets of a file that was just opened up to date.
func (db *DB) bindSecrets(f *file) error {
	var unbound bool
	if err := f.writer.value(&unbound, "SELECT EXISTS (SELECT 1 FROM _secrets WHERE hosts IS NULL)"); err != nil || !unbound {
		return explain(err)
	}
	tx := newTx(context.Background(), f.writer, db)
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

// bindSecrets notes the hosts of secrets that were stored before hosts were:
// those that their addresses name now. What another master key sealed stays
// without any.
func (tx *Tx) bindSecrets() error {
	unbound, err := all(tx, scanSecret, "SELECT "+secretColumns+" FROM _secrets WHERE hosts IS NULL")
	if err != nil {
		return err
	}
	for _, s := range unbound {
		hosts, err := tx.hostsNow(s)
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

// hostsNow are the origins that a stored secret would be sent to as things are.
func (tx *Tx) hostsNow(s secret) (string, error) {
	if s.owner == settingsOwner {
		settings, err := tx.settings()
		if err != nil {
			return "", err
		}
		return tx.credentialHosts(settings, s.field)
	}
	texts, err := all(tx, func(rows *sqlite.Rows) (config []byte, err error) { return config, rows.Scan((*rawJSON)(&config)) },
		"SELECT config FROM tools WHERE id = ?1 UNION ALL SELECT config FROM sources WHERE id = ?1", s.owner)
	if err != nil || len(texts) > 0 {
		return agent.Origin(addressOf(slices.Concat(texts...))), err
	}
	w, err := tx.workflow(s.owner)
	if err != nil {
		return "", nil // of a record whose secrets are sent nowhere, or say where to
	}
	_, secrets, _ := agent.TakeNodeSecrets(w.Nodes) // what it refuses is sent nowhere
	return agent.Origin(secrets.Sent[s.field]), nil
}
