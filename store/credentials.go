package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Fields of _secrets that a credential has.
const (
	credentialField = "secret"
	tokensField     = "tokens"
	loginField      = "login"
)

const credentialColumns = "id, name, preset, type, hosts, config, fields, status, account, expires_at, " +
	"last_error, created_at, updated_at"

var credentialListing = listing[agent.Credential]{listed{
	table:   "_credentials",
	columns: credentialColumns,
	order:   Order{"name", false},
	sort:    map[string]string{"created_at": "created_at", "name": "name", "status": "status"},
	search:  []string{"name", "preset", "hosts"},
}, scanCredential}

func scanCredential(rows *sqlite.Rows) (c agent.Credential, err error) {
	var hosts, config, fields rawJSON
	err = rows.Scan(
		&c.ID, &c.Name, &c.Preset, &c.Type, &hosts, &config, &fields, &c.Status, &c.Account, &c.ExpiresAt, &c.LastError,
		&c.CreatedAt, &c.UpdatedAt,
	)
	if err != nil {
		return c, err
	}
	c.Hosts, c.ConfiguredFields, c.UsedBy = stringsIn(hosts), stringsIn(fields), []agent.CredentialUse{}
	return c, unmarshalInto(config, &c.Config)
}

// Credentials lists credentials.
func (db *DB) Credentials(ctx context.Context, p Page) ([]agent.Credential, int, error) {
	var total int
	page, err := Read(ctx, db, func(tx *Tx) (page []agent.Credential, err error) {
		var f filter
		f.add("true") // _counts has no row for them
		if page, total, err = credentialListing.list(tx, f, p); err != nil {
			return nil, err
		}
		return page, tx.completeCredentials(page)
	})
	return page, total, err
}

// Credential reads a credential by its id or its name.
func (db *DB) Credential(ctx context.Context, ref string) (agent.Credential, error) {
	return Read(ctx, db, func(tx *Tx) (agent.Credential, error) {
		c, err := tx.credential(ref)
		if err != nil {
			return c, err
		}
		page := []agent.Credential{c}
		err = tx.completeCredentials(page)
		return page[0], err
	})
}

// credential reads a credential without the list of its users.
func (tx *Tx) credential(ref string) (agent.Credential, error) {
	found, err := all(
		tx,
		scanCredential,
		"SELECT "+credentialColumns+" FROM _credentials WHERE id = ?1 OR name = ?1 ORDER BY id <> ?1 LIMIT 1",
		ref,
	)
	if err != nil {
		return agent.Credential{}, err
	}
	if len(found) == 0 {
		return agent.Credential{}, agent.NotFound("credential", ref)
	}
	return found[0], nil
}

// completeCredentials fills in where credentials are used, and which are locked.
func (tx *Tx) completeCredentials(page []agent.Credential) error {
	references, err := tx.references(credentialReferences)
	if err != nil {
		return err
	}
	for i := range page {
		c := &page[i]
		if _, _, err := tx.openCredential(c); errors.Is(err, errLocked) {
			c.Status = agent.CredentialLocked
		} else if err != nil {
			return err
		}
		c.UsedBy = append(c.UsedBy, usesOfCredential(c, references)...)
	}
	return nil
}

// openCredential decrypts the secrets of a credential. ok is false if they were
// sealed for the credential in another state.
func (tx *Tx) openCredential(c *agent.Credential) (sealed agent.SealedCredential, ok bool, err error) {
	raw, err := tx.secret(c.ID, credentialField)
	if err != nil || raw == "" {
		return sealed, false, err
	}
	if err := json.Unmarshal([]byte(raw), &sealed); err != nil {
		return sealed, false, fmt.Errorf("sealed credential %s: %w", c.ID, err)
	}
	return sealed, sealed.Is(c), nil
}

func (tx *Tx) sealCredential(c *agent.Credential, values map[string]string) error {
	raw, err := json.Marshal(c.Seal(values))
	if err != nil {
		return err
	}
	c.ConfiguredFields = agent.ConfiguredFields(values)
	return tx.putSecret(c.ID, credentialField, string(raw))
}

// CreateCredential stores a validated credential and seals its secret.
func (db *DB) CreateCredential(
	ctx context.Context,
	credential agent.Credential,
	values map[string]string,
) (agent.Credential, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Credential, error) {
		c := credential
		var count int
		if err := tx.value(&count, "SELECT count(*) FROM _credentials"); err != nil {
			return c, err
		}
		if count >= agent.MaxCredentials {
			return c, agent.Errorf(
				agent.CodeConflict,
				"an agent has at most %d credentials",
				agent.MaxCredentials,
			).With("limit", agent.MaxCredentials)
		}
		c.ID, c.CreatedAt, c.UpdatedAt, c.UsedBy =
			agent.NewID(agent.KindCredential), tx.Now, tx.Now, []agent.CredentialUse{}
		c.Status = statusWithoutTokens(&c)
		if err := tx.sealCredential(&c, values); err != nil {
			return c, err
		}
		hosts, config, fields, err := credentialJSON(&c)
		if err != nil {
			return c, err
		}
		if _, err := tx.exec(
			"INSERT INTO _credentials("+credentialColumns+") VALUES (?,?,?,?,?,?,?,?,'',NULL,'',?,?)",
			c.ID, c.Name, c.Preset, c.Type, hosts, config, fields, c.Status, c.CreatedAt, c.UpdatedAt,
		); err != nil {
			return c, credentialTaken(err, c.Name)
		}
		return c, tx.audit("credential created", map[string]any{"credential_id": c.ID, "name": c.Name})
	})
}

// statusWithoutTokens is the status of a credential without tokens.
func statusWithoutTokens(c *agent.Credential) agent.CredentialStatus {
	if c.Type == agent.CredentialOAuth2 && c.Config.NeedsSignIn() {
		return agent.CredentialNeedsLogin
	}
	return agent.CredentialReady
}

func credentialJSON(c *agent.Credential) (hosts, config, fields string, err error) {
	var raw [3][]byte
	for i, v := range []any{c.Hosts, c.Config, c.ConfiguredFields} {
		if raw[i], err = json.Marshal(v); err != nil {
			return "", "", "", err
		}
	}
	return string(raw[0]), string(raw[1]), string(raw[2]), nil
}

func credentialTaken(err error, name string) error {
	if !isUnique(err) {
		return err
	}
	return agent.Errorf(agent.CodeConflict, "a credential of this name already exists").
		With("field", "name").
		With("name", name)
}

// UpdateCredential changes a credential. check is given its new state and the secret
// that it will have; values are a new secret, or nil to keep the stored one. Sending
// it to another place requires the secret again.
func (db *DB) UpdateCredential(
	ctx context.Context,
	ref string,
	change agent.CredentialChange,
	check func(*agent.Credential, map[string]string) error,
) (agent.Credential, error) {
	updated, err := Write(ctx, db, func(tx *Tx) (agent.Credential, error) {
		credential, err := tx.credential(ref)
		if err != nil {
			return credential, err
		}
		before := credential
		before.Hosts = append([]string{}, credential.Hosts...)
		change.Apply(&credential)
		sealed, same, err := tx.openCredential(&credential)
		values := sealed.Values
		if change.Secret.Given {
			values = change.Secret.Value
			if values == nil {
				values = map[string]string{}
			}
		} else if err != nil && !errors.Is(err, errLocked) {
			return credential, err
		} else if err != nil || !same && len(values) > 0 {
			return credential, agent.Invalid(
				"secret",
				"must be given again, because the type, the hosts or the addresses change",
			)
		}
		if err := check(&credential, values); err != nil {
			return credential, err
		}
		return tx.storeCredential(credential, before, values, change.Secret.Given || !same)
	})
	if err != nil {
		return updated, err
	}
	return db.Credential(ctx, updated.ID)
}

// storeCredential writes a changed credential. If it was sealed again, or is now
// another client, its tokens are deleted.
func (tx *Tx) storeCredential(
	credential, before agent.Credential,
	values map[string]string,
	resealed bool,
) (agent.Credential, error) {
	if resealed {
		if err := tx.sealCredential(&credential, values); err != nil {
			return credential, err
		}
	}
	if resealed ||
		credential.Config.ClientID != before.Config.ClientID ||
		credential.Config.Grant != before.Config.Grant {
		if _, err := tx.exec(
			"DELETE FROM _secrets WHERE owner = ? AND field IN (?, ?)",
			credential.ID, tokensField, loginField,
		); err != nil {
			return credential, err
		}
		credential.Status, credential.Account, credential.ExpiresAt, credential.LastError =
			statusWithoutTokens(&credential), "", agent.Time{}, ""
	}
	hosts, config, fields, err := credentialJSON(&credential)
	if err != nil {
		return credential, err
	}
	if _, err := tx.exec(
		"UPDATE _credentials SET name = ?, type = ?, hosts = ?, config = ?, fields = ?, status = ?, account = ?, "+
			"expires_at = ?, last_error = ?, updated_at = ? WHERE id = ?",
		credential.Name, credential.Type, hosts, config, fields, credential.Status, credential.Account,
		credential.ExpiresAt, credential.LastError, tx.Now, credential.ID,
	); err != nil {
		return credential, credentialTaken(err, credential.Name)
	}
	return credential, tx.audit("credential updated", map[string]any{
		"credential_id": credential.ID,
		"name":          credential.Name,
	})
}

// DeleteCredential removes a credential that is no longer used anywhere.
func (db *DB) DeleteCredential(ctx context.Context, ref string) error {
	return db.Do(ctx, func(tx *Tx) error {
		credential, err := tx.credential(ref)
		if err != nil {
			return err
		}
		references, err := tx.references(credentialReferences)
		if err != nil {
			return err
		}
		if uses := usesOfCredential(&credential, references); len(uses) > 0 {
			return agent.Errorf(
				agent.CodeConflict,
				"the credential is in use; remove it there first",
			).With("used_by", uses)
		}
		if err := tx.deleteRow("_credentials", "credential", credential.ID); err != nil {
			return err
		}
		return tx.audit("credential deleted", map[string]any{"credential_id": credential.ID, "name": credential.Name})
	})
}

// ConfirmCredential allows the use of a credential that was copied with its agent.
func (db *DB) ConfirmCredential(ctx context.Context, ref string) (agent.Credential, error) {
	credential, err := Write(ctx, db, func(tx *Tx) (agent.Credential, error) {
		c, err := tx.credential(ref)
		if err != nil || c.Status != agent.CredentialNeedsConfirm {
			return c, err
		}
		tokens, err := tx.secret(c.ID, tokensField)
		if err != nil && !errors.Is(err, errLocked) {
			return c, err
		}
		if c.Status = agent.CredentialReady; tokens == "" {
			c.Status = statusWithoutTokens(&c)
		}
		if _, err := tx.exec(
			"UPDATE _credentials SET status = ?, updated_at = ? WHERE id = ?",
			c.Status, tx.Now, c.ID,
		); err != nil {
			return c, err
		}
		return c, tx.audit("credential confirmed", map[string]any{"credential_id": c.ID, "name": c.Name})
	})
	if err != nil {
		return credential, err
	}
	return db.Credential(ctx, credential.ID)
}

// unconfirmCredentials marks the credentials of a copied file as unconfirmed:
// if two copies share a rotating refresh token, the first renewal invalidates
// the other copy's.
func (tx *Tx) unconfirmCredentials() error {
	if _, err := tx.exec("UPDATE _credentials SET status = 'needs_confirm'"); err != nil {
		return err
	}
	_, err := tx.exec("DELETE FROM _secrets WHERE field = ? AND owner IN (SELECT id FROM _credentials)", loginField)
	return err
}
