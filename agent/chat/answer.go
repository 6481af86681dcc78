package chat

import (
	"context"
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
)

// Answer automatically answers a stored message. The model sees the messages
// before it and their answers, whatever was written since. keep stores the
// answer, before another turn of the conversation begins. An answer that was
// cut short is stored with metadata.partial, not kept, and returned with an
// error. Tools get the agent and the message; see WithKey.
func (c *Chat) Answer(
	ctx context.Context,
	db *store.DB,
	message agent.Message,
	how agent.AnswerOptions,
	keep func(agent.Message) error,
) error {
	release, err := c.turns.acquire(ctx, turnKey{db.ID(), message.ConversationID})
	if err != nil {
		return err
	}
	defer release()
	model, settings, err := c.modelOf(ctx, db, Request{})
	if err != nil {
		return err
	}
	conversation, history, err := db.Conversation(ctx, message.ConversationID, maxHistory)
	if err != nil {
		return err
	}
	channel, err := channelOf(ctx, db, conversation)
	if err != nil {
		return err
	}
	ctx = WithKey(ctx, db.ID()+":"+store.AnswerKey(message.ID))
	request := Request{
		Messages: newestWithin(historyUpTo(history, message), historyTokens),
		Tools:    Choice{None: how.Public},
		Channel:  channel,
	}
	handedOver := false
	if how.Handover != nil {
		request.Extra = []Tool{handoverTool(func() {
			handedOver = true
			how.Handover()
		})}
	}
	var onEvent func(Event) error
	if how.OnText != nil {
		onEvent = func(e Event) error {
			if e.Delta != "" {
				how.OnText(e.Delta)
			}
			return nil
		}
	}
	answer, err := c.answer(ctx, db, model, settings, request, onEvent)
	if err != nil && answer.Text == "" && !handedOver {
		return err
	}
	raw, e := answerMetadata{InReplyTo: message.ID, Partial: err != nil}.metadata(answer, agent.MaxObjectBytes/2)
	if e != nil {
		return e
	}
	reply := agent.Message{
		ConversationID: message.ConversationID,
		Role:           agent.MessageAssistant,
		Content:        agent.Clip(answer.Text, agent.MaxMessageLength),
		Metadata:       raw,
	}
	if err != nil && !handedOver {
		_, e = db.AppendReply(context.WithoutCancel(ctx), reply)
		return errors.Join(err, e)
	}
	return keep(reply)
}

// channelOf returns the type of a conversation's gateway, "" for none.
func channelOf(ctx context.Context, db *store.DB, c agent.Conversation) (agent.GatewayType, error) {
	if c.GatewayID == "" {
		return "", nil
	}
	gateway, err := db.Gateway(ctx, c.GatewayID)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return "", nil
	}
	return gateway.Type, err
}

// historyUpTo returns a conversation as seen when answering a message: without what
// people said after it, and with the message last.
func historyUpTo(history []agent.Message, message agent.Message) []agent.Message {
	kept := make([]agent.Message, 0, len(history)+1)
	for _, m := range history {
		if m.ID != message.ID && (m.ID < message.ID || m.Role != agent.MessageUser) {
			kept = append(kept, m)
		}
	}
	return append(kept, message)
}

// handoverTool lets the model leave the conversation to a person.
func handoverTool(handOver func()) Tool {
	return Tool{
		ID: "handover",
		Tool: llm.Tool{
			Name:       "handover",
			Parameters: agent.NoParameters,
			Description: "Hand this conversation over to a person. Call it when the visitor asks for a person, " +
				"or when you cannot help. Then say in a sentence that a person will answer here.",
		},
		Call: func(context.Context, json.RawMessage) (any, error) {
			handOver()
			return map[string]bool{"handed_over": true}, nil
		},
	}
}
