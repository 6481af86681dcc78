package llm

import (
	"bytes"
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/agent/egress"
)

// The parts of OpenAI's chat completions that are used:
// https://platform.openai.com/docs/api-reference/chat.
type (
	openAIRequest struct {
		Model               string          `json:"model"`
		Messages            []openAIMessage `json:"messages"`
		Temperature         float64         `json:"temperature"`
		MaxTokens           int             `json:"max_tokens,omitempty"`
		MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
		Tools               []openAITool    `json:"tools,omitempty"`
		ToolChoice          any             `json:"tool_choice,omitempty"`
		Stop                []string        `json:"stop,omitempty"`
		ResponseFormat      any             `json:"response_format,omitempty"`
		Stream              bool            `json:"stream,omitempty"`
		StreamOptions       any             `json:"stream_options,omitempty"`
	}
	openAIMessage struct {
		Role       agent.MessageRole `json:"role"`
		Content    *string           `json:"content,omitempty"`
		ToolCalls  []openAICall      `json:"tool_calls,omitempty"`
		ToolCallID string            `json:"tool_call_id,omitempty"`
	}
	openAICall struct {
		Index    int            `json:"index,omitempty"` // of streams
		ID       string         `json:"id,omitempty"`
		Type     string         `json:"type,omitempty"`
		Function openAIFunction `json:"function"`
	}
	openAITool struct {
		Type     string         `json:"type"`
		Function openAIFunction `json:"function"`
	}
	openAIFunction struct {
		Name        string          `json:"name,omitempty"`
		Arguments   string          `json:"arguments,omitempty"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	// openAIAnswer is a whole answer, or one event of a stream.
	openAIAnswer struct {
		Choices []struct {
			Message      openAIText `json:"message"`
			Delta        openAIText `json:"delta"`
			FinishReason string     `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			PromptTokens     int64 `json:"prompt_tokens"`
			CompletionTokens int64 `json:"completion_tokens"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	openAIText struct {
		Content   string       `json:"content"`
		ToolCalls []openAICall `json:"tool_calls"`
	}
)

// openAI requests a reply with OpenAI's chat completions, which every provider but
// Anthropic supports.
func (c *Client) openAI(ctx context.Context, m Model, r Request, onText func(string) error) (Reply, error) {
	call, err := openAICallOf(m, "/chat/completions")
	if err != nil {
		return Reply{}, err
	}
	request := newOpenAIRequest(m, r)
	if onText == nil {
		var answer openAIAnswer
		if err := c.api.getJSON(ctx, call, request, &answer); err != nil {
			return Reply{}, err
		}
		return answer.reply()
	}
	request.Stream, request.StreamOptions = true, map[string]bool{"include_usage": true}
	resp, err := c.api.do(ctx, call, request)
	if err != nil {
		return Reply{}, err
	}
	s := openAIAccumulator{accumulator: accumulator{onText: onText}}
	if err := events(resp, s.event); err != nil {
		return s.result(), err
	}
	if s.finished == "" {
		return s.result(), errTruncated
	}
	s.reply.Truncated = s.finished == "length"
	s.reply.ToolCalls = s.calls
	return s.result(), nil
}

// openAICallOf returns a call of a provider's route, with the credential.
func openAICallOf(m Model, route string) (egress.Call, error) {
	address, err := endpoint(m.Address(), route)
	call := egress.Call{URL: address}
	if m.Key != "" {
		call.Auth = agent.APIAuth{Type: "bearer", Token: m.Key}
	}
	return call, err
}

func (a *openAIAnswer) reply() (Reply, error) {
	if len(a.Choices) == 0 {
		return Reply{}, errNoReply
	}
	choice := a.Choices[0]
	reply := Reply{Text: choice.Message.Content, Truncated: choice.FinishReason == "length", Usage: a.usage(Usage{})}
	size := len(reply.Text)
	for _, call := range choice.Message.ToolCalls {
		size += len(call.Function.Arguments)
		reply.ToolCalls = append(reply.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	if size > MaxReply || len(reply.ToolCalls) > MaxToolCalls {
		return Reply{}, errTooLong
	}
	return reply, nil
}

// usage returns the token counts of an answer, or before if it has none.
func (a *openAIAnswer) usage(before Usage) Usage {
	if a.Usage.PromptTokens == 0 && a.Usage.CompletionTokens == 0 {
		return before
	}
	return Usage{Input: a.Usage.PromptTokens, Output: a.Usage.CompletionTokens}
}

// openAIAccumulator assembles a streamed reply. Each piece of a tool call carries
// the call's index, but only the first carries its id and name.
type openAIAccumulator struct {
	accumulator
	calls    []ToolCall
	index    map[int]int // in calls, by the index of the stream
	finished string      // the finish reason
}

func (s *openAIAccumulator) event(data []byte) error {
	if bytes.Equal(data, []byte("[DONE]")) {
		return nil
	}
	var answer openAIAnswer
	if err := json.Unmarshal(data, &answer); err != nil {
		return err
	}
	if len(answer.Error) > 0 && string(answer.Error) != "null" {
		return errTruncated
	}
	s.reply.Usage = answer.usage(s.reply.Usage)
	if len(answer.Choices) == 0 {
		return nil
	}
	choice := answer.Choices[0]
	if err := s.add(choice.Delta.Content); err != nil {
		return err
	}
	for _, piece := range choice.Delta.ToolCalls {
		if err := s.addCall(piece); err != nil {
			return err
		}
	}
	if choice.FinishReason != "" {
		s.finished = choice.FinishReason
	}
	return nil
}

func (s *openAIAccumulator) addCall(piece openAICall) error {
	if err := s.grow(len(piece.Function.Arguments) + len(piece.Function.Name)); err != nil {
		return err
	}
	at, ok := s.index[piece.Index]
	if ok && piece.ID != "" && s.calls[at].ID != "" && piece.ID != s.calls[at].ID {
		ok = false // some servers number every call 0
	}
	if !ok {
		if len(s.calls) == MaxToolCalls {
			return errTooLong
		}
		if s.index == nil {
			s.index = map[int]int{}
		}
		at = len(s.calls)
		s.index[piece.Index] = at
		s.calls = append(s.calls, ToolCall{})
	}
	call := &s.calls[at]
	if piece.ID != "" {
		call.ID = piece.ID
	}
	call.Name += piece.Function.Name
	call.Arguments += piece.Function.Arguments
	return nil
}

func newOpenAIRequest(m Model, r Request) openAIRequest {
	q := openAIRequest{Model: m.Name, Temperature: m.Temperature, Stop: r.Stop}
	if m.Provider == OpenAI {
		q.MaxCompletionTokens = m.MaxTokens
	} else {
		q.MaxTokens = m.MaxTokens // the older name is what compatible servers know
	}
	if r.System != "" {
		q.Messages = append(q.Messages, openAIMessage{Role: agent.MessageSystem, Content: &r.System})
	}
	for _, message := range r.Messages {
		q.Messages = append(q.Messages, newOpenAIMessage(message))
	}
	for _, tool := range r.Tools {
		q.Tools = append(q.Tools, openAITool{"function", openAIFunction{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters}})
	}
	switch {
	case len(q.Tools) == 0 || r.ToolChoice == "":
	case r.ToolChoice == AnyTool:
		q.ToolChoice = "required"
	default:
		q.ToolChoice = openAITool{"function", openAIFunction{Name: r.ToolChoice}}
	}
	if r.Schema != nil {
		q.ResponseFormat = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": r.Schema}}
	}
	return q
}

func newOpenAIMessage(m Message) openAIMessage {
	message := openAIMessage{Role: m.Role, Content: &m.Content, ToolCallID: m.CallID}
	if m.Role == agent.MessageAssistant && m.Content == "" {
		message.Content = nil
	}
	for _, call := range m.ToolCalls {
		message.ToolCalls = append(message.ToolCalls, openAICall{ID: call.ID, Type: "function", Function: openAIFunction{Name: call.Name, Arguments: call.Arguments}})
	}
	return message
}
