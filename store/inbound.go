package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/store/sqlite"
)

// Receipt is the content of one post from a platform to a gateway, or of one polled
// update.
type Receipt struct {
	EventID  string          // identifies a repeat; empty: repeats are not recognized
	Hashed   bool            // EventID is a hash of the content, as in agent.Inbound
	Delivery string          // an unsigned id that also identifies a repeat; empty: none
	Messages []agent.Inbound // empty: it reports something else
	Files    []*Upload       // the stored attachments of the only message, in order
	Payload  json.RawMessage // without messages: the payload of the event gateway.event; free of secrets
	Moved    MovedThread     // the platform gave a thread another id; zero: it did not
}

// MovedThread is a thread that has another id at its platform now.
type MovedThread struct {
	From, To string
}

// Received is the outcome of receipts.
type Received struct {
	Active   bool            // the gateway is active; otherwise receipts are only counted
	New      int             // receipts that were not repeats
	Messages []agent.Message // those that were stored
}

// ReceiveInbound stores and counts what a gateway received. For each message, its
// contact and conversation are found or created; for any other receipt there is an
// event. Messages that the agent should answer automatically are queued. A repeat
// changes nothing. If next is positive, it is stored as the start of the next poll;
// see PollFrom.
func (db *DB) ReceiveInbound(ctx context.Context, gatewayID string, receipts []Receipt, next int64) (Received, error) {
	received, err := Write(ctx, db, func(tx *Tx) (Received, error) {
		gateway, err := tx.gateway(gatewayID)
		if err != nil {
			return Received{}, err
		}
		r := Received{Active: gateway.Status == agent.GatewayActive}
		for i := range receipts {
			if err := tx.receive(&gateway, &receipts[i], &r); err != nil {
				return r, err
			}
		}
		if ChainOf(ctx).Depth < agent.MaxEventDepth {
			if err := tx.queueAnswers(&gateway, r.Messages); err != nil {
				return r, err
			}
		}
		if r.New > 0 {
			day := tx.Now.Format(time.DateOnly)
			if _, err := tx.exec(`UPDATE gateways SET event_count = event_count + ?, events_today = iif(events_day = ?, events_today, 0) + ?,
				events_day = ?, last_event_at = ? WHERE id = ?`, r.New, day, r.New, day, tx.Now, gateway.ID); err != nil {
				return r, err
			}
		}
		if next > 0 {
			_, err = tx.exec(
				"INSERT INTO _polls(gateway_id, next, at) VALUES (?,?,?) ON CONFLICT DO UPDATE "+
					"SET next = excluded.next, at = excluded.at",
				gateway.ID,
				next,
				tx.Now,
			)
		}
		return r, err
	})
	if err == nil && len(received.Messages) > 0 {
		for i := range receipts {
			finishAll(receipts[i].Files)
		}
	}
	return received, err
}

// receive stores one receipt and adds its outcome to received.
func (tx *Tx) receive(gateway *agent.Gateway, receipt *Receipt, received *Received) error {
	if err := tx.moveThread(gateway.ID, receipt.Moved); err != nil {
		return err
	}
	if !received.Active || len(receipt.Messages) == 0 {
		key := "e:" + receipt.EventID
		if receipt.EventID == "" {
			key = ""
		} else if !received.Active {
			key = "i:" + receipt.EventID // it may be sent again once the gateway is active
		}
		first, err := tx.recordFirst(gateway.ID, key, receipt.Hashed)
		if err == nil && first && receipt.Delivery != "" && received.Active {
			first, err = tx.recordFirst(gateway.ID, "d:"+receipt.Delivery, false)
		}
		if err != nil || !first {
			return err
		}
		received.New++
		if !received.Active {
			return nil
		}
		return tx.emit(agent.EventGatewayEvent, map[string]any{
			"gateway": eventGateway(gateway),
			"payload": receipt.eventPayload(),
		})
	}
	stored, joined := len(received.Messages), false
	for i := range receipt.Messages {
		m, err := tx.receiveMessage(gateway, &receipt.Messages[i], receipt.Files)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if m.ID == 0 {
			joined = true
		} else {
			received.Messages = append(received.Messages, *m)
		}
	}
	if len(received.Messages) > stored || joined {
		received.New++
	}
	return nil
}

// eventPayload returns the payload of the event for a receipt, or null if it is too
// long.
func (r *Receipt) eventPayload() json.RawMessage {
	if len(r.Payload) == 0 || len(r.Payload) > maxEventValue || !json.Valid(r.Payload) {
		return json.RawMessage("null")
	}
	return r.Payload
}

// eventGateway returns the gateway in the form of events; triggers write the same.
func eventGateway(g *agent.Gateway) map[string]any {
	return map[string]any{
		"id":         g.ID,
		"type":       g.Type,
		"name":       g.Name,
		"status":     g.Status,
		"is_default": g.IsDefault,
		"verified":   g.Verified,
	}
}

// maxThread limits a platform's id of a thread, in characters.
const maxThread = 1000

// maxInboundKey is the length up to which an id is stored unchanged.
const maxInboundKey = 200

// recordFirst records an id of a platform and reports whether it is new. An empty one
// always is, and a hash becomes new again after signature.MaxAge.
func (tx *Tx) recordFirst(gatewayID, key string, hashed bool) (bool, error) {
	if key == "" {
		return true, nil
	}
	forgotten := agent.Time{} // what is older
	if hashed {
		forgotten = agent.At(tx.Now.Add(-signature.MaxAge))
	}
	done, err := tx.exec(`INSERT INTO _inbound(gateway_id, external_id, created_at) VALUES (?,?,?)
		ON CONFLICT DO UPDATE SET created_at = excluded.created_at WHERE created_at < ?`, gatewayID, inboundKey(key), tx.Now, forgotten)
	if err != nil {
		return false, err
	}
	return done.Changes > 0, nil
}

// receiveMessage stores a message and its files; it returns nil if the message is
// already stored, and a message without an id if it was added to that of its album.
func (tx *Tx) receiveMessage(gateway *agent.Gateway, in *agent.Inbound, files []*Upload) (*agent.Message, error) {
	key := ""
	if in.ID != "" {
		key = "m:" + in.ID
	}
	first, err := tx.recordFirst(gateway.ID, key, in.Hashed)
	if err != nil || !first {
		return nil, err
	}
	contactID, err := tx.sender(gateway, in)
	if err != nil {
		return nil, err
	}
	conversation, err := tx.thread(gateway, in, contactID)
	if err != nil {
		return nil, err
	}
	message := in.Message()
	message.ConversationID = conversation.ID
	if conversation.ContactID != contactID { // one of several people in this thread
		if message.Metadata, err = mergeObjects(
			message.Metadata,
			json.RawMessage(`{"contact_id":"`+contactID+`"}`),
		); err != nil {
			return nil, err
		}
	}
	if in.Album != "" {
		return &message, tx.receiveAlbum(gateway, in.Album, &message)
	}
	if err := tx.appendTurn(&message); err != nil {
		return nil, err
	}
	if err := tx.queueAttachments(gateway, &message); err != nil {
		return nil, err
	}
	if err := tx.keepFiles(gateway.ID, &message, files); err != nil {
		return nil, err
	}
	if in.Person {
		if err := tx.handOver(conversation.ID); err != nil {
			return nil, err
		}
	}
	if err := tx.storeUnverifiedEmail(conversation.ID, in.Email); err != nil {
		return nil, err
	}
	return &message, tx.keepReplyToken(conversation.ID, *in)
}

// KnowsInbound reports whether a gateway has received a message with this id.
func (db *DB) KnowsInbound(ctx context.Context, gatewayID, messageID string) (bool, error) {
	return Read(ctx, db, func(tx *Tx) (known bool, err error) {
		return known, tx.value(
			&known,
			"SELECT EXISTS (SELECT 1 FROM _inbound WHERE gateway_id = ? AND external_id = ?)",
			gatewayID,
			inboundKey("m:"+messageID),
		)
	})
}

// inboundKey returns the stored form of a platform's id.
func inboundKey(key string) string {
	if len(key) <= maxInboundKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "h:" + hex.EncodeToString(sum[:])
}

// sender finds or creates the contact who sent a message. If the platform has a
// permanent id for the sender, that id identifies the contact from then on, so
// that a person who later takes over the handle is not mistaken for them.
func (tx *Tx) sender(gateway *agent.Gateway, in *agent.Inbound) (contactID string, err error) {
	contact := in.Sender()
	account := contact.ExternalID
	if gateway.Type == agent.GatewayWebhook { // its ids are those of the sender's own system, as in contacts
		account = ""
	}
	if account != "" {
		err = tx.value(
			&contactID,
			"SELECT contact_id FROM _senders WHERE type = ? AND account = ?",
			gateway.Type, account,
		)
		if !errors.Is(err, sqlite.ErrNoRows) {
			return contactID, err
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
		} else if err != nil {
			return "", err
		}
		if other, err := tx.hasAccount(found.ID, gateway.Type, account); err != nil {
			return "", err
		} else if other {
			contact.Forget(field)
			continue
		}
		return found.ID, tx.putAccount(gateway.Type, account, found.ID)
	}
	if err := tx.insertContact(&contact); err != nil {
		return "", err
	}
	return contact.ID, tx.putAccount(gateway.Type, account, contact.ID)
}

// hasAccount reports whether a contact has another account on the platform.
func (tx *Tx) hasAccount(contactID string, t agent.GatewayType, account string) (other bool, err error) {
	if account == "" {
		return false, nil
	}
	return other, tx.value(
		&other,
		"SELECT EXISTS (SELECT 1 FROM _senders WHERE contact_id = ? AND type = ?)",
		contactID, t,
	)
}

func (tx *Tx) putAccount(t agent.GatewayType, account, contactID string) error {
	if account == "" {
		return nil
	}
	_, err := tx.exec(
		"INSERT INTO _senders(type, account, contact_id) VALUES (?,?,?) ON CONFLICT DO UPDATE "+
			"SET contact_id = excluded.contact_id",
		t,
		account,
		contactID,
	)
	return err
}

// thread finds or creates the conversation of a message.
func (tx *Tx) thread(gateway *agent.Gateway, in *agent.Inbound, contactID string) (agent.Conversation, error) {
	thread := agent.Clip(
		strings.ToValidUTF8(strings.ReplaceAll(cmp.Or(in.Thread, contactID), "\x00", "\uFFFD"), "\uFFFD"),
		maxThread,
	)
	found, err := all(
		tx,
		scanConversation,
		"SELECT "+conversationColumns+
			" FROM conversations WHERE gateway_id = ? AND external_thread_id = ? AND external_thread_id <> ''",
		gateway.ID,
		thread,
	)
	if err != nil {
		return agent.Conversation{}, err
	}
	if len(found) == 0 {
		c := agent.Conversation{
			ContactID:        contactID,
			GatewayID:        gateway.ID,
			ExternalThreadID: thread,
			Metadata:         json.RawMessage("{}"),
		}
		return c, tx.insertConversation(&c)
	}
	c := found[0]
	if c.ContactID == contactID {
		return c, nil
	}
	var exists bool
	if err := tx.value(
		&exists,
		"SELECT EXISTS (SELECT 1 FROM contacts WHERE id = ?)",
		c.ContactID,
	); err != nil || exists {
		return c, err
	}
	c.ContactID = contactID // its contact was deleted, or it never had one
	_, err = tx.exec("UPDATE conversations SET contact_id = ? WHERE id = ?", contactID, c.ID)
	return c, err
}

// MoveThread keeps a conversation whose thread has another id at its platform now.
func (db *DB) MoveThread(ctx context.Context, gatewayID string, m MovedThread) error {
	return db.Do(ctx, func(tx *Tx) error {
		return tx.moveThread(gatewayID, m)
	})
}

// moveThread changes nothing if there is a conversation of the new thread already.
func (tx *Tx) moveThread(gatewayID string, m MovedThread) error {
	if m.From == "" || m.To == "" {
		return nil
	}
	_, err := tx.exec(`UPDATE conversations SET external_thread_id = ?3 WHERE gateway_id = ?1 AND external_thread_id = ?2
		AND NOT EXISTS (SELECT 1 FROM conversations WHERE gateway_id = ?1 AND external_thread_id = ?3)`, gatewayID, m.From, m.To)
	return err
}

// errorNoticeEvery limits how often the same error of a gateway is stored, so that a
// flood of bad posts does not cause a flood of writes.
const errorNoticeEvery = time.Second

// NoteGatewayError stores an error of a gateway as last_error, without changing its
// status.
func (db *DB) NoteGatewayError(ctx context.Context, id, problem string) error {
	return db.noteGatewayError(
		ctx,
		id,
		agent.Clip(problem, 500),
		agent.At(time.Now().Add(-errorNoticeEvery)),
	)
}

func (db *DB) noteGatewayError(ctx context.Context, id, problem string, before agent.Time) error {
	const due = "id = ? AND (last_error <> ? OR last_error_at IS NULL OR last_error_at <= ?)"
	wanted, err := Read(ctx, db, func(tx *Tx) (wanted bool, err error) {
		return wanted, tx.value(&wanted, "SELECT EXISTS (SELECT 1 FROM gateways WHERE "+due+")", id, problem, before)
	})
	if err != nil || !wanted {
		return err
	}
	return db.Do(ctx, func(tx *Tx) error {
		_, err := tx.exec(
			"UPDATE gateways SET last_error = ?, last_error_at = ? WHERE "+due,
			problem, tx.Now, id, problem, before,
		)
		return err
	})
}

// SetWebhookBase stores the base address that a gateway's platform posts to; "" for
// the server's usual one.
func (db *DB) SetWebhookBase(ctx context.Context, id, base string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if _, err := tx.exec("UPDATE gateways SET webhook_base = ? WHERE id = ?", base, id); err != nil {
			return err
		}
		return tx.audit("gateway webhook registered", map[string]any{"gateway_id": id})
	})
}
