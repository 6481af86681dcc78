package store

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"satchel/agent"
	"satchel/store/sqlite"
)

// queueAttachments queues the files of a message for download.
func (tx *Tx) queueAttachments(g *agent.Gateway, m *agent.Message) error {
	for n, a := range attachmentsOf(m.Metadata) {
		if a.Status != agent.AttachmentPending {
			continue
		}
		if _, err := tx.exec(
			"INSERT INTO _attachments(message_id, n, gateway_id, attempts, next_attempt_at, upload, name, "+
				"media_type, size) VALUES (?,?,?,0,?,'','','',0) ON CONFLICT DO NOTHING",
			m.ID, n, g.ID, dueNow,
		); err != nil {
			return err
		}
	}
	return nil
}

// attachmentsOf returns the attachments in the metadata of a message; none if this
// program did not write them.
func attachmentsOf(metadata json.RawMessage) []agent.Attachment {
	var m struct {
		Attachments []agent.Attachment `json:"attachments"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return nil
	}
	return m.Attachments
}

// DueAttachments returns up to limit conversations with a file that is due for
// download at now, and when the next one after now is due; zero for never.
func (db *DB) DueAttachments(
	ctx context.Context,
	now agent.Time,
	limit int,
) (conversations []string, next agent.Time, err error) {
	conversations, err = Read(ctx, db, func(tx *Tx) ([]string, error) {
		if err := tx.value(
			&next,
			"SELECT min(next_attempt_at) FROM _attachments WHERE upload = '' AND next_attempt_at > ?",
			now,
		); err != nil {
			return nil, err
		}
		return all(
			tx,
			func(rows *sqlite.Rows) (id string, err error) {
				return id, rows.Scan(&id)
			},
			`SELECT DISTINCT m.conversation_id FROM _attachments a JOIN messages m ON m.id = a.message_id
				WHERE a.upload = '' AND a.next_attempt_at <= ? LIMIT ?`,
			now, limit,
		)
	})
	return conversations, next, err
}

// AttachmentDownload is a file of a message whose download has begun.
type AttachmentDownload struct {
	MessageID  int64
	N          int // index among the message's files
	Attempt    int // number of this attempt
	Attachment agent.Attachment
	ExternalID string      // the platform's id of the message
	Gateway    OpenGateway // without an id: it no longer exists
}

// BeginAttachment counts an attempt to download the first due file of a
// conversation's messages and returns the file; nil if none is due at now. The count
// survives a crash.
func (db *DB) BeginAttachment(ctx context.Context, conversationID string, now agent.Time) (*AttachmentDownload, error) {
	return Write(ctx, db, func(tx *Tx) (*AttachmentDownload, error) {
		tx.claimWork(workAttachments)
		download, gatewayID := AttachmentDownload{}, ""
		var metadata json.RawMessage
		err := tx.row(`SELECT a.message_id, a.n, a.gateway_id, a.attempts + 1, m.metadata FROM _attachments a JOIN messages m ON m.id = a.message_id
			WHERE m.conversation_id = ? AND a.upload = '' AND a.next_attempt_at <= ? ORDER BY a.message_id, a.n LIMIT 1`, conversationID, now).
			Scan(&download.MessageID, &download.N, &gatewayID, &download.Attempt, (*rawJSON)(&metadata))
		if errors.Is(err, sqlite.ErrNoRows) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if files := attachmentsOf(metadata); download.N < len(files) {
			download.Attachment = files[download.N]
		}
		if err := tx.endAlbum(gatewayID, download.MessageID); err != nil {
			return nil, err
		}
		var kept struct {
			ExternalID string `json:"external_id"`
		}
		_ = json.Unmarshal(metadata, &kept)
		download.ExternalID = kept.ExternalID
		if download.Gateway, err = tx.openGateway(gatewayID); agent.ErrorCode(err) == agent.CodeNotFound {
			download.Gateway, err = OpenGateway{}, nil
		}
		if err != nil {
			return nil, err
		}
		_, err = tx.exec(
			"UPDATE _attachments SET attempts = ? WHERE message_id = ? AND n = ?",
			download.Attempt, download.MessageID, download.N,
		)
		return &download, err
	})
}

// EndAttachment stores a downloaded file, whose bytes ReceiveFile took, and marks it
// as stored in the message. The agent's oldest files are deleted to make room.
func (db *DB) EndAttachment(ctx context.Context, download *AttachmentDownload, file *Upload) error {
	kept, err := Write(ctx, db, func(tx *Tx) (bool, error) {
		tx.claimWork(workAttachments)
		done, err := tx.exec(
			"UPDATE _attachments SET upload = ?, name = ?, media_type = ?, size = ?, next_attempt_at = NULL "+
				"WHERE message_id = ? AND n = ? AND upload = ''",
			file.id, file.Name, file.MediaType, file.Size, download.MessageID, download.N,
		)
		if err != nil || done.Changes == 0 { // the message was deleted meanwhile
			return false, err
		}
		a := download.Attachment
		a.Status, a.Error, a.Name, a.MimeType, a.Size = agent.AttachmentStored, "", file.Name, file.MediaType, file.Size
		if err := tx.describeAttachment(download.MessageID, download.N, a); err != nil {
			return false, err
		}
		return true, tx.dropOldAttachments()
	})
	if err == nil && kept {
		file.finish()
	}
	return err
}

// FailAttachment notes why a file was not downloaded and schedules the next attempt
// at next. If that is zero there is none, and the message says that the download
// failed.
func (db *DB) FailAttachment(ctx context.Context, download *AttachmentDownload, problem string, next agent.Time) error {
	return db.Do(ctx, func(tx *Tx) error {
		tx.claimWork(workAttachments)
		a := download.Attachment
		a.Error = agent.Clip(problem, 500)
		query, args :=
			"UPDATE _attachments SET next_attempt_at = ? WHERE message_id = ? AND n = ?", []any{
				next,
				download.MessageID,
				download.N,
			}
		if next.IsZero() {
			a.Status = agent.AttachmentFailed
			query, args = "DELETE FROM _attachments WHERE message_id = ? AND n = ?", args[1:]
		}
		done, err := tx.exec(query, args...)
		if err != nil || done.Changes == 0 { // the message was deleted meanwhile
			return err
		}
		return tx.describeAttachment(download.MessageID, download.N, a)
	})
}

// describeAttachment updates the state of one of a message's files in the message.
func (tx *Tx) describeAttachment(messageID int64, n int, a agent.Attachment) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = tx.exec(
		"UPDATE messages SET metadata = json_replace(metadata, ?, json(?)) WHERE id = ?",
		"$.attachments["+strconv.Itoa(n)+"]",
		string(raw),
		messageID,
	)
	return err
}

// dropOldAttachments removes the oldest files beyond what an agent keeps.
func (tx *Tx) dropOldAttachments() error {
	type old struct {
		message int64
		n       int
	}
	more, err := all(
		tx,
		func(rows *sqlite.Rows) (o old, err error) {
			return o, rows.Scan(&o.message, &o.n)
		},
		`SELECT message_id, n FROM (SELECT message_id, n, row_number() OVER newest AS nth, sum(size) OVER newest AS bytes
			FROM _attachments WHERE upload <> '' WINDOW newest AS (ORDER BY message_id DESC, n DESC)) WHERE nth > ? OR bytes > ?`,
		agent.MaxAttachments, agent.MaxStoredAttachmentSize,
	)
	if err != nil {
		return err
	}
	for _, o := range more {
		if _, err := tx.exec("DELETE FROM _attachments WHERE message_id = ? AND n = ?", o.message, o.n); err != nil {
			return err
		}
		if _, err := tx.exec(
			"UPDATE messages SET metadata = json_replace(metadata, ?, ?) WHERE id = ?",
			"$.attachments["+strconv.Itoa(o.n)+"].status",
			agent.AttachmentRemoved,
			o.message,
		); err != nil {
			return err
		}
	}
	return nil
}

// Attachment returns a file that came with a message: NOT_FOUND if there is no such
// file, CONFLICT if it has not been downloaded yet.
func (db *DB) Attachment(ctx context.Context, messageID int64, n int) (File, error) {
	return Read(ctx, db, func(tx *Tx) (File, error) {
		f := File{db: db}
		err := tx.row(
			"SELECT upload, name, media_type, size FROM _attachments WHERE message_id = ? AND n = ?",
			messageID, n,
		).Scan(&f.upload, &f.Name, &f.MediaType, &f.Size)
		switch {
		case errors.Is(err, sqlite.ErrNoRows):
			return f, agent.NotFound("attachment", strconv.FormatInt(messageID, 10)+"/"+strconv.Itoa(n))
		case err == nil && f.upload == "":
			return f, agent.Errorf(agent.CodeConflict, "the file has not been downloaded yet")
		}
		return f, err
	})
}

// MessageConversation returns the conversation of a message.
func (db *DB) MessageConversation(ctx context.Context, messageID int64) (id string, err error) {
	return Read(ctx, db, func(tx *Tx) (id string, err error) {
		err = tx.value(&id, "SELECT conversation_id FROM messages WHERE id = ?", messageID)
		if errors.Is(err, sqlite.ErrNoRows) {
			err = agent.NotFound("message", strconv.FormatInt(messageID, 10))
		}
		return id, err
	})
}
