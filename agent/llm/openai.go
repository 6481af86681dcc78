package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
)

// The parts of OpenAI's chat completions that are used:
// https://platform.openai.com/docs/api-reference/chat.
type (
	openAIRequest struct {
		Model               string          `json:"model"`
		Messages            []openAIMessage `json:"messages"`
		Temperature         *float64        `json:"temperature,omitempty"`
		MaxTokens           int             `json:"max_tokens,omitempty"`
		MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
		Tools               []openAITool    `json:"tools,omitempty"`
		ToolChoice          any             `json:"tool_choice,omitempty"`
		Stop                []string        `json:"stop,omitempty"`
		ResponseFormat      any             `json:"response_format,omitempty"`
		Stream              bool            `json:"stream,omitempty"`
		StreamOptions       any             `json:"stream_options,omitempty"`
	}
	// openAIMessage always has a content, since servers refuse a message without one, or
	// with null, even if it has calls.
	openAIMessage struct {
		Role       agent.MessageRole `json:"role"`
		Content    string            `json:"content"`
		ToolCalls  []openAICall      `json:"tool_calls,omitempty"`
		ToolCallID string            `json:"tool_call_id,omitempty"`

		fields map[string]json.RawMessage // further fields
	}
	openAITool struct {
		Type     string         `json:"type"`
		Function openAIFunction `json:"function"`
	}
	openAIFunction struct {
		Name        string          `json:"name,omitempty"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	// openAIAnswer is a whole answer, or one event of a stream.
	openAIAnswer struct {
		Choices []struct {
			Message      openAIText      `json:"message"`
			Delta        *openAIText     `json:"delta"`
			FinishReason text            `json:"finish_reason"`
			Error        json.RawMessage `json:"error"`
		} `json:"choices"`
		Usage struct {
			PromptTokens     count `json:"prompt_tokens"`
			CompletionTokens count `json:"completion_tokens"`
		} `json:"usage"`
		Error  json.RawMessage `json:"error"`
		Object string          `json:"object"`
	}
	// openAIText is a message, or a piece of one.
	openAIText struct {
		Content   text
		Refusal   text
		ToolCalls []openAICall
		Fields    map[string]json.RawMessage // those that are not of the protocol
	}
	// openAICall is a call, or a piece of one.
	openAICall struct {
		Index    *count // of streams
		ID       text
		Function struct {
			Name      text      `json:"name"`
			Arguments arguments `json:"arguments"`
		}
		Fields map[string]json.RawMessage
	}
)

// MarshalJSON adds the further fields.
func (m openAIMessage) MarshalJSON() ([]byte, error) {
	type plain openAIMessage
	return withFields(plain(m), m.fields)
}

// UnmarshalJSON keeps fields that are not of the protocol.
func (m *openAIText) UnmarshalJSON(data []byte) (err error) {
	*m = openAIText{}
	if data[0] != '{' {
		return nil
	}
	var calls json.RawMessage
	m.Fields, err = splitFields(
		data,
		map[string]any{
			"content":    &m.Content,
			"refusal":    &m.Refusal,
			"tool_calls": &calls,
		},
		"role", "annotations", "audio", "function_call", "name",
	)
	switch {
	case err != nil || len(calls) == 0:
	case calls[0] == '[':
		err = json.Unmarshal(calls, &m.ToolCalls)
	case calls[0] == '{':
		m.ToolCalls = make([]openAICall, 1)
		err = json.Unmarshal(calls, &m.ToolCalls[0])
	}
	return err
}

// UnmarshalJSON keeps fields that are not of the protocol.
func (c *openAICall) UnmarshalJSON(data []byte) (err error) {
	*c = openAICall{}
	c.Fields, err = splitFields(
		data,
		map[string]any{
			"index":    &c.Index,
			"id":       &c.ID,
			"function": &c.Function,
		},
		"type",
	)
	return err
}

// MarshalJSON encodes a call for a request.
func (c openAICall) MarshalJSON() ([]byte, error) {
	return withFields(map[string]any{"id": c.ID, "type": "function", "function": c.Function}, c.Fields)
}

// openAI requests a reply with OpenAI's chat completions, which every provider but
// Anthropic supports.
func (c *Client) openAI(
	ctx context.Context,
	model Model,
	r Request,
	omit omission,
	onText func(string) error,
) (Reply, error) {
	call, err := openAICallOf(model, "/chat/completions")
	if err != nil {
		return Reply{}, err
	}
	request := newOpenAIRequest(model, r, omit)
	if onText != nil {
		request.Stream = true
		if !omit[streamOptionsParameter] {
			request.StreamOptions = map[string]bool{"include_usage": true}
		}
	}
	resp, err := c.api.do(ctx, call, request)
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	body, isStream := sniff(resp.Body)
	s := openAIAccumulator{accumulator: accumulator{onText: onText}}
	if isStream {
		err = events(body, s.event)
	} else {
		err = whole(body, s.event)
	}
	if err != nil {
		return s.result(), err
	}
	return s.finish()
}

// openAICallOf returns a call of a provider's route, with the credential.
func openAICallOf(m Model, route string) (egress.Call, error) {
	address, err := endpoint(m.Address(), route)
	call := egress.Call{URL: address}
	switch {
	case err != nil || m.Key == "":
	case strings.HasSuffix(address.Hostname(), ".azure.com"):
		call.Auth = agent.APIAuth{
			Type:  "header",
			Name:  "Api-Key",
			Value: m.Key,
		}
	default:
		call.Auth = agent.APIAuth{Type: "bearer", Token: m.Key}
	}
	return call, err
}

// usage returns the token counts of an answer, or before if it has none.
func (a *openAIAnswer) usage(before Usage) Usage {
	if a.Usage.PromptTokens == 0 && a.Usage.CompletionTokens == 0 {
		return before
	}
	return Usage{Input: int64(a.Usage.PromptTokens), Output: int64(a.Usage.CompletionTokens)}
}

// openAIAccumulator assembles a reply: a stream, or a whole answer, which is a stream of
// one event.
type openAIAccumulator struct {
	accumulator
	calls    []*partialCall
	index    map[count]*partialCall // by the index of the stream
	fields   fieldPieces
	refusal  []byte
	began    bool   // there was a choice
	finished string // the finish reason
}

// partialCall is a call of which there may be more pieces.
type partialCall struct {
	ToolCall
	arguments       []byte
	open            int // objects and lists in the arguments
	quoted, escaped bool
	whole           bool // the arguments have ended
	fields          fieldPieces
}

// addArguments adds a piece, without reading those before it again.
func (c *partialCall) addArguments(piece arguments) {
	c.arguments = append(c.arguments, piece...)
	for _, b := range []byte(piece) {
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted && b == '\\':
			c.escaped = true
		case b == '"':
			c.quoted = !c.quoted
		case c.quoted:
		case b == '{' || b == '[':
			c.open++
		case b == '}' || b == ']':
			c.open--
			c.whole = c.open == 0
		}
	}
}

func (s *openAIAccumulator) event(data []byte) error {
	if bytes.Equal(data, []byte("[DONE]")) {
		if s.began && s.finished == "" {
			s.finished = "stop" // some servers give no reason
		}
		return nil
	}
	if data[0] == '[' { // Gemini sends errors as a list
		data = bytes.TrimSpace(bytes.Trim(data, "[]"))
	}
	if len(data) == 0 || data[0] != '{' {
		return nil // not an event of this protocol
	}
	var answer openAIAnswer
	if err := decode(data, &answer); err != nil {
		return err
	}
	if isSet(answer.Error) || answer.Object == "error" {
		return s.failed(data)
	}
	s.reply.Usage = answer.usage(s.reply.Usage)
	if len(answer.Choices) == 0 {
		return nil
	}
	s.began = true
	choice := answer.Choices[0]
	var err error
	switch {
	case isSet(choice.Error):
		return s.failed(data)
	case choice.Delta != nil:
		err = s.addPiece(*choice.Delta, false)
	case s.size == 0: // otherwise a message repeats the deltas
		err = s.addPiece(choice.Message, true)
	}
	if err != nil {
		return err
	}
	if choice.FinishReason != "" {
		s.finished = string(choice.FinishReason)
	}
	return nil
}

// failed returns the error for an event that describes one.
func (s *openAIAccumulator) failed(data []byte) error {
	if s.size > 0 {
		return errTruncated
	}
	return errorInAnswer(data)
}

func isSet(field json.RawMessage) bool {
	return len(field) > 0 && string(field) != "null"
}

// addPiece adds a piece of the message, or all of it, whose calls are whole.
func (s *openAIAccumulator) addPiece(piece openAIText, whole bool) error {
	if err := s.add(string(piece.Content)); err != nil {
		return err
	}
	s.refusal = append(s.refusal, piece.Refusal...)
	if err := s.grow(len(piece.Refusal) + sizeOf(piece.Fields)); err != nil {
		return err
	}
	s.fields.add(piece.Fields, "reasoning_content", "reasoning", "reasoning_text")
	for _, call := range piece.ToolCalls {
		if err := s.addCall(call, whole); err != nil {
			return err
		}
	}
	return nil
}

func sizeOf(fields map[string]json.RawMessage) (n int) {
	for _, value := range fields {
		n += len(value)
	}
	return n
}

func (s *openAIAccumulator) addCall(piece openAICall, whole bool) error {
	if err := s.grow(len(piece.Function.Arguments) + len(piece.Function.Name) + sizeOf(piece.Fields)); err != nil {
		return err
	}
	call := s.continued(piece)
	if call == nil || whole {
		if len(s.calls) == MaxToolCalls {
			return errTooLong
		}
		call = &partialCall{}
		s.calls = append(s.calls, call)
	}
	if piece.Index != nil {
		if s.index == nil {
			s.index = map[count]*partialCall{}
		}
		s.index[*piece.Index] = call
	}
	if piece.ID != "" {
		call.ID = string(piece.ID)
	}
	if name := string(piece.Function.Name); name != call.Name { // some servers repeat it in each piece
		call.Name += name
	}
	call.addArguments(piece.Function.Arguments)
	call.fields.add(piece.Fields)
	return nil
}

// continued returns the call that a piece continues, nil if it begins another. By the
// protocol its index decides, and only the first piece has an id and a name; but some
// servers number every call 0, or give neither an index nor an id.
func (s *openAIAccumulator) continued(piece openAICall) *partialCall {
	var call *partialCall
	if piece.Index != nil {
		call = s.index[*piece.Index]
	} else if n := len(s.calls); n > 0 {
		call = s.calls[n-1]
	}
	if call == nil {
		return nil
	}
	otherID := piece.ID != "" && call.ID != "" && string(piece.ID) != call.ID
	sameID := piece.ID != "" && string(piece.ID) == call.ID
	if otherID || !sameID && piece.Function.Name != "" && piece.Function.Arguments != "" && call.whole {
		return nil
	}
	return call
}

// finish returns the reply once all of it has arrived.
func (s *openAIAccumulator) finish() (Reply, error) {
	err := s.end()
	if err == nil && len(s.text) == 0 && len(s.refusal) > 0 {
		err = s.add(string(s.refusal))
	}
	for i, call := range s.calls {
		isEmpty := call.Name == "" && len(bytes.TrimSpace(call.arguments)) == 0
		if isEmpty && (i > 0 || len(s.text) > 0) {
			continue // some servers end with an empty piece
		}
		call.Arguments, call.Fields = string(call.arguments), call.fields.fields()
		s.reply.ToolCalls = append(s.reply.ToolCalls, call.ToolCall)
	}
	s.reply.Hidden.Fields = s.fields.fields()
	s.reply.Truncated = slices.Contains([]string{"length", "model_length", "max_tokens"}, strings.ToLower(s.finished))
	// Gemini adds what was filtered: "content_filter: SAFETY".
	filtered := strings.HasPrefix(s.finished, "content_filter") || strings.HasPrefix(s.finished, "function_call_filter")
	reply := withUsableCalls(s.result())
	switch {
	case err != nil:
		return reply, err
	case !s.began:
		return reply, errNoReply
	case s.finished == "" || s.finished == "error":
		return reply, errTruncated
	case filtered && reply.Text == "" && len(reply.ToolCalls) == 0:
		return reply, errRefused
	}
	return reply, nil
}

func newOpenAIRequest(model Model, request Request, omit omission) openAIRequest {
	q := openAIRequest{Model: model.Name}
	if !omit[temperatureParameter] {
		q.Temperature = model.Temperature
	}
	if !omit[stopParameter] {
		q.Stop = request.Stop
	}
	switch maxTokensName(model, omit) {
	case maxTokensParameter:
		q.MaxTokens = model.MaxTokens
	case maxCompletionParameter:
		q.MaxCompletionTokens = model.MaxTokens
	}
	if request.Schema != nil && omit[schemaParameter] {
		request.System += schemaPrompt(request.Schema)
	} else if request.Schema != nil {
		q.ResponseFormat = map[string]any{
			"type":        "json_schema",
			"json_schema": map[string]any{"name": "answer", "schema": request.Schema},
		}
	}
	system, messages := alternating(request.System, request.Messages)
	switch {
	case system == "":
	case omit[systemParameter] && len(messages) > 0:
		messages[0].Content = joinTexts(system, messages[0].Content)
	default:
		q.Messages = append(q.Messages, openAIMessage{Role: agent.MessageSystem, Content: system})
	}
	for _, message := range messages {
		q.Messages = append(q.Messages, newOpenAIMessage(message, omit))
	}
	if omit[toolsParameter] {
		return q
	}
	for _, tool := range request.Tools {
		q.Tools = append(q.Tools, openAITool{
			"function",
			openAIFunction{
				Name:        tool.Name,
				Description: tool.Description,
				Parameters:  tool.schema(),
			},
		})
	}
	switch {
	case len(q.Tools) == 0 || request.ToolChoice == "" || omit[toolChoiceParameter]:
	case request.ToolChoice == AnyTool:
		q.ToolChoice = "required"
	default:
		q.ToolChoice = openAITool{"function", openAIFunction{Name: request.ToolChoice}}
	}
	return q
}

// maxTokensName returns the name under which a model gets the maximum length: OpenAI has
// replaced it, compatible servers know the older one. If one is refused, the other is
// sent, then none.
func maxTokensName(m Model, omit omission) parameter {
	names := []parameter{maxTokensParameter, maxCompletionParameter}
	if m.Provider == OpenAI {
		names = []parameter{maxCompletionParameter, maxTokensParameter}
	}
	for _, name := range names {
		if !omit[name] {
			return name
		}
	}
	return ""
}

// schemaPrompt asks for an answer that follows a schema, where a server cannot enforce it.
func schemaPrompt(schema json.RawMessage) string {
	return fmt.Sprintf(
		"\n\nAnswer with JSON alone, without any other text, which follows this JSON Schema:\n%s",
		schema,
	)
}

func newOpenAIMessage(m Message, omit omission) openAIMessage {
	message := openAIMessage{
		Role:       m.Role,
		Content:    m.Hidden.Thought + m.Content,
		ToolCallID: m.CallID,
	}
	if omit[hiddenParameter] {
		message.Content = m.Content
	} else {
		message.fields = m.Hidden.Fields
	}
	for _, call := range m.ToolCalls {
		one := openAICall{ID: text(call.ID)}
		one.Function.Name, one.Function.Arguments = text(call.Name), arguments(call.Arguments)
		if !omit[hiddenParameter] {
			one.Fields = call.Fields
		}
		message.ToolCalls = append(message.ToolCalls, one)
	}
	return message
}
