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

// TagContacts adds tags to contacts and removes others, in one commit. It
// returns the ids of the contacts whose tags changed.
func (db *DB) TagContacts(ctx context.Context, ids, add, remove []string) ([]string, error) {
	return Write(ctx, db, func(tx *Tx) ([]string, error) {
		changed := []string{}
		for _, id := range ids {
			done, err := tx.tagContact(id, add, remove)
			if err != nil {
				return nil, err
			}
			if done {
				changed = append(changed, id)
			}
		}
		return changed, tx.audit("contacts tagged", map[string]any{
			"contact_ids": changed,
			"added":       add,
			"removed":     remove,
		})
	})
}

// tagContact changes the tags of a contact and reports whether they changed; a
// deleted contact is not an error.
func (tx *Tx) tagContact(id string, add, remove []string) (bool, error) {
	contact, err := tx.contact(id)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return false, nil
	} else if err != nil {
		return false, err
	}
	tags := slices.DeleteFunc(slices.Clone(contact.Tags), func(tag string) bool {
		return slices.Contains(remove, tag)
	})
	tags = agent.CleanTags(append(tags, add...))
	if slices.Equal(tags, contact.Tags) {
		return false, nil
	}
	contact.Tags = tags
	if err := contact.Validate(); err != nil {
		return false, err
	}
	return true, tx.saveContact(&contact)
}

// DeleteContacts deletes contacts in one commit; their conversations are kept.
// It returns the ids of the contacts that existed.
func (db *DB) DeleteContacts(ctx context.Context, ids []string) ([]string, error) {
	return Write(ctx, db, func(tx *Tx) ([]string, error) {
		deleted := []string{}
		for _, id := range ids {
			err := tx.deleteRow("contacts", "contact", id)
			if agent.ErrorCode(err) == agent.CodeNotFound {
				continue
			} else if err != nil {
				return nil, err
			}
			deleted = append(deleted, id)
		}
		return deleted, tx.audit("contacts deleted", map[string]any{"contact_ids": deleted})
	})
}

// ContactTags lists up to limit tags of contacts that begin with a prefix, in order.
// Each costs one index lookup, however many contacts have it.
func (db *DB) ContactTags(ctx context.Context, prefix string, limit int) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) ([]string, error) {
		tags := []string{}
		for from := prefix; len(tags) < limit; {
			found, err := all(tx, scanID, "SELECT tag FROM _contact_tags WHERE tag >= ? ORDER BY tag LIMIT 1", from)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 || !strings.HasPrefix(found[0], prefix) {
				break
			}
			tags = append(tags, found[0])
			from = found[0] + "\x00"
		}
		return tags, nil
	})
}

// LastMessages returns when the newest message in each contact's conversations was
// written; contacts without one are absent.
func (db *DB) LastMessages(ctx context.Context, ids []string) (map[string]agent.Time, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	type last struct {
		contact string
		at      agent.Time
	}
	found, err := Read(ctx, db, func(tx *Tx) ([]last, error) {
		return all(
			tx,
			func(rows *sqlite.Rows) (l last, err error) {
				return l, rows.Scan(&l.contact, &l.at)
			},
			`SELECT j.value, m.created_at FROM json_each(?) j
			JOIN messages m ON m.id = (SELECT max(last_message_id) FROM conversations WHERE contact_id = j.value)`,
			string(list),
		)
	})
	at := make(map[string]agent.Time, len(found))
	for _, l := range found {
		at[l.contact] = l.at
	}
	return at, err
}

var errDryRun = errors.New("dry run")

// TryImport returns what ImportContacts would do, and stores nothing.
func (db *DB) TryImport(ctx context.Context, rows []agent.ContactChange, on OnDuplicate) (out []Imported, err error) {
	err = db.Do(ctx, func(tx *Tx) error {
		var err error
		if out, err = tx.importContacts(ctx, rows, on); err == nil {
			err = errDryRun
		}
		return err
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return out, err
}
