package llm

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"satchel/agent"
)

// anthropicTokens is the longest reply when settings name none: Anthropic's
// interface wants a number.
const anthropicTokens = 4096

// anthropic asks over Anthropic's messages:
// https://docs.anthropic.com/en/api/messages.
func (c *Client) anthropic(ctx context.Context, m Model, r Request, onText func(string) error) (Reply, error) {
	service := anthropic.NewMessageService(c.anthropicOptions(m, retries)...)
	params, err := anthropicParams(m, r)
	if err != nil {
		return Reply{}, err
	}
	if onText == nil {
		answer, err := service.New(ctx, params)
		if err != nil {
			return Reply{}, err
		}
		return wholeAnthropic(answer)
	}
	stream := service.NewStreaming(ctx, params)
	defer stream.Close()
	g := gathered{onText: onText}
	finished := false
	for stream.Next() {
		event := stream.Current()
		if err := g.grow(len(event.Delta.PartialJSON)); err != nil {
			return g.result(), err
		}
		switch event.Type {
		case "message_start":
			g.reply.Usage.Input = event.Message.Usage.InputTokens
		case "content_block_start":
			if event.ContentBlock.Type == "tool_use" {
				if len(g.reply.ToolCalls) == MaxToolCalls {
					return g.result(), errEndless
				}
				g.reply.ToolCalls = append(g.reply.ToolCalls, ToolCall{ID: event.ContentBlock.ID, Name: event.ContentBlock.Name})
			} else if err := g.add(event.ContentBlock.Text); err != nil {
				return g.result(), err
			}
		case "content_block_delta":
			if event.Delta.Type == "input_json_delta" && len(g.reply.ToolCalls) > 0 {
				g.reply.ToolCalls[len(g.reply.ToolCalls)-1].Arguments += event.Delta.PartialJSON
			} else if err := g.add(event.Delta.Text); err != nil {
				return g.result(), err
			}
		case "message_delta":
			g.reply.Usage.Output = event.Usage.OutputTokens
			g.reply.Truncated = event.Delta.StopReason == anthropic.StopReasonMaxTokens
		case "message_stop":
			finished = true
		}
	}
	if err := stream.Err(); err != nil {
		return g.result(), err
	}
	if !finished {
		return g.result(), errCut
	}
	return withArguments(g.result()), nil
}

// withArguments writes the empty object where a call has no arguments.
func withArguments(r Reply) Reply {
	for i := range r.ToolCalls {
		if r.ToolCalls[i].Arguments == "" {
			r.ToolCalls[i].Arguments = "{}"
		}
	}
	return r
}

func wholeAnthropic(answer *anthropic.Message) (Reply, error) {
	reply := Reply{Truncated: answer.StopReason == anthropic.StopReasonMaxTokens,
		Usage: Usage{Input: answer.Usage.InputTokens, Output: answer.Usage.OutputTokens}}
	if answer.StopReason == "" {
		return reply, errNoReply
	}
	size := 0
	for _, block := range answer.Content {
		size += len(block.Text) + len(block.Input)
		switch block.Type {
		case "text":
			reply.Text += block.Text
		case "tool_use":
			reply.ToolCalls = append(reply.ToolCalls, ToolCall{ID: block.ID, Name: block.Name, Arguments: string(block.Input)})
		}
	}
	if size > MaxReply || len(reply.ToolCalls) > MaxToolCalls {
		return Reply{}, errEndless
	}
	return withArguments(reply), nil
}

func anthropicParams(m Model, r Request) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: m.Name, MaxTokens: anthropicTokens,
		Temperature: param.NewOpt(min(m.Temperature, 1))} // its scale ends at 1
	if m.MaxTokens > 0 {
		p.MaxTokens = int64(m.MaxTokens)
	}
	if r.System != "" {
		p.System = append(p.System, anthropic.TextBlockParam{Text: r.System})
	}
	for _, message := range r.Messages {
		addAnthropic(&p, message)
	}
	for _, tool := range r.Tools {
		var schema struct {
			Properties any      `json:"properties"`
			Required   []string `json:"required"`
		}
		var rest map[string]any
		if err := json.Unmarshal(tool.Parameters, &schema); err != nil {
			return p, err
		}
		if err := json.Unmarshal(tool.Parameters, &rest); err != nil {
			return p, err
		}
		for _, known := range []string{"type", "properties", "required"} {
			delete(rest, known)
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: tool.Name, Description: param.NewOpt(tool.Description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: schema.Properties, Required: schema.Required, ExtraFields: rest},
		}})
	}
	switch {
	case len(p.Tools) == 0 || r.ToolChoice == "":
	case r.ToolChoice == AnyTool:
		p.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{}
	default:
		p.ToolChoice = anthropic.ToolChoiceParamOfTool(r.ToolChoice)
	}
	p.StopSequences = r.Stop
	if r.Schema != nil {
		if err := json.Unmarshal(r.Schema, &p.OutputConfig.Format.Schema); err != nil {
			return p, err
		}
	}
	return p, nil
}

// addAnthropic adds one turn. Results of tools are the user's turn there, and
// those of one round must be in one message.
func addAnthropic(p *anthropic.MessageNewParams, m Message) {
	switch m.Role {
	case agent.MessageSystem:
		p.System = append(p.System, anthropic.TextBlockParam{Text: m.Content})
	case agent.MessageTool:
		appendBlock(p, anthropic.MessageParamRoleUser, anthropic.NewToolResultBlock(m.CallID, m.Content, false))
	case agent.MessageAssistant:
		if m.Content != "" {
			appendBlock(p, anthropic.MessageParamRoleAssistant, anthropic.NewTextBlock(m.Content))
		}
		for _, call := range m.ToolCalls {
			input := json.RawMessage(call.Arguments)
			if !json.Valid(input) {
				input = json.RawMessage("{}")
			}
			appendBlock(p, anthropic.MessageParamRoleAssistant, anthropic.NewToolUseBlock(call.ID, input, call.Name))
		}
	default:
		appendBlock(p, anthropic.MessageParamRoleUser, anthropic.NewTextBlock(m.Content))
	}
}

// appendBlock adds to the last message when it is of the same role: roles must
// alternate.
func appendBlock(p *anthropic.MessageNewParams, role anthropic.MessageParamRole, block anthropic.ContentBlockParamUnion) {
	if n := len(p.Messages); n > 0 && p.Messages[n-1].Role == role {
		p.Messages[n-1].Content = append(p.Messages[n-1].Content, block)
		return
	}
	p.Messages = append(p.Messages, anthropic.MessageParam{Role: role, Content: []anthropic.ContentBlockParamUnion{block}})
}
