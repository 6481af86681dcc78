package llm

import (
	"context"
	"encoding/json"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
)

const (
	// anthropicTokens is the longest reply when settings name none: Anthropic's
	// API requires a number.
	anthropicTokens  = 4096
	anthropicVersion = "2023-06-01"
)

// The parts of Anthropic's Messages API that are used:
// https://docs.anthropic.com/en/api/messages.
type (
	anthropicRequest struct {
		Model         string             `json:"model"`
		MaxTokens     int                `json:"max_tokens"`
		Temperature   float64            `json:"temperature"`
		System        []anthropicText    `json:"system,omitempty"`
		Messages      []anthropicMessage `json:"messages"`
		Tools         []anthropicTool    `json:"tools,omitempty"`
		ToolChoice    any                `json:"tool_choice,omitempty"`
		StopSequences []string           `json:"stop_sequences,omitempty"`
		OutputConfig  any                `json:"output_config,omitempty"`
		Stream        bool               `json:"stream,omitempty"`
	}
	anthropicText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	anthropicMessage struct {
		Role    string `json:"role"`
		Content []any  `json:"content"` // of the types below
	}
	anthropicToolUse struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	anthropicToolResult struct {
		Type      string          `json:"type"`
		ToolUseID string          `json:"tool_use_id"`
		Content   []anthropicText `json:"content"`
		IsError   bool            `json:"is_error"`
	}
	anthropicTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	anthropicBlock struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	anthropicAnswer struct {
		Content    []anthropicBlock `json:"content"`
		StopReason string           `json:"stop_reason"`
		Usage      anthropicUsage   `json:"usage"`
	}
	anthropicUsage struct {
		InputTokens  int64 `json:"input_tokens"`
		OutputTokens int64 `json:"output_tokens"`
	}
	anthropicEvent struct {
		Type         string          `json:"type"`
		Message      anthropicAnswer `json:"message"`
		ContentBlock anthropicBlock  `json:"content_block"`
		Delta        struct {
			Type        string `json:"type"`
			Text        string `json:"text"`
			PartialJSON string `json:"partial_json"`
			StopReason  string `json:"stop_reason"`
		} `json:"delta"`
		Usage anthropicUsage `json:"usage"`
	}
)

// anthropic requests a reply with Anthropic's Messages API.
func (c *Client) anthropic(ctx context.Context, m Model, r Request, onText func(string) error) (Reply, error) {
	call, err := anthropicCallOf(m, "/v1/messages")
	if err != nil {
		return Reply{}, err
	}
	request := newAnthropicRequest(m, r)
	if onText == nil {
		var answer anthropicAnswer
		if err := c.api.getJSON(ctx, call, request, &answer); err != nil {
			return Reply{}, err
		}
		return answer.reply()
	}
	request.Stream = true
	resp, err := c.api.do(ctx, call, request)
	if err != nil {
		return Reply{}, err
	}
	s := anthropicAccumulator{accumulator: accumulator{onText: onText}}
	if err := events(resp, s.event); err != nil {
		return s.result(), err
	}
	if !s.finished {
		return s.result(), errTruncated
	}
	return withArguments(s.result()), nil
}

// anthropicCallOf returns a call of a route, with the credential. The base
// address in the settings may end in /v1, as for other providers.
func anthropicCallOf(m Model, route string) (egress.Call, error) {
	address, err := endpoint(strings.TrimSuffix(strings.TrimSuffix(m.Address(), "/"), "/v1"), route)
	return egress.Call{URL: address, Headers: map[string]string{"Anthropic-Version": anthropicVersion},
		Auth: agent.APIAuth{Type: "header", Name: "X-Api-Key", Value: m.Key}}, err
}

// anthropicAccumulator assembles a streamed reply.
type anthropicAccumulator struct {
	accumulator
	finished bool
}

func (s *anthropicAccumulator) event(data []byte) error {
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "message_start":
		s.reply.Usage.Input = e.Message.Usage.InputTokens
	case "content_block_start":
		return s.startBlock(e.ContentBlock)
	case "content_block_delta":
		calls := s.reply.ToolCalls
		if e.Delta.Type != "input_json_delta" || len(calls) == 0 {
			return s.add(e.Delta.Text)
		}
		calls[len(calls)-1].Arguments += e.Delta.PartialJSON
		return s.grow(len(e.Delta.PartialJSON))
	case "message_delta":
		s.reply.Usage.Output = e.Usage.OutputTokens
		s.reply.Truncated = e.Delta.StopReason == "max_tokens"
	case "message_stop":
		s.finished = true
	case "error":
		return errTruncated
	}
	return nil
}

func (s *anthropicAccumulator) startBlock(b anthropicBlock) error {
	if b.Type != "tool_use" {
		return s.add(b.Text)
	}
	if len(s.reply.ToolCalls) == MaxToolCalls {
		return errTooLong
	}
	s.reply.ToolCalls = append(s.reply.ToolCalls, ToolCall{ID: b.ID, Name: b.Name})
	return nil
}

// withArguments sets an empty object as the arguments of calls that have none.
func withArguments(r Reply) Reply {
	for i := range r.ToolCalls {
		if r.ToolCalls[i].Arguments == "" {
			r.ToolCalls[i].Arguments = "{}"
		}
	}
	return r
}

func (a *anthropicAnswer) reply() (Reply, error) {
	reply := Reply{Truncated: a.StopReason == "max_tokens", Usage: Usage{Input: a.Usage.InputTokens, Output: a.Usage.OutputTokens}}
	if a.StopReason == "" {
		return reply, errNoReply
	}
	size := 0
	for _, block := range a.Content {
		size += len(block.Text) + len(block.Input)
		switch block.Type {
		case "text":
			reply.Text += block.Text
		case "tool_use":
			reply.ToolCalls = append(reply.ToolCalls, ToolCall{ID: block.ID, Name: block.Name, Arguments: string(block.Input)})
		}
	}
	if size > MaxReply || len(reply.ToolCalls) > MaxToolCalls {
		return Reply{}, errTooLong
	}
	return withArguments(reply), nil
}

func newAnthropicRequest(m Model, r Request) *anthropicRequest {
	q := &anthropicRequest{Model: m.Name, MaxTokens: anthropicTokens, Temperature: min(m.Temperature, 1), // its scale ends at 1
		StopSequences: r.Stop}
	if m.MaxTokens > 0 {
		q.MaxTokens = m.MaxTokens
	}
	if r.System != "" {
		q.System = append(q.System, anthropicText{"text", r.System})
	}
	for _, message := range r.Messages {
		q.add(message)
	}
	for _, tool := range r.Tools {
		q.Tools = append(q.Tools, anthropicTool{tool.Name, tool.Description, tool.Parameters})
	}
	switch {
	case len(q.Tools) == 0 || r.ToolChoice == "":
	case r.ToolChoice == AnyTool:
		q.ToolChoice = map[string]string{"type": "any"}
	default:
		q.ToolChoice = map[string]string{"type": "tool", "name": r.ToolChoice}
	}
	if r.Schema != nil {
		q.OutputConfig = map[string]any{"format": map[string]any{"type": "json_schema", "schema": r.Schema}}
	}
	return q
}

// add adds one message. For Anthropic, tool results are part of a user message, and
// those of one round must be in one message.
func (q *anthropicRequest) add(m Message) {
	switch m.Role {
	case agent.MessageSystem:
		q.System = append(q.System, anthropicText{"text", m.Content})
	case agent.MessageTool:
		q.addBlock("user", anthropicToolResult{Type: "tool_result", ToolUseID: m.CallID, Content: []anthropicText{{"text", m.Content}}})
	case agent.MessageAssistant:
		if m.Content != "" {
			q.addBlock("assistant", anthropicText{"text", m.Content})
		}
		for _, call := range m.ToolCalls {
			input := json.RawMessage(call.Arguments)
			if !json.Valid(input) {
				input = json.RawMessage("{}")
			}
			q.addBlock("assistant", anthropicToolUse{Type: "tool_use", ID: call.ID, Name: call.Name, Input: input})
		}
	default:
		q.addBlock("user", anthropicText{"text", m.Content})
	}
}

// addBlock adds to the last message when it has the same role: roles must
// alternate.
func (q *anthropicRequest) addBlock(role string, block any) {
	if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == role {
		q.Messages[n-1].Content = append(q.Messages[n-1].Content, block)
		return
	}
	q.Messages = append(q.Messages, anthropicMessage{role, []any{block}})
}
