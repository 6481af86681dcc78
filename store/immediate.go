package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Immediate is a message that is sent at once, outside of the queue, and is stored in
// the conversations that it reaches.
type Immediate struct {
	GatewayID string
	Type      agent.GatewayType
	Threads   []string // where it may arrive: the first with a conversation counts
	Addresses []string // of contacts; used if no thread has a conversation
	Text      string
	Origin    agent.MessageOrigin
	Key       string // the same for each attempt; empty: there is only one
	Format    string // as in gateways.Message
	Subject   string // of an email
	// KeepReferences is stored with the message, so that a resend keeps them too.
	KeepReferences bool
}

// ImmediateSending is an attempt to send an Immediate.
type ImmediateSending struct {
	Sent       bool   // an earlier attempt was successful: it must not be sent again
	Simulated  bool   // it must not be sent, because it results from a simulated message
	Refused    string // why it must not be sent as an automatic answer; "": it may
	ExternalID string // if it was sent
	Channel    string // if it was sent
	messages   []int64
	message    Immediate
}

// searchedAnswers limits in how many of a conversation's newest answers an earlier
// attempt is looked for.
const searchedAnswers = 200

// BeginImmediate stores a message as pending in the conversations that it will reach,
// if there are any; later attempts with the same key do not store it again. The caller
// sends it, unless Sent, Simulated or Refused is set, and then calls EndImmediate.
func (db *DB) BeginImmediate(ctx context.Context, immediate Immediate) (*ImmediateSending, error) {
	immediate.Text = agent.Clip(strings.ToValidUTF8(immediate.Text, "\uFFFD"), agent.MaxMessageLength)
	return Write(ctx, db, func(tx *Tx) (*ImmediateSending, error) {
		sending := &ImmediateSending{message: immediate}
		var err error
		if sending.Simulated, err = tx.fromSimulation(immediate.Origin.ExecutionID, ChainOf(ctx).Root); err != nil {
			return nil, err
		}
		ids, err := tx.reachedConversations(&immediate)
		if err != nil {
			return nil, err
		}
		if sending.Refused, err = tx.refusesImmediate(ctx, &immediate, ids); err != nil || sending.Refused != "" {
			return sending, err
		}
		if len(ids) == 0 && sending.Simulated {
			return sending, tx.log(
				agent.LevelInfo,
				"gateways",
				"a message was not sent, because it results from a simulated one",
				map[string]any{
					"gateway_id":   immediate.GatewayID,
					"to":           immediate.recipients(),
					"text":         agent.Clip(immediate.Text, 2000),
					"execution_id": immediate.Origin.ExecutionID,
				},
			)
		}
		sent := 0
		for _, id := range ids {
			messageID, done, err := tx.beginImmediate(id, sending)
			if err != nil {
				return nil, err
			}
			if done {
				sent++
			}
			sending.messages = append(sending.messages, messageID)
		}
		sending.Sent = sent > 0 && sent == len(ids)
		return sending, nil
	})
}

// refusesImmediate returns why a message that will reach conversations may not be sent as
// an automatic answer, or "".
func (tx *Tx) refusesImmediate(ctx context.Context, m *Immediate, conversations []string) (string, error) {
	var contacts []string
	for _, address := range m.Addresses {
		id, err := tx.contactOfAddress(m.Type, address)
		if err != nil {
			return "", err
		}
		contacts = append(contacts, id)
	}
	return tx.refusesAnswer(cmp.Or(ChainOf(ctx).Root, m.Origin.ExecutionID), conversations, contacts)
}

func (m *Immediate) recipients() []string {
	if len(m.Addresses) > 0 {
		return m.Addresses
	}
	return m.Threads
}

// beginImmediate stores a message in a conversation, or finds it there. It reports
// whether it has been sent.
func (tx *Tx) beginImmediate(conversationID string, sending *ImmediateSending) (id int64, sent bool, err error) {
	conversation, err := tx.conversation(conversationID)
	if err != nil {
		return 0, false, err
	}
	about, err := sending.metadata(tx.Now)
	if err != nil {
		return 0, false, err
	}
	found, err := tx.earlierAttempt(conversation.ID, &sending.message)
	if err != nil {
		return 0, false, err
	}
	if found == nil {
		m := agent.Message{
			ConversationID: conversation.ID,
			Role:           agent.MessageAssistant,
			Content:        sending.message.Text,
			Metadata:       about,
		}
		if err := tx.appendUnsent(&m); err != nil {
			return 0, false, err
		}
		return m.ID, false, tx.answered(&conversation, false)
	}
	switch {
	case found.queued:
		return 0, false, agent.Errorf(
			agent.CodeConflict,
			"the message is already being sent again from the inbox",
		).With("message_id", found.id)
	case found.status == "sent":
		sending.ExternalID, sending.Channel = found.externalID, found.channel
		return found.id, true, nil
	}
	_, err = tx.exec("UPDATE messages SET metadata = json_patch(metadata, ?) WHERE id = ?", string(about), found.id)
	return found.id, false, err
}

// metadata returns the metadata of the stored message.
func (s *ImmediateSending) metadata(now agent.Time) (json.RawMessage, error) {
	type delivery struct {
		Status    string `json:"status"`
		StartedAt string `json:"started_at,omitempty"`
	}
	state := delivery{"pending", now.String()}
	if s.Simulated {
		state = delivery{Status: deliverySimulated}
	}
	return json.Marshal(struct {
		agent.MessageOrigin
		Key      string   `json:"send_key,omitempty"`
		Format   string   `json:"send_format,omitempty"`
		Subject  string   `json:"subject,omitempty"`
		Keep     bool     `json:"keep_references,omitempty"`
		Delivery delivery `json:"delivery"`
	}{s.message.Origin, s.message.Key, s.message.Format, s.message.Subject, s.message.KeepReferences, state})
}

// appendUnsent adds a message that has not been sent. The event message.sent is not
// written, not even for a message that is never sent.
func (tx *Tx) appendUnsent(m *agent.Message) error {
	final := m.Metadata
	var err error
	if m.Metadata, err = mergeObjects(final, json.RawMessage(`{"delivery":{"status":"pending"}}`)); err != nil {
		return err
	}
	if err := tx.appendMessage(m); err != nil {
		return err
	}
	m.Metadata = final
	_, err = tx.exec("UPDATE messages SET metadata = ? WHERE id = ?", string(final), m.ID)
	return err
}

// deliverySimulated is the status of a message that was not sent because it results
// from a simulated one.
const deliverySimulated = "simulated"

// storedAttempt is the message of an earlier attempt.
type storedAttempt struct {
	id                          int64
	status, externalID, channel string
	queued                      bool // the queue is sending it
}

// earlierAttempt returns the message that an earlier attempt stored in a conversation,
// or the answer that the same execution stored there without sending it; nil if there
// is neither.
func (tx *Tx) earlierAttempt(conversationID string, immediate *Immediate) (*storedAttempt, error) {
	if immediate.Key == "" {
		return nil, nil
	}
	found, err := all(tx, func(rows *sqlite.Rows) (a storedAttempt, err error) {
		return a, rows.Scan(&a.id, &a.status, &a.externalID, &a.channel, &a.queued)
	}, `SELECT id, coalesce(metadata ->> '$.delivery.status', ''), coalesce(metadata ->> '$.external_id', ''), coalesce(metadata ->> '$.channel', ''),
			EXISTS (SELECT 1 FROM _outgoing WHERE message_id = a.id AND status IN ('pending','sending'))
		FROM (SELECT id, content, metadata FROM messages WHERE conversation_id = ?1 AND role = 'assistant' ORDER BY id DESC LIMIT ?5) a
		WHERE metadata ->> '$.send_key' = ?2 OR ?3 <> '' AND content = ?4 AND metadata ->> '$.delivery' IS NULL
			AND (substr(metadata ->> '$.key', 1, length(?3) + 1) = ?3 || ':' OR metadata ->> '$.execution_id' = ?3)
		ORDER BY metadata ->> '$.send_key' IS ?2 DESC, id DESC LIMIT 1`, conversationID, immediate.Key, immediate.Origin.ExecutionID, immediate.Text, searchedAnswers)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// EndImmediate records the outcome of an attempt on the stored messages. If none was
// stored, the conversation of the channel that the platform named gets the message.
func (db *DB) EndImmediate(ctx context.Context, sending *ImmediateSending, ended Ended) error {
	if sending.Sent || sending.Simulated {
		return nil
	}
	return db.Do(ctx, func(tx *Tx) error {
		ids := sending.messages
		if len(ids) == 0 {
			if ended.Problem != "" || ended.Channel == "" {
				return nil
			}
			var err error
			if ids, err = tx.storeInChannel(sending, ended.Channel); err != nil {
				return err
			}
		}
		status := "sent"
		if ended.Problem != "" {
			status = "failed"
		}
		for _, id := range ids {
			_, err := tx.exec(
				`UPDATE messages SET metadata = json_patch(metadata, json_object('external_id', nullif(?2, ''), 'channel', nullif(?3, ''),
				'delivered_at', iif(?4 = 'sent', ?5, NULL), 'delivery', json_object('status', ?4, 'error', nullif(?6, ''), 'started_at', NULL)))
				WHERE id = ?1 AND metadata ->> '$.delivery.status' IS NOT 'sent'`,
				id,
				agent.Clip(ended.ExternalID, 200),
				agent.Clip(ended.Channel, 200),
				status,
				tx.Now,
				ended.Problem,
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// storeInChannel stores a message in the conversation of a channel, if there is one.
func (tx *Tx) storeInChannel(s *ImmediateSending, channel string) (ids []int64, err error) {
	found, err := tx.conversationsOfThreads(s.message.GatewayID, []string{channel})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	id, _, err := tx.beginImmediate(found[0], s)
	return []int64{id}, err
}

// reachedConversations returns the conversations that a message will reach.
func (tx *Tx) reachedConversations(m *Immediate) ([]string, error) {
	found, err := tx.conversationsOfThreads(m.GatewayID, m.Threads)
	if err != nil || len(found) > 0 {
		return found, err
	}
	for _, address := range m.Addresses {
		id, err := tx.conversationOfAddress(m, address)
		if err != nil {
			return nil, err
		}
		if id != "" && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	return found, nil
}

// conversationsOfThreads returns the conversation of the first thread that has one.
func (tx *Tx) conversationsOfThreads(gatewayID string, threads []string) ([]string, error) {
	for _, thread := range threads {
		found, err := all(
			tx,
			scanID,
			"SELECT id FROM conversations WHERE gateway_id = ? AND external_thread_id = ? AND external_thread_id <> ''",
			gatewayID, thread,
		)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// conversationOfAddress returns the conversation with the contact of an address that a
// message to the address reaches, or "". Of several, it is the one that the execution
// is about, or else the newest.
func (tx *Tx) conversationOfAddress(immediate *Immediate, address string) (string, error) {
	contactID, err := tx.contactOfAddress(immediate.Type, address)
	if err != nil || contactID == "" {
		return "", err
	}
	found, err := all(
		tx,
		scanID,
		`SELECT id FROM conversations WHERE contact_id = ?1 AND gateway_id = ?2
		AND (external_thread_id = '' OR ?3 = 'email' OR ?3 = 'team_chat' AND external_thread_id GLOB 'D*' AND instr(external_thread_id, ':') = 0)
		ORDER BY id = (SELECT input ->> '$.conversation.id' FROM executions WHERE id = ?4) DESC, last_message_id DESC LIMIT 1`,
		contactID, immediate.GatewayID, immediate.Type, immediate.Origin.ExecutionID,
	)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// contactOfAddress returns the contact whom a platform reaches by an address, or "".
func (tx *Tx) contactOfAddress(gatewayType agent.GatewayType, address string) (id string, err error) {
	fields := map[agent.GatewayType][]string{
		agent.GatewayEmail:    {"email"},
		agent.GatewaySMS:      {"phone"},
		agent.GatewayWhatsApp: {"chatbot_b", "phone"},
	}[gatewayType]
	if prefix := accountPrefixes[gatewayType]; prefix != "" {
		address, fields = prefix+address, []string{"external_id"}
		err := tx.value(&id, "SELECT contact_id FROM _senders WHERE type = ? AND account = ?", gatewayType, address)
		if !errors.Is(err, sqlite.ErrNoRows) {
			return id, err
		}
	}
	for _, field := range fields {
		contact, err := tx.resolveContact(field, address)
		if agent.ErrorCode(err) != agent.CodeNotFound {
			return contact.ID, err
		}
	}
	return "", nil
}

// accountPrefixes are the prefixes of contacts' external ids.
var accountPrefixes = map[agent.GatewayType]string{
	agent.GatewayTelegram: agent.TelegramContact,
	agent.GatewaySlack:    agent.SlackContact,
	agent.GatewayDiscord:  agent.DiscordContact,
}

// sendingLimit is how long an attempt to send immediately can take. One that has not
// ended by then was cut off.
const sendingLimit = 2 * time.Minute

// cutOff is the error of a message whose attempt was cut off.
const cutOff = "the server was stopped in the middle of sending; it is unknown whether the message " +
	"arrived, so it is not sent again"

// isCutOff reports whether the attempt that began at a time, and has not ended, was cut
// off. Attempts of the queue have no such time.
func isCutOff(startedAt, now agent.Time) bool {
	return !startedAt.IsZero() && now.Sub(startedAt.Time) > sendingLimit
}

// unsentSimulation is the condition that a message m was simulated, and what results
// from it is not sent.
const unsentSimulation = "m.metadata ->> '$.simulated' = 1 AND m.metadata ->> '$.send' IS NOT 1"

// answersSimulation reports whether an automatic message answers a simulated one: the
// one that its metadata names, or else the newest of the contact.
func (tx *Tx) answersSimulation(m *agent.Message) (simulated bool, err error) {
	err = tx.value(&simulated, `SELECT coalesce((SELECT `+unsentSimulation+` FROM messages m WHERE conversation_id = ?1 AND role = 'user'
		AND id <= coalesce(?2 ->> '$.in_reply_to', id) ORDER BY id DESC LIMIT 1), 0)`, m.ConversationID, string(m.Metadata))
	return simulated, err
}

// fromSimulation reports whether an execution, or the first of its chain, results from a
// simulated message.
func (tx *Tx) fromSimulation(executionID, root string) (simulated bool, err error) {
	for _, id := range []string{executionID, cmp.Or(root, executionID)} {
		if id == "" || simulated {
			continue
		}
		if err = tx.value(
			&simulated,
			"SELECT EXISTS (SELECT 1 FROM messages m WHERE m.id = "+causeOf+" AND "+unsentSimulation+")",
			id,
		); err != nil {
			return false, err
		}
	}
	return simulated, nil
}
