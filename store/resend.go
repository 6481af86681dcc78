package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

// MessageDelivery is the outcome of sending a message.
type MessageDelivery struct {
	Status        string     `json:"status" enum:"pending,sending,sent,failed,simulated" doc:"simulated: it results from a simulated message and was not sent." example:"sent"`
	Error         string     `json:"error" doc:"Why the last try failed." example:""`
	SentAt        agent.Time `json:"sent_at" format:"date-time" nullable:"true"`
	Attempt       int        `json:"attempt" doc:"Attempts so far; 0 if unknown." example:"1"`
	NextAttemptAt agent.Time `json:"next_attempt_at" format:"date-time" nullable:"true"`
}

// MessageDeliveries returns the delivery status of messages, nil for those that are
// not sent: from their metadata or, while they are waiting, from the queue.
func (db *DB) MessageDeliveries(ctx context.Context, messages []agent.Message) ([]*MessageDelivery, error) {
	out, started := make([]*MessageDelivery, len(messages)), make([]agent.Time, len(messages))
	waiting := false
	for index, message := range messages {
		var kept struct {
			Delivery *struct {
				Status, Error string
				StartedAt     agent.Time `json:"started_at"`
			}
			DeliveredAt agent.Time `json:"delivered_at"`
		}
		if message.Role != agent.MessageAssistant ||
			json.Unmarshal(message.Metadata, &kept) != nil ||
			kept.Delivery == nil ||
			kept.Delivery.Status == "" {
			continue
		}
		out[index] = &MessageDelivery{
			Status: kept.Delivery.Status,
			Error:  kept.Delivery.Error,
			SentAt: kept.DeliveredAt,
		}
		started[index] = kept.Delivery.StartedAt
		waiting = waiting || out[index].Status == "pending"
	}
	if !waiting {
		return out, nil
	}
	err := db.read(ctx, true, func(tx *Tx) error {
		for index, delivery := range out {
			if delivery == nil || delivery.Status != "pending" {
				continue
			}
			found, err := all(tx, func(rows *sqlite.Rows) (d MessageDelivery, err error) {
				return d, rows.Scan(&d.Status, &d.Error, &d.Attempt, &d.NextAttemptAt, &d.SentAt)
			}, `SELECT o.status, o.error, o.attempt, iif(o.attempt > 0 AND o.status = 'pending', o.next_attempt_at, NULL), m.metadata ->> '$.delivered_at'
				FROM _outgoing o JOIN messages m ON m.id = o.message_id WHERE o.message_id = ?`, messages[index].ID)
			if err != nil {
				return err
			}
			switch {
			case len(found) > 0:
				out[index] = &found[0]
			case isCutOff(started[index], tx.Now):
				delivery.Status, delivery.Error = "failed", cutOff
			}
		}
		return nil
	})
	return out, err
}

// ResendMessage queues a message whose sending failed once more. Parts of it that
// have been sent are not sent again.
func (db *DB) ResendMessage(ctx context.Context, conversationID string, id int64) (agent.Message, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Message, error) {
		found, err := all(
			tx,
			scanMessage,
			"SELECT "+messageColumns+" FROM messages WHERE id = ? AND conversation_id = ?",
			id,
			conversationID,
		)
		if err != nil {
			return agent.Message{}, err
		}
		if len(found) == 0 {
			return agent.Message{}, agent.Errorf(agent.CodeNotFound, "message %d not found in this conversation", id)
		}
		message := found[0]
		var failed bool
		var startedAt agent.Time
		if err := tx.row(
			"SELECT coalesce(?1 ->> '$.delivery.status', '') = 'failed', ?1 ->> '$.delivery.started_at'",
			string(message.Metadata),
		).Scan(&failed, &startedAt); err != nil {
			return message, err
		}
		failed = failed || isCutOff(startedAt, tx.Now)
		if !failed {
			return message, agent.Errorf(agent.CodeConflict, "only a message whose sending failed can be sent again")
		}
		var behind bool
		if err := tx.value(
			&behind,
			"SELECT EXISTS (SELECT 1 FROM _outgoing WHERE conversation_id = ? AND status IN ('pending','sending'))",
			conversationID,
		); err != nil {
			return message, err
		}
		if behind {
			return message, agent.Errorf(
				agent.CodeConflict,
				"newer messages of the conversation are being sent; try again when they have been sent",
			)
		}
		c, err := tx.conversation(conversationID)
		if err != nil {
			return message, err
		}
		if err := tx.sendable(&c, message.Role); err != nil {
			return message, err
		}
		if err := tx.requeueMessage(&c, &message); err != nil {
			return message, err
		}
		return message, tx.audit("message sent again", map[string]any{
			"conversation_id": c.ID,
			"message_id":      message.ID,
		})
	})
}

// requeueMessage queues a message that was queued before, with its parts that have
// been sent.
func (tx *Tx) requeueMessage(conversation *agent.Conversation, message *agent.Message) error {
	var err error
	if message.Metadata, err = mergeObjects(
		message.Metadata,
		json.RawMessage(`{"delivery":{"status":"pending"}}`),
	); err != nil {
		return err
	}
	if _, err := tx.exec(
		"UPDATE messages SET metadata = ? WHERE id = ?",
		string(message.Metadata),
		message.ID,
	); err != nil {
		return err
	}
	var parts int
	var externalID, channel string
	if err := tx.row(
		"SELECT coalesce(max(parts), 0), coalesce(max(external_id), ''), coalesce(max(channel), '') "+
			"FROM _outgoing WHERE message_id = ?",
		message.ID,
	).Scan(&parts, &externalID, &channel); err != nil {
		return err
	}
	if _, err := tx.exec("DELETE FROM _outgoing WHERE message_id = ?", message.ID); err != nil {
		return err
	}
	if err := tx.queueMessage(conversation, message.ID); err != nil {
		return err
	}
	_, err = tx.exec(
		"UPDATE _outgoing SET parts = ?, external_id = ?, channel = ? WHERE message_id = ?",
		parts, externalID, channel, message.ID,
	)
	return err
}
