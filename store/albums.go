package store

import (
	"encoding/json"
	"time"

	"satchel/agent"
)

// albumWait is how long the rest of an album is waited for after each of its messages.
const albumWait = 2 * time.Second

// describedFiles is the text of messages whose files have no caption.
var describedFiles = agent.Pattern(`^(\[(photo|video|document|audio|animation)(: [^\]]*)?\] ?)+$`)

// receiveAlbum stores the first message of an album, or adds a further one to it, whose
// id stays 0. The album's files are downloaded when all messages have arrived; only then
// is it answered, and an event.
func (tx *Tx) receiveAlbum(gateway *agent.Gateway, album string, message *agent.Message) error {
	found, err := all(tx, scanMessage, "SELECT "+messageColumns+` FROM messages WHERE conversation_id = ?1 AND metadata ->> '$.media_group_id' = ?2
		AND id > (SELECT max(id) FROM messages WHERE conversation_id = ?1) - 100 AND role = 'user' ORDER BY id LIMIT 1`, message.ConversationID, album)
	if err != nil {
		return err
	}
	stored := message
	if len(found) == 0 {
		if message.Metadata, err = mergeObjects(message.Metadata, json.RawMessage(`{"gathering":true}`)); err != nil {
			return err
		}
		var last int64
		if err := tx.value(&last, "SELECT coalesce(max(seq), 0) FROM _events"); err != nil {
			return err
		}
		if err := tx.appendTurn(message); err != nil {
			return err
		}
		if _, err := tx.exec(notReceived, last); err != nil {
			return err
		}
	} else {
		stored = &found[0]
		if err := tx.joinAlbum(stored, message); err != nil {
			return err
		}
	}
	if err := tx.queueAttachments(gateway, stored); err != nil {
		return err
	}
	_, err = tx.exec(
		"UPDATE _attachments SET next_attempt_at = ? WHERE message_id = ? AND attempts = 0 AND upload = ''",
		agent.At(tx.Now.Add(albumWait)),
		stored.ID,
	)
	return err
}

// joinAlbum adds a caption and files to the stored message of an album.
func (tx *Tx) joinAlbum(stored *agent.Message, message *agent.Message) error {
	switch {
	case describedFiles().MatchString(message.Content) && describedFiles().MatchString(stored.Content):
		stored.Content += " " + message.Content
	case describedFiles().MatchString(message.Content):
	case describedFiles().MatchString(stored.Content):
		stored.Content = message.Content
	default:
		stored.Content += "\n" + message.Content
	}
	files := append(attachmentsOf(stored.Metadata), attachmentsOf(message.Metadata)...)
	raw, err := json.Marshal(map[string]any{"attachments": files[:min(len(files), agent.MaxMessageAttachments)]})
	if err != nil {
		return err
	}
	stored.Content = agent.Clip(stored.Content, agent.MaxMessageLength)
	if stored.Metadata, err = mergeObjects(stored.Metadata, raw); err != nil {
		return err
	}
	_, err = tx.exec(
		"UPDATE messages SET content = ?, metadata = ? WHERE id = ?",
		stored.Content,
		string(stored.Metadata),
		stored.ID,
	)
	return err
}

// endAlbum writes the event of an album, and queues its answer, unless that was done.
func (tx *Tx) endAlbum(gatewayID string, messageID int64) error {
	done, err := tx.exec(
		"UPDATE messages SET metadata = json_remove(metadata, '$.gathering') WHERE id = ? "+
			"AND metadata ->> '$.gathering' = 1",
		messageID,
	)
	if err != nil || done.Changes == 0 {
		return err
	}
	if _, err := tx.exec(
		"INSERT INTO _events(type, data, created_at) SELECT 'message.received', data, ? "+
			"FROM _message_events WHERE message_id = ?",
		tx.Now,
		messageID,
	); err != nil {
		return err
	}
	g, err := tx.gateway(gatewayID)
	if err != nil {
		return agent.IgnoreNotFound(err)
	}
	return tx.queueAnswers(&g, []agent.Message{{ID: messageID}})
}
