package store

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Bounds of automatic answers.
const (
	maxAnswerTries = 3              // of an answer that was interrupted each time
	maxAnswerAge   = 24 * time.Hour // a later answer is not sent
	maxUnanswered  = 10_000         // messages waiting for an answer, per agent
)

// queueAnswers queues the messages received over a gateway that the agent should
// answer automatically: it is active, auto_reply and a provider are set, no active
// workflow's trigger matches them, no person has taken over the conversation, and
// a person sent them, and not too many.
func (tx *Tx) queueAnswers(g *agent.Gateway, messages []agent.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if wanted, err := tx.answersGateway(g); err != nil || !wanted {
		return err
	}
	for i := range messages {
		if err := tx.queueAnswer(&messages[i]); err != nil {
			return err
		}
	}
	return nil
}

// queueAnswer queues one message, unless a program sent it, or its sender got too
// many answers, which a person should look at.
func (tx *Tx) queueAnswer(message *agent.Message) error {
	var facts struct {
		Gathering any `json:"gathering"` // of an album that is not complete
	}
	_ = json.Unmarshal(message.Metadata, &facts) // without them, it is answered
	if facts.Gathering != nil {
		return nil
	}
	receivedMessage, err := tx.received(message.ID)
	if err != nil || receivedMessage == nil {
		return err
	}
	if receivedMessage.Refused != "" {
		return tx.logNotAnswered(agent.LevelInfo, receivedMessage)
	}
	done, err := tx.exec(`INSERT INTO _answers(message_id, conversation_id, created_at)
		SELECT ?2, v.id, ?1 FROM conversations v WHERE v.id = ?3 AND v.muted = 0
		AND (SELECT count(*) FROM _answers) < ?4`, tx.Now, message.ID, message.ConversationID, maxUnanswered)
	if err != nil || done.Changes == 0 {
		return err
	}
	if may, err := tx.mayAnswer(receivedMessage); err != nil || may {
		return err
	}
	_, err = tx.dropAnswer(message.ID)
	return err
}

// notAnswered is the log's text about a message without an automatic answer.
const notAnswered = "a message was not answered automatically"

// answersGateway reports whether the agent should and can answer messages of an
// active gateway automatically.
func (tx *Tx) answersGateway(g *agent.Gateway) (bool, error) {
	if wanted, err := tx.answersByItself(); err != nil || !wanted {
		return false, err
	}
	var able bool
	err := tx.value(&able, `SELECT (?1 <> 'webhook' OR EXISTS (SELECT 1 FROM gateways g, json_each(g.configured_fields) f WHERE g.id = ?2 AND f.value = 'url'))
		AND NOT EXISTS (SELECT 1 FROM _triggers t JOIN workflows w ON w.id = t.workflow_id JOIN json_each(w.nodes) n ON n.value ->> '$.id' = t.node_id
			WHERE t.event IN ('message.received', 'message.*') AND coalesce(n.value ->> '$.data.gateway_id', '') IN ('', ?2))`, g.Type, g.ID)
	return able, err
}

// answersByItself reports whether the agent is active and automatic answers are
// switched on.
func (tx *Tx) answersByItself() (bool, error) {
	var status agent.Status
	if err := tx.value(&status, "SELECT status FROM _agent"); err != nil || status != agent.StatusActive {
		return false, err
	}
	s, err := tx.settings()
	return s.AutoReply && s.LLMProvider != "", err
}

// DueAnswers returns up to limit conversations with messages that are waiting for an
// automatic answer, oldest first.
func (db *DB) DueAnswers(ctx context.Context, limit int) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) ([]string, error) {
		return all(
			tx,
			scanID,
			"SELECT conversation_id FROM _answers GROUP BY conversation_id ORDER BY min(message_id) LIMIT ?",
			limit,
		)
	})
}

// AnswerKey returns the idempotency key of the answer to a message, for the tools
// called on its behalf.
func AnswerKey(messageID int64) string {
	return "answer:" + strconv.FormatInt(messageID, 10)
}

// pendingAnswer is a message that is waiting for an automatic answer.
type pendingAnswer struct {
	messageID int64
	tries     int
	createdAt agent.Time
}

// pendingAnswer returns the first one of a conversation, or nil.
func (tx *Tx) pendingAnswer(conversationID string) (*pendingAnswer, error) {
	found, err := all(
		tx,
		func(rows *sqlite.Rows) (p pendingAnswer, err error) {
			return p, rows.Scan(&p.messageID, &p.tries, &p.createdAt)
		},
		"SELECT message_id, tries, created_at FROM _answers WHERE conversation_id = ? ORDER BY message_id LIMIT 1",
		conversationID,
	)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// BeginAnswer returns the message of a conversation to answer now. It is nil if
// there is none, or if the first should no longer be answered: a person took over,
// the agent is paused, or there were too many attempts. Each call counts as an
// attempt, so that an answer that crashes the program every time is eventually given
// up.
func (db *DB) BeginAnswer(ctx context.Context, conversationID string) (*agent.Message, error) {
	answer, err := Read(ctx, db, func(tx *Tx) (*pendingAnswer, error) {
		return tx.pendingAnswer(conversationID)
	})
	if err != nil || answer == nil {
		return nil, err
	}
	return Write(ctx, db, func(tx *Tx) (*agent.Message, error) {
		tx.claimWork(workAnswers)
		pendingAnswer, err := tx.pendingAnswer(conversationID)
		if err != nil || pendingAnswer == nil {
			return nil, err
		}
		reason, err := tx.noAnswerReason(conversationID, pendingAnswer)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			if reason != answerUnwanted {
				err = tx.giveUpAnswer(conversationID, pendingAnswer.messageID, reason)
			}
			_, dropped := tx.dropAnswer(pendingAnswer.messageID)
			return nil, errors.Join(err, dropped)
		}
		if _, err := tx.exec(
			"UPDATE _answers SET tries = tries + 1 WHERE message_id = ?",
			pendingAnswer.messageID,
		); err != nil {
			return nil, err
		}
		found, err := all(
			tx,
			scanMessage,
			"SELECT "+messageColumns+" FROM messages WHERE id = ?",
			pendingAnswer.messageID,
		)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return &found[0], nil
	})
}

// answerUnwanted is the reason for giving up an answer that is no longer
// wanted, which is not an error.
const answerUnwanted = "unwanted"

// noAnswerReason returns why a message gets no answer, or "" if it gets one.
func (tx *Tx) noAnswerReason(conversationID string, answer *pendingAnswer) (string, error) {
	var muted bool
	if err := tx.value(&muted, "SELECT muted FROM conversations WHERE id = ?", conversationID); err != nil {
		return "", err
	}
	wanted, err := tx.answersByItself()
	switch {
	case err != nil:
		return "", err
	case muted || !wanted:
		return answerUnwanted, nil
	case answer.tries >= maxAnswerTries:
		return "the server was ended in the middle of it each time", nil
	case tx.Now.Sub(answer.createdAt.Time) > maxAnswerAge:
		return "it has waited for over a day", nil
	}
	return "", nil
}

// dropAnswer removes a message from the queue of answers and reports whether it was
// there.
func (tx *Tx) dropAnswer(messageID int64) (bool, error) {
	done, err := tx.exec("DELETE FROM _answers WHERE message_id = ?", messageID)
	if err != nil {
		return false, err
	}
	return done.Changes > 0, nil
}

// giveUpAnswer logs that a message gets no answer. If it came from a visitor of a
// website, who is still waiting, a person is requested.
func (tx *Tx) giveUpAnswer(conversationID string, messageID int64, reason string) error {
	if _, err := tx.exec(
		"UPDATE conversations SET needs_human = 1 WHERE id = ? AND gateway_id IN (SELECT id "+
			"FROM gateways WHERE type = 'web')",
		conversationID,
	); err != nil {
		return err
	}
	return tx.log(
		agent.LevelError,
		"chat",
		notAnswered,
		map[string]any{"conversation_id": conversationID, "message_id": messageID, "reason": reason},
	)
}

// SendAnswer is SendMessage for the automatic answer to a message. It is stored only
// once: a second one is a CONFLICT. With handover, the conversation waits for a
// person afterwards.
func (db *DB) SendAnswer(
	ctx context.Context,
	answer agent.Message,
	messageID int64,
	handover bool,
) (agent.Message, error) {
	before := func(tx *Tx) error {
		tx.claimWork(workAnswers)
		if waited, err := tx.dropAnswer(messageID); err != nil || waited {
			return err
		}
		return agent.Errorf(agent.CodeConflict, "the message no longer needs an answer")
	}
	after := func(tx *Tx, _ *agent.Message) error {
		if !handover {
			return nil
		}
		return tx.handOver(answer.ConversationID)
	}
	return db.sendMessage(ctx, answer, true, before, after)
}

// DropAnswer removes from the queue a message that will not be answered. A reason,
// if given, is written to the agent's log.
func (db *DB) DropAnswer(ctx context.Context, m agent.Message, reason string) error {
	return db.Do(ctx, func(tx *Tx) error {
		tx.claimWork(workAnswers)
		if _, err := tx.dropAnswer(m.ID); err != nil || reason == "" {
			return err
		}
		return tx.giveUpAnswer(m.ConversationID, m.ID, reason)
	})
}

// CancelAnswer undoes BeginAnswer, after the answer was cancelled because the
// program is shutting down.
func (db *DB) CancelAnswer(ctx context.Context, messageID int64) error {
	return db.Do(ctx, func(tx *Tx) error {
		tx.claimWork(workAnswers)
		_, err := tx.exec("UPDATE _answers SET tries = tries - 1 WHERE message_id = ? AND tries > 0", messageID)
		return err
	})
}
