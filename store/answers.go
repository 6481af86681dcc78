package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"satchel/agent"
)

// Bounds of automatic answers.
const (
	maxAnswerTries = 3              // of an answer that the program's end cut each time
	maxAnswerAge   = 24 * time.Hour // a later answer is none
	maxUnanswered  = 10_000         // messages of an agent that wait for an answer
)

// EnqueueAnswers notes which messages, of those that events tell of, the agent
// is to answer by itself: they came in over an active gateway that answers can
// go out by, no active workflow's trigger names them, auto_reply and a provider
// are set, no person answers the conversation, and no machine wrote them, as
// email tells. A message is noted once. It returns how many it noted.
func (db *DB) EnqueueAnswers(ctx context.Context, events []agent.Event) (int, error) {
	var ids []int64
	for _, e := range events {
		var told struct {
			Message struct {
				ID       int64
				Metadata struct {
					ExternalID *string `json:"external_id"`
				}
			}
			Gateway *struct{ ID string }
		}
		if e.Type == agent.EventMessageReceived && json.Unmarshal(e.Data, &told) == nil && told.Gateway != nil && told.Message.Metadata.ExternalID != nil {
			ids = append(ids, told.Message.ID)
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	if wanted, err := Read(ctx, db, func(tx *Tx) (bool, error) { return tx.answersByItself() }); err != nil || !wanted {
		return 0, err
	}
	return Write(ctx, db, func(tx *Tx) (noted int, err error) {
		if wanted, err := tx.answersByItself(); err != nil || !wanted {
			return 0, err
		}
		for _, id := range ids {
			done, err := tx.exec(`INSERT INTO _answers(message_id, conversation_id, created_at)
				SELECT m.id, v.id, ?1 FROM messages m JOIN conversations v ON v.id = m.conversation_id JOIN gateways g ON g.id = v.gateway_id
				WHERE m.id = ?2 AND m.role = 'user' AND m.metadata ->> '$.auto_submitted' IS NULL AND v.muted = 0 AND g.status = 'active'
				AND (g.type <> 'webhook' OR EXISTS (SELECT 1 FROM json_each(g.configured_fields) WHERE value = 'url')) AND NOT EXISTS (
					SELECT 1 FROM _triggers t JOIN workflows w ON w.id = t.workflow_id JOIN json_each(w.nodes) n ON n.value ->> '$.id' = t.node_id
					WHERE t.event IN ('message.received', 'message.*') AND coalesce(n.value ->> '$.data.gateway_id', '') IN ('', g.id))
				AND (SELECT count(*) FROM _answers) < ?3 ON CONFLICT DO NOTHING`, tx.Now, id, maxUnanswered)
			if err != nil {
				return noted, err
			}
			n, err := done.RowsAffected()
			if err != nil {
				return noted, err
			}
			noted += int(n)
		}
		return noted, nil
	})
}

// answersByItself tells whether the agent's settings want automatic answers.
func (tx *Tx) answersByItself() (bool, error) {
	s, err := tx.settings()
	return s.AutoReply && s.LLMProvider != "", err
}

// Unanswered returns the ids of messages that wait for an automatic answer, of
// up to limit conversations the first of each, oldest first.
func (db *DB) Unanswered(ctx context.Context, limit int) ([]DueMessage, error) {
	return Read(ctx, db, func(tx *Tx) (due []DueMessage, err error) {
		rows, err := tx.query("SELECT min(message_id), conversation_id FROM _answers GROUP BY conversation_id ORDER BY 1 LIMIT ?", limit)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var d DueMessage
			if err := rows.Scan(&d.ID, &d.ConversationID); err != nil {
				return nil, err
			}
			due = append(due, d)
		}
		return due, rows.Err()
	})
}

// AnswerKey is the key that the answer to a message is queued under, so that
// it is sent once.
func AnswerKey(messageID int64) string {
	return "answer:" + strconv.FormatInt(messageID, 10)
}

// BeginAnswer returns a message that is about to be answered; nil when it is
// not to be any more: it was, a person took over, the agent rests, or trying
// has led to nothing. Each begin counts, so that an answer that ends the
// program every time is given up.
func (db *DB) BeginAnswer(ctx context.Context, id int64) (*agent.Message, error) {
	return Write(ctx, db, func(tx *Tx) (*agent.Message, error) {
		var tries int
		var since agent.Time
		s, err := tx.prepare("SELECT tries, created_at FROM _answers WHERE message_id = ?")
		if err != nil {
			return nil, err
		}
		if err := s.QueryRow(id).Scan(&tries, &since); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = nil
			}
			return nil, err
		}
		reason, err := tx.whyNoAnswer(id, tries, since)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			if reason != answerUnwanted {
				err = tx.log(agent.LevelError, "chat", "a message was not answered automatically", map[string]any{"message_id": id, "reason": reason})
			}
			return nil, errors.Join(err, tx.dropAnswer(id))
		}
		if _, err := tx.exec("UPDATE _answers SET tries = tries + 1 WHERE message_id = ?", id); err != nil {
			return nil, err
		}
		found, err := all(tx, scanMessage, "SELECT "+messageColumns+" FROM messages WHERE id = ?", id)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return &found[0], nil
	})
}

// answerUnwanted says that nobody wants an answer any more, which is no fault.
const answerUnwanted = "unwanted"

// whyNoAnswer tells why a message gets no answer; "" when it does.
func (tx *Tx) whyNoAnswer(id int64, tries int, since agent.Time) (string, error) {
	var status agent.Status
	var muted, done bool
	if err := tx.value(&status, "SELECT status FROM _agent"); err != nil {
		return "", err
	}
	if err := tx.value(&muted, "SELECT v.muted FROM messages m JOIN conversations v ON v.id = m.conversation_id WHERE m.id = ?", id); err != nil {
		return "", err
	}
	if err := tx.value(&done, "SELECT EXISTS (SELECT 1 FROM _outgoing WHERE key = ?)", AnswerKey(id)); err != nil {
		return "", err
	}
	wanted, err := tx.answersByItself()
	switch {
	case err != nil:
		return "", err
	case muted || done || !wanted || status != agent.StatusActive:
		return answerUnwanted, nil
	case tries >= maxAnswerTries:
		return "the server was ended in the middle of it each time", nil
	case tx.Now.Sub(since.Time) > maxAnswerAge:
		return "it has waited for over a day", nil
	}
	return "", nil
}

func (tx *Tx) dropAnswer(id int64) error {
	_, err := tx.exec("DELETE FROM _answers WHERE message_id = ?", id)
	return err
}

// EndAnswer notes that a message was answered, or, with a problem, that it will
// not be; the agent's log tells.
func (db *DB) EndAnswer(ctx context.Context, m agent.Message, problem string) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		if err := tx.dropAnswer(m.ID); err != nil || problem == "" {
			return struct{}{}, err
		}
		return struct{}{}, tx.log(agent.LevelError, "chat", "a message was not answered automatically",
			map[string]any{"conversation_id": m.ConversationID, "message_id": m.ID, "reason": problem})
	})
	return err
}

// CutAnswer takes a begin back: the answer was cut by an orderly end of the
// program.
func (db *DB) CutAnswer(ctx context.Context, id int64) error {
	_, err := Write(ctx, db, func(tx *Tx) (struct{}, error) {
		_, err := tx.exec("UPDATE _answers SET tries = tries - 1 WHERE message_id = ? AND tries > 0", id)
		return struct{}{}, err
	})
	return err
}

// MayAnswer tells whether messages of the agent may wait for an automatic
// answer. It does not touch the file: of one that is open it says so.
func (db *DB) MayAnswer() bool { return db.isOpen() || !db.record.Load().pending.Answers.IsZero() }
