package store

import (
	"context"

	"satchel/agent"
	"satchel/store/sqlite"
)

// ConversationFilter says which conversations are listed. Its zero value takes
// in all.
type ConversationFilter struct {
	ContactIDs []string
	GatewayIDs []string
	Chat       bool // those without a gateway
	Status     agent.ConversationStatus
	Assignee   agent.Optional[string] // "": nobody's
	Unread     bool
	NeedsHuman bool
}

// maxMessagesSearched bounds the messages that a search of conversations looks
// at, the newest of the agent.
const maxMessagesSearched = 200_000

func (cf ConversationFilter) filter(search string) filter {
	var f filter
	if cf.Status != "" {
		f.add("status = ?", cf.Status)
		f.count = "SELECT n FROM _conversation_counts WHERE status = ?"
	}
	f.in("contact_id", cf.ContactIDs)
	f.in("gateway_id", cf.GatewayIDs)
	if cf.Chat {
		f.add("gateway_id = ''")
	}
	if cf.Assignee.Given && cf.Assignee.Value != "" {
		f.add("assignee = ?", cf.Assignee.Value)
	} else if cf.Assignee.Given {
		f.add("assignee IS NULL")
	}
	if cf.Unread {
		f.add("unread > 0")
	}
	if cf.NeedsHuman {
		f.add("needs_human = 1")
	}
	if search != "" {
		like := "%" + escapeLike(search) + "%"
		f.add(`(external_thread_id LIKE ? ESCAPE '\' OR metadata LIKE ? ESCAPE '\'
			OR contact_id IN (SELECT id FROM contacts WHERE name LIKE ? ESCAPE '\' OR email LIKE ? ESCAPE '\')
			OR id IN (SELECT conversation_id FROM messages WHERE id > (SELECT max(id) FROM messages) - ? AND content LIKE ? ESCAPE '\'))`,
			like, like, like, like, maxMessagesSearched, like)
	}
	return f
}

// Conversations lists conversations with what a list shows of each. A search
// looks at names and addresses of contacts and at the newest messages.
func (db *DB) Conversations(ctx context.Context, cf ConversationFilter, p Page) ([]agent.ConversationSummary, int, error) {
	f := cf.filter(p.Search)
	p.Search = ""
	var total int
	list, err := Read(ctx, db, func(tx *Tx) ([]agent.ConversationSummary, error) {
		page, n, err := conversationListing.list(tx, f, p)
		total = n
		list := make([]agent.ConversationSummary, len(page))
		for i := range page {
			if err == nil {
				list[i], err = tx.summary(page[i])
			}
		}
		return list, err
	})
	return list, total, err
}

// ConversationSummary reads what lists show of a conversation.
func (db *DB) ConversationSummary(ctx context.Context, id string) (agent.ConversationSummary, error) {
	return Read(ctx, db, func(tx *Tx) (agent.ConversationSummary, error) {
		c, err := tx.conversation(id)
		if err != nil {
			return agent.ConversationSummary{}, err
		}
		return tx.summary(c)
	})
}

// maxPreviewed is how many characters of a message lists show.
const maxPreviewed = 200

// summary adds to a conversation what lists show of its message, contact and
// gateway.
func (tx *Tx) summary(c agent.Conversation) (agent.ConversationSummary, error) {
	s := agent.ConversationSummary{Conversation: c}
	messages, err := all(tx, func(rows *sqlite.Rows) (m agent.MessagePreview, err error) {
		return m, rows.Scan(&m.ID, &m.Role, &m.Author, &m.Content, &m.CreatedAt)
	}, `SELECT id, role, iif(role = 'user', 'contact', iif(metadata ->> '$.author' = 'human', 'human', 'bot')), substr(content, 1, ?), created_at
		FROM messages WHERE id = ?`, maxPreviewed, c.LastMessageID)
	if err != nil {
		return s, err
	}
	s.LastMessage = first(messages)
	contacts, err := all(tx, func(rows *sqlite.Rows) (p agent.ContactPreview, err error) {
		var tags string
		if err := rows.Scan(&p.ID, &p.Name, &p.Email, &p.Phone, &tags); err != nil {
			return p, err
		}
		p.Tags, err = decodeTags(tags)
		return p, err
	}, "SELECT id, name, email, phone, tags FROM contacts WHERE id = ?", c.ContactID)
	if err != nil {
		return s, err
	}
	s.Contact = first(contacts)
	gateways, err := all(tx, func(rows *sqlite.Rows) (g agent.GatewayPreview, err error) {
		return g, rows.Scan(&g.ID, &g.Type, &g.Name, &g.Status)
	}, "SELECT id, type, name, status FROM gateways WHERE id = ?", c.GatewayID)
	s.Gateway = first(gateways)
	return s, err
}

// first returns the first of a list; nil for none.
func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// InboxCounts is how many conversations the tabs of the inbox have.
type InboxCounts struct {
	Mine       int `json:"mine" doc:"Open ones of the caller." example:"2"`
	Open       int `json:"open" example:"9"`
	All        int `json:"all" example:"120"`
	Unread     int `json:"unread" doc:"Conversations with messages that were neither read nor answered." example:"3"`
	NeedsHuman int `json:"needs_human" doc:"Open ones whose contact waits for a person." example:"1"`
}

const selectUnread = "SELECT count(*) FROM conversations INDEXED BY conversations_unread WHERE unread > 0"

// InboxCounts counts conversations; mine are those of an email address.
func (db *DB) InboxCounts(ctx context.Context, email string) (InboxCounts, error) {
	return Read(ctx, db, func(tx *Tx) (c InboxCounts, err error) {
		for dst, query := range map[*int]string{
			&c.Open:       "SELECT n FROM _conversation_counts WHERE status = 'open'",
			&c.All:        "SELECT n FROM _counts WHERE name = 'conversations'",
			&c.Unread:     selectUnread,
			&c.NeedsHuman: "SELECT count(*) FROM conversations INDEXED BY conversations_needs_human WHERE needs_human = 1 AND status = 'open'",
		} {
			if err := tx.value(dst, query); err != nil {
				return c, err
			}
		}
		if email == "" {
			return c, nil
		}
		return c, tx.value(&c.Mine, "SELECT count(*) FROM conversations WHERE assignee = ? AND status = 'open'", email)
	})
}

// UpdateConversations makes the same change to conversations, in one commit. It
// returns the ids of those that exist.
func (db *DB) UpdateConversations(ctx context.Context, ids []string, change agent.ConversationChange) ([]string, error) {
	return Write(ctx, db, func(tx *Tx) ([]string, error) {
		changed := []string{}
		for _, id := range ids {
			_, err := tx.updateConversation(id, change)
			if agent.ErrorCode(err) == agent.CodeNotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			changed = append(changed, id)
		}
		return changed, tx.audit("conversations updated", map[string]any{"conversation_ids": changed})
	})
}

// Draft is an answer that a person has not sent yet.
type Draft struct {
	Text      string     `json:"text" doc:"Empty: there is none." example:"Your order is"`
	UpdatedAt agent.Time `json:"updated_at" format:"date-time" nullable:"true"`
}

// Draft reads what a person began to answer in a conversation.
func (db *DB) Draft(ctx context.Context, conversationID, author string) (Draft, error) {
	return Read(ctx, db, func(tx *Tx) (Draft, error) {
		if _, err := tx.conversation(conversationID); err != nil {
			return Draft{}, err
		}
		found, err := all(tx, func(rows *sqlite.Rows) (d Draft, err error) { return d, rows.Scan(&d.Text, &d.UpdatedAt) },
			"SELECT text, updated_at FROM _drafts WHERE conversation_id = ? AND author = ?", conversationID, author)
		if err != nil || len(found) == 0 {
			return Draft{}, err
		}
		return found[0], nil
	})
}

// PutDraft keeps what a person began to answer in a conversation; nothing
// removes it.
func (db *DB) PutDraft(ctx context.Context, conversationID, author, text string) (Draft, error) {
	return Write(ctx, db, func(tx *Tx) (Draft, error) {
		if _, err := tx.conversation(conversationID); err != nil {
			return Draft{}, err
		}
		if text == "" {
			_, err := tx.exec("DELETE FROM _drafts WHERE conversation_id = ? AND author = ?", conversationID, author)
			return Draft{}, err
		}
		_, err := tx.exec(`INSERT INTO _drafts(conversation_id, author, text, updated_at) VALUES (?,?,?,?)
			ON CONFLICT DO UPDATE SET text = excluded.text, updated_at = excluded.updated_at`, conversationID, author, text, tx.Now)
		return Draft{text, tx.Now}, err
	})
}
