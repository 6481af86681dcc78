package store

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"satchel/agent"
	"satchel/store/sqlite"
)

// ConversationFilter selects conversations. Its zero value selects all.
type ConversationFilter struct {
	ContactIDs []string
	GatewayIDs []string
	Chat       bool // those without a gateway
	Status     agent.ConversationStatus
	Assignee   agent.Optional[string] // "": unassigned
	Unread     bool
	NeedsHuman bool
}

// maxMessagesSearched limits a search of conversations to the agent's newest
// messages.
const maxMessagesSearched = 200_000

func (cf ConversationFilter) filter(order []Order) (filter filter) {
	filter.in("status", textsOf(nonEmpty(cf.Status))...)
	filter.in("contact_id", cf.ContactIDs...)
	filter.in("gateway_id", cf.GatewayIDs...)
	if cf.Chat {
		filter.in("gateway_id", "")
	}
	if cf.Assignee.Given && cf.Assignee.Value != "" {
		filter.where = append(filter.where, condition{
			hide:    true,
			text:    "assignee = ?",
			args:    []any{cf.Assignee.Value},
			counted: "value_3 = '=' || ?",
		})
	} else if cf.Assignee.Given {
		filter.where = append(filter.where, condition{
			hide:    true,
			text:    "assignee IS NULL",
			counted: "value_3 = ''",
		})
	}
	if cf.Unread {
		filter.where = append(filter.where, condition{
			hide:    true,
			text:    "unread > 0",
			counted: "value_4 = '1'",
		})
	}
	if cf.NeedsHuman {
		filter.where = append(filter.where, condition{
			hide:    true,
			text:    "needs_human = 1",
			counted: "value_5 = '1'",
		})
	}
	conditions := len(filter.where)
	switch {
	case len(cf.ContactIDs) == 0:
		filter.countBy("conversations", "gateway_id", "status")
	case conditions == 1:
		filter.countBy("conversations.contact", "contact_id")
		filter.indexed, filter.split = sortedBy(order, "created_at"), "contact_id"
		return filter
	}
	byMessage := len(order) == 1 && order[0].Field == "last_message_at"
	filter.indexed = byMessage && (conditions == 1 && (cf.Status != "" || cf.Unread || cf.NeedsHuman) ||
		conditions == 2 && cf.Status != "" && (cf.Unread || cf.NeedsHuman || cf.Assignee.Value != ""))
	return filter
}

// nonEmpty returns a list with the value, or nil if it is zero.
func nonEmpty[T comparable](value T) (list []T) {
	var zero T
	if value != zero {
		list = []T{value}
	}
	return list
}

// findConversations narrows a filter to the conversations that contain a text: in
// their data from the platform, in the contact's name or address, or in one of the
// agent's newest messages.
func (tx *Tx) findConversations(filter *filter, text string) error {
	if text == "" {
		return nil
	}
	own, args, err := tx.found("conversations", "id", []string{"external_thread_id", "metadata"}, text, math.MinInt64)
	if err != nil {
		return err
	}
	contacts, more, err := tx.found("contacts", "id", []string{"name", "email"}, text, math.MinInt64)
	if err != nil {
		return err
	}
	args = append(args, more...)
	var newest int64
	if err := tx.value(&newest, "SELECT coalesce(max(id), 0) FROM messages"); err != nil {
		return err
	}
	messages, more, err := tx.found(
		"messages",
		"conversation_id",
		[]string{"content"},
		text,
		newest-maxMessagesSearched+1,
	)
	if err != nil {
		return err
	}
	args = append(args, more...)
	found := own + " UNION ALL SELECT id FROM conversations WHERE contact_id IN (" + contacts +
		") UNION ALL " + messages
	filter.count, filter.indexed = "", false
	filter.add("id IN ("+found+")", args...)
	from, args, err := tx.once("(SELECT DISTINCT found FROM ("+found+"))", args)
	filter.by(from+" CROSS JOIN conversations ON id = found", args)
	return err
}

// Conversations lists conversations with what the list shows of each. A search
// covers names and addresses of contacts and the newest messages.
func (db *DB) Conversations(
	ctx context.Context,
	cf ConversationFilter,
	p Page,
) ([]agent.ConversationSummary, int, error) {
	filter := cf.filter(p.Order)
	var total int
	list, err := readSearch(ctx, db, p.Search, func(tx *Tx) ([]agent.ConversationSummary, error) {
		f, p := filter, p
		if err := tx.findConversations(&f, p.Search); err != nil {
			return nil, err
		}
		p.Search = ""
		page, n, err := conversationListing.list(tx, f, p)
		total = n
		if err != nil {
			return nil, err
		}
		return tx.summaries(page)
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

// summary adds to a conversation what lists show of it.
func (tx *Tx) summary(c agent.Conversation) (agent.ConversationSummary, error) {
	list, err := tx.summaries([]agent.Conversation{c})
	if err != nil {
		return agent.ConversationSummary{}, err
	}
	return list[0], nil
}

// summaries adds to conversations what lists show of their messages, contacts
// and gateways.
func (tx *Tx) summaries(page []agent.Conversation) ([]agent.ConversationSummary, error) {
	messages, err := related(
		tx,
		page,
		func(c agent.Conversation) int64 { return c.LastMessageID },
		scanMessagePreview,
		`SELECT m.id, m.id, role, iif(role = 'user', 'contact', iif(metadata ->> '$.author' = 'human', 'human', 'bot')), substr(content, 1, 200), created_at
		FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value`,
	)
	if err != nil {
		return nil, err
	}
	contacts, err := related(
		tx,
		page,
		func(c agent.Conversation) string { return c.ContactID },
		scanContactPreview,
		"SELECT c.id, c.id, name, email, phone, tags FROM json_each(?) j CROSS JOIN contacts c ON c.id = j.value",
	)
	if err != nil {
		return nil, err
	}
	gateways, err := related(
		tx,
		page,
		func(c agent.Conversation) string { return c.GatewayID },
		scanGatewayPreview,
		"SELECT g.id, g.id, g.type, name, status FROM json_each(?) j CROSS JOIN gateways g ON g.id = j.value",
	)
	list := make([]agent.ConversationSummary, len(page))
	for i, c := range page {
		list[i] = agent.ConversationSummary{
			Conversation: c,
			LastMessage:  messages[c.LastMessageID],
			Contact:      contacts[c.ContactID],
			Gateway:      gateways[c.GatewayID],
		}
	}
	return list, err
}

func scanMessagePreview(rows *sqlite.Rows, id *int64) (m agent.MessagePreview, err error) {
	return m, rows.Scan(id, &m.ID, &m.Role, &m.Author, &m.Content, &m.CreatedAt)
}

func scanContactPreview(rows *sqlite.Rows, id *string) (c agent.ContactPreview, err error) {
	var tags string
	if err := rows.Scan(id, &c.ID, &c.Name, &c.Email, &c.Phone, &tags); err != nil {
		return c, err
	}
	c.Tags, err = decodeTags(tags)
	return c, err
}

func scanGatewayPreview(rows *sqlite.Rows, id *string) (g agent.GatewayPreview, err error) {
	return g, rows.Scan(id, &g.ID, &g.Type, &g.Name, &g.Status)
}

// related reads the records that conversations refer to, by their ids. The query
// returns the id before the columns that scan reads.
func related[K comparable, T any](
	tx *Tx,
	page []agent.Conversation,
	key func(agent.Conversation) K,
	scan func(*sqlite.Rows, *K) (T, error),
	query string,
) (map[K]*T, error) {
	found := map[K]*T{}
	var none K
	var ids []K
	for _, c := range page {
		if id := key(c); id != none && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return found, nil
	}
	raw, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	err = tx.each(func(rows *sqlite.Rows) error {
		var id K
		record, err := scan(rows, &id)
		found[id] = &record
		return err
	}, query, string(raw))
	return found, err
}

// InboxCounts holds the numbers of conversations on the tabs of the inbox.
type InboxCounts struct {
	Mine       int `json:"mine" doc:"Open ones of the caller." example:"2"`
	Open       int `json:"open" example:"9"`
	All        int `json:"all" example:"120"`
	Unread     int `json:"unread" doc:"Conversations with messages that were neither read nor answered." example:"3"`
	NeedsHuman int `json:"needs_human" doc:"Open ones whose contact waits for a person." example:"1"`
}

// countConversations is followed by further conditions.
const countConversations = "SELECT coalesce(sum(n), 0) FROM _filter_counts WHERE list = 'conversations'"

const selectUnread = countConversations + " AND value_4 = '1'"

// InboxCounts counts conversations; email decides which are mine.
func (db *DB) InboxCounts(ctx context.Context, email string) (InboxCounts, error) {
	return Read(ctx, db, func(tx *Tx) (c InboxCounts, err error) {
		for dst, query := range map[*int]string{
			&c.Open:       countConversations + " AND value_2 = 'open'",
			&c.All:        "SELECT n FROM _counts WHERE name = 'conversations'",
			&c.Unread:     selectUnread,
			&c.NeedsHuman: countConversations + " AND value_2 = 'open' AND value_5 = '1'",
		} {
			if err := tx.value(dst, query); err != nil {
				return c, err
			}
		}
		if email == "" {
			return c, nil
		}
		return c, tx.value(&c.Mine, countConversations+" AND value_2 = 'open' AND value_3 = '=' || ?", email)
	})
}

// UpdateConversations makes the same change to several conversations in one commit.
// It returns the ids of those that exist.
func (db *DB) UpdateConversations(
	ctx context.Context,
	ids []string,
	change agent.ConversationChange,
) ([]string, error) {
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

// Draft reads a person's draft of an answer in a conversation.
func (db *DB) Draft(ctx context.Context, conversationID, author string) (Draft, error) {
	return Read(ctx, db, func(tx *Tx) (Draft, error) {
		if _, err := tx.conversation(conversationID); err != nil {
			return Draft{}, err
		}
		found, err := all(
			tx,
			func(rows *sqlite.Rows) (d Draft, err error) {
				return d, rows.Scan(&d.Text, &d.UpdatedAt)
			},
			"SELECT text, updated_at FROM _drafts WHERE conversation_id = ? AND author = ?",
			conversationID, author,
		)
		if err != nil || len(found) == 0 {
			return Draft{}, err
		}
		return found[0], nil
	})
}

// PutDraft stores a person's draft of an answer in a conversation; an empty one is
// deleted.
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
