package llm

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"satchel/agent"
)

// openAI asks over OpenAI's chat completions, which every other provider but
// Anthropic speaks: https://platform.openai.com/docs/api-reference/chat.
func (c *Client) openAI(ctx context.Context, m Model, r Request, onText func(string) error) (Reply, error) {
	service := openai.NewChatCompletionService(c.openAIOptions(m, retries)...) // not NewClient, which reads the environment
	params, err := openAIParams(m, r)
	if err != nil {
		return Reply{}, err
	}
	if onText == nil {
		answer, err := service.New(ctx, params)
		if err != nil {
			return Reply{}, err
		}
		return wholeOpenAI(answer)
	}
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	stream := service.NewStreaming(ctx, params)
	defer stream.Close()
	g := gathered{onText: onText}
	var calls openAICalls
	finished := ""
	for stream.Next() {
		chunk := stream.Current()
		g.reply.Usage = openAIUsage(chunk.Usage, g.reply.Usage)
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		if err := g.add(choice.Delta.Content); err != nil {
			return g.result(), err
		}
		for _, piece := range choice.Delta.ToolCalls {
			if err := g.grow(len(piece.Function.Arguments) + len(piece.Function.Name)); err != nil {
				return g.result(), err
			}
			if err := calls.add(piece); err != nil {
				return g.result(), err
			}
		}
		if choice.FinishReason != "" {
			finished = choice.FinishReason
		}
	}
	if err := stream.Err(); err != nil {
		return g.result(), err
	}
	if finished == "" {
		return g.result(), errCut
	}
	g.reply.Truncated = finished == "length"
	g.reply.ToolCalls = calls.list
	return g.result(), nil
}

func wholeOpenAI(answer *openai.ChatCompletion) (Reply, error) {
	if len(answer.Choices) == 0 {
		return Reply{}, errNoReply
	}
	choice := answer.Choices[0]
	reply := Reply{Text: choice.Message.Content, Truncated: choice.FinishReason == "length", Usage: openAIUsage(answer.Usage, Usage{})}
	size := len(reply.Text)
	for _, call := range choice.Message.ToolCalls {
		size += len(call.Function.Arguments)
		reply.ToolCalls = append(reply.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	if size > MaxReply || len(reply.ToolCalls) > MaxToolCalls {
		return Reply{}, errEndless
	}
	return reply, nil
}

func openAIUsage(u openai.CompletionUsage, before Usage) Usage {
	if u.PromptTokens == 0 && u.CompletionTokens == 0 {
		return before
	}
	return Usage{Input: u.PromptTokens, Output: u.CompletionTokens}
}

// openAICalls puts streamed tool calls together: pieces carry the index of
// their call, and only the first of each its id and name.
type openAICalls struct {
	list  []ToolCall
	index map[int64]int
}

func (c *openAICalls) add(piece openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	if c.index == nil {
		c.index = map[int64]int{}
	}
	at, ok := c.index[piece.Index]
	if ok && piece.ID != "" && c.list[at].ID != "" && piece.ID != c.list[at].ID {
		ok = false // some servers number every call 0
	}
	if !ok {
		if len(c.list) == MaxToolCalls {
			return errEndless
		}
		at = len(c.list)
		c.index[piece.Index] = at
		c.list = append(c.list, ToolCall{})
	}
	call := &c.list[at]
	if piece.ID != "" {
		call.ID = piece.ID
	}
	call.Name += piece.Function.Name
	call.Arguments += piece.Function.Arguments
	return nil
}

func openAIParams(m Model, r Request) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: m.Name, Temperature: param.NewOpt(m.Temperature)}
	if m.MaxTokens > 0 && m.Provider == OpenAI {
		p.MaxCompletionTokens = param.NewOpt(int64(m.MaxTokens))
	} else if m.MaxTokens > 0 {
		p.MaxTokens = param.NewOpt(int64(m.MaxTokens)) // the older name is what compatible servers know
	}
	if r.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(r.System))
	}
	for _, message := range r.Messages {
		p.Messages = append(p.Messages, openAIMessage(message))
	}
	for _, tool := range r.Tools {
		function := shared.FunctionDefinitionParam{Name: tool.Name, Description: param.NewOpt(tool.Description)}
		if err := json.Unmarshal(tool.Parameters, &function.Parameters); err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(function))
	}
	switch {
	case len(p.Tools) == 0 || r.ToolChoice == "":
	case r.ToolChoice == AnyTool:
		p.ToolChoice.OfAuto = param.NewOpt("required")
	default:
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: r.ToolChoice})
	}
	if len(r.Stop) > 0 {
		p.Stop.OfStringArray = r.Stop
	}
	if r.Schema != nil {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: r.Schema},
		}
	}
	return p, nil
}

func openAIMessage(m Message) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case agent.MessageSystem:
		return openai.SystemMessage(m.Content)
	case agent.MessageTool:
		return openai.ToolMessage(m.Content, m.CallID)
	case agent.MessageAssistant:
		said := openai.AssistantMessage(m.Content)
		if m.Content == "" {
			said.OfAssistant.Content = openai.ChatCompletionAssistantMessageParamContentUnion{}
		}
		for _, call := range m.ToolCalls {
			said.OfAssistant.ToolCalls = append(said.OfAssistant.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: call.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: call.Arguments}},
			})
		}
		return said
	}
	return openai.UserMessage(m.Content)
}
