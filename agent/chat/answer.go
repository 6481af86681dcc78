package chat

import (
	"context"
	"errors"

	"satchel/agent"
	"satchel/store"
)

// Answer answers a message that was stored before, by itself: after the
// messages before it and the answers to them, whatever was said meanwhile. keep
// stores the answer, before another turn of the conversation begins. An answer
// that was cut short is stored with metadata.partial, not kept, and an error.
// Tools get the agent and the message, see WithKey.
func (c *Chat) Answer(ctx context.Context, db *store.DB, said agent.Message, keep func(agent.Message) error) error {
	release, err := c.turns.take(ctx, turnKey{db.ID(), said.ConversationID})
	if err != nil {
		return err
	}
	defer release()
	model, settings, err := c.modelOf(ctx, db, Exchange{})
	if err != nil {
		return err
	}
	_, history, err := db.Conversation(ctx, said.ConversationID, maxHistory)
	if err != nil {
		return err
	}
	ctx = WithKey(ctx, db.ID()+":"+store.AnswerKey(said.ID))
	answer, err := c.answer(ctx, db, model, settings, Exchange{Messages: within(upTo(history, said), historyTokens)}, nil)
	if err != nil && answer.Text == "" {
		return err
	}
	raw, e := kept{InReplyTo: said.ID, Partial: err != nil}.metadata(answer, agent.MaxObjectBytes/2)
	if e != nil {
		return e
	}
	reply := agent.Message{ConversationID: said.ConversationID, Role: agent.MessageAssistant, Content: agent.Clip(answer.Text, agent.MaxMessageLength), Metadata: raw}
	if err != nil {
		_, e = db.AppendReply(context.WithoutCancel(ctx), reply)
		return errors.Join(err, e)
	}
	return keep(reply)
}

// upTo is a conversation as it is to whom answers a message: without what
// people said after it, and with the message last.
func upTo(history []agent.Message, said agent.Message) []agent.Message {
	kept := make([]agent.Message, 0, len(history)+1)
	for _, m := range history {
		if m.ID != said.ID && (m.ID < said.ID || m.Role != agent.MessageUser) {
			kept = append(kept, m)
		}
	}
	return append(kept, said)
}
