package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"satchel/agent"
	"satchel/store/sqlite"
)

// replyField is the field of _secrets with the tokens for replying to a
// conversation's messages.
const replyField = "reply"

// maxReplyTokens limits a conversation's messages that wait for an answer with a
// token of their own. The oldest are dropped first.
const maxReplyTokens = 20

// replyToken is for replying to one message.
type replyToken struct {
	Token string     `json:"token"`
	Until agent.Time `json:"until"`
}

// keepReplyToken encrypts and stores the token for replying to an inbound message.
func (tx *Tx) keepReplyToken(conversationID string, in agent.Inbound) error {
	if in.ReplyToken == "" {
		return nil
	}
	tokens, err := tx.replyTokens(conversationID)
	if err != nil {
		return err
	}
	tokens = append(tokens, replyToken{in.ReplyToken, in.ReplyUntil})
	return tx.putReplyTokens(conversationID, tokens[max(0, len(tokens)-maxReplyTokens):])
}

// takeReplyToken removes and returns the oldest valid token of a conversation;
// "" if there is none.
func (tx *Tx) takeReplyToken(conversationID string) (string, error) {
	tokens, err := tx.replyTokens(conversationID)
	if err != nil || len(tokens) == 0 {
		return "", err
	}
	return tokens[0].Token, tx.putReplyTokens(conversationID, tokens[1:])
}

// replyTokens returns the tokens that are still valid. Those encrypted with another
// master key do not count.
func (tx *Tx) replyTokens(conversationID string) ([]replyToken, error) {
	raw, err := tx.secret(conversationID, replyField)
	if errors.Is(err, errLocked) || err == nil && raw == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var tokens []replyToken
	if err := json.Unmarshal([]byte(raw), &tokens); err != nil {
		return nil, fmt.Errorf("stored reply tokens: %w", err)
	}
	return slices.DeleteFunc(tokens, func(t replyToken) bool {
		return !t.Until.After(tx.Now.Time)
	}), nil
}

func (tx *Tx) putReplyTokens(conversationID string, tokens []replyToken) error {
	if len(tokens) == 0 {
		return tx.putSecret(conversationID, replyField, "")
	}
	raw, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	return tx.putSecret(conversationID, replyField, string(raw))
}

// TakeReplyToken removes and returns the token for replying to a message of a
// gateway's thread; "" if there is none.
func (db *DB) TakeReplyToken(ctx context.Context, gatewayID, thread string) (string, error) {
	id, err := Read(ctx, db, func(tx *Tx) (id string, err error) {
		err = tx.value(&id, `SELECT v.id FROM conversations v JOIN _secrets s ON s.owner = v.id AND s.field = ?
			WHERE v.gateway_id = ? AND v.external_thread_id = ? AND v.external_thread_id <> ''`, replyField, gatewayID, thread)
		if errors.Is(err, sqlite.ErrNoRows) {
			return "", nil
		}
		return id, err
	})
	if err != nil || id == "" {
		return "", err
	}
	return Write(ctx, db, func(tx *Tx) (string, error) {
		return tx.takeReplyToken(id)
	})
}
