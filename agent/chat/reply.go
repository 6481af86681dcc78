package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Mode is how an answer was generated.
type Mode string

// ModePassages is the mode of an answer that consists of passages, without a
// language model. An answer of a model has the mode "".
const ModePassages Mode = "passages"

// passagesText returns the text of an answer that consists of passages, since the
// model's settings have an error. It does not claim that the passages answer: see
// retrieve.
func passagesText(answer Answer, unset error) string {
	reason := noModelReason(unset)
	pending := ""
	if len(answer.Pending) > 0 {
		pending = " " + stillRead(answer.Pending) + " Ask again when that is done."
	}
	switch {
	case pending != "" && len(answer.Sources) == 0:
		return "I do not know yet, and " + reason + "." + pending
	case pending != "" && answer.Weak:
		return "I do not know yet, and " + reason + "." + pending + " These are the closest passages so far."
	case len(answer.Sources) == 0:
		return "I do not know: nothing in the knowledge answers this, and " + reason + "."
	case answer.Weak:
		return "I do not know: nothing in the knowledge seems to answer this, and " + reason +
			". These are the closest passages."
	}
	return strings.ToUpper(reason[:1]) + reason[1:] +
		". These are the closest passages from the knowledge; they may not answer the question." + pending
}

// noModelReason returns why no language model can be called. unset is the error of the
// settings.
func noModelReason(unset error) string {
	if e, ok := errors.AsType[*agent.Error](unset); ok {
		if field, issue := e.Details["field"], e.Details["issue"]; field != "llm_provider" && field != nil {
			return fmt.Sprintf("the language model cannot be used, since the setting %s %s", field, issue)
		}
	}
	return "no language model is set up"
}

// Turn is a person's message to an agent.
type Turn struct {
	ConversationID string // empty: a new conversation
	ContactID      string // for a new conversation; may be empty
	Message        string
	RetryOf        int64  // an answer: the message it answers is answered again, and Message is ignored; 0: none
	Model          string // overrides the agent's model if set
	Fallback       Mode   // how to answer if no language model is set up; "" for an error
	Tools          Choice
	Sources        Choice
	WaitFor        []string // ids of sources that are read first, within maxWait
}

// Reply stores a person's message, answers it, and stores the answer. If the
// turn fails, the person's message remains; an answer that was cut short is
// stored with metadata.partial, and returned with the error. The error's
// details and the returned message name the conversation.
func (c *Chat) Reply(
	ctx context.Context,
	db *store.DB,
	turn Turn,
	onEvent func(Event) error,
) (agent.Message, Answer, error) {
	message, err := turn.question(ctx, db)
	if err != nil {
		return agent.Message{}, Answer{}, err
	}
	release, err := c.turns.acquire(ctx, turnKey{db.ID(), message.ConversationID})
	if err != nil {
		return agent.Message{}, Answer{}, err
	}
	defer release()
	request := Request{
		Model:   turn.Model,
		Tools:   turn.Tools,
		Sources: turn.Sources,
		WaitFor: turn.WaitFor,
	}
	model, settings, err := c.modelOf(ctx, db, request)
	unset := err
	passages := turn.Fallback == ModePassages && agent.ErrorCode(err) == agent.CodeValidation
	if err != nil && !passages {
		return agent.Message{}, Answer{}, err // no model could answer
	}
	message, history, err := turn.begin(ctx, db, message)
	if err != nil {
		return agent.Message{}, Answer{}, err
	}
	request.Messages = newestWithin(history, historyTokens)
	var answer Answer
	if passages {
		answer, err = c.passages(ctx, db, request, unset, onEvent)
	} else {
		answer, err = c.answer(ctx, db, model, settings, request, onEvent)
	}
	if err != nil && answer.Text == "" {
		return agent.Message{
			ConversationID: message.ConversationID,
		}, answer, inConversation(err, message.ConversationID)
	}
	reply, stored := c.storeAnswer(
		ctx,
		db,
		message.ConversationID,
		answerMetadata{InReplyTo: message.ID, RetryOf: turn.RetryOf, Partial: err != nil},
		answer,
	)
	return reply, answer, inConversation(errors.Join(err, stored), message.ConversationID)
}

// question returns the message that a turn answers. It may not be stored yet.
func (t Turn) question(ctx context.Context, db *store.DB) (agent.Message, error) {
	if t.RetryOf != 0 {
		message, err := db.Question(ctx, t.RetryOf)
		if agent.ErrorCode(err) == agent.CodeNotFound ||
			err == nil && t.ConversationID != "" && t.ConversationID != message.ConversationID {
			return message, agent.Invalid("retry_of", "must be the id of an answer in this conversation")
		}
		return message, err
	}
	message := agent.Message{
		ConversationID: t.ConversationID,
		Role:           agent.MessageUser,
		Content:        t.Message,
		Metadata:       agent.ChatMessageMetadata,
	}
	return message, renameTurnField(message.Validate())
}

// begin stores the message that a turn answers, unless it was stored before,
// and returns it with the conversation up to it.
func (t Turn) begin(ctx context.Context, db *store.DB, message agent.Message) (agent.Message, []agent.Message, error) {
	if t.RetryOf == 0 {
		return db.BeginTurn(ctx, message, t.ContactID, maxHistory)
	}
	_, history, err := db.Conversation(ctx, message.ConversationID, maxHistory)
	if err != nil {
		return message, nil, err
	}
	history = visibleHistory(history) // before truncating: earlier messages may have been answered again since
	if at := slices.IndexFunc(history, func(m agent.Message) bool {
		return m.ID == message.ID
	}); at >= 0 {
		return message, history[:at+1], nil
	}
	history, _, err = db.Messages(ctx, message.ConversationID, message.ID+1, maxHistory, true)
	slices.Reverse(history)
	return message, history, err
}

// passages answers with passages from the agent's knowledge, since the model's
// settings have an error.
func (c *Chat) passages(
	ctx context.Context,
	db *store.DB,
	request Request,
	unset error,
	onEvent func(Event) error,
) (Answer, error) {
	answer := Answer{
		Mode:      ModePassages,
		ToolCalls: []ToolCall{},
		Sources:   []Citation{},
	}
	emit := func(e Event) error {
		if onEvent == nil {
			return nil
		}
		return onEvent(e)
	}
	if err := c.awaitSources(ctx, db, request, &answer, emit); err != nil {
		return answer, err
	}
	if err := c.retrieve(ctx, db, nil, request, &answer); err != nil {
		return answer, err
	}
	if err := emit(Event{Sources: answer.Sources}); err != nil {
		return answer, err
	}
	answer.Text = passagesText(answer, unset)
	return answer, nil
}

// renameTurnField renames the field of a message's content to the turn's field.
func renameTurnField(err error) error {
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
