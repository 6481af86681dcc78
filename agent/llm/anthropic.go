package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
		Temperature   *float64           `json:"temperature,omitempty"`
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
		Type       string            `json:"type"`
		Content    []json.RawMessage `json:"content"` // of anthropicBlock
		StopReason string            `json:"stop_reason"`
		Usage      anthropicUsage    `json:"usage"`
	}
	anthropicUsage struct {
		InputTokens  count `json:"input_tokens"`
		OutputTokens count `json:"output_tokens"`
	}
	anthropicEvent struct {
		Type         string          `json:"type"`
		Message      anthropicAnswer `json:"message"`
		ContentBlock json.RawMessage `json:"content_block"`
		Delta        struct {
			Type        string `json:"type"`
			Text        string `json:"text"`
			PartialJSON string `json:"partial_json"`
			Thinking    string `json:"thinking"`
			Signature   string `json:"signature"`
			StopReason  string `json:"stop_reason"`
		} `json:"delta"`
		Usage *anthropicUsage `json:"usage"`
	}
)

// anthropic requests a reply with Anthropic's Messages API.
func (c *Client) anthropic(
	ctx context.Context,
	model Model,
	r Request,
	omit omission,
	onText func(string) error,
) (Reply, error) {
	call, err := anthropicCallOf(model, "/v1/messages")
	if err != nil {
		return Reply{}, err
	}
	request := newAnthropicRequest(model, r, omit)
	request.Stream = onText != nil
	resp, err := c.api.do(ctx, call, request)
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	s := anthropicAccumulator{accumulator: accumulator{onText: onText}}
	body, isStream := sniff(resp.Body)
	if isStream {
		err = events(body, s.event)
	} else {
		err = whole(body, s.answer)
	}
	if err != nil {
		return s.result(), err
	}
	return s.finish()
}

// anthropicCallOf returns a call of a route, with the credential. The base
// address in the settings may end in /v1, as for other providers.
func anthropicCallOf(m Model, route string) (egress.Call, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(m.Address(), "/"), "/messages")
	address, err := endpoint(strings.TrimSuffix(base, "/v1"), route)
	return egress.Call{
		URL:     address,
		Headers: map[string]string{"Anthropic-Version": anthropicVersion},
		Auth:    agent.APIAuth{Type: "header", Name: "X-Api-Key", Value: m.Key},
	}, err
}

// anthropicAccumulator assembles a reply.
type anthropicAccumulator struct {
	accumulator
	blocks  []*anthropicPieces
	hidden  bool // there are blocks besides text and calls
	began   bool
	stopped bool   // all of it has arrived
	reason  string // why it ends
}

// anthropicPieces is a block of which there may be more pieces.
type anthropicPieces struct {
	fields    fieldPieces // as the provider sent them
	kind      string
	call      ToolCall
	arguments []byte // pieces of JSON, in place of the input at its start
}

func (s *anthropicAccumulator) event(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	var e anthropicEvent
	if err := decode(data, &e); err != nil {
		return err
	}
	if e.Usage != nil && e.Usage.OutputTokens > 0 {
		s.reply.Usage.Output = int64(e.Usage.OutputTokens)
	}
	switch e.Type {
	case "message_start":
		s.began = true
		s.reply.Usage.Input = int64(e.Message.Usage.InputTokens)
	case "content_block_start":
		return s.startBlock(e.ContentBlock)
	case "content_block_delta":
		return s.addDelta(&e)
	case "message_delta":
		s.reason = e.Delta.StopReason
	case "message_stop":
		s.stopped = true
	case "error":
		if s.size > 0 {
			return errTruncated
		}
		return errorInAnswer(data)
	}
	return nil
}

// answer adds a whole answer.
func (s *anthropicAccumulator) answer(data []byte) error {
	if data[0] != '{' {
		return nil // the end
	}
	var a anthropicAnswer
	if err := decode(data, &a); err != nil {
		return err
	}
	if a.Type == "error" {
		return errorInAnswer(data)
	}
	s.began, s.stopped, s.reason = a.StopReason != "", true, a.StopReason
	s.reply.Usage = Usage{Input: int64(a.Usage.InputTokens), Output: int64(a.Usage.OutputTokens)}
	for _, block := range a.Content {
		if err := s.startBlock(block); err != nil {
			return err
		}
	}
	return nil
}

// startBlock adds a block, or its first piece.
func (s *anthropicAccumulator) startBlock(raw json.RawMessage) error {
	var b anthropicBlock
	var fields map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &b), json.Unmarshal(raw, &fields)); err != nil {
		return err
	}
	block := &anthropicPieces{kind: b.Type}
	block.fields.add(fields)
	s.blocks = append(s.blocks, block)
	switch b.Type {
	case "text":
		return s.add(b.Text)
	case "tool_use":
		if s.calls() > MaxToolCalls {
			return errTooLong
		}
		block.call = ToolCall{
			ID:        b.ID,
			Name:      b.Name,
			Arguments: string(b.Input),
		}
	default:
		s.hidden = true
	}
	return s.grow(len(raw))
}

func (s *anthropicAccumulator) calls() (n int) {
	for _, block := range s.blocks {
		if block.kind == "tool_use" {
			n++
		}
	}
	return n
}

func (s *anthropicAccumulator) addDelta(e *anthropicEvent) error {
	if len(s.blocks) == 0 {
		return s.add(e.Delta.Text)
	}
	block := s.blocks[len(s.blocks)-1]
	block.addText("text", e.Delta.Text)
	block.addText("thinking", e.Delta.Thinking)
	block.addText("signature", e.Delta.Signature)
	block.arguments = append(block.arguments, e.Delta.PartialJSON...)
	if err := s.grow(len(e.Delta.PartialJSON) + len(e.Delta.Thinking) + len(e.Delta.Signature)); err != nil {
		return err
	}
	return s.add(e.Delta.Text)
}

func (p *anthropicPieces) addText(field, piece string) {
	if piece != "" {
		p.fields[field] = mergePiece(p.fields[field], piece, true)
	}
}

// finish returns the reply once all of it has arrived.
func (s *anthropicAccumulator) finish() (Reply, error) {
	err := s.end()
	for _, block := range s.blocks {
		if block.kind != "tool_use" {
			continue
		}
		if len(block.arguments) > 0 {
			block.call.Arguments = string(block.arguments)
		}
		s.reply.ToolCalls = append(s.reply.ToolCalls, block.call)
	}
	s.reply.Truncated = s.reason == "max_tokens" || s.reason == "model_context_window_exceeded"
	reply := withUsableCalls(s.result())
	if s.hidden {
		reply.Hidden.Blocks = s.rawBlocks()
	}
	switch {
	case err != nil:
		return reply, err
	case !s.began:
		return reply, errNoReply
	case !s.stopped:
		return reply, errTruncated
	case s.reason == "refusal" && reply.Text == "" && len(reply.ToolCalls) == 0:
		return reply, errRefused
	}
	return reply, nil
}

// rawBlocks returns all blocks as the provider requires them back.
func (s *anthropicAccumulator) rawBlocks() []json.RawMessage {
	list := make([]json.RawMessage, 0, len(s.blocks))
	for _, block := range s.blocks {
		fields := block.fields.fields()
		if json.Valid(block.arguments) {
			fields["input"] = block.arguments
		}
		if block.kind == "text" && string(fields["text"]) == `""` {
			continue // refused in a request
		}
		if raw, err := json.Marshal(fields); err == nil {
			list = append(list, raw)
		}
	}
	return list
}

func newAnthropicRequest(model Model, request Request, omit omission) *anthropicRequest {
	q := &anthropicRequest{Model: model.Name, MaxTokens: cmp.Or(max(model.MaxTokens, 0), anthropicTokens)}
	if model.Temperature != nil && !omit[temperatureParameter] {
		q.Temperature = new(float64)
		*q.Temperature = min(*model.Temperature, 1) // its scale ends at 1
	}
	if !omit[stopParameter] {
		q.StopSequences = request.Stop
	}
	if request.Schema != nil && omit[schemaParameter] {
		request.System += schemaPrompt(request.Schema)
	} else if request.Schema != nil {
		q.OutputConfig = map[string]any{"format": map[string]any{"type": "json_schema", "schema": request.Schema}}
	}
	system, messages := alternating(request.System, request.Messages)
	if system != "" {
		q.System = append(q.System, anthropicText{"text", system})
	}
	for _, message := range messages {
		q.add(message, omit)
	}
	if omit[toolsParameter] {
		return q
	}
	for _, tool := range request.Tools {
		q.Tools = append(q.Tools, anthropicTool{tool.Name, tool.Description, tool.schema()})
	}
	switch {
	case len(q.Tools) == 0 || request.ToolChoice == "" || omit[toolChoiceParameter]:
	case request.ToolChoice == AnyTool:
		q.ToolChoice = map[string]string{"type": "any"}
	default:
		q.ToolChoice = map[string]string{"type": "tool", "name": request.ToolChoice}
	}
	return q
}

// add adds one message. For Anthropic, tool results are part of a user message, and
// those of one round must be in one message.
func (q *anthropicRequest) add(message Message, omit omission) {
	switch message.Role {
	case agent.MessageTool:
		q.addBlock("user", anthropicToolResult{
			Type:      "tool_result",
			ToolUseID: message.CallID,
			Content:   []anthropicText{{"text", message.Content}},
		})
	case agent.MessageAssistant:
		if message.Hidden.Blocks != nil && !omit[hiddenParameter] {
			for _, block := range message.Hidden.Blocks {
				q.addBlock("assistant", block)
			}
			return
		}
		if message.Content != "" {
			q.addBlock("assistant", anthropicText{"text", message.Content})
		}
		for _, call := range message.ToolCalls {
			input := json.RawMessage(call.Arguments)
			if !json.Valid(input) {
				input = json.RawMessage("{}")
			}
			q.addBlock("assistant", anthropicToolUse{
				Type:  "tool_use",
				ID:    call.ID,
				Name:  call.Name,
				Input: input,
			})
		}
	default:
		q.addBlock("user", anthropicText{"text", message.Content})
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
