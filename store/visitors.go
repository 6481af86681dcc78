package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

// DerivedKey returns a key for one of the program's purposes, derived from the
// folder's master key.
func (folder *Folder) DerivedKey(purpose string) []byte {
	mac := hmac.New(sha256.New, folder.keys[0].bytes)
	mac.Write([]byte("satchel " + purpose))
	return mac.Sum(nil)
}

// handOver leaves a conversation to people: it waits for one, and automatic answers
// are muted.
func (tx *Tx) handOver(conversationID string) error {
	_, err := tx.exec(
		"UPDATE conversations SET needs_human = 1, muted = 1, updated_at = ? WHERE id = ?",
		tx.Now, conversationID,
	)
	return err
}

// storeUnverifiedEmail stores an email address that the contact of a conversation gave
// without proof: on the conversation, and on the contact unless another contact has
// it, which a note then says.
func (tx *Tx) storeUnverifiedEmail(conversationID, email string) error {
	email = agent.NormalEmail(email)
	if email == "" {
		return nil
	}
	conversation, err := tx.conversation(conversationID)
	if err != nil {
		return err
	}
	about, err := json.Marshal(map[string]string{"email": email})
	if err != nil {
		return err
	}
	if conversation.Metadata, err = mergeObjects(conversation.Metadata, about); err != nil {
		return err
	}
	if _, err := tx.exec(
		"UPDATE conversations SET metadata = ?, updated_at = ? WHERE id = ?",
		string(conversation.Metadata),
		tx.Now,
		conversation.ID,
	); err != nil {
		return err
	}
	contact, err := tx.contactOf(&conversation)
	if err != nil || contact.ID == "" || contact.Email == email {
		return err
	}
	_, err = tx.resolveContact("email", email)
	switch {
	case err == nil || contact.Email != "":
		note := agent.Message{
			ConversationID: conversation.ID,
			Role:           agent.MessageNote,
			Metadata:       json.RawMessage("{}"),
			Content: "The visitor gave the email address " + email +
				". Nothing proves that it is theirs, and it is not the one of this contact.",
		}
		return tx.appendMessage(&note)
	case agent.ErrorCode(err) != agent.CodeNotFound:
		return err
	}
	contact.Email = email
	return tx.saveContact(&contact)
}

// StoreUnverifiedEmail stores the email address given by a visitor of a website.
func (db *DB) StoreUnverifiedEmail(ctx context.Context, conversationID, email string) error {
	return db.Do(ctx, func(tx *Tx) error {
		return tx.storeUnverifiedEmail(conversationID, email)
	})
}

// Visit is a conversation as the visitor of a website sees it.
type Visit struct {
	ConversationID string // empty: nothing has been said yet
	Bot            bool   // the agent answers automatically
	Answering      bool   // an automatic answer is on its way
	NeedsHuman     bool
	Muted          bool
	Email          string // given by the visitor, or the contact's
	Messages       []agent.Message
}

// visibleToVisitor is the condition that a visitor sees a message m: what they said, and
// what was sent to them.
const visibleToVisitor = "(m.role = 'user' OR m.role = 'assistant' AND m.metadata ->> " +
	"'$.delivery.status' IN ('pending','sent'))"

// Visit reads the conversation of a gateway's thread with its newest messages after
// the one with id after, at most limit: what the contact said, and what was sent to
// them.
func (db *DB) Visit(ctx context.Context, gatewayID, thread string, after int64, limit int) (Visit, error) {
	return Read(ctx, db, func(tx *Tx) (Visit, error) {
		bot, err := tx.answersGateway(&agent.Gateway{ID: gatewayID, Type: agent.GatewayWeb})
		if err != nil {
			return Visit{}, err
		}
		found, err := all(tx, func(rows *sqlite.Rows) (v Visit, err error) {
			v.Bot = bot
			var given string
			err = rows.Scan(&v.ConversationID, &v.NeedsHuman, &v.Muted, &given, &v.Email, &v.Answering)
			v.Email = cmp.Or(given, v.Email)
			return v, err
		}, `SELECT v.id, v.needs_human, v.muted, coalesce(v.metadata ->> '$.email', ''), coalesce(c.email, ''), EXISTS (SELECT 1 FROM _answers WHERE conversation_id = v.id) AND v.muted = 0
			FROM conversations v LEFT JOIN contacts c ON c.id = v.contact_id
			WHERE v.gateway_id = ? AND v.external_thread_id = ? AND v.external_thread_id <> ''`, gatewayID, thread)
		if err != nil || len(found) == 0 {
			return Visit{Bot: bot}, err
		}
		v := found[0]
		v.Messages, err = all(tx, scanMessage, "SELECT * FROM (SELECT "+messageColumns+` FROM messages m WHERE conversation_id = ? AND id > ?
			AND `+visibleToVisitor+` ORDER BY id DESC LIMIT ?) ORDER BY id`, v.ConversationID, after, limit)
		return v, err
	})
}

// HasVisit reports whether a gateway's thread has a conversation.
func (db *DB) HasVisit(ctx context.Context, gatewayID, thread string) (bool, error) {
	return Read(ctx, db, func(tx *Tx) (has bool, err error) {
		return has, tx.value(&has, `SELECT EXISTS (SELECT 1 FROM conversations WHERE gateway_id = ? AND external_thread_id = ?
			AND external_thread_id <> '')`, gatewayID, thread)
	})
}

// VisitorOf returns the gateway and the thread of a conversation over a website;
// found is false for any other.
func (db *DB) VisitorOf(ctx context.Context, conversationID string) (gatewayID, thread string, found bool, err error) {
	found, err = Read(ctx, db, func(tx *Tx) (bool, error) {
		rows, err := all(
			tx,
			func(rows *sqlite.Rows) (_ struct{}, err error) {
				return struct{}{}, rows.Scan(&gatewayID, &thread)
			},
			"SELECT v.gateway_id, v.external_thread_id FROM conversations v JOIN gateways g ON g.id = v.gateway_id "+
				"WHERE v.id = ? AND g.type = 'web'",
			conversationID,
		)
		return len(rows) > 0, err
	})
	return gatewayID, thread, found, err
}
