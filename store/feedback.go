package store

import (
	"context"
	"encoding/json"
	"strconv"

	"satchel/agent"
	"satchel/store/sqlite"
)

// UpdateFeedback changes a person's rating of an answer.
func (db *DB) UpdateFeedback(ctx context.Context, id int64, change agent.FeedbackChange) (agent.Message, error) {
	return Write(ctx, db, func(tx *Tx) (message agent.Message, err error) {
		found, err := all(tx, scanMessage, "SELECT "+messageColumns+" FROM messages WHERE id = ?", id)
		switch {
		case err != nil:
			return message, err
		case len(found) == 0:
			return message, agent.NotFound("message", strconv.FormatInt(id, 10))
		case found[0].Role != agent.MessageAssistant:
			return message, agent.Invalid("messageId", "must be an answer, which is a message of the assistant")
		}
		message = found[0]
		if message.Feedback, err = change.Apply(message.Feedback); err != nil {
			return message, err
		}
		var f agent.Feedback
		if message.Feedback != nil {
			f = *message.Feedback
		}
		if _, err := tx.exec(
			"UPDATE messages SET rating = ?, comment = ? WHERE id = ?",
			f.Rating, f.Comment, id,
		); err != nil {
			return message, err
		}
		return message, tx.audit("feedback given", map[string]any{
			"conversation_id": message.ConversationID,
			"message_id":      id,
			"rating":          f.Rating,
		})
	})
}

// FeedbackFilter selects answers with feedback. Its zero value selects all.
type FeedbackFilter struct {
	Rating   int        // 1 or -1; 0: any, and comments without a rating
	From, To agent.Time // when the answer was given
}

func (ff FeedbackFilter) filter(search string) (f filter) {
	f.add("(rating IS NOT NULL OR comment <> '')") // as in messages_rated
	if ff.Rating != 0 {
		f.add("rating = ?", ff.Rating)
	}
	if !ff.From.IsZero() {
		f.add("created_at >= ?", ff.From)
	}
	if !ff.To.IsZero() {
		f.add("created_at < ?", ff.To)
	}
	f.search([]string{"comment", "content"}, search)
	return f
}

// maxAnswerPreview limits the excerpts of rated answers and their questions, in
// characters.
const maxAnswerPreview = 2_000

var feedbackListing = listing[agent.RatedAnswer]{listed{
	table: "messages",
	columns: "id, conversation_id, substr(content, 1, " + strconv.Itoa(maxAnswerPreview) +
		"), rating, comment, coalesce(metadata ->> '$.model', ''), created_at",
	order: Order{"created_at", true},
	sort:  map[string]string{"created_at": "id"},
	value: func(record any, field string) any {
		return record.(agent.RatedAnswer).MessageID
	},
}, func(rows *sqlite.Rows) (a agent.RatedAnswer, err error) {
	return a, rows.Scan(&a.MessageID, &a.ConversationID, &a.Answer, &a.Rating, &a.Comment, &a.Model, &a.CreatedAt)
}}

// Feedback lists the answers that people rated or commented on, the newest first. A
// search covers comments and answers.
func (db *DB) Feedback(ctx context.Context, ff FeedbackFilter, p Page) ([]agent.RatedAnswer, int, error) {
	var total int
	list, err := Read(ctx, db, func(tx *Tx) (list []agent.RatedAnswer, err error) {
		if err := tx.wantFor("messages", "messages_rated"); err != nil {
			return nil, err
		}
		if list, total, err = feedbackListing.list(tx, ff.filter(p.Search), p); err != nil {
			return nil, err
		}
		return list, tx.addQuestions(list)
	})
	return list, total, err
}

// selectQuestions reads the questions of answers, and where they were asked.
const selectQuestions = `SELECT a.id, v.gateway_id, coalesce(c.name, ''), coalesce((SELECT substr(content, 1, ?2) FROM messages q
		WHERE q.conversation_id = a.conversation_id AND q.role = 'user' AND q.id <= coalesce(a.metadata ->> '$.in_reply_to', a.id) ORDER BY q.id DESC LIMIT 1), '')
	FROM json_each(?1) j CROSS JOIN messages a ON a.id = j.value CROSS JOIN conversations v ON v.id = a.conversation_id LEFT JOIN contacts c ON c.id = v.contact_id`

// addQuestions adds to rated answers what they reply to.
func (tx *Tx) addQuestions(list []agent.RatedAnswer) error {
	at := make(map[int64]*agent.RatedAnswer, len(list))
	ids := make([]int64, len(list))
	for i := range list {
		ids[i], at[list[i].MessageID] = list[i].MessageID, &list[i]
	}
	raw, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return tx.each(func(rows *sqlite.Rows) error {
		var id int64
		var read agent.RatedAnswer
		err := rows.Scan(&id, &read.GatewayID, &read.ContactName, &read.Question)
		if a := at[id]; a != nil {
			a.GatewayID, a.ContactName, a.Question = read.GatewayID, read.ContactName, read.Question
		}
		return err
	}, selectQuestions, string(raw), maxAnswerPreview)
}
