package chat

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
	"satchel/vector"
)

// Chat answers messages for agents.
type Chat struct {
	model *llm.Client
	index *vector.Index
	tools func(ctx context.Context, db *store.DB, which Choice) ([]Tool, error)
	pages func(db *store.DB) (tools []Tool, done func())
	log   *slog.Logger
	now   func() time.Time
	turns turns
	lists modelLists
	calls shortCalls
}

// Options configure a Chat.
type Options struct {
	Model *llm.Client
	Index *vector.Index
	// Tools returns the tools of a choice. An unknown id is a validation error
	// about tools. nil: there are no tools.
	Tools func(ctx context.Context, db *store.DB, which Choice) ([]Tool, error)
	// Browser returns the tools by which the model uses the browser for one answer,
	// if the agent's settings allow it, and what ends their use. nil: there are none.
	Browser func(db *store.DB) (tools []Tool, done func())
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// New returns a Chat.
func New(options Options) *Chat {
	if options.Tools == nil {
		options.Tools = func(_ context.Context, _ *store.DB, which Choice) ([]Tool, error) {
			if len(which.IDs) > 0 {
				return nil, agent.Invalid("tools", "names a tool that does not exist")
			}
			return nil, nil
		}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Chat{
		now:   options.Now,
		model: options.Model,
		index: options.Index,
		tools: options.Tools,
		pages: options.Browser,
		log:   options.Log,
		turns: turns{waiting: map[turnKey]*turn{}},
		calls: shortCalls{queries: queriesTimeout, ratings: ratingsTimeout},
	}
}

// Choice selects records by id, all of them, or none. The zero value is all.
type Choice struct {
	None bool
	IDs  []string // empty: all, unless None
}

// UnmarshalJSON decodes true as all, false as none, or a list of ids.
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

// Tool is a function that the model may call.
type Tool struct {
	llm.Tool
	ID string
	// Call runs the tool. Its result is encoded as JSON for the model. The
	// model sees the text of an *agent.Error, and of any other error only that
	// the tool failed.
	Call func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// Event is something that happens while an answer is generated. Exactly one
// field is set, but Queries come with Sources.
type Event struct {
	Delta      string                // a piece of the answer
	ToolCall   *ToolCall             // a tool is about to be called
	ToolResult *ToolCall             // the tool has returned
	Pending    []agent.PendingSource // the answer waits until these have been read
	Sources    []Citation            // passages from the agent's knowledge, before the model is called
	Queries    []string              // by which they were found, if the model made them
}

// ToolCall is one call of a tool and its outcome.
type ToolCall struct {
	ID        string          `json:"id" example:"call_1"`
	Name      string          `json:"name" example:"weather"`
	Arguments json.RawMessage `json:"arguments" doc:"Empty if the model did not write a JSON object; error shows what it wrote."`
	Result    any             `json:"result,omitempty" doc:"The tool's result. A long result is cut to the beginning of its text."`
	Error     string          `json:"error,omitempty" doc:"Why it failed."`
	Duration  int64           `json:"duration_ms" example:"12"`
}

// Request describes one answer to generate.
type Request struct {
	Messages    []llm.Message     // the last one is the one to answer
	System      string            // overrides the agent's system prompt if set
	Channel     agent.GatewayType // through which the conversation takes place; empty: none
	Model       string            // overrides the agent's model if set
	Temperature *float64          // overrides the agent's temperature if set
	MaxTokens   int               // overrides the agent's limit if set
	Tools       Choice
	Extra       []Tool // offered in addition to Tools
	Sources     Choice
	WaitFor     []string        // ids of sources that are read first, within maxWait
	Schema      json.RawMessage // JSON Schema that the answer must follow; nil: free text
	MaxRounds   int             // rounds of tool calls; 0: MaxRounds
	Stop        []string        // texts at which the answer ends, excluding them
	// ClientTools are tools that the caller runs itself. If there are any, the
	// agent's own are not offered, and the answer may consist of calls.
	ClientTools []llm.Tool
	// ClientToolChoice is llm.Request.ToolChoice for ClientTools.
	ClientToolChoice string
}

// Answer is the result of an Exchange.
type Answer struct {
	Text        string
	JSON        json.RawMessage // with a schema: the answer as JSON
	ToolCalls   []ToolCall
	Sources     []Citation
	Pending     []agent.PendingSource // sources that were not read yet, so that Sources lacks their passages
	Weak        bool                  // even the best of Sources is unlikely to answer
	Queries     []string              // by which Sources were found, if the model made them from the conversation
	Usage       llm.Usage
	Mode        Mode           // how it was generated
	Truncated   bool           // it reached the maximum length
	ClientCalls []llm.ToolCall // calls of client tools, which end the exchange
	Model       string
}

// Complete answers an exchange without storing anything. If onEvent is set, the
// answer is streamed and onEvent receives what happens; its error ends the
// exchange. On an error the answer contains what was generated until then.
func (c *Chat) Complete(ctx context.Context, db *store.DB, x Request, onEvent func(Event) error) (Answer, error) {
	model, settings, err := c.modelOf(ctx, db, x)
	if err != nil {
		return Answer{}, err
	}
	return c.answer(ctx, db, model, settings, x, onEvent)
}

// answer is Complete with a model that has been resolved.
func (c *Chat) answer(
	ctx context.Context,
	db *store.DB,
	model llm.Model,
	settings store.Settings,
	request Request,
	onEvent func(Event) error,
) (_ Answer, err error) {
	loop := &toolLoop{
		chat:    c,
		db:      db,
		model:   model,
		request: request,
		onEvent: onEvent,
		keys:    callKeys{answer: keyOf(ctx)},
		answer: Answer{
			Model:     model.Name,
			ToolCalls: []ToolCall{},
			Sources:   []Citation{},
		},
	}
	if request.ClientTools == nil && !request.Tools.None {
		if loop.tools, err = c.tools(ctx, db, request.Tools); err != nil {
			return loop.answer, err
		}
	}
	if c.pages != nil &&
		settings.ChatBrowser &&
		request.ClientTools == nil &&
		!request.Tools.None &&
		len(request.Tools.IDs) == 0 {
		tools, done := c.pages(db)
		defer done()
		loop.addTools(tools)
	}
	loop.tools = append(loop.tools, request.Extra...)
	if err := c.awaitSources(ctx, db, request, &loop.answer, loop.emit); err != nil {
		return loop.answer, err
	}
	if err := c.retrieve(ctx, db, &model, request, &loop.answer); err != nil {
		return loop.answer, err
	}
	if len(loop.answer.Sources) > 0 {
		if err := loop.emit(Event{Sources: loop.answer.Sources, Queries: loop.answer.Queries}); err != nil {
			return loop.answer, err
		}
	}
	loop.system = systemPrompt(db.Agent(), settings, request, c.now(), loop.answer.Sources)
	if loop.answer.Weak {
		if _, n, err := db.Sources(
			ctx,
			store.SourceFilter{},
			store.Page{Limit: 1},
		); err != nil {
			return loop.answer, err
		} else if n > 0 {
			loop.system += weakPrompt
		}
	}
	loop.system += pendingPrompt(loop.answer.Pending)
	err = loop.run(ctx)
	loop.answer.Sources = citedIn(loop.answer.Text, loop.answer.Sources)
	return loop.answer, err
}

// CheckAddress returns a validation error if the language model of settings cannot be
// called at its address.
func (c *Chat) CheckAddress(s agent.Settings) error {
	return c.model.CheckAddress(s.LLMProvider, s.LLMBaseURL)
}

// CheckModel returns an error that names what is missing in the settings before
// the agent's model can be called.
func (c *Chat) CheckModel(ctx context.Context, db *store.DB) error {
	_, _, err := c.modelOf(ctx, db, Request{})
	return err
}

// modelOf returns the model of the agent's settings, with the overrides of the
// exchange.
func (c *Chat) modelOf(ctx context.Context, db *store.DB, request Request) (llm.Model, store.Settings, error) {
	settings, err := db.Settings(ctx)
	if err != nil {
		return llm.Model{}, settings, err
	}
	m, err := storedModel(ctx, db, settings)
	if err != nil {
		return m, settings, err
	}
	if request.Model != "" {
		m.Name = request.Model
	}
	if request.Temperature != nil {
		m.Temperature = request.Temperature
	}
	if request.MaxTokens > 0 {
		m.MaxTokens = request.MaxTokens
	}
	return m, settings, m.Check()
}

// Step answers an exchange as a step that may be retried. With a conversation,
// its history precedes the exchange's last message, which is not stored: it was
// stored before, or is an instruction of the workflow. The answer is stored
// under key; if the key was used before, the stored answer is returned. Tools
// receive the key, see WithKey.
func (c *Chat) Step(ctx context.Context, db *store.DB, conversationID, key string, x Request) (Answer, error) {
	if conversationID == "" {
		return c.Complete(WithKey(ctx, key), db, x, nil)
	}
	question := x.Messages[len(x.Messages)-1]
	return c.answerOnce(ctx, db, conversationID, key, x, func(history []agent.Message) []llm.Message {
		before := newestWithin(history, historyTokens)
		if n := len(before); n == 0 ||
			before[n-1].Role != question.Role ||
			before[n-1].Content != question.Content {
			before = append(before, question)
		}
		return before
	})
}

// Ask makes an agent answer a prompt that is not a person's message, such as a
// schedule's. The prompt and the answer are stored in the conversation, once
// per key; without a conversation, in one created for the key, with the
// metadata about, a JSON object. A key that was answered before returns the
// same answer without calling the model. Tools receive the key as in Step.
func (c *Chat) Ask(
	ctx context.Context,
	db *store.DB,
	conversationID, key, prompt string,
	about json.RawMessage,
) (Answer, error) {
	message := agent.Message{
		ConversationID: conversationID,
		Role:           agent.MessageUser,
		Content:        prompt,
		Metadata:       json.RawMessage("{}"),
	}
	if err := message.Validate(); err != nil {
		return Answer{}, renameTurnField(err)
	}
	if _, _, err := c.modelOf(ctx, db, Request{}); err != nil {
		return Answer{}, err // no model could answer
	}
	message, err := db.AppendPromptOnce(ctx, key, about, message)
	if err != nil {
		return Answer{}, err
	}
	return c.answerOnce(
		ctx, db, message.ConversationID, key,
		Request{},
		func(history []agent.Message) []llm.Message {
			return newestWithin(historyUpTo(history, message), historyTokens)
		},
	)
}

// answerOnce answers an exchange in a conversation and stores the answer under key,
// or returns the answer stored there. messages builds the exchange's messages
// from the conversation's newest.
func (c *Chat) answerOnce(
	ctx context.Context,
	db *store.DB,
	conversationID, key string,
	request Request,
	messages func(history []agent.Message) []llm.Message,
) (Answer, error) {
	release, err := c.turns.acquire(ctx, turnKey{db.ID(), conversationID})
	if err != nil {
		return Answer{}, err
	}
	defer release()
	if stored, err := db.AnswerByKey(ctx, conversationID, key); err != nil || stored != nil {
		return storedAnswer(stored, request.Schema != nil), err
	}
	conversation, history, err := db.Conversation(ctx, conversationID, maxHistory)
	if err != nil {
		return Answer{}, err
	}
	if request.Channel, err = channelOf(ctx, db, conversation); err != nil {
		return Answer{}, err
	}
	request.Messages = messages(history)
	answer, err := c.Complete(WithKey(ctx, key), db, request, nil)
	if err != nil {
		return answer, err
	}
	_, err = c.storeAnswer(ctx, db, conversationID, answerMetadata{Key: key}, answer)
	return answer, err
}
