package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"satchel/agent"
	"satchel/store/sqlite"
)

const contactColumns = "id, name, email, phone, chatbot_a, chatbot_b, social_handle, external_id, notes, tags, " +
	"metadata, created_at, updated_at"

var contactListing = listing[agent.Contact]{listed{
	table:   "contacts",
	columns: contactColumns,
	order:   Order{"created_at", true},
	sort: map[string]string{
		"name":       "name COLLATE NOCASE",
		"email":      "email COLLATE NOCASE",
		"created_at": "created_at",
		"updated_at": "updated_at",
	},
	search: []string{"name", "email", "phone"},
}, scanContact}

func scanContact(rows *sqlite.Rows) (c agent.Contact, err error) {
	var tags string
	err = rows.Scan(
		&c.ID, &c.Name, &c.Email, &c.Phone, &c.Telegram, &c.WhatsApp, &c.SocialHandle, &c.ExternalID,
		&c.Notes, &tags, (*rawJSON)(&c.Metadata), &c.CreatedAt, &c.UpdatedAt,
	)
	if err != nil {
		return c, err
	}
	c.Tags, err = decodeTags(tags)
	return c, err
}

// decodeTags reads the tags of a contact. Elements that are not strings, written by
// SQL, are shown as their JSON.
func decodeTags(raw string) ([]string, error) {
	if tags, ok := plainTexts(raw); ok {
		return tags, nil
	}
	tags := []string{}
	if json.Unmarshal([]byte(raw), &tags) == nil {
		return tags, nil
	}
	var mixed []json.RawMessage
	if err := json.Unmarshal([]byte(raw), &mixed); err != nil {
		return nil, fmt.Errorf("stored tags: %w", err)
	}
	tags = make([]string, len(mixed))
	for i, tag := range mixed {
		if json.Unmarshal(tag, &tags[i]) != nil {
			tags[i] = string(tag)
		}
	}
	return tags, nil
}

// plainTexts splits a JSON list of strings that has no escapes or spaces, as nearly
// all lists of tags do. A list of contacts decodes one for each.
func plainTexts(raw string) ([]string, bool) {
	if raw == "[]" {
		return []string{}, true
	}
	inner, opened := strings.CutPrefix(raw, `["`)
	inner, closed := strings.CutSuffix(inner, `"]`)
	if !opened ||
		!closed ||
		strings.Contains(inner, `\`) ||
		!utf8.ValidString(inner) {
		return nil, false
	}
	texts := strings.Split(inner, `","`)
	quoted := func(text string) bool { return strings.Contains(text, `"`) }
	return texts, !slices.ContainsFunc(texts, quoted)
}

// contactKeys are the identifiers of contacts: for each, the expression of its
// unique index, with ? or the column in place of %s, and the index's condition.
var contactKeys = map[string]string{
	"email": "lower(trim(%s))",
	"phone": "replace(replace(replace(replace(replace(replace(replace(replace(%s,' ',''),'-',''),'(',''),')'," +
		"''),'+',''),'.',''),'/',''),char(160),'')",
	"chatbot_a":   "ltrim(lower(trim(%s)),'@')",
	"chatbot_b":   "%s",
	"external_id": "%s",
}

func contactMatch(field string) string {
	key := contactKeys[field]
	return strings.ReplaceAll(key, "%s", field) + " = " + strings.ReplaceAll(key, "%s", "?") + " AND " +
		field + " <> ''"
}

// Contacts lists contacts; if tags are given, those with any of them.
func (db *DB) Contacts(ctx context.Context, tags []string, p Page) ([]agent.Contact, int, error) {
	return listPage(ctx, db, contactListing, taggedAny(tags), p)
}

// taggedAny selects the contacts with any of the tags, or all if there are no
// tags.
func taggedAny(tags []string) (filter filter) {
	if len(tags) == 0 {
		return filter
	}
	any, args := placeholders(len(tags)), anySlice(tags)
	filter.where = []condition{{
		text: "(SELECT 1 FROM _contact_tags WHERE tag IN (" + any +
			") AND contact_id = contacts.id LIMIT 1) IS NOT NULL",
		args:   args,
		byFrom: true,
	}}
	filter.from, filter.fromArgs =
		"(SELECT DISTINCT contact_id FROM _contact_tags WHERE tag IN ("+any+")) CROSS JOIN contacts ON id = contact_id",
		args
	if len(tags) == 1 {
		filter.count, filter.countArgs =
			"SELECT coalesce(sum(n), 0) FROM _filter_counts WHERE list = 'contacts.tag' AND value_1 = ?", args
	} else {
		filter.count, filter.countArgs =
			"SELECT count(DISTINCT contact_id) FROM _contact_tags WHERE tag IN ("+any+")", args
	}
	return filter
}

func anySlice(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// Contact reads one contact.
func (db *DB) Contact(ctx context.Context, id string) (agent.Contact, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Contact, error) {
		return tx.contact(id)
	})
}

func (tx *Tx) contact(id string) (agent.Contact, error) {
	return one(tx, scanContact, "contact", "SELECT "+contactColumns+" FROM contacts WHERE id = ?", id)
}

// CreateContact adds a contact with the given fields. If it shares an identifier
// with another contact, the error is DUPLICATE_CONTACT with the field and the
// other's id.
func (db *DB) CreateContact(ctx context.Context, change agent.ContactChange) (agent.Contact, error) {
	var c agent.Contact
	change.Apply(&c)
	if err := c.Validate(); err != nil {
		return c, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.Contact, error) {
		c := c
		if err := tx.insertContact(&c); err != nil {
			return c, err
		}
		return c, tx.audit("contact created", map[string]any{"contact_id": c.ID})
	})
}

func (tx *Tx) insertContact(c *agent.Contact) error {
	tags, err := json.Marshal(c.Tags)
	if err != nil {
		return err
	}
	c.ID, c.CreatedAt, c.UpdatedAt = cmp.Or(c.ID, agent.NewID(agent.KindContact)), tx.Now, tx.Now
	_, err = tx.exec(
		"INSERT INTO contacts("+contactColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
		c.ID, c.Name, c.Email, c.Phone, c.Telegram, c.WhatsApp, c.SocialHandle, c.ExternalID,
		c.Notes, string(tags), string(c.Metadata), c.CreatedAt, c.UpdatedAt,
	)
	return tx.explainDuplicate(err, c)
}

// explainDuplicate names the contact that contact collides with.
func (tx *Tx) explainDuplicate(err error, contact *agent.Contact) error {
	if !isUnique(err) {
		return err
	}
	for _, field := range agent.ContactIdentifiers {
		value := contact.Identifier(field)
		if value == "" {
			continue
		}
		var id string
		e := tx.value(&id, "SELECT id FROM contacts WHERE "+contactMatch(field)+" AND id <> ?", value, contact.ID)
		if errors.Is(e, sqlite.ErrNoRows) {
			continue
		} else if e != nil {
			return e
		}
		return agent.Errorf(agent.CodeDuplicateContact, "another contact has this %s", field).
			With("field", field).With("existing_id", id).Because(err)
	}
	return err
}

// UpdateContact changes the given fields of a contact.
func (db *DB) UpdateContact(ctx context.Context, id string, change agent.ContactChange) (agent.Contact, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Contact, error) {
		c, err := tx.contact(id)
		if err != nil {
			return c, err
		}
		change.Apply(&c)
		if err := c.Validate(); err != nil {
			return c, err
		}
		if err := tx.saveContact(&c); err != nil {
			return c, err
		}
		return c, tx.audit("contact updated", map[string]any{"contact_id": id})
	})
}

func (tx *Tx) saveContact(contact *agent.Contact) error {
	tags, err := json.Marshal(contact.Tags)
	if err != nil {
		return err
	}
	contact.UpdatedAt = tx.Now
	_, err = tx.exec(
		`UPDATE contacts SET name = ?, email = ?, phone = ?, chatbot_a = ?, chatbot_b = ?, social_handle = ?,
		external_id = ?, notes = ?, tags = ?, metadata = ?, updated_at = ? WHERE id = ?`,
		contact.Name, contact.Email, contact.Phone, contact.Telegram, contact.WhatsApp, contact.SocialHandle,
		contact.ExternalID, contact.Notes,
		string(tags),
		string(contact.Metadata),
		contact.UpdatedAt,
		contact.ID,
	)
	return tx.explainDuplicate(err, contact)
}

// DeleteContact removes a contact; its conversations are kept.
func (db *DB) DeleteContact(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("contacts", "contact", id); err != nil {
			return err
		}
		return tx.audit("contact deleted", map[string]any{"contact_id": id})
	})
}

// deleteRow deletes one row by id; noun is its name in the error.
func (tx *Tx) deleteRow(table, noun, id string) error {
	done, err := tx.exec("DELETE FROM "+table+" WHERE id = ?", id)
	if err != nil {
		return err
	}
	if done.Changes == 0 {
		return errors.Join(err, agent.NotFound(noun, id))
	}
	return nil
}

// ResolveContact finds the contact with this identifier, compared as for duplicates.
func (db *DB) ResolveContact(ctx context.Context, field, value string) (agent.Contact, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Contact, error) {
		return tx.resolveContact(field, value)
	})
}

func (tx *Tx) resolveContact(field, value string) (agent.Contact, error) {
	found, err := all(
		tx,
		scanContact,
		"SELECT "+contactColumns+" FROM contacts WHERE "+contactMatch(field),
		strings.TrimSpace(value),
	)
	if err != nil {
		return agent.Contact{}, err
	}
	if len(found) == 0 {
		return agent.Contact{}, agent.Errorf(agent.CodeNotFound, "no contact has this %s", field).With("field", field)
	}
	return found[0], nil
}

// OnDuplicate says what an import does with a row whose contact exists.
type OnDuplicate string

// The choices of an import.
const (
	DuplicateUpdate OnDuplicate = "update"
	DuplicateSkip   OnDuplicate = "skip"
	DuplicateError  OnDuplicate = "error"
)

// Imported is the outcome of one row of an import.
type Imported struct {
	Outcome string // imported, updated, skipped, or "" with Err
	Err     error
}

// ImportContacts adds or updates contacts in one transaction, with one outcome per
// row. A bad row is reported and does not affect the others.
func (db *DB) ImportContacts(ctx context.Context, rows []agent.ContactChange, on OnDuplicate) ([]Imported, error) {
	return Write(ctx, db, func(tx *Tx) ([]Imported, error) {
		out, err := tx.importContacts(ctx, rows, on)
		if err != nil {
			return nil, err
		}
		return out, tx.audit("contacts imported", map[string]any{"rows": len(rows)})
	})
}

func (tx *Tx) importContacts(ctx context.Context, rows []agent.ContactChange, on OnDuplicate) ([]Imported, error) {
	out := make([]Imported, len(rows))
	for i, change := range rows {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		outcome, err := tx.importContact(change, on)
		var known *agent.Error
		if err != nil && !errors.As(err, &known) {
			return nil, err
		}
		out[i] = Imported{outcome, err}
	}
	return out, nil
}

// importContact updates the contact that has the id or else one of the identifiers, or adds
// one, with the id if it is given.
func (tx *Tx) importContact(change agent.ContactChange, on OnDuplicate) (string, error) {
	change.CleanCells()
	contact := agent.Contact{ID: change.ID}
	change.Apply(&contact)
	existing, err := tx.findDuplicate(&contact)
	if err == nil {
		err = change.CheckCells(existing)
	}
	if err != nil {
		return "", err
	}
	if on == DuplicateError && existing != nil && existing.ID == contact.ID {
		return "", agent.Errorf(agent.CodeDuplicateContact, "another contact has this id").
			With("field", "id").
			With("existing_id", contact.ID)
	}
	if existing == nil || on == DuplicateError {
		if err := contact.Validate(); err != nil {
			return "", err
		}
		if err := tx.insertContact(&contact); err != nil {
			return "", err
		}
		return "imported", nil
	}
	if on == DuplicateSkip {
		return "skipped", nil
	}
	if change.Metadata.Given {
		if change.Metadata.Value, err = mergeObjects(existing.Metadata, change.Metadata.Value); err != nil {
			return "", err
		}
	}
	change.Apply(existing)
	if err := existing.Validate(); err != nil {
		return "", err
	}
	if err := tx.saveContact(existing); err != nil {
		return "", err
	}
	return "updated", nil
}

// findDuplicate finds the contact that has the id of contact, or else one that shares an
// identifier with it; nil if there is none.
func (tx *Tx) findDuplicate(contact *agent.Contact) (*agent.Contact, error) {
	if contact.ID != "" {
		found, err := tx.contact(contact.ID)
		if agent.ErrorCode(err) != agent.CodeNotFound {
			return &found, err
		}
	}
	for _, field := range agent.ContactIdentifiers {
		value := contact.Identifier(field)
		if value == "" {
			continue
		}
		found, err := tx.resolveContact(field, value)
		if agent.ErrorCode(err) == agent.CodeNotFound {
			continue
		}
		return &found, err
	}
	return nil, nil
}

// mergeObjects writes the keys of one JSON object over those of another.
func mergeObjects(into, from json.RawMessage) (json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	for _, raw := range []json.RawMessage{into, from} {
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, &merged); err != nil {
			return nil, agent.Invalid("metadata", "must be an object").Because(err)
		}
	}
	return json.Marshal(merged)
}

// EachContact calls fn with every contact, oldest first. It reads in batches, so
// that a slow reader does not hold a transaction open.
func (db *DB) EachContact(ctx context.Context, fn func(agent.Contact) error) error {
	var after agent.Contact
	for {
		batch, err := Read(ctx, db, func(tx *Tx) ([]agent.Contact, error) {
			return all(tx, scanContact, "SELECT "+contactColumns+` FROM contacts
				WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT 500`, after.CreatedAt.String(), after.ID)
		})
		if err != nil {
			return err
		}
		for _, c := range batch {
			if err := fn(c); err != nil {
				return err
			}
		}
		if len(batch) < 500 {
			return nil
		}
		after = batch[len(batch)-1]
	}
}
