package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

const conversationColumns = "id, contact_id, gateway_id, external_thread_id, muted, status, assignee, needs_human, " +
	"unread, last_message_id, metadata, created_at, updated_at"

var conversationListing = listing[agent.Conversation]{listed{
	table:   "conversations",
	columns: conversationColumns,
	order:   Order{"created_at", true},
	sort: map[string]string{
		"created_at":      "created_at",
		"updated_at":      "updated_at",
		"last_message_at": "last_message_id",
	},
	value: conversationSortValue,
}, scanConversation}

func conversationSortValue(c any, field string) any {
	if field == "last_message_at" {
		return c.(agent.Conversation).LastMessageID
	}
	return nil
}

func scanConversation(rows *sqlite.Rows) (c agent.Conversation, err error) {
	return c, rows.Scan(
		&c.ID, &c.ContactID, &c.GatewayID, &c.ExternalThreadID, &c.Muted, &c.Status, &c.Assignee, &c.NeedsHuman,
		&c.Unread, &c.LastMessageID, (*rawJSON)(&c.Metadata), &c.CreatedAt, &c.UpdatedAt,
	)
}

// Conversation reads a conversation with its newest messages, in chronological
// order.
func (db *DB) Conversation(ctx context.Context, id string, newest int) (agent.Conversation, []agent.Message, error) {
	var c agent.Conversation
	messages, err := Read(ctx, db, func(tx *Tx) (messages []agent.Message, err error) {
		if c, err = tx.conversation(id); err != nil {
			return nil, err
		}
		return tx.newestMessages(id, newest)
	})
	return c, messages, err
}

func (tx *Tx) conversation(id string) (agent.Conversation, error) {
	return one(
		tx,
		scanConversation,
		"conversation",
		"SELECT "+conversationColumns+" FROM conversations WHERE id = ?",
		id,
	)
}

// CreateConversation opens a conversation. If a contact or gateway is given, it must
// exist.
func (db *DB) CreateConversation(ctx context.Context, change agent.ConversationChange) (agent.Conversation, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Conversation, error) {
		var c agent.Conversation
		change.Apply(&c)
		if err := tx.insertConversation(&c); err != nil {
			return c, err
		}
		return c, tx.audit("conversation created", map[string]any{"conversation_id": c.ID})
	})
}

// insertConversation gives c its id and times and stores it.
func (tx *Tx) insertConversation(c *agent.Conversation) error {
	if err := tx.checkConversation(c); err != nil {
		return err
	}
	c.ID, c.CreatedAt, c.UpdatedAt = agent.NewID(agent.KindConversation), tx.Now, tx.Now
	c.Status = cmp.Or(c.Status, agent.ConversationOpen)
	_, err := tx.exec(
		"INSERT INTO conversations("+conversationColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", c.ID,
		c.ContactID, c.GatewayID, c.ExternalThreadID, c.Muted, c.Status, c.Assignee, c.NeedsHuman, c.Unread,
		c.LastMessageID, string(c.Metadata), c.CreatedAt, c.UpdatedAt,
	)
	return err
}

func (tx *Tx) checkConversation(conversation *agent.Conversation) error {
	if err := conversation.Validate(); err != nil {
		return err
	}
	for _, link := range []struct{ field, table, id string }{
		{"contact_id", "contacts", conversation.ContactID}, {"gateway_id", "gateways", conversation.GatewayID},
	} {
		if link.id == "" {
			continue
		}
		var exists bool
		if err := tx.value(&exists, "SELECT EXISTS (SELECT 1 FROM "+link.table+" WHERE id = ?)", link.id); err != nil {
			return err
		}
		if !exists {
			return agent.Invalid(link.field, "names a record that does not exist")
		}
	}
	return nil
}

// UpdateConversation changes the given fields of a conversation.
func (db *DB) UpdateConversation(
	ctx context.Context,
	id string,
	change agent.ConversationChange,
) (agent.Conversation, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Conversation, error) {
		c, err := tx.updateConversation(id, change)
		if err != nil {
			return c, err
		}
		return c, tx.audit("conversation updated", map[string]any{"conversation_id": id})
	})
}

func (tx *Tx) updateConversation(id string, change agent.ConversationChange) (agent.Conversation, error) {
	conversation, err := tx.conversation(id)
	if err != nil {
		return conversation, err
	}
	change.Apply(&conversation)
	if err := tx.checkConversation(&conversation); err != nil {
		return conversation, err
	}
	conversation.UpdatedAt = tx.Now
	_, err = tx.exec(
		`UPDATE conversations SET contact_id = ?, gateway_id = ?, muted = ?, status = ?, assignee = ?, needs_human = ?, unread = ?,
		metadata = ?, updated_at = ? WHERE id = ?`,
		conversation.ContactID, conversation.GatewayID, conversation.Muted, conversation.Status, conversation.Assignee,
		conversation.NeedsHuman, conversation.Unread,
		string(conversation.Metadata),
		conversation.UpdatedAt,
		id,
	)
	return conversation, err
}

// DeleteConversation removes a conversation with its messages.
func (db *DB) DeleteConversation(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("conversations", "conversation", id); err != nil {
			return err
		}
		return tx.audit("conversation deleted", map[string]any{"conversation_id": id})
	})
}

const messageColumns = "id, conversation_id, role, content, metadata, rating, comment, created_at"

func scanMessage(rows *sqlite.Rows) (m agent.Message, err error) {
	var f agent.Feedback
	err = rows.Scan(
		&m.ID, &m.ConversationID, &m.Role, &m.Content, (*rawJSON)(&m.Metadata), &f.Rating, &f.Comment, &m.CreatedAt,
	)
	if f != (agent.Feedback{}) {
		m.Feedback = &f
	}
	return m, err
}

// Messages returns up to limit messages of a conversation after the message with id
// after, oldest first. With newestFirst it returns those before it, newest first,
// and 0 means from the newest on. more reports whether others follow.
func (db *DB) Messages(
	ctx context.Context,
	conversationID string,
	after int64,
	limit int,
	newestFirst bool,
) (page []agent.Message, more bool, err error) {
	page, err = Read(ctx, db, func(tx *Tx) ([]agent.Message, error) {
		if _, err := tx.conversation(conversationID); err != nil {
			return nil, err
		}
		query, from := " AND id > ? ORDER BY id LIMIT ?", after
		if newestFirst {
			query = " AND id < ? ORDER BY id DESC LIMIT ?"
			if from == 0 {
				from = math.MaxInt64
			}
		}
		return all(
			tx,
			scanMessage,
			"SELECT "+messageColumns+" FROM messages WHERE conversation_id = ?"+query,
			conversationID,
			from,
			limit+1,
		)
	})
	if len(page) > limit {
		return page[:limit], true, err
	}
	return page, false, err
}

// Question returns the person's message that an answer refers to: the one given in
// its metadata, otherwise the last one before it. If there is neither, the error is
// NOT_FOUND.
func (db *DB) Question(ctx context.Context, answerID int64) (agent.Message, error) {
	return Read(ctx, db, func(tx *Tx) (m agent.Message, err error) {
		found, err := all(tx, scanMessage, "SELECT "+messageColumns+` FROM messages WHERE role = 'user'
			AND conversation_id = (SELECT conversation_id FROM messages WHERE id = ?1 AND role = 'assistant')
			AND id <= (SELECT coalesce(metadata ->> '$.in_reply_to', id) FROM messages WHERE id = ?1) ORDER BY id DESC LIMIT 1`, answerID)
		if err != nil {
			return m, err
		}
		if len(found) == 0 {
			return m, agent.NotFound("message", strconv.FormatInt(answerID, 10))
		}
		return found[0], nil
	})
}

// AppendMessage adds a message to a conversation. A message that a person writes as
// the assistant mutes the conversation's automatic replies.
func (db *DB) AppendMessage(ctx context.Context, message agent.Message) (agent.Message, error) {
	if len(message.Metadata) == 0 {
		message.Metadata = json.RawMessage("{}")
	}
	if err := message.Validate(); err != nil {
		return message, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.Message, error) {
		conversation, err := tx.conversation(message.ConversationID)
		if err != nil {
			return message, err
		}
		m := message
		if err := tx.appendMessage(&m); err != nil {
			return m, err
		}
		if err := tx.answered(&conversation, m.Role == agent.MessageAssistant && !byExecution(ctx)); err != nil {
			return m, err
		}
		return m, tx.audit("message added", map[string]any{
			"conversation_id": conversation.ID,
			"message_id":      m.ID,
			"role":            m.Role,
		})
	})
}

// answered updates a conversation after an answer. If a person answered, automatic
// replies are muted.
func (tx *Tx) answered(c *agent.Conversation, byPerson bool) error {
	_, err := tx.exec(
		"UPDATE conversations SET muted = ?, needs_human = ?, updated_at = ? WHERE id = ?",
		c.Muted || byPerson, c.NeedsHuman && !byPerson, tx.Now, c.ID,
	)
	return err
}

func (tx *Tx) appendMessage(m *agent.Message) error {
	m.CreatedAt = tx.Now
	done, err := tx.exec(
		"INSERT INTO messages(conversation_id, role, content, metadata, created_at) VALUES (?,?,?,?,?)",
		m.ConversationID,
		m.Role,
		m.Content,
		string(m.Metadata),
		m.CreatedAt,
	)
	if err != nil {
		return err
	}
	m.ID = done.LastID
	return nil
}

// BeginTurn stores what a person says, in a new conversation if the message names
// none, and returns it with the conversation's newest messages, of which it is the
// last.
func (db *DB) BeginTurn(
	ctx context.Context,
	m agent.Message,
	contactID string,
	newest int,
) (agent.Message, []agent.Message, error) {
	var history []agent.Message
	message, err := Write(ctx, db, func(tx *Tx) (agent.Message, error) {
		m := m
		if m.ConversationID == "" {
			c := agent.Conversation{ContactID: contactID, Metadata: titleMetadata(m.Content)}
			if err := tx.insertConversation(&c); err != nil {
				return m, err
			}
			m.ConversationID = c.ID
		} else if _, err := tx.conversation(m.ConversationID); err != nil {
			return m, err
		}
		if err := tx.appendTurn(&m); err != nil {
			return m, err
		}
		var err error
		if history, err = tx.newestMessages(m.ConversationID, newest); err != nil {
			return m, err
		}
		return m, tx.audit("message added", map[string]any{
			"conversation_id": m.ConversationID,
			"message_id":      m.ID,
			"role":            m.Role,
		})
	})
	return message, history, err
}

// titleMetadata returns the metadata of a conversation named after its first question, as
// the console names those that it creates.
func titleMetadata(question string) json.RawMessage {
	title, _ := json.Marshal(agent.Clip(strings.Join(strings.Fields(question), " "), 80))
	return json.RawMessage(`{"title":` + string(title) + `}`)
}

// AppendPromptOnce stores a prompt from the program itself to an agent once per key, however
// often it is called: in the conversation that message names, or in one created for the
// key with the metadata about. It returns the stored message. There is no
// message.received event, because no person sent it.
func (db *DB) AppendPromptOnce(
	ctx context.Context,
	key string,
	about json.RawMessage,
	message agent.Message,
) (agent.Message, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Message, error) {
		m := message
		var before int64
		if err := tx.value(&before, lastEvent); err != nil {
			return m, err
		}
		if err := tx.conversationOf(key, about, &m); err != nil {
			return m, err
		}
		existing, err := all(tx, scanMessage, "SELECT "+messageColumns+` FROM messages INDEXED BY messages_asked WHERE metadata ->> '$.run_id' IS NOT NULL AND metadata ->> '$.run_id' = ?
			AND conversation_id = ? AND role = 'user' ORDER BY id LIMIT 1`, key, m.ConversationID)
		if err != nil {
			return m, err
		}
		if len(existing) > 0 {
			return existing[0], nil
		}
		m.Metadata, err = json.Marshal(map[string]string{"run_id": key})
		if err != nil {
			return m, err
		}
		if err := tx.appendTurn(&m); err != nil {
			return m, err
		}
		_, err = tx.exec(notReceived, before)
		return m, err
	})
}

// AnswerByKey returns the answer stored in a conversation under a key, which chat
// writes into the metadata; nil if there is none.
func (db *DB) AnswerByKey(ctx context.Context, conversationID, key string) (*agent.Message, error) {
	return Read(ctx, db, func(tx *Tx) (*agent.Message, error) {
		found, err := all(tx, scanMessage, "SELECT "+messageColumns+` FROM messages INDEXED BY messages_answered WHERE metadata ->> '$.key' IS NOT NULL AND metadata ->> '$.key' = ?
			AND conversation_id = ? AND role = 'assistant' ORDER BY id LIMIT 1`, key, conversationID)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return &found[0], nil
	})
}

// conversationOf finds the conversation that message names or that was created for the
// key, or creates it.
func (tx *Tx) conversationOf(key string, about json.RawMessage, message *agent.Message) error {
	if message.ConversationID != "" {
		_, err := tx.conversation(message.ConversationID)
		return err
	}
	err := tx.value(
		&message.ConversationID,
		"SELECT id FROM conversations WHERE gateway_id = '' AND external_thread_id = ?",
		key,
	)
	if !errors.Is(err, sqlite.ErrNoRows) {
		return err
	}
	c := agent.Conversation{ExternalThreadID: key, Metadata: about}
	err = tx.insertConversation(&c)
	message.ConversationID = c.ID
	return err
}

// AppendReply adds an automatic answer to a conversation. Unlike a person's,
// it does not mute the next one.
func (db *DB) AppendReply(ctx context.Context, m agent.Message) (agent.Message, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Message, error) {
		m := m
		if _, err := tx.conversation(m.ConversationID); err != nil {
			return m, err
		}
		return m, tx.appendTurn(&m)
	})
}

// appendTurn adds a message and updates the conversation.
func (tx *Tx) appendTurn(m *agent.Message) error {
	if err := tx.appendMessage(m); err != nil {
		return err
	}
	_, err := tx.exec("UPDATE conversations SET updated_at = ? WHERE id = ?", tx.Now, m.ConversationID)
	return err
}

func (tx *Tx) newestMessages(conversationID string, limit int) ([]agent.Message, error) {
	return all(tx, scanMessage, "SELECT * FROM (SELECT "+messageColumns+
		" FROM messages WHERE conversation_id = ? ORDER BY id DESC LIMIT ?) ORDER BY id", conversationID, limit)
}
