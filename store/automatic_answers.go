package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/mailbox"
	"satchel/store/sqlite"
)

// Bounds of automatic answers, so that two programs that do not say that they are
// programs do not answer each other forever: the messages of one sender that are answered
// within a time. People write more messages than emails. A website's widget has bounds of
// its own.
const (
	maxMailAnswers   = 20
	maxSenderAnswers = 100
	answersWithin    = 24 * time.Hour
)

// ReceivedMessage is a message of a gateway, from the point of view of the answers to it.
type ReceivedMessage struct {
	Senders  []string        // of an email: the addresses to which an answer goes
	Metadata json.RawMessage // of the message
	Refused  string          // why it gets no automatic answer; "" if it may

	id             int64
	conversationID string
	contactID      string // of its author
	gateway        agent.GatewayType
}

// IsSender reports whether an email to an address is an answer.
func (m *ReceivedMessage) IsSender(address string) bool {
	if m == nil {
		return false
	}
	return slices.ContainsFunc(m.Senders, func(s string) bool {
		return mailbox.Key(s) == mailbox.Key(address)
	})
}

// received returns a message of a gateway; nil if it is none.
func (tx *Tx) received(messageID int64) (*ReceivedMessage, error) {
	found, err := all(tx, func(rows *sqlite.Rows) (*ReceivedMessage, error) {
		m := ReceivedMessage{id: messageID}
		var replyTo, email, automatic string
		err := rows.Scan(
			&m.conversationID, &m.contactID, &m.gateway, (*rawJSON)(&m.Metadata), &replyTo, &email, &automatic,
		)
		if automatic != "" {
			m.Refused = "a program sent it: " + automatic
		}
		if m.gateway == agent.GatewayEmail {
			m.Senders = slices.DeleteFunc([]string{replyTo, email}, func(s string) bool { return s == "" })
		}
		return &m, err
	}, `SELECT v.id, coalesce(c.id, ''), g.type, m.metadata, coalesce(m.metadata ->> '$.reply_to', ''), coalesce(c.email, ''),
		coalesce(m.metadata ->> '$.auto_submitted', '')
		FROM messages m JOIN conversations v ON v.id = m.conversation_id JOIN gateways g ON g.id = v.gateway_id
		LEFT JOIN contacts c ON c.id = coalesce(m.metadata ->> '$.contact_id', v.contact_id) WHERE m.id = ? AND m.role = 'user'`, messageID)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// causeOf is a query for the message that an execution results from: the one that started
// it, or whose automatic answer called it as a tool, or the newest of the conversation, or
// the first of the contact, that started it.
const causeOf = `(SELECT coalesce(input ->> '$.message.id',
	CASE WHEN idempotency_key GLOB 'answer:*' THEN CAST(substr(idempotency_key, 8) AS INTEGER) END,
	(SELECT max(id) FROM messages WHERE conversation_id = input ->> '$.conversation.id' AND role = 'user'),
	(SELECT min(m.id) FROM contacts c JOIN conversations v ON v.contact_id = c.id JOIN messages m ON m.conversation_id = v.id
		WHERE c.id = input ->> '$.contact.id' AND m.created_at = c.created_at AND m.role = 'user'))
	FROM executions WHERE id = ?)`

// cause returns the message of a gateway that an execution results from; nil if there is
// none.
func (tx *Tx) cause(executionID string) (*ReceivedMessage, error) {
	var id int64
	if err := tx.value(&id, "SELECT coalesce(CAST("+causeOf+" AS INTEGER), 0)", executionID); err != nil || id == 0 {
		return nil, err
	}
	return tx.received(id)
}

// mayAnswer reports whether a message may be answered automatically, and counts it.
// Several answers to a message count once. If its sender has been answered too often, a
// person should look at it.
func (tx *Tx) mayAnswer(message *ReceivedMessage) (may bool, err error) {
	key, limit := cmp.Or(message.contactID, message.conversationID), maxSenderAnswers
	if len(message.Senders) > 0 {
		key, limit = mailbox.Key(message.Senders[0]), maxMailAnswers
	}
	switch {
	case message.Refused != "":
		return false, nil
	case message.gateway == agent.GatewayWeb:
		return true, nil
	}
	since := agent.At(tx.Now.Add(-answersWithin))
	if _, err := tx.exec("DELETE FROM _mail_answers WHERE address = ? AND created_at < ?", key, since); err != nil {
		return false, err
	}
	if _, err := tx.exec(
		`INSERT INTO _mail_answers(address, message_id, created_at) SELECT ?1, ?2, ?3
		WHERE (SELECT count(*) FROM _mail_answers WHERE address = ?1) < ?4 ON CONFLICT DO NOTHING`,
		key, message.id, tx.Now, limit,
	); err != nil {
		return false, err
	}
	if err := tx.value(
		&may,
		"SELECT EXISTS (SELECT 1 FROM _mail_answers WHERE address = ? AND message_id = ?)",
		key, message.id,
	); err != nil || may {
		return may, err
	}
	message.Refused = fmt.Sprintf("the sender has already been answered %d times within a day", limit)
	if _, err := tx.exec("UPDATE conversations SET needs_human = 1 WHERE id = ?", message.conversationID); err != nil {
		return false, err
	}
	return false, tx.logNotAnswered(agent.LevelWarn, message)
}

func (tx *Tx) logNotAnswered(level agent.Level, m *ReceivedMessage) error {
	return tx.log(level, "chat", notAnswered, map[string]any{
		"conversation_id": m.conversationID,
		"message_id":      m.id,
		"reason":          m.Refused,
	})
}

// AnswerMail returns the email that an execution results from, or nil if there is none. If
// one of the recipients sent it, that counts as an automatic answer.
func (db *DB) AnswerMail(ctx context.Context, executionID string, recipients []string) (*ReceivedMessage, error) {
	return Write(ctx, db, func(tx *Tx) (*ReceivedMessage, error) {
		m, err := tx.cause(executionID)
		if err != nil || !slices.ContainsFunc(recipients, m.IsSender) {
			return m, err
		}
		_, err = tx.mayAnswer(m)
		return m, err
	})
}

// refusesAnswer returns why an execution may not send to conversations or contacts, or "".
// What it sends to the sender of the message that it results from is an automatic answer.
func (tx *Tx) refusesAnswer(executionID string, conversations, contacts []string) (string, error) {
	if executionID == "" {
		return "", nil
	}
	message, err := tx.cause(executionID)
	if err != nil || message == nil {
		return "", err
	}
	answers := slices.Contains(conversations, message.conversationID)
	for _, id := range conversations {
		c, err := tx.conversation(id)
		if err != nil {
			return "", err
		}
		contacts = append(contacts, c.ContactID)
	}
	if !answers && (message.contactID == "" || !slices.Contains(contacts, message.contactID)) {
		return "", nil
	}
	_, err = tx.mayAnswer(message)
	return message.Refused, err
}

// OwnAddresses returns the addresses and numbers from which the agent sends.
func (db *DB) OwnAddresses(ctx context.Context) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) (addresses []string, err error) {
		ids, err := all(tx, scanID, "SELECT id FROM gateways WHERE type IN ('email', 'sms', 'chatbot_b')")
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			o, err := tx.storedGateway(id)
			if err != nil {
				return nil, err
			}
			for _, address := range []string{o.Config.FromAddress, o.Config.PhoneNumber} {
				if address != "" {
					addresses = append(addresses, address)
				}
			}
		}
		return addresses, nil
	})
}
