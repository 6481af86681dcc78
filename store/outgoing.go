package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// MaxWaiting limits an agent's messages that are waiting to be sent.
const MaxWaiting = 2000

// SendMessage adds a message by the assistant to a conversation and to its gateway's
// outgoing queue. An automatic one is refused with CONFLICT if a person has answered
// in the meantime, and only stored if it answers a simulated message; so is an execution's
// answer to a message that gets none. A person's message mutes automatic replies.
func (db *DB) SendMessage(ctx context.Context, m agent.Message, automatic bool) (agent.Message, error) {
	return db.sendMessage(
		ctx,
		m,
		automatic,
		func(*Tx) error { return nil },
		func(*Tx, *agent.Message) error { return nil },
	)
}

// sendMessage is SendMessage with functions that run before and after it in the same
// commit.
func (db *DB) sendMessage(
	ctx context.Context,
	message agent.Message,
	automatic bool,
	before func(*Tx) error,
	after func(*Tx, *agent.Message) error,
) (agent.Message, error) {
	if len(message.Metadata) == 0 {
		message.Metadata = json.RawMessage("{}")
	}
	if err := message.Validate(); err != nil {
		return message, err
	}
	refused := ""
	sent, err := Write(ctx, db, func(tx *Tx) (agent.Message, error) {
		m := message
		if err := before(tx); err != nil {
			return m, err
		}
		conversation, err := tx.conversation(m.ConversationID)
		if err != nil {
			return m, err
		}
		if automatic && conversation.Muted {
			return m, agent.Errorf(agent.CodeConflict, "a person has taken over this conversation")
		}
		if err := tx.sendable(&conversation, m.Role); err != nil {
			return m, err
		}
		if byExecution(ctx) {
			if refused, err = tx.refusesAnswer(
				ChainOf(ctx).Root,
				[]string{conversation.ID},
				nil,
			); err != nil || refused != "" {
				return m, err
			}
		}
		if err := tx.appendOutgoing(ctx, &conversation, &m, automatic); err != nil {
			return m, err
		}
		if err := tx.answered(&conversation, !automatic && !byExecution(ctx)); err != nil {
			return m, err
		}
		if err := after(tx, &m); err != nil || automatic {
			return m, err
		}
		return m, tx.audit("message added", map[string]any{
			"conversation_id": conversation.ID,
			"message_id":      m.ID,
			"role":            m.Role,
			"send":            true,
		})
	})
	if err == nil && refused != "" {
		err = agent.Errorf(agent.CodeConflict, "the message was not sent: %s", refused)
	}
	return sent, err
}

// byExecution reports whether a write was requested by an execution, and not by a
// person.
func byExecution(ctx context.Context) bool { return ChainOf(ctx).Depth > 0 }

// appendOutgoing adds a message to a conversation and to the queue. What results from a
// simulated message is not queued.
func (tx *Tx) appendOutgoing(
	ctx context.Context,
	conversation *agent.Conversation,
	message *agent.Message,
	automatic bool,
) error {
	simulated, err := tx.fromSimulation("", ChainOf(ctx).Root)
	if err == nil && automatic && !simulated {
		simulated, err = tx.answersSimulation(message)
	}
	if err != nil {
		return err
	}
	status := "pending"
	if simulated {
		status = deliverySimulated
	}
	if message.Metadata, err = mergeObjects(
		message.Metadata,
		json.RawMessage(`{"delivery":{"status":"`+status+`"}}`),
	); err != nil {
		return err
	}
	if simulated {
		return tx.appendUnsent(message)
	}
	if err := tx.appendMessage(message); err != nil {
		return err
	}
	return tx.queueMessage(conversation, message.ID)
}

// sendable returns why a message of a conversation cannot be sent. A conversation by
// phone gets its number as its thread, so that replies find it.
func (tx *Tx) sendable(conversation *agent.Conversation, role agent.MessageRole) error {
	if role != agent.MessageAssistant {
		return agent.Invalid("send", "requires the role assistant")
	}
	if conversation.GatewayID == "" {
		return agent.Invalid("send", "requires a conversation with a gateway")
	}
	gateway, err := tx.gateway(conversation.GatewayID)
	if agent.ErrorCode(err) == agent.CodeNotFound || err == nil && gateway.Status != agent.GatewayActive {
		return agent.Invalid("send", "requires an active gateway")
	} else if err != nil {
		return err
	}
	contact, err := tx.contactOf(conversation)
	if err != nil {
		return err
	}
	to := conversation.Recipient(gateway.Type, &contact)
	if to == "" {
		return agent.Invalid(
			"send",
			"requires a contact whom the gateway's platform can reach, or a conversation that began there",
		)
	}
	var waiting int
	if err := tx.value(&waiting, "SELECT count(*) FROM _outgoing WHERE status IN ('pending','sending')"); err != nil {
		return err
	}
	if waiting >= MaxWaiting {
		return agent.Errorf(
			agent.CodeConflict,
			"%d messages of this agent are already waiting to be sent",
			MaxWaiting,
		).With("limit", MaxWaiting)
	}
	if conversation.ExternalThreadID == "" &&
		(gateway.Type == agent.GatewaySMS || gateway.Type == agent.GatewayWhatsApp) {
		_, err = tx.exec(
			"UPDATE OR IGNORE conversations SET external_thread_id = ? WHERE id = ?",
			dialled(to),
			conversation.ID,
		)
	}
	return err
}

// dialled returns a phone number without the characters that people write between
// its digits.
func dialled(number string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '+' {
			return r
		}
		return -1
	}, number)
}

// contactOf returns the contact of a conversation; the zero Contact if there is
// none.
func (tx *Tx) contactOf(c *agent.Conversation) (agent.Contact, error) {
	contact, err := tx.contact(c.ContactID)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return agent.Contact{}, nil
	}
	return contact, err
}

// queueMessage queues a message after those of its conversation, with the token to
// send it with, if an inbound message left one.
func (tx *Tx) queueMessage(conversation *agent.Conversation, id int64) error {
	token, err := tx.takeReplyToken(conversation.ID)
	if err != nil {
		return err
	}
	if token != "" {
		if err := tx.putSecret(conversation.ID, sendingField(id), token); err != nil {
			return err
		}
	}
	_, err = tx.exec(
		`INSERT INTO _outgoing(message_id, conversation_id, gateway_id, status, next_attempt_at, created_at)
		VALUES (?1, ?2, ?3, 'pending',
			iif(EXISTS (SELECT 1 FROM _outgoing WHERE conversation_id = ?2 AND status IN ('pending','sending')), NULL, '1970-01-01T00:00:00.000Z'), ?4)`,
		id, conversation.ID, conversation.GatewayID, tx.Now,
	)
	return err
}

// sendingField returns the field of _secrets with the token of a queued message.
func sendingField(id int64) string {
	return replyField + "-" + strconv.FormatInt(id, 10)
}

// DueMessage identifies a conversation whose first message is due.
type DueMessage struct {
	ConversationID string
	Sending        bool // an attempt is in progress, or was interrupted
}

// DueMessages returns up to limit conversations with a message that is due at now,
// and when the next after now is due; zero for never.
func (db *DB) DueMessages(
	ctx context.Context,
	now agent.Time,
	limit int,
) (due []DueMessage, next agent.Time, err error) {
	due, err = Read(ctx, db, func(tx *Tx) ([]DueMessage, error) {
		if err := tx.value(
			&next,
			"SELECT min(next_attempt_at) FROM _outgoing WHERE status IN ('pending','sending') AND next_attempt_at > ?",
			now,
		); err != nil {
			return nil, err
		}
		return all(
			tx,
			func(rows *sqlite.Rows) (d DueMessage, err error) {
				return d, rows.Scan(&d.ConversationID, &d.Sending)
			},
			"SELECT conversation_id, status = 'sending' FROM _outgoing WHERE status IN ('pending','sending') "+
				"AND next_attempt_at <= ? ORDER BY next_attempt_at, message_id LIMIT ?",
			now,
			limit,
		)
	})
	return due, next, err
}

// Sending is a message that is being sent, with everything needed for an attempt.
type Sending struct {
	MessageID    int64
	Interrupted  bool // the program stopped in the middle of the attempt
	Text         string
	Metadata     json.RawMessage
	Attempt      int // number of this attempt
	FirstAt      agent.Time
	Parts        int    // that have been sent
	ExternalID   string // of the first
	Channel      string
	Token        string // to answer an inbound message with; empty: none
	Conversation agent.Conversation
	Contact      agent.Contact
	Answers      json.RawMessage // metadata of the contact's newest message before it; nil if there is none
	Gateway      OpenGateway     // without an id: it no longer exists
}

// Key returns the idempotency key of the message, which is the same for each
// attempt.
func (s *Sending) Key(agentID string) string {
	return agentID + ":message:" + strconv.FormatInt(s.MessageID, 10)
}

// BeginSending marks the first message of a conversation as being sent and returns
// it; nil if none is due at now. The mark stays until EndSending, even across a
// crash: a message that already has it is returned as interrupted. The caller has no
// other attempt in progress for the conversation.
func (db *DB) BeginSending(ctx context.Context, conversationID string, now agent.Time) (*Sending, error) {
	return Write(ctx, db, func(tx *Tx) (*Sending, error) {
		tx.claimWork(workMessages)
		done, err := tx.exec(`UPDATE _outgoing SET status = 'sending', attempt = attempt + 1, first_at = coalesce(first_at, ?2)
			WHERE message_id = (SELECT min(message_id) FROM _outgoing WHERE conversation_id = ?1 AND status IN ('pending','sending'))
			AND status = 'pending' AND next_attempt_at <= ?2`, conversationID, now)
		if err != nil {
			return nil, err
		}
		s, err := tx.sending(conversationID)
		if s != nil {
			s.Interrupted = done.Changes == 0
		}
		return s, err
	})
}

// sending returns the message of a conversation that is being sent, or nil.
func (tx *Tx) sending(conversationID string) (*Sending, error) {
	gatewayID := ""
	found, err := all(tx, func(rows *sqlite.Rows) (s Sending, err error) {
		return s, rows.Scan(
			&s.MessageID, &s.Conversation.ID, &gatewayID, &s.Attempt, &s.FirstAt, &s.Parts, &s.ExternalID, &s.Channel,
			&s.Text, (*rawJSON)(&s.Metadata),
		)
	}, `SELECT o.message_id, o.conversation_id, o.gateway_id, o.attempt, o.first_at, o.parts, o.external_id, o.channel, m.content, m.metadata
		FROM _outgoing o JOIN messages m ON m.id = o.message_id WHERE o.conversation_id = ? AND o.status IN ('pending','sending') AND o.status = 'sending'`, conversationID)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], tx.completeSending(&found[0], gatewayID)
}

func (tx *Tx) completeSending(sending *Sending, gatewayID string) (err error) {
	if sending.Conversation, err = tx.conversation(sending.Conversation.ID); err != nil {
		return err
	}
	if sending.Contact, err = tx.contactOf(&sending.Conversation); err != nil {
		return err
	}
	sending.Gateway, err = tx.openGateway(gatewayID)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		sending.Gateway, err = OpenGateway{}, nil
	}
	if err != nil {
		return err
	}
	if sending.Token, err = tx.secret(
		sending.Conversation.ID,
		sendingField(sending.MessageID),
	); err != nil && !errors.Is(err, errLocked) {
		return err
	}
	answers, err := all(
		tx,
		func(rows *sqlite.Rows) (raw json.RawMessage, err error) {
			return raw, rows.Scan((*rawJSON)(&raw))
		},
		"SELECT metadata FROM messages WHERE conversation_id = ? AND id < ? AND role = 'user' ORDER BY id DESC LIMIT 1",
		sending.Conversation.ID, sending.MessageID,
	)
	if len(answers) > 0 {
		sending.Answers = answers[0]
	}
	return err
}

// Ended is the outcome of sending a message.
type Ended struct {
	Parts      int // that have been sent, in all attempts
	ExternalID string
	Channel    string
	Problem    string     // empty: sent
	Next       agent.Time // time of the next attempt after a problem; zero for none
}

// EndSending records the outcome of an attempt on the message, and a problem also on
// its gateway. A success emits the event message.sent. What the conversation sends
// next is not announced: the caller looks for it.
func (db *DB) EndSending(ctx context.Context, sending *Sending, ended Ended) error {
	return db.Do(ctx, func(tx *Tx) error {
		tx.claimWork(workMessages)
		status := "sent"
		switch {
		case ended.Problem != "" && ended.Next.IsZero():
			status = "failed"
		case ended.Problem != "":
			status = "pending"
		}
		done, err := tx.exec(
			`UPDATE _outgoing SET status = ?, parts = ?, external_id = ?, channel = ?, error = ?, next_attempt_at = `+
				`? WHERE message_id = ? AND status = 'sending'`,
			status,
			ended.Parts,
			agent.Clip(ended.ExternalID, 200),
			agent.Clip(ended.Channel, 200),
			ended.Problem,
			ended.Next,
			sending.MessageID,
		)
		if err != nil {
			return err
		}
		if done.Changes == 0 {
			return err // the message was deleted in the meantime
		}
		if status != "pending" {
			if err := tx.putSecret(sending.Conversation.ID, sendingField(sending.MessageID), ""); err != nil {
				return err
			}
		}
		if ended.Problem == "" {
			return nil
		}
		if _, err := tx.exec(
			"UPDATE gateways SET last_error = ?, last_error_at = ? WHERE id = ?",
			fmt.Sprintf("message %d was not sent: %s", sending.MessageID, ended.Problem),
			tx.Now,
			sending.Gateway.ID,
		); err != nil || status == "pending" {
			return err
		}
		return tx.log(
			agent.LevelWarn,
			"gateways",
			"a message was not sent",
			map[string]any{
				"message_id":      sending.MessageID,
				"conversation_id": sending.Conversation.ID,
				"gateway_id":      sending.Gateway.ID,
				"error":           ended.Problem,
			},
		)
	})
}
