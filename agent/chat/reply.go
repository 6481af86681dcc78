package chat

import (
	"context"
	"errors"
	"slices"

	"satchel/agent"
	"satchel/store"
)

// Mode says how an answer was made.
type Mode string

// ModePassages is the mode of an answer that is made of passages alone, without
// a language model. An answer of a model has the mode "".
const ModePassages Mode = "passages"

// What an answer of passages says.
const (
	somePassages = "No language model is set up. These passages of the knowledge fit best."
	noPassages   = "No language model is set up, and nothing in the knowledge fits."
)

// Turn is what a person says to an agent.
type Turn struct {
	ConversationID string // empty: a new conversation
	ContactID      string // of a new conversation; may be empty
	Message        string
	RetryOf        int64  // an answer: what it answers is answered once more, and Message is not read; 0: none
	Model          string // in place of the agent's own, when set
	Fallback       Mode   // how to answer when no language model is set up; "" for an error
	Tools          Choice
	Sources        Choice
}

// Reply stores what a person said, answers it, and stores the answer. When the
// turn fails the person's message stays; an answer that was cut short is kept
// with metadata.partial, and returned beside the error. An error's details and
// the message that is returned name the conversation.
func (c *Chat) Reply(ctx context.Context, db *store.DB, t Turn, onEvent func(Event) error) (agent.Message, Answer, error) {
	said, err := t.said(ctx, db)
	if err != nil {
		return agent.Message{}, Answer{}, err
	}
	release, err := c.turns.take(ctx, turnKey{db.ID(), said.ConversationID})
	if err != nil {
		return agent.Message{}, Answer{}, err
	}
	defer release()
	x := Exchange{Model: t.Model, Tools: t.Tools, Sources: t.Sources}
	model, settings, err := c.modelOf(ctx, db, x)
	passages := t.Fallback == ModePassages && agent.ErrorCode(err) == agent.CodeValidation
	if err != nil && !passages {
		return agent.Message{}, Answer{}, err // nobody could answer
	}
	said, history, err := t.begin(ctx, db, said)
	if err != nil {
		return agent.Message{}, Answer{}, err
	}
	x.Messages = within(history, historyTokens)
	var answer Answer
	if passages {
		answer, err = c.passages(ctx, db, x, onEvent)
	} else {
		answer, err = c.answer(ctx, db, model, settings, x, onEvent)
	}
	if err != nil && answer.Text == "" {
		return agent.Message{ConversationID: said.ConversationID}, answer, inConversation(err, said.ConversationID)
	}
	reply, stored := c.keep(ctx, db, said.ConversationID, kept{InReplyTo: said.ID, RetryOf: t.RetryOf, Partial: err != nil}, answer)
	return reply, answer, inConversation(errors.Join(err, stored), said.ConversationID)
}

// said is the message that a turn answers; unless it was said before, it is yet
// to be stored.
func (t Turn) said(ctx context.Context, db *store.DB) (agent.Message, error) {
	if t.RetryOf != 0 {
		said, err := db.Question(ctx, t.RetryOf)
		if agent.ErrorCode(err) == agent.CodeNotFound || err == nil && t.ConversationID != "" && t.ConversationID != said.ConversationID {
			return said, agent.Invalid("retry_of", "names no answer of this conversation")
		}
		return said, err
	}
	said := agent.Message{ConversationID: t.ConversationID, Role: agent.MessageUser, Content: t.Message, Metadata: agent.SaidToChat}
	return said, asTurn(said.Validate())
}

// begin stores what a turn answers, unless it was said before, and returns it
// with the conversation up to it.
func (t Turn) begin(ctx context.Context, db *store.DB, said agent.Message) (agent.Message, []agent.Message, error) {
	if t.RetryOf == 0 {
		return db.BeginTurn(ctx, said, t.ContactID, maxHistory)
	}
	_, history, err := db.Conversation(ctx, said.ConversationID, maxHistory)
	if err != nil {
		return said, nil, err
	}
	history = spoken(history) // before the cut: what was said before may have been answered again since
	if at := slices.IndexFunc(history, func(m agent.Message) bool { return m.ID == said.ID }); at >= 0 {
		return said, history[:at+1], nil
	}
	history, _, err = db.Messages(ctx, said.ConversationID, said.ID+1, maxHistory, true)
	slices.Reverse(history)
	return said, history, err
}

// passages answers with what the agent's knowledge says.
func (c *Chat) passages(ctx context.Context, db *store.DB, x Exchange, onEvent func(Event) error) (Answer, error) {
	a := Answer{Mode: ModePassages, ToolCalls: []ToolCall{}, Sources: []Citation{}}
	if err := c.retrieve(ctx, db, x, &a); err != nil {
		return a, err
	}
	if onEvent != nil {
		if err := onEvent(Event{Sources: a.Sources}); err != nil {
			return a, err
		}
	}
	if a.Text = noPassages; len(a.Sources) > 0 {
		a.Text = somePassages
	}
	return a, nil
}

// asTurn names a message's content as a turn does.
func asTurn(err error) error {
	var e *agent.Error
	if errors.As(err, &e) && e.Details["field"] == "content" {
		issue, _ := e.Details["issue"].(string)
		return agent.Invalid("message", issue)
	}
	return err
}

func inConversation(err error, id string) error {
	var e *agent.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	return e.With("conversation_id", id)
}
