package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/mailbox"
	"satchel/store/sqlite"
)

// Bounds of automatic answers by email, for programs whose emails do not say that
// no person wrote them: the messages of one sender that are answered within a time.
const (
	maxMailAnswers    = 20
	mailAnswersWithin = 24 * time.Hour
)

// mayAnswerMail reports whether a message may be answered automatically by an email
// to an address, and counts it. Several answers to a message count once.
func (tx *Tx) mayAnswerMail(address string, messageID int64) (may bool, err error) {
	key := mailbox.Key(address)
	since := agent.At(tx.Now.Add(-mailAnswersWithin))
	if _, err := tx.exec("DELETE FROM _mail_answers WHERE address = ? AND created_at < ?", key, since); err != nil {
		return false, err
	}
	if _, err := tx.exec(`INSERT INTO _mail_answers(address, message_id, created_at) SELECT ?1, ?2, ?3
		WHERE (SELECT count(*) FROM _mail_answers WHERE address = ?1) < ?4 ON CONFLICT DO NOTHING`,
		key, messageID, tx.Now, maxMailAnswers); err != nil {
		return false, err
	}
	return may, tx.value(&may, "SELECT EXISTS (SELECT 1 FROM _mail_answers WHERE address = ? AND message_id = ?)",
		key, messageID)
}

// tooManyAnswers says that the bound is reached.
var tooManyAnswers = fmt.Sprintf("the sender has already been answered %d times within a day", maxMailAnswers)

// ReceivedMail is the email that started an execution, from the point of view of the
// emails that the execution sends.
type ReceivedMail struct {
	Senders  []string        // the addresses to which an answer to it goes
	Metadata json.RawMessage // of the message
	Refused  string          // why it gets no automatic answer; "" if it may
}

// IsSender reports whether an email to an address is an answer.
func (m *ReceivedMail) IsSender(address string) bool {
	if m == nil {
		return false
	}
	return slices.ContainsFunc(m.Senders, func(s string) bool { return mailbox.Key(s) == mailbox.Key(address) })
}

// AnswerMail returns the email that started an execution, or nil if none did. If one
// of the recipients sent it, that counts as an automatic answer.
func (db *DB) AnswerMail(ctx context.Context, executionID string, recipients []string) (*ReceivedMail, error) {
	messageID, m, err := db.mailOf(ctx, executionID)
	if err != nil || m == nil || m.Refused != "" || !slices.ContainsFunc(recipients, m.IsSender) {
		return m, err
	}
	may, err := Write(ctx, db, func(tx *Tx) (bool, error) { return tx.mayAnswerMail(m.Senders[0], messageID) })
	if !may {
		m.Refused = tooManyAnswers
	}
	return m, err
}

func (db *DB) mailOf(ctx context.Context, executionID string) (messageID int64, m *ReceivedMail, err error) {
	m, err = Read(ctx, db, func(tx *Tx) (*ReceivedMail, error) {
		found, err := all(tx, func(rows *sqlite.Rows) (*ReceivedMail, error) {
			var m ReceivedMail
			var replyTo, email, automatic string
			err := rows.Scan(&messageID, (*rawJSON)(&m.Metadata), &replyTo, &email, &automatic)
			if automatic != "" {
				m.Refused = "a program sent the email (" + automatic + ")"
			}
			m.Senders = slices.DeleteFunc([]string{replyTo, email}, func(s string) bool { return s == "" })
			return &m, err
		}, `SELECT m.id, m.metadata, coalesce(m.metadata ->> '$.reply_to', ''), coalesce(c.email, ''),
			coalesce(m.metadata ->> '$.auto_submitted', '')
			FROM executions x JOIN messages m ON m.id = x.input ->> '$.message.id' AND m.role = 'user'
			JOIN conversations v ON v.id = m.conversation_id JOIN gateways g ON g.id = v.gateway_id AND g.type = 'email'
			LEFT JOIN contacts c ON c.id = coalesce(m.metadata ->> '$.contact_id', v.contact_id) WHERE x.id = ?`, executionID)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return found[0], nil
	})
	return messageID, m, err
}

// MailAddresses returns the addresses from which the agent sends email.
func (db *DB) MailAddresses(ctx context.Context) ([]string, error) {
	return Read(ctx, db, func(tx *Tx) (addresses []string, err error) {
		ids, err := all(tx, scanID, "SELECT id FROM gateways WHERE type = 'email'")
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			o, err := tx.storedGateway(id)
			if err != nil {
				return nil, err
			}
			if o.Config.FromAddress != "" {
				addresses = append(addresses, o.Config.FromAddress)
			}
		}
		return addresses, nil
	})
}
