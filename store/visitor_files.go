package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// finishAll ends uploads that have been kept.
func finishAll(files []*Upload) {
	for _, f := range files {
		f.finish()
	}
}

// Attachments describes the files of a message.
func Attachments(files []*Upload) []agent.Attachment {
	var described []agent.Attachment
	for _, f := range files {
		described = append(described, agent.Attachment{
			Type:     agent.FileKind(f.MediaType),
			Name:     f.Name,
			MimeType: f.MediaType,
			Size:     f.Size,
			Status:   agent.AttachmentStored,
		})
	}
	return described
}

// keepFiles keeps the files of a message, as its attachments describe them. The
// agent's oldest files are deleted to make room. Visitors of websites can send only
// so many per day.
func (tx *Tx) keepFiles(gatewayID string, message *agent.Message, files []*Upload) error {
	if len(files) == 0 {
		return nil
	}
	for n, f := range files {
		if _, err := tx.exec(
			"INSERT INTO _attachments(message_id, n, gateway_id, attempts, upload, name, media_type, "+
				"size) VALUES (?,?,?,0,?,?,?,?)",
			message.ID, n, gatewayID, f.id, f.Name, f.MediaType, f.Size,
		); err != nil {
			return err
		}
	}
	if message.Role == agent.MessageUser {
		if room, err := tx.visitorFileRoom(gatewayID, message.ConversationID); err != nil {
			return err
		} else if room < 0 {
			return TooManyFiles()
		}
	}
	return tx.dropOldAttachments()
}

// TooManyFiles returns the error that a visitor's daily limit on files has been
// reached.
func TooManyFiles() error {
	return agent.Errorf(agent.CodeRateLimited, "too many files were sent in this chat today")
}

// visitorFileRoom returns how many bytes of files a visitor may still send now;
// negative if there are too many files.
func (tx *Tx) visitorFileRoom(gatewayID, conversationID string) (room int64, err error) {
	var all, own int64
	err = tx.row(
		`SELECT coalesce(sum(a.size), 0), coalesce(sum(a.size) FILTER (WHERE m.conversation_id = ?), 0)
		FROM _attachments a JOIN messages m ON m.id = a.message_id WHERE a.gateway_id = ? AND m.role = 'user' AND m.created_at > ?`,
		conversationID,
		gatewayID,
		agent.At(tx.Now.Add(-24*time.Hour)),
	).Scan(&all, &own)
	return min(agent.MaxWidgetFileBytes-all, agent.MaxVisitorFileBytes-own), err
}

// VisitorFileRoom returns how many bytes of files a visitor may still send now, in
// the conversation of a gateway's thread. If none are left, the error is
// RATE_LIMITED.
func (db *DB) VisitorFileRoom(ctx context.Context, gatewayID, thread string) (int64, error) {
	return Read(ctx, db, func(tx *Tx) (int64, error) {
		var conversation string
		err := tx.value(
			&conversation,
			"SELECT id FROM conversations WHERE gateway_id = ? AND external_thread_id = ?",
			gatewayID, thread,
		)
		if err != nil && !errors.Is(err, sqlite.ErrNoRows) {
			return 0, err
		}
		room, err := tx.visitorFileRoom(gatewayID, conversation)
		if err == nil && room <= 0 {
			err = TooManyFiles()
		}
		return room, err
	})
}

// VisitorFile returns a file of a message that the visitor of a gateway's thread can
// see; see Visit.
func (db *DB) VisitorFile(ctx context.Context, gatewayID, thread string, messageID int64, n int) (File, error) {
	seen, err := Read(ctx, db, func(tx *Tx) (seen bool, err error) {
		return seen, tx.value(&seen, `SELECT EXISTS (SELECT 1 FROM messages m JOIN conversations v ON v.id = m.conversation_id
			WHERE m.id = ? AND v.gateway_id = ? AND v.external_thread_id = ? AND v.external_thread_id <> '' AND `+visibleToVisitor+`)`, messageID, gatewayID, thread)
	})
	if err == nil && !seen {
		err = agent.NotFound("attachment", strconv.FormatInt(messageID, 10)+"/"+strconv.Itoa(n))
	}
	if err != nil {
		return File{}, err
	}
	return db.Attachment(ctx, messageID, n)
}

// TakesFiles returns an error if files cannot be sent in a conversation: only
// visitors of websites get them.
func (db *DB) TakesFiles(ctx context.Context, conversationID string) error {
	_, err := Read(ctx, db, func(tx *Tx) (string, error) {
		return tx.takesFiles(conversationID)
	})
	return err
}

// takesFiles returns the gateway of a conversation in which people can send files.
func (tx *Tx) takesFiles(conversationID string) (gatewayID string, err error) {
	c, err := tx.conversation(conversationID)
	if err != nil {
		return "", err
	}
	var kind agent.GatewayType
	err = tx.value(&kind, "SELECT type FROM gateways WHERE id = ?", c.GatewayID)
	if errors.Is(err, sqlite.ErrNoRows) || err == nil && kind != agent.GatewayWeb {
		return "", agent.Invalid("file", "can only be sent in conversations over a website's widget")
	}
	return c.GatewayID, err
}

// SendFiles is SendMessage for a person's message with files, received by
// ReceiveFile. See TakesFiles.
func (db *DB) SendFiles(ctx context.Context, message agent.Message, files []*Upload) (agent.Message, error) {
	described := Attachments(files)
	message.Content = cmp.Or(message.Content, agent.FilesText(described))
	about, err := json.Marshal(map[string]any{"attachments": described})
	if err != nil {
		return message, err
	}
	if message.Metadata, err = mergeObjects(message.Metadata, about); err != nil {
		return message, err
	}
	var gateway string
	before := func(tx *Tx) (err error) {
		gateway, err = tx.takesFiles(message.ConversationID)
		return err
	}
	sent, err := db.sendMessage(ctx, message, false, before, func(tx *Tx, m *agent.Message) error {
		return tx.keepFiles(gateway, m, files)
	})
	if err == nil {
		finishAll(files)
	}
	return sent, err
}
