package chat

import (
	"context"
	"encoding/json"
	"log/slog"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
	"satchel/vector"
)

// Chat answers for agents.
type Chat struct {
	model *llm.Client
	index *vector.Index
	tools func(ctx context.Context, db *store.DB, which Choice) ([]Tool, error)
	log   *slog.Logger
	turns turns
	lists modelLists
}

// Options make a Chat.
type Options struct {
	Model *llm.Client
	Index *vector.Index
	// Tools returns the tools that a choice stands for; an id that names none
	// is a validation error about tools. nil: there are none.
	Tools func(ctx context.Context, db *store.DB, which Choice) ([]Tool, error)
	Log   *slog.Logger
}

// New makes a Chat.
func New(o Options) *Chat {
	if o.Tools == nil {
		o.Tools = func(_ context.Context, _ *store.DB, which Choice) ([]Tool, error) {
			if len(which.IDs) > 0 {
				return nil, agent.Invalid("tools", "names a tool that does not exist")
			}
			return nil, nil
		}
	}
	return &Chat{model: o.Model, index: o.Index, tools: o.Tools, log: o.Log, turns: turns{waiting: map[turnKey]*turn{}}}
}

// Choice names some records by their ids, all of them, or none. The zero value
// is all.
type Choice struct {
	None bool
	IDs  []string // empty: all, unless None
}

// UnmarshalJSON reads true for all, false for none, and a list of ids.
func (c *Choice) UnmarshalJSON(data []byte) error {
	*c = Choice{}
	var all bool
	if json.Unmarshal(data, &all) == nil {
		c.None = !all
		return nil
	}
	if err := json.Unmarshal(data, &c.IDs); err != nil {
		return err
	}
	c.None = len(c.IDs) == 0
	return nil
}

// Tool is something that the model may call.
type Tool struct {
	llm.Tool
	ID string
	// Call runs the tool. Its result becomes JSON text for the model. An
	// *agent.Error is shown to the model, any other error only as a failure.
	Call func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// Event is what happens while an answer is made; exactly one field is set.
type Event struct {
	Delta      string     // a piece of the answer
	ToolCall   *ToolCall  // a tool is about to be called
	ToolResult *ToolCall  // it has answered
	Sources    []Citation // what the agent's knowledge says, before the model is asked
}

// ToolCall is one call of a tool and its outcome.
type ToolCall struct {
	ID        string          `json:"id" example:"call_1"`
	Name      string          `json:"name" example:"weather"`
	Arguments json.RawMessage `json:"arguments" doc:"Empty when the model wrote no JSON object; error shows what it wrote."`
	Result    any             `json:"result,omitempty" doc:"What the tool answered; of a long one the beginning of its text."`
	Error     string          `json:"error,omitempty" doc:"Why it failed."`
	Duration  int64           `json:"duration_ms" example:"12"`
}

// Exchange is what one answer is asked for with.
type Exchange struct {
	Messages    []llm.Message // the last is what is to be answered
	System      string        // in place of the agent's own system prompt, when set
	Model       string        // in place of the agent's own, when set
	Temperature *float64      // in place of the agent's own, when set
	MaxTokens   int           // in place of the agent's own, when set
	Tools       Choice
	Extra       []Tool // offered beside Tools
	Sources     Choice
	Schema      json.RawMessage // JSON Schema that the answer must follow; nil: free text
	MaxRounds   int             // of tool calls; 0: MaxRounds
	Stop        []string        // texts at which the answer ends, before them
	// Foreign are tools that the caller runs itself. With them the agent's own
	// are not offered, and an answer may be their calls.
	Foreign []llm.Tool
	// ForeignChoice is as llm.Request.ToolChoice, of Foreign.
	ForeignChoice string
}

// Answer is the outcome of an Exchange.
type Answer struct {
	Text      string
	JSON      json.RawMessage // with a schema: the answer as JSON
	ToolCalls []ToolCall
	Sources   []Citation
	Usage     llm.Usage
	Mode      Mode           // how it was made
	Truncated bool           // it reached the longest reply allowed
	Foreign   []llm.ToolCall // calls of foreign tools, which end the exchange
	Model     string
}

// Complete answers an exchange without storing anything. onEvent gets what
// happens on the way, and with it the answer is streamed; an error of onEvent
// ends the exchange. nil: no stream. With an error the answer holds what was
// made until then.
func (c *Chat) Complete(ctx context.Context, db *store.DB, x Exchange, onEvent func(Event) error) (Answer, error) {
	model, settings, err := c.modelOf(ctx, db, x)
	if err != nil {
		return Answer{}, err
	}
	return c.answer(ctx, db, model, settings, x, onEvent)
}

// answer is Complete with a model that has been looked up.
func (c *Chat) answer(ctx context.Context, db *store.DB, model llm.Model, settings store.Settings, x Exchange, onEvent func(Event) error) (_ Answer, err error) {
	r := &toolLoop{chat: c, db: db, model: model, exchange: x, onEvent: onEvent, keys: callKeys{answer: keyOf(ctx)}, answer: Answer{Model: model.Name, ToolCalls: []ToolCall{}, Sources: []Citation{}}}
	if x.Foreign == nil && !x.Tools.None {
		if r.tools, err = c.tools(ctx, db, x.Tools); err != nil {
			return r.answer, err
		}
	}
	r.tools = append(r.tools, x.Extra...)
	if err := c.retrieve(ctx, db, x, &r.answer); err != nil {
		return r.answer, err
	}
	if len(r.answer.Sources) > 0 {
		if err := r.emit(Event{Sources: r.answer.Sources}); err != nil {
			return r.answer, err
		}
	}
	r.system = systemPrompt(db.Agent(), settings, x.System, r.answer.Sources)
	err = r.run(ctx)
	return r.answer, err
}

// CheckAddress is a validation error when the settings cannot name raw as the
// address of a language model.
func (c *Chat) CheckAddress(raw string) error { return c.model.CheckAddress(raw) }

// modelOf is the model that the agent's settings name, with what the exchange
// changes of it.
func (c *Chat) modelOf(ctx context.Context, db *store.DB, x Exchange) (llm.Model, store.Settings, error) {
	s, err := db.Settings(ctx)
	if err != nil {
		return llm.Model{}, s, err
	}
	m, err := storedModel(ctx, db, s)
	if err != nil {
		return m, s, err
	}
	if x.Model != "" {
		m.Name = x.Model
	}
	if x.Temperature != nil {
		m.Temperature = *x.Temperature
	}
	if x.MaxTokens > 0 {
		m.MaxTokens = x.MaxTokens
	}
	return m, s, m.Check()
}

// Step answers an exchange as a step of something that may be tried again.
// With a conversation its history comes before the exchange's last message,
// which is not stored: it is what a person said already, or an instruction of
// the workflow's. The answer is stored under key, and with a key that was used
// before, that answer is returned. Tools get the key, WithKey
// says.
func (c *Chat) Step(ctx context.Context, db *store.DB, conversationID, key string, x Exchange) (Answer, error) {
	if conversationID == "" {
		return c.Complete(WithKey(ctx, key), db, x, nil)
	}
	asked := x.Messages[len(x.Messages)-1]
	return c.once(ctx, db, conversationID, key, x, func(history []agent.Message) []llm.Message {
		before := within(history, historyTokens)
		if n := len(before); n == 0 || before[n-1].Role != asked.Role || before[n-1].Content != asked.Content {
			before = append(before, asked)
		}
		return before
	})
}

// Ask has an agent answer what nobody said to it, such as the prompt of a
// schedule. The prompt and the answer are kept in the conversation, each once
// for a key; without a conversation in one of the key's own, which gets the
// metadata about, a JSON object. A key that was answered before gets the same
// answer, and the model is not asked. Tools see the key as with Step.
func (c *Chat) Ask(ctx context.Context, db *store.DB, conversationID, key, prompt string, about json.RawMessage) (Answer, error) {
	said := agent.Message{ConversationID: conversationID, Role: agent.MessageUser, Content: prompt, Metadata: json.RawMessage("{}")}
	if err := said.Validate(); err != nil {
		return Answer{}, asTurn(err)
	}
	if _, _, err := c.modelOf(ctx, db, Exchange{}); err != nil {
		return Answer{}, err // nobody could answer
	}
	said, err := db.AskOnce(ctx, key, about, said)
	if err != nil {
		return Answer{}, err
	}
	return c.once(ctx, db, said.ConversationID, key, Exchange{}, func(history []agent.Message) []llm.Message {
		return within(upTo(history, said), historyTokens)
	})
}

// once answers an exchange in a conversation and stores the answer under key,
// or returns what is stored there. messages makes the exchange's of the
// conversation's newest.
func (c *Chat) once(ctx context.Context, db *store.DB, conversationID, key string, x Exchange, messages func(history []agent.Message) []llm.Message) (Answer, error) {
	release, err := c.turns.take(ctx, turnKey{db.ID(), conversationID})
	if err != nil {
		return Answer{}, err
	}
	defer release()
	if stored, err := db.AnswerUnder(ctx, conversationID, key); err != nil || stored != nil {
		return answered(stored, x.Schema != nil), err
	}
	_, history, err := db.Conversation(ctx, conversationID, maxHistory)
	if err != nil {
		return Answer{}, err
	}
	x.Messages = messages(history)
	answer, err := c.Complete(WithKey(ctx, key), db, x, nil)
	if err != nil {
		return answer, err
	}
	_, err = c.keep(ctx, db, conversationID, kept{Key: key}, answer)
	return answer, err
}
