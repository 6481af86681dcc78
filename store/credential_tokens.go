package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"satchel/agent"
)

// OpenCredential is a credential with its secrets decrypted.
type OpenCredential struct {
	agent.Credential
	Values map[string]string
	Tokens agent.CredentialTokens // zero: none
}

// OpenCredential decrypts a credential, given by id or name, for use. If it must not
// be used now, the error says why.
func (db *DB) OpenCredential(ctx context.Context, ref string) (OpenCredential, error) {
	return Read(ctx, db, func(tx *Tx) (credential OpenCredential, err error) {
		if credential.Credential, err = tx.credential(ref); err != nil {
			return credential, err
		}
		sealed, ok, err := tx.openCredential(&credential.Credential)
		var raw string
		if err == nil {
			raw, err = tx.secret(credential.ID, tokensField)
		}
		switch {
		case errors.Is(err, errLocked):
			return credential, agent.Errorf(
				agent.CodeConflict,
				"the credential %s is locked: it was encrypted with another master key; give its secret again",
				credential.Name,
			).With("credential_id", credential.ID).Because(err)
		case err != nil:
			return credential, err
		case !ok:
			return credential, agent.Errorf(
				agent.CodeConflict,
				"the credential %s was changed from outside; give its secret again",
				credential.Name,
			).With("credential_id", credential.ID)
		}
		if raw != "" {
			if err := json.Unmarshal([]byte(raw), &credential.Tokens); err != nil {
				return credential, fmt.Errorf("sealed tokens of %s: %w", credential.ID, err)
			}
		}
		credential.Values = sealed.Values
		if credential.Status == agent.CredentialNeedsConfirm {
			return credential, agent.Errorf(
				agent.CodeConflict,
				"the credential %s was copied with its agent and must be confirmed before it can be used",
				credential.Name,
			).With("credential_id", credential.ID)
		}
		return credential, nil
	})
}

// PutTokens stores new tokens of a credential, which is then ready; MCP servers
// waiting for it become due for a check. The tokens belong to the credential as it
// was opened: if it has been changed or deleted since, the error is CONFLICT.
func (db *DB) PutTokens(
	ctx context.Context,
	credential OpenCredential,
	tokens agent.CredentialTokens,
	account string,
) error {
	raw, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	return db.changeTokens(ctx, credential, func(tx *Tx) error {
		if err := tx.putSecret(credential.ID, tokensField, string(raw)); err != nil {
			return err
		}
		if _, err := tx.exec(
			"UPDATE _credentials SET status = 'ready', expires_at = ?, account = iif(? <> '', ?, account), "+
				"last_error = '', updated_at = ? WHERE id = ?",
			tokens.ExpiresAt, account, account, tx.Now, credential.ID,
		); err != nil || credential.Status == agent.CredentialReady {
			return err
		}
		_, err := tx.exec(
			"UPDATE mcp_servers SET checked_at = NULL WHERE credential IN (?, ?) COLLATE NOCASE",
			credential.ID, credential.Name,
		)
		return err
	})
}

// changeTokens runs fn in a write if the credential has not changed since it was
// opened.
func (db *DB) changeTokens(ctx context.Context, o OpenCredential, fn func(*Tx) error) error {
	return db.Do(ctx, func(tx *Tx) error {
		now, err := tx.credential(o.ID)
		if err != nil {
			return err
		}
		if sealed := o.Credential.Seal(nil); !sealed.Is(&now) || now.Config.ClientID != o.Config.ClientID {
			return agent.Errorf(agent.CodeConflict, "the credential has been changed in the meantime")
		}
		return fn(tx)
	})
}

// DropTokens deletes the tokens of a credential and any login in progress.
func (db *DB) DropTokens(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		credential, err := tx.credential(id)
		if err != nil {
			return err
		}
		if _, err := tx.exec(
			"DELETE FROM _secrets WHERE owner = ? AND field IN (?, ?)",
			credential.ID, tokensField, loginField,
		); err != nil {
			return err
		}
		if _, err := tx.exec(
			"UPDATE _credentials SET status = iif(status = 'needs_confirm', status, ?), account = '', expires_at = "+
				"NULL, last_error = '', updated_at = ? WHERE id = ?",
			statusWithoutTokens(&credential),
			tx.Now,
			credential.ID,
		); err != nil {
			return err
		}
		return tx.audit("credential disconnected", map[string]any{
			"credential_id": credential.ID,
			"name":          credential.Name,
		})
	})
}

// FailCredential notes why a credential does not work. If a person has to connect it
// again, its tokens are deleted. The event is emitted once.
func (db *DB) FailCredential(
	ctx context.Context,
	credential OpenCredential,
	status agent.CredentialStatus,
	reason string,
) error {
	return db.changeTokens(ctx, credential, func(tx *Tx) error {
		now, err := tx.credential(credential.ID)
		if err != nil {
			return err
		}
		if status == agent.CredentialNeedsLogin {
			if err := tx.putSecret(credential.ID, tokensField, ""); err != nil {
				return err
			}
		}
		if _, err := tx.exec(
			"UPDATE _credentials SET status = ?, last_error = ?, expires_at = NULL, updated_at = ? WHERE id = ?",
			status,
			agent.Clip(reason, 500),
			tx.Now,
			credential.ID,
		); err != nil {
			return err
		}
		if now.Status == status {
			return nil
		}
		return tx.emit(agent.EventCredentialFailed, map[string]any{"credential": map[string]any{
			"id":         credential.ID,
			"name":       credential.Name,
			"preset":     credential.Preset,
			"type":       credential.Type,
			"status":     status,
			"last_error": agent.Clip(reason, 500),
		}})
	})
}

// NoteCredentialWorks notes that a credential works, and whose account it is if known.
func (db *DB) NoteCredentialWorks(ctx context.Context, o OpenCredential, account string) error {
	return db.changeTokens(ctx, o, func(tx *Tx) error {
		_, err := tx.exec(
			"UPDATE _credentials SET status = iif(status = 'failing', 'ready', status), last_error = '', account = "+
				"iif(? <> '', ?, account), updated_at = ? WHERE id = ?",
			account, account, tx.Now, o.ID,
		)
		return err
	})
}

// PutLogin stores the state of a login in progress, replacing an earlier one for the
// same credential.
func (db *DB) PutLogin(ctx context.Context, id, login string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if _, err := tx.credential(id); err != nil {
			return err
		}
		return tx.putSecret(id, loginField, login)
	})
}

// TakeLogin passes the login in progress of a credential to take, "" if there is
// none, and stores what take returns in its place. Two calls never get the same
// login.
func (db *DB) TakeLogin(ctx context.Context, id string, take func(login string) (next string, err error)) error {
	return db.Do(ctx, func(tx *Tx) error {
		login, err := tx.secret(id, loginField)
		if errors.Is(err, errLocked) {
			login, err = "", nil
		}
		if err != nil {
			return err
		}
		next, err := take(login)
		if err != nil {
			return err
		}
		return tx.putSecret(id, loginField, next)
	})
}
