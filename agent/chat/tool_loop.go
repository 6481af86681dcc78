package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
)

// Limits of the tool calls of one answer.
const (
	MaxRounds   = 8
	maxCalls    = 32
	callsAtOnce = 4
	callTimeout = 60 * time.Second
	maxResult   = 64 << 10 // bytes of a tool's result that the model receives
)

// toolLoop calls the model until it answers without calling tools.
type toolLoop struct {
	chat    *Chat
	db      *store.DB
	model   llm.Model
	system  string
	request Request
	tools   []Tool
	onEvent func(Event) error
	answer  Answer
	calls   int
	keys    callKeys
}

// addTools adds tools, except those of a name that is taken: the agent's own come first.
func (r *toolLoop) addTools(tools []Tool) {
	for _, t := range tools {
		if !slices.ContainsFunc(r.tools, func(own Tool) bool {
			return own.Name == t.Name
		}) {
			r.tools = append(r.tools, t)
		}
	}
}

func (r *toolLoop) emit(e Event) error {
	if r.onEvent == nil {
		return nil
	}
	return r.onEvent(e)
}

func (r *toolLoop) run(ctx context.Context) error {
	messages := slices.Clone(r.request.Messages)
	limit := MaxRounds
	if r.request.MaxRounds > 0 {
		limit = min(r.request.MaxRounds, MaxRounds)
	}
	retried := false
	for round := 0; ; round++ {
		offered := r.llmTools()
		if round >= limit || r.calls >= maxCalls {
			offered = nil // the budget is spent: it must answer now
		}
		reply, err := r.ask(ctx, messages, offered)
		r.answer.Text += reply.Text
		r.answer.Usage.Add(reply.Usage)
		r.answer.Truncated = reply.Truncated
		if err != nil {
			return err
		}
		if r.request.ClientTools != nil && len(reply.ToolCalls) > 0 {
			r.answer.ClientCalls = reply.ToolCalls
			return nil
		}
		if len(reply.ToolCalls) == 0 || offered == nil {
			problem := r.checkSchema(reply.Text)
			if problem == "" && r.answer.Text == "" && len(r.answer.ToolCalls) == 0 {
				return agent.Errorf(agent.CodeUpstream, "the language model returned an empty answer")
			}
			if problem == "" {
				return r.emitStructured()
			}
			if retried {
				return agent.Errorf(
					agent.CodeUpstream,
					"the language model's answer does not follow the schema: %s",
					problem,
				)
			}
			retried = true
			r.answer.Text = ""
			messages = append(
				messages,
				llm.Message{Role: agent.MessageAssistant, Content: reply.Text},
				llm.Message{
					Role:    agent.MessageUser,
					Content: "That does not follow the JSON Schema: " + problem + ". Answer again with JSON alone.",
				},
			)
			continue
		}
		messages = append(messages, llm.Message{
			Role:      agent.MessageAssistant,
			Content:   reply.Text,
			ToolCalls: reply.ToolCalls,
			Hidden:    reply.Hidden,
		})
		results, err := r.callAll(ctx, reply.ToolCalls)
		if err != nil {
			return err
		}
		messages = append(messages, results...)
		if err := r.endParagraph(); err != nil {
			return err
		}
	}
}

// emitStructured emits the answer that conforms to the schema, which was not
// streamed while it was being checked.
func (r *toolLoop) emitStructured() error {
	if r.request.Schema == nil {
		return nil
	}
	r.answer.Text = string(r.answer.JSON)
	return r.emit(Event{Delta: r.answer.Text})
}

// endParagraph separates the text before a round of calls from what follows.
func (r *toolLoop) endParagraph() error {
	if r.answer.Text == "" || strings.HasSuffix(r.answer.Text, "\n") || r.request.Schema != nil {
		return nil
	}
	r.answer.Text += "\n\n"
	return r.emit(Event{Delta: "\n\n"})
}

func (r *toolLoop) llmTools() []llm.Tool {
	if r.request.ClientTools != nil {
		return r.request.ClientTools
	}
	list := make([]llm.Tool, len(r.tools))
	for i, t := range r.tools {
		list[i] = t.Tool
	}
	return list
}

func (r *toolLoop) ask(ctx context.Context, messages []llm.Message, tools []llm.Tool) (llm.Reply, error) {
	messages = hideLinks(r.db, messages)
	request := llm.Request{
		System:   r.system,
		Messages: messages,
		Tools:    tools,
		Stop:     r.request.Stop,
		Schema:   r.request.Schema,
	}
	if r.request.ClientTools != nil {
		request.ToolChoice = r.request.ClientToolChoice
	}
	// An answer with a schema is sent as a whole, once it conforms.
	if r.onEvent == nil || r.request.Schema != nil {
		return r.chat.model.Chat(ctx, r.model, request, nil)
	}
	return r.chat.model.Chat(ctx, r.model, request, func(piece string) error {
		return r.onEvent(Event{Delta: piece})
	})
}

// hideLinks returns messages without links to browser sessions: a model sees references.
func hideLinks(db *store.DB, messages []llm.Message) []llm.Message {
	hidden := slices.Clone(messages)
	for i := range hidden {
		hidden[i].Content = db.HideLinks(hidden[i].Content)
	}
	return hidden
}

// callAll runs the calls of one round concurrently and returns their results in
// order. Calls over the budget are rejected.
func (r *toolLoop) callAll(ctx context.Context, calls []llm.ToolCall) ([]llm.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make([]ToolCall, len(calls))
	texts := make([]string, len(calls))
	slots := make(chan struct{}, callsAtOnce)
	var running sync.WaitGroup
	for index, call := range calls {
		done[index] = reportedCall(call)
		if err := r.emit(Event{ToolCall: &done[index]}); err != nil {
			cancel()
			running.Wait()
			return nil, err
		}
		if r.calls++; r.calls > maxCalls {
			done[index].Error = "the budget of tool calls for this answer is spent"
			texts[index] = "Error: " + done[index].Error
			continue
		}
		outcome, ctx := done[index], WithKey(ctx, r.keys.next(call.Name, done[index].Arguments))
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			texts[index] = r.call(ctx, &outcome)
			done[index].Result, done[index].Error, done[index].Duration =
				outcome.Result, outcome.Error, outcome.Duration
		})
	}
	running.Wait()
	messages := make([]llm.Message, len(calls))
	for i := range calls {
		if err := r.emit(Event{ToolResult: &done[i]}); err != nil {
			return nil, err
		}
		messages[i] = llm.Message{
			Role:    agent.MessageTool,
			Content: texts[i],
			CallID:  calls[i].ID,
		}
	}
	r.answer.ToolCalls = append(r.answer.ToolCalls, done...)
	return messages, ctx.Err()
}

// call runs one tool and returns the text for the model.
func (r *toolLoop) call(ctx context.Context, call *ToolCall) string {
	at := slices.IndexFunc(r.tools, func(t Tool) bool {
		return t.Name == call.Name
	})
	fail := func(reason string) string {
		call.Error = reason
		return "Error: " + reason
	}
	if at < 0 {
		return fail("there is no tool with this name")
	}
	if call.Error != "" {
		return fail(call.Error)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	result, err := r.tools[at].Call(ctx, call.Arguments)
	call.Duration = time.Since(began).Milliseconds()
	var known *agent.Error
	switch {
	case errors.As(err, &known):
		return fail(known.Message)
	case ctx.Err() != nil:
		return fail("the tool did not answer in time")
	case err != nil:
		r.chat.log.Error("run tool", "agent", r.db.ID(), "tool", call.Name, "error", err)
		return fail("the tool failed")
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return fail("the tool's result is not valid JSON")
	}
	call.Result = clipJSON(raw, maxStoredResult)
	return agent.Clip(string(raw), maxResult)
}

// reportedCall returns a call as it is reported before it runs.
func reportedCall(call llm.ToolCall) ToolCall {
	c := ToolCall{
		ID:        call.ID,
		Name:      call.Name,
		Arguments: json.RawMessage(call.Arguments),
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(c.Arguments, &object) != nil || object == nil {
		c.Arguments, c.Error =
			json.RawMessage("{}"), "the arguments are not a JSON object: "+agent.Clip(call.Arguments, 200)
	}
	return c
}

// checkSchema parses the answer as JSON if it has a schema, and returns what is
// wrong with it.
func (r *toolLoop) checkSchema(text string) string {
	if r.request.Schema == nil {
		return ""
	}
	value := jsonIn(text)
	if value == nil {
		return "it is not valid JSON"
	}
	if problem := schemaProblem(r.request.Schema, value); problem != "" {
		return problem
	}
	r.answer.JSON = value
	return ""
}

// jsonIn returns the JSON of an answer, which many models wrap in a code fence or in
// sentences: the first object or list, unless all of it is JSON. It returns nil if there
// is none.
func jsonIn(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	for from := 0; from < len(text); from++ {
		at := strings.IndexAny(text[from:], "{[")
		if at < 0 {
			return nil
		}
		from += at
		var value json.RawMessage
		if json.NewDecoder(strings.NewReader(text[from:])).Decode(&value) == nil {
			return value
		}
		if strings.Count(text[:from], "{")+strings.Count(text[:from], "[") > maxJSONStarts {
			return nil
		}
	}
	return nil
}

// maxJSONStarts limits where jsonIn tries to find JSON, since each try reads to the end.
const maxJSONStarts = 50
